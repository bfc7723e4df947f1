//! Carries out the orders of the pure code: appends, opening and release of runs, and reading of shards. The code
//! blocks on the store while pulls are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{
    Append, AppendFailure, Claim, Examined, JobId, OpenFailure, OpenTicket, Opened, RunBytes, StoreCheck,
    WorkerId,
};
use exact2048_net::text::with_causes;
use exact2048_solution::RunError;
use exact2048_storage::{ErrorKind, RunDir};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::estimates::JobEstimate;
use super::job_run::{Contents, DiskLimit, JobRun, RecordError};
use super::queue_records::QueueRecord;
use super::shell::{HeldRun, Shell};
use super::{AppendError, is_out_of_files, observe, recheck, records};

/// The pause before a failed attempt to write the end or the progress of a job to the queue is repeated.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// Work on the journals of jobs.
#[derive(Clone)]
pub(super) enum Work {
    Append(Append),
    /// To open the run of a job; how many times the usual room is left free, where its disk has a limit.
    Open {
        ticket: OpenTicket,
        job: JobId,
        times: u64,
        may_make: bool,
    },
    /// Checks that the store and the run of a job are in their place.
    Look(JobId),
    /// Releases the runs that are no longer needed, so that other processes can open them.
    Release,
}

impl Shell {
    /// Carries out what the cluster asks for, one thing at a time, until the coordinator stops: what is under way
    /// then is carried out.
    pub(super) async fn carry_out(self: Arc<Self>) {
        let Some((mut work, news)) = self.receivers.lock().take() else { return };
        let noting = tokio::spawn(Arc::clone(&self).note_jobs(news));
        while let Some(Some(work)) = self.stop.run_until_cancelled(work.recv()).await {
            let (shell, asked) = (Arc::clone(&self), work.clone());
            let done = tokio::task::spawn_blocking(move || match asked {
                Work::Append(append) => shell.append_for(&append),
                Work::Open { ticket, job, times, may_make } => shell.open_for(ticket, &job, times, may_make),
                Work::Look(job) => shell.find_run(&job),
                Work::Release => shell.release(),
            });
            if let Err(panic) = done.await {
                tracing::error!(%panic, "work on a journal panicked");
                self.give_up(&work);
            }
        }
        let _ = noting.await;
    }

    /// Tells the cluster that work panicked: it waits for an answer.
    fn give_up(self: &Arc<Self>, work: &Work) {
        let why = || "the coordinator failed; see its log".to_owned();
        self.with(|state, now| match work {
            Work::Append(append) => {
                state.cluster.append_failed(now, append.ticket(), AppendFailure::Journal(why()));
            }
            Work::Open { ticket, .. } => state.cluster.not_opened(now, *ticket, OpenFailure::Never(why())),
            Work::Look(job) => state.cluster.store_checked(now, job, StoreCheck::There),
            Work::Release => {}
        });
    }

    /// Makes an append, and tells the cluster what became of it. Blocks on the store.
    fn append_for(self: &Arc<Self>, append: &Append) {
        let ticket = append.ticket();
        let failure = match self.append(append) {
            Ok(stored) => {
                return self.with(|state, now| state.cluster.committed(now, ticket, stored));
            }
            Err(Refused::Never(worker, reason)) => {
                tracing::error!(job = %append.job(), reason, "cannot commit a range");
                return self.with(|state, now| state.cluster.commit_refused(now, ticket, worker, reason));
            }
            Err(Refused::Append(AppendError::Fenced(reason))) => return self.fence(reason),
            Err(Refused::Append(AppendError::Foreign(reason))) => {
                tracing::error!(job = %append.job(), reason, "another process writes to a journal");
                AppendFailure::Foreign(reason)
            }
            Err(Refused::Append(AppendError::Failed(error))) => {
                observe::append_failed(append, &error);
                let reason = with_causes(&error);
                if is_of_store(&error) {
                    AppendFailure::Store(reason)
                } else {
                    // This journal is to blame only where the queue can be written.
                    match self.queue.lock().require_store() {
                        Ok(()) => AppendFailure::Journal(reason),
                        Err(AppendError::Fenced(reason)) => return self.fence(reason),
                        Err(error) => AppendFailure::Store(with_causes(&error)),
                    }
                }
            }
        };
        self.with(|state, now| state.cluster.append_failed(now, ticket, failure));
    }

    /// Makes an append, and returns what the run takes after it.
    fn append(self: &Arc<Self>, append: &Append) -> Result<RunBytes, Refused> {
        let record = records::of_append(append).map_err(|reason| Refused::Never(None, reason))?;
        let run = self.run_of(append.job())?;
        let mut run = run.lock();
        let appended = run.append(&record, || self.queue.lock().confirm());
        let (opening, stored) = (run.opening(), run.stored());
        drop(run);
        self.with(|state, _| {
            if let Some(held) = state.jobs.get_mut(append.job()).and_then(|known| known.held.as_mut()) {
                held.opening = opening;
            }
        });
        appended.map_err(|error| Refused::of(error, append))?;
        Ok(stored)
    }

