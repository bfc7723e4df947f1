//! What a coordinator finds when it starts: its queue, and the runs of its jobs.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use exact2048_coordinator::cluster::{Config, JobId, LeastMemory, Submission};
use exact2048_coordinator::missing_segments;
use exact2048_game::Params;
use exact2048_run::{Run, RunError};
use exact2048_storage::{Location, StorageError};
use exact2048_worker::least_memory_bytes;
use tokio_util::sync::CancellationToken;

use super::job_run::{Contents, JobRun};
use super::queue::{Queue, QueuedJob};
use super::shell::{Known, Shell};
use crate::random;

/// Numbers of threads of a worker for which the least memory is worked out. It grows evenly in between.
const THREADS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Least memory of a worker for a job. Takes a while for large boards.
pub(super) fn least_memory(params: &Params) -> LeastMemory {
    let of = |threads: u32| (threads, least_memory_bytes(params, threads as usize));
    LeastMemory::new(THREADS.map(of).to_vec())
}

/// The run of a job as it is now: only read if nothing is missing or the job is not to be worked on, else open for
/// writing.
fn open(
    location: &Location,
    params: &Params,
    may_write: bool,
) -> Result<(Option<JobRun>, Contents), RunError> {
    match Run::open(location) {
        Ok(run) => {
            run.require(params)?;
            if !may_write || (run.missing().is_empty() && run.absent()?.is_empty()) {
                return Ok((None, Contents::of(&run)));
            }
        }
        Err(RunError::Storage(StorageError::NotARun { .. })) if may_write => {}
        Err(RunError::Storage(StorageError::NotARun { .. })) => {
            return Ok((None, Contents { params: params.clone(), commits: Vec::new(), bytes: 0 }));
        }
        Err(error) => return Err(error),
    }
    let (run, contents) = JobRun::begin(location, params)?;
    Ok((Some(run), contents))
}

/// A job with its run, ready for the cluster.
pub(super) struct Opened {
    pub known: Known,
    pub submission: Submission,
}

impl Opened {
    /// Opens the run of a job; begins it, if there is none and `may_write`. What memory it needs is asked for only if it
    /// is to be worked on now.
    ///
    /// # Errors
    ///
    /// Those of opening a run.
    pub fn new(
        location: Location,
        job: JobId,
        params: &Params,
        may_write: bool,
        least_memory: impl FnOnce() -> LeastMemory,
    ) -> Result<Self> {
        let url = location.url()?;
        let (run, contents) = open(&location, params, may_write)?;
        let opening = run.as_ref().map_or(0, JobRun::opening);
        let known = Known {
            params: contents.params.clone(),
            location,
            url,
            stopped: run.is_none(),
            run: run.map(|run| Arc::new(Mutex::new(run))),
            opening,
            unavailable: None,
            checking: false,
            trouble: None,
        };
        let Contents { params, commits, bytes: committed_bytes } = contents;
        let is_to_do = may_write && !missing_segments(&params, &commits).is_empty();
        let least_memory = if is_to_do { least_memory() } else { LeastMemory::new(Vec::new()) };
        let submission = Submission { job, params, commits, committed_bytes, least_memory };
        Ok(Self { known, submission })
    }

    /// Whether there is nothing to do for the job.
    pub fn is_done(&self) -> bool {
        missing_segments(&self.submission.params, &self.submission.commits).is_empty()
    }
}

impl Shell {
    /// Takes over a store, and goes on with what is in its queue. Blocks on the store. `stop` is cancelled when another
    /// coordinator takes the store over.
    ///
    /// A job whose run cannot be opened fails, and the others go on.
    ///
    /// # Errors
    ///
    /// Those of opening the queue, among them [`StorageError::Locked`] if another coordinator on this machine has it.
    pub fn open(store: Location, config: Config, stop: CancellationToken) -> Result<Arc<Self>> {
        let secrets = random::secrets()?;
        let (queue, jobs) = Queue::open(&store)?;
        tracing::info!(%store, fence = queue.fence(), jobs = jobs.len(), "took over the store");
        let shell = Self::new(store, queue, config, secrets, stop);
        jobs.into_iter().try_for_each(|job| shell.restore(job))?;
        Ok(Arc::new(shell))
    }

    fn restore(&self, queued: QueuedJob) -> Result<()> {
        let QueuedJob { job, params, cancelled } = queued;
        let location = self.store.child(&job.0)?;
        let url = location.url()?;
        let opened =
            Opened::new(location.clone(), job.clone(), &params, !cancelled, || least_memory(&params));
        match opened {
            Ok(opened) => self.with(|state, now| {
                let is_done = opened.is_done();
                state.jobs.insert(job.clone(), opened.known);
                state.cluster.enqueue(now, opened.submission)?;
                if cancelled && !is_done {
                    state.cluster.cancel(now, &job)?;
                }
                Ok(())
            }),
            Err(error) => {
                let reason = format!("{error:#}");
                tracing::error!(%job, reason, "the run of a job cannot be opened");
                let known = Known {
                    params,
                    location,
                    url,
                    run: None,
                    opening: 0,
                    unavailable: Some(reason),
                    stopped: true,
                    checking: false,
                    trouble: None,
                };
                self.with(|state, _| state.jobs.insert(job, known));
                Ok(())
            }
        }
    }
}
