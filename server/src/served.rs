//! A served run. It is reread while it is not solved or not fully readable.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use exact2048_game::Params;
use exact2048_proto::v1::RunPhase;
use exact2048_solution::{LayerCounts, Oracle, OracleOptions, Run, StartValues};
use metrics::{counter, gauge};
use parking_lot::{Mutex, RwLock};
use tonic::Status;

use crate::observe;

/// Opens the served run. Only this function knows the run's location.
pub type OpenRun = Box<dyn Fn() -> Result<Run> + Send + Sync>;

/// A served run. Another process may still be solving or repairing it.
pub struct Served {
    open: OpenRun,
    options: OracleOptions,
    /// The opened run. Its lock lets one thread at a time reread it.
    run: Mutex<Run>,
    now: RwLock<Arc<RunSnapshot>>,
}

/// State of a run at its last reading.
pub struct RunSnapshot {
    /// The run's id: 32 hexadecimal digits.
    pub run_id: String,
    /// Parameters of the run.
    pub params: Params,
    /// Progress of the run.
    pub phase: RunPhase,
    /// The counts of its layers.
    pub layers: Vec<LayerCounts>,
    /// Fingerprint of a solved run.
    pub fingerprint: Option<u128>,
    /// Reason why some or all states have no values.
    pub not_solved: Option<String>,
    /// Values of the starts of a solved run, unless the values were unreadable.
    pub start: Option<StartValues>,
    /// The oracle of a solved run. Once created, the oracle stays. Recomputed shards have the same values, and the
    /// oracle still serves the rest of the run.
    oracle: Option<Arc<Oracle>>,
}

impl Served {
    /// Opens the run, with an oracle within the limits of the options.
    ///
    /// # Errors
    ///
    /// Errors of `open`.
    pub fn new(open: OpenRun, options: OracleOptions) -> Result<Self> {
        let run = open()?;
        let now = RwLock::new(Arc::new(RunSnapshot::take(&run, None, &options)?));
        Ok(Self { open, options, run: Mutex::new(run), now })
    }

    /// Returns the run's state at its last reading.
    pub fn now(&self) -> Arc<RunSnapshot> {
        Arc::clone(&self.now.read())
    }

    /// Opens the run once more, for code that reads other data than the oracle does.
    ///
    /// # Errors
    ///
    /// Errors of opening the run.
    pub fn open_again(&self) -> Result<Run> {
        (self.open)()
    }

    /// Returns the folder for computed results, if any.
    pub fn kept_folder(&self) -> Option<&Path> {
        self.options.cone_files.as_ref().map(|(folder, _)| folder.as_path())
    }

    /// Reads newly committed data if the run is not solved or not fully readable, and retries failed reads. For a
    /// healthy run, the call does nothing. Otherwise it blocks while it reads files.
    ///
    /// # Errors
    ///
    /// Errors of reading the journal. Earlier data stays available.
    pub fn refresh(&self) -> Result<()> {
        let mut run = self.run.lock();
        let before = self.now();
        if before.is_healthy() {
            return Ok(());
        }
        if let Err(error) = run.reread() {
            // The journal may have been replaced, for example if the run was restored from a copy.
            *run = (self.open)().map_err(|_| error)?;
            self.put(RunSnapshot::take(&run, None, &self.options)?);
            return Ok(());
        }
        if let Some(oracle) = &before.oracle {
            oracle.read_again();
        }
        self.put(RunSnapshot::take(&run, Some(&before), &self.options)?);
        Ok(())
    }

    fn put(&self, snapshot: RunSnapshot) {
        *self.now.write() = Arc::new(snapshot);
    }

    /// Records the run's state and its oracle's memory use in the metrics.
    pub fn record_metrics(&self) {
        let now = self.now();
        gauge!(observe::RUN_SOLVED).set(if now.is_solved() { 1.0 } else { 0.0 });
        gauge!(observe::RUN_READABLE).set(if now.is_readable() { 1.0 } else { 0.0 });
        if let Some(oracle) = &now.oracle {
            let cache = oracle.cache_use();
            counter!(observe::CACHE_HITS).absolute(cache.hits);
            counter!(observe::CACHE_MISSES).absolute(cache.misses);
            gauge!(observe::CACHE_BYTES).set(cache.bytes as f64);
            gauge!(observe::CACHE_CAPACITY_BYTES).set(cache.capacity_bytes as f64);
            gauge!(observe::CONE_BYTES).set(oracle.solved_bytes() as f64);
        }
    }
}