    /// The run of a job. If it is not open, it is opened, and nothing of it is removed.
    fn run_of(self: &Arc<Self>, job: &JobId) -> Result<Arc<Mutex<JobRun>>, Refused> {
        let found = self.with(|state, _| {
            let known = state.jobs.get(job)?;
            let closed = || Err((known.location.clone(), known.disk_limit));
            Some(known.held.as_ref().map_or_else(closed, |held| Ok(Arc::clone(&held.run))))
        });
        match found {
            Some(Ok(run)) => Ok(run),
            Some(Err((location, limit_bytes))) => {
                self.queue.lock().confirm()?;
                let (run, _) = JobRun::go_on(&location, limit_bytes).map_err(AppendError::Failed)?;
                Ok(self.hold(job, run))
            }
            None => Err(Refused::Never(None, format!("job {job} does not exist"))),
        }
    }

    /// Keeps the run of a job open.
    fn hold(self: &Arc<Self>, job: &JobId, run: JobRun) -> Arc<Mutex<JobRun>> {
        let (opening, run) = (run.opening(), Arc::new(Mutex::new(run)));
        self.with(|state, _| {
            if let Some(known) = state.jobs.get_mut(job) {
                known.held = Some(HeldRun { run: Arc::clone(&run), opening });
            }
        });
        run
    }

    /// Opens the run of a job whose turn has come, and tells the cluster what it holds. Blocks on the store.
    fn open_for(self: &Arc<Self>, ticket: OpenTicket, job: &JobId, times: u64, may_make: bool) {
        match self.open_run(ticket, job, times, may_make) {
            Ok(Some(opened)) => self.with(|state, now| state.cluster.opened(now, ticket, opened)),
            // The job was cancelled meanwhile.
            Ok(None) => {}
            Err(AppendError::Fenced(reason)) => self.fence(reason),
            Err(error) => {
                let reason = with_causes(&error);
                tracing::warn!(%job, reason, "cannot open the run of a job");
                let why = match &error {
                    AppendError::Failed(error) if may_be_opened_later(error) => OpenFailure::Later(reason),
                    // The job is to blame only where the store is there, and can be written.
                    _ => match self.queue.lock().require_store() {
                        Ok(()) => OpenFailure::Never(reason),
                        Err(AppendError::Fenced(reason)) => return self.fence(reason),
                        Err(error) => OpenFailure::Later(with_causes(&error)),
                    },
                };
                self.with(|state, now| state.cluster.not_opened(now, ticket, why));
            }
        }
    }

    /// Opens a run; `None` where that is not asked for any more. A run is made only while the queue, which is in the same
    /// store, is in its place, and the queue says then that it was made.
    fn open_run(
        self: &Arc<Self>,
        ticket: OpenTicket,
        job: &JobId,
        times: u64,
        may_make: bool,
    ) -> Result<Option<Opened>, AppendError> {
        let found = self.with(|state, _| {
            let known = state.jobs.get_mut(job).filter(|_| state.cluster.is_opening(ticket))?;
            // An open run is released first, because it holds the lock.
            drop(known.held.take());
            Some((known.location.clone(), known.params.clone(), known.disk_limit))
        });
        let Some((location, params, limit_bytes)) = found else { return Ok(None) };
        self.queue.lock().confirm()?;
        let limit = limit_bytes.map(|bytes| DiskLimit { bytes, times });
        let opened = if may_make {
            JobRun::begin(&location, &params, limit)?
        } else {
            JobRun::resume(&location, &params, limit).map_err(|error| missing_run(job, error))?
        };
        if may_make {
            self.queue.lock().append(&QueueRecord::Begun { job: job.clone() })?;
        }
        let (run, contents, missing_bytes) = opened;
        let Contents { params, holdings, stored } = contents;
        let JobEstimate { least_memory, workload, cost } = self.estimates.of(&params);
        let held = HeldRun { opening: run.opening(), run: Arc::new(Mutex::new(run)) };
        let is_held = self.with(|state, _| {
            // There may be another job of this name by now.
            let known = state.jobs.get_mut(job).filter(|_| state.cluster.is_opening(ticket))?;
            known.held = Some(held);
            known.params = params.clone();
            Some(())
        });
        Ok(is_held.map(|()| Opened { params, holdings, stored, missing_bytes, least_memory, workload, cost }))
    }

    /// Checks that the store and the run of a job are in place, and reports to the cluster. Blocks on the store.
    fn find_run(self: &Arc<Self>, job: &JobId) {
        let location = self.with(|state, _| state.jobs.get(job).map(|known| known.location.clone()));
        let looked = match (self.queue.lock().require_store(), location) {
            (Ok(()), Some(location)) => RunDir::find(&location).map_err(AppendError::from),
            (Ok(()), None) => return,
            (Err(error), _) => Err(error),
        };
        let found = match looked {
            Ok(Some(_)) => StoreCheck::There,
            Ok(None) => StoreCheck::Away(gone(job)),
            Err(AppendError::Fenced(reason)) => return self.fence(reason),
            Err(error) => StoreCheck::Away(with_causes(&error)),
        };
        self.with(|state, now| state.cluster.store_checked(now, job, found));
    }

