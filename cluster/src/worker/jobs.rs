//! Opens the runs of jobs for a worker. The worker keeps the run of its last epoch and the tables of this run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{Share, WorkerFailure};
use exact2048_net::text::with_causes;
use exact2048_solution::{Recipe, ResumeArchive, Run, RunError, Segment};
use exact2048_storage::{ErrorKind, Location, StoreSettings};
use exact2048_worker::{BlockEngine, Tuning, new_block_engine};

/// Longest wait until the coordinator's records become visible to this worker. Network file systems show them late.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(100);

/// Opens the runs of jobs.
pub struct Jobs {
    settings: StoreSettings,
    scratch: PathBuf,
    tuning: Tuning,
    /// URL and run of the last epoch, kept for the next epoch.
    last: Option<(String, OpenJob)>,
}

/// A job's run and the engine that computes its blocks.
pub struct OpenJob {
    /// The run, for reading.
    pub run: Run,
    /// The engine that computes blocks.
    pub worker: Arc<dyn BlockEngine>,
}

impl Jobs {
    /// Opens runs with these settings. `scratch` is the folder for data that exceeds the memory.
    pub fn new(settings: StoreSettings, scratch: PathBuf, tuning: Tuning) -> Self {
        Self { settings, scratch, tuning, last: None }
    }

    /// Opens the run of a share, and waits until its journal contains all inputs of the share.
    ///
    /// # Errors
    ///
    /// The failure to report to the coordinator.
    pub fn open(
        &mut self,
        share: &Share,
        run_url: &str,
        stop: &AtomicBool,
    ) -> Result<OpenJob, WorkerFailure> {
        let cached = self.last.take().filter(|(url, _)| url == run_url);
        if let Some((_, mut open)) = cached
            && open.run.dir().require_place().is_ok()
            && open.run.reread().is_ok()
            && open.run.params() == &share.params
        {
            wait_for_inputs(&mut open.run, share, stop)?;
            return Ok(open);
        }
        let failed = |error: RunError| {
            let what = format!("cannot open the run of job {}: {}", share.job, with_causes(&error));
            failure_of_kind(error.kind(), what)
        };
        let location =
            Location::parse(run_url.as_ref(), &self.settings).map_err(|error| failed(error.into()))?;
        let mut run = Run::open(&location).map_err(failed)?;
        if run.params() != &share.params {
            let (wanted, found) = (&share.params, run.params());
            return Err(WorkerFailure::Other(format!(
                "expected a run with the coordinator's parameters {wanted:?}, found {found:?}"
            )));
        }
        wait_for_inputs(&mut run, share, stop)?;
        let (params, scratch) = (run.params(), self.scratch.clone());
        let archive = Arc::new(ResumeArchive::new(params, run.archive().clone()));
        let worker = new_block_engine(params, self.tuning.for_run(params), scratch.into(), archive);
        Ok(OpenJob { run, worker })
    }

    /// Keeps a run for the next epoch.
    pub fn keep(&mut self, run_url: String, open: OpenJob) {
        self.last = Some((run_url, open));
    }
}

/// Waits until the journal contains all inputs of a share, or until `stop`.
fn wait_for_inputs(run: &mut Run, share: &Share, stop: &AtomicBool) -> Result<(), WorkerFailure> {
    let begun = Instant::now();
    let has_inputs = |run: &Run| Recipe::new(run.params(), &run.holdings()).has_inputs(share.segment);
    while !has_inputs(run) && !stop.load(Ordering::Relaxed) {
        if begun.elapsed() >= PATIENCE {
            let Segment { first, last, .. } = share.segment;
            return Err(WorkerFailure::Other(format!(
                "expected the inputs of layers {first} to {last} in the journal of {}, found none; the coordinator \
                 reports them as committed",
                run.dir().place()
            )));
        }
        std::thread::sleep(PAUSE);
        run.reread().map_err(|error| failure_of_kind(error.kind(), with_causes(&error)))?;
    }
    Ok(())
}

/// Converts an error that blames no shard to the failure that is reported to the coordinator.
pub fn failure_of_kind(kind: ErrorKind, text: String) -> WorkerFailure {
    if kind == ErrorKind::Full { WorkerFailure::DiskFull(text) } else { WorkerFailure::Other(text) }
}

#[cfg(test)]
mod tests {
    use exact2048_coordinator::cluster::{EpochId, JobId, Secret};
    use exact2048_game::Params;
    use exact2048_solution::{Holdings, UnnamedPolicy};
    use exact2048_worker::Heap;

    use super::*;

    /// While a worker runs, a client may forget a job, remove its run, and submit the same job again.
    #[test]
    fn a_recreated_run_is_opened_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        let params = Params::small("2x2");
        let share = Share {
            job: JobId("job".to_owned()),
            epoch: EpochId(1),
            segment: Recipe::new(&params, &Holdings::default()).steps()[0],
            params: params.clone(),
            members: Vec::new(),
            window_layers: 4,
            secret: Secret::new([1; 16]),
        };
        let tuning = Tuning {
            limit_bytes: 1 << 30,
            heap: Heap::of(|| 0),
            dense_rows: Tuning::DENSE_ROWS,
            piece_bytes: Tuning::PIECE_BYTES,
        };
        let mut jobs = Jobs::new(StoreSettings::default(), place.path().to_path_buf(), tuning);
        let (url, stop) = (format!("file://{}", folder.display()), AtomicBool::new(false));
        let make =
            || Run::open_or_create(folder.as_path(), &params, UnnamedPolicy::Refuse).unwrap().dir().run_id();
        let mut opened = || {
            let open = jobs.open(&share, &url, &stop).unwrap();
            let id = open.run.dir().run_id();
            let worker = Arc::as_ptr(&open.worker).cast::<()>();
            jobs.keep(url.clone(), open);
            (id, worker)
        };
        let first = make();
        let (id, worker) = opened();
        assert_eq!(id, first);
        assert_eq!(opened(), (id, worker), "it is kept");
        std::fs::remove_dir_all(&folder).unwrap();
        let second = make();
        assert_ne!(first, second);
        assert_eq!(opened().0, second);
    }
}