impl RunSnapshot {
    /// Takes a snapshot of a run. `before` is the previous snapshot.
    fn take(run: &Run, before: Option<&Self>, options: &OracleOptions) -> Result<Self> {
        let not_solved = run.why_not_solved();
        let oracle = match before.and_then(|before| before.oracle.clone()) {
            Some(oracle) => Some(oracle),
            None if not_solved.is_some() => None,
            None => Some(Arc::new(Oracle::with_options(run, options.clone())?)),
        };
        let start = match before.and_then(|before| before.start.clone()) {
            Some(start) => Some(start),
            None => oracle.as_ref().and_then(|oracle| start_of(oracle)),
        };
        Ok(Self {
            run_id: run.dir().run_id().to_string(),
            params: run.params().clone(),
            phase: phase(run),
            layers: run.layer_counts(),
            fingerprint: run.fingerprint(),
            not_solved: not_solved.map(|why| why.to_string()),
            start,
            oracle,
        })
    }

    /// Returns whether every state has a value.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.not_solved.is_none()
    }

    /// Returns whether all data requested so far was readable.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.oracle.as_ref().is_none_or(|oracle| oracle.is_sound())
    }

    /// Returns whether every state has a value and all data requested so far was readable.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.is_solved() && self.is_readable()
    }

    /// Returns the oracle of the run.
    ///
    /// # Errors
    ///
    /// FAILED_PRECONDITION if the run is not solved.
    pub fn oracle(&self) -> Result<Arc<Oracle>, Status> {
        let not_solved = || Status::failed_precondition(self.not_solved.clone().unwrap_or_default());
        self.oracle.clone().ok_or_else(not_solved)
    }
}

/// Returns the progress of a run.
fn phase(run: &Run) -> RunPhase {
    match (run.is_solved(), run.missing().is_empty()) {
        (true, _) => RunPhase::Solved,
        (false, true) => RunPhase::Enumerated,
        (false, false) => RunPhase::Unfinished,
    }
}

/// Returns the values of the starts. If the values are unreadable, the rest of the run is still served, and the
/// read is retried.
fn start_of(oracle: &Oracle) -> Option<StartValues> {
    let start = oracle.starts();
    start.inspect_err(|error| tracing::error!(%error, "cannot read the values of the starts")).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use exact2048_game::Layer;
    use exact2048_solution::{Commit, JournalRecord, Phase, Record, UnnamedPolicy};
    use exact2048_storage::ShardWriter;

    use super::*;

    /// An unsolved run is opened once. After that, only new journal records are read.
    #[test]
    fn an_unsolved_run_is_not_reopened() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        let params = Params::usual("2x2", "score").until(8).build();
        let mut writer = Run::open_or_create(&path, &params.unwrap(), UnnamedPolicy::Refuse).unwrap();
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&opened);
        let open = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Run::open(&path)?)
        };
        let served = Served::new(Box::new(open), OracleOptions::default()).unwrap();
        assert!(served.now().layers.is_empty());
        for layer in [4, 6, 8].map(Layer) {
            let identity = writer.catalog().identity(Phase::Enumerate, layer, layer);
            let shards = vec![ShardWriter::create(writer.dir(), identity).unwrap().finish().unwrap()];
            let layers = vec![LayerCounts { layer, states: 3, afterstates: 0 }];
            let commit =
                Commit { phase: Phase::Enumerate, first: layer, last: layer, layers, fingerprint: None };
            writer.append(JournalRecord::Commit(Record::new(commit, shards))).unwrap();
            served.refresh().unwrap();
            assert_eq!(served.now().layers.last().map(|counts| counts.layer), Some(layer));
        }
        assert_eq!((served.now().phase, served.now().layers.len()), (RunPhase::Enumerated, 3));
        assert!(!served.now().is_solved());
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }
}