    /// Releases the runs that are no longer needed, so that other processes can open them.
    fn release(self: &Arc<Self>) {
        let runs: Vec<HeldRun> = self.with(|state, _| {
            let not_needed = state.not_needed();
            not_needed.iter().filter_map(|job| state.jobs.get_mut(job)?.held.take()).collect()
        });
        drop(runs);
    }

    /// Reads a shard that a worker cannot read, while everything else goes on.
    pub(super) fn examine(self: &Arc<Self>, claim: Claim) {
        let shell = Arc::clone(self);
        tokio::spawn(async move {
            let location = shell.with(|state, _| Some(state.jobs.get(&claim.job)?.location.clone()));
            let asked = claim.clone();
            let found = tokio::task::spawn_blocking(move || match location {
                Some(location) => recheck::examine(&location, &asked),
                None => Examined::Unknown(format!("job {} does not exist", asked.job)),
            });
            let found = found.await.unwrap_or_else(|panic| Examined::Unknown(panic.to_string()));
            shell.with(|state, now| state.cluster.examined(now, &claim, found));
        });
    }

    /// Writes the ends and the progress of jobs to the queue, so that the next coordinator need not open their runs. What
    /// cannot be written is tried again. A coordinator that stops writes the counts that it has not written yet.
    async fn note_jobs(self: Arc<Self>, mut news: mpsc::UnboundedReceiver<JobId>) {
        let (mut waiting, mut written) = (BTreeSet::new(), BTreeMap::new());
        loop {
            let next = if waiting.is_empty() {
                self.stop.run_until_cancelled(news.recv()).await
            } else {
                let soon = tokio::time::sleep(NOTE_AGAIN);
                tokio::select! {
                    next = news.recv() => Some(next),
                    () = soon => Some(waiting.first().cloned()),
                    () = self.stop.cancelled() => None,
                }
            };
            let Some(Some(job)) = next else { break };
            waiting.insert(job.clone());
            match Arc::clone(&self).note_job(&job).await {
                Ok(progress) => {
                    waiting.remove(&job);
                    written.remove(&job);
                    written.extend(progress.map(|progress| (job, progress)));
                }
                Err(status) => tracing::warn!(%job, error = status.message(), "cannot write the queue"),
            }
        }
        for (job, before) in written {
            let now = self.with(|state, _| state.cluster.job_summary(&job).cloned());
            if self.fenced().is_none()
                && now.is_some_and(|now| now != before)
                && let Err(status) = Arc::clone(&self).note_job(&job).await
            {
                tracing::warn!(%job, error = status.message(), "cannot write the last progress of a job to the queue");
            }
        }
    }
}

/// Why an append was not made.
enum Refused {
    /// It never will be; with the worker that is to blame, where it is known which one.
    Never(Option<WorkerId>, String),
    Append(AppendError),
}

impl Refused {
    /// Why this append was not made.
    fn of(error: RecordError, append: &Append) -> Self {
        match error {
            RecordError::Shard { number, error } => {
                let worker = match append {
                    Append::Commit { shards, .. } => shards.get(number).map(|shard| shard.worker),
                    Append::Retract { .. } | Append::Remove { .. } => None,
                };
                let whose = worker.map_or_else(|| "a worker".to_owned(), |worker| format!("worker {worker}"));
                Self::Never(
                    worker,
                    format!("{whose} reported a shard that does not match its file: {}", with_causes(&error)),
                )
            }
            RecordError::Counts(error) => Self::Never(None, with_causes(&error)),
            RecordError::Other(error) => error.into(),
        }
    }
}

impl From<AppendError> for Refused {
    fn from(error: AppendError) -> Self {
        Self::Append(error)
    }
}

/// Whether an error is one of the store as a whole, or of this process: no job is to blame for it.
pub(super) fn is_of_store(error: &RunError) -> bool {
    error.kind() == ErrorKind::Full || is_out_of_files(error)
}

/// Why a run that was made cannot be opened again.
fn missing_run(job: &JobId, error: RunError) -> AppendError {
    match error.kind() {
        ErrorKind::NotFound => AppendError::Foreign(gone(job)),
        _ => AppendError::Failed(error),
    }
}

/// Says that the run of a job is not in the store.
pub(super) fn gone(job: &JobId) -> String {
    format!(
        "expected the run of job {job} in the store, found none; restore it, then resume the job; or forget the job, then \
         submit it again"
    )
}

/// Whether a run that cannot be opened now may be opened later without anybody's doing.
fn may_be_opened_later(error: &RunError) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Fenced | ErrorKind::Full | ErrorKind::Unavailable)
}
