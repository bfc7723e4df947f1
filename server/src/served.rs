//! The run that is served: read again while it is not solved, or while a part of it cannot be read.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use exact2048_game::Params;
use exact2048_proto::v1::RunPhase;
use exact2048_solution::{LayerCounts, Oracle, OracleOptions, Run, StartValues};
use metrics::{counter, gauge};
use parking_lot::{Mutex, RwLock};
use tonic::Status;

use crate::{messages, observe};

/// Opens the run that is served. The one place that knows where it is.
pub type OpenRun = Box<dyn Fn() -> Result<Run> + Send + Sync>;

/// A run that is served, also while another process still solves or mends it.
pub struct Served {
    open: OpenRun,
    options: OracleOptions,
    /// Held while the run is read again, which one thread at a time does.
    run: Mutex<Run>,
    now: RwLock<Arc<RunSnapshot>>,
}

/// A run as it was when it was read last.
pub struct RunSnapshot {
    /// Its id, 32 hexadecimal digits.
    pub run_id: String,
    /// Its parameters.
    pub params: Params,
    /// How far it is.
    pub phase: RunPhase,
    /// The counts of its layers.
    pub layers: Vec<LayerCounts>,
    /// Of a solved run, its fingerprint.
    pub fingerprint: Option<u128>,
    /// Why states have no values, or not all of them.
    pub not_solved: Option<String>,
    /// What the starts are worth, of a solved run, unless that could not be read.
    pub start: Option<StartValues>,
    /// The oracle, where the run is solved. Once there is one it stays: shards that are made again have the same
    /// values, and the rest of the run goes on being served.
    oracle: Option<Arc<Oracle>>,
}

impl Served {
    /// Opens the run. Its oracle takes what the options allow.
    ///
    /// # Errors
    ///
    /// Those of `open`.
    pub fn new(open: OpenRun, options: OracleOptions) -> Result<Self> {
        let run = open()?;
        let now = RwLock::new(Arc::new(RunSnapshot::take(&run, None, &options)?));
        Ok(Self { open, options, run: Mutex::new(run), now })
    }

    /// The run as it was read last.
    pub fn now(&self) -> Arc<RunSnapshot> {
        Arc::clone(&self.now.read())
    }

    /// Opens the run once more, for what reads more of it than the oracle does.
    ///
    /// # Errors
    ///
    /// Those of opening it.
    pub fn open_again(&self) -> Result<Run> {
        (self.open)()
    }

    /// The folder where results are kept that had to be worked out, if there is one.
    pub fn kept_folder(&self) -> Option<&Path> {
        self.options.cone_files.as_ref().map(|(folder, _)| folder.as_path())
    }

    /// Reads what was committed since, where the run is not solved or could not be read in part, and tries again to
    /// read what failed. Costs nothing where all is well. Blocks on files.
    ///
    /// # Errors
    ///
    /// Those of reading the journal; what was read before stays.
    pub fn refresh(&self) -> Result<()> {
        let mut run = self.run.lock();
        let before = self.now();
        if before.is_healthy() {
            return Ok(());
        }
        if let Err(error) = run.reread() {
            // Perhaps the journal is another one by now, because the run was put back from a copy.
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

    /// Puts into the metrics how the run is and how much memory its oracle uses.
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
    /// A snapshot of a run. `before` is the snapshot before this one.
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
            phase: messages::phase(run),
            layers: run.layer_counts(),
            fingerprint: run.fingerprint(),
            not_solved: not_solved.map(|why| why.to_string()),
            start,
            oracle,
        })
    }

    /// Whether every state has a value.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.not_solved.is_none()
    }

    /// Whether everything that was asked for could be read, as far as is known.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.oracle.as_ref().is_none_or(|oracle| oracle.is_sound())
    }

    /// Whether there is nothing that reading the run again could better.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.is_solved() && self.is_readable()
    }

    /// The oracle of the run.
    ///
    /// # Errors
    ///
    /// FAILED_PRECONDITION where the run is not solved.
    pub fn oracle(&self) -> Result<Arc<Oracle>, Status> {
        let not_solved = || Status::failed_precondition(self.not_solved.clone().unwrap_or_default());
        self.oracle.clone().ok_or_else(not_solved)
    }
}

/// What the starts are worth. Where that cannot be read, the rest of the run is served all the same, and it is tried
/// again.
fn start_of(oracle: &Oracle) -> Option<StartValues> {
    let start = oracle.starts();
    start.inspect_err(|error| tracing::error!(%error, "cannot read what the starts are worth")).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use exact2048_game::{Layer, Objective, Precision, Spawn4};
    use exact2048_solution::{Commit, JournalRecord, Phase, Record, Unnamed};
    use exact2048_storage::ShardWriter;

    use super::*;

    /// A run that is not solved is opened once, and from then on only what is new in its journal is read.
    #[test]
    fn an_unsolved_run_is_not_opened_anew() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        let params = Params::new(
            "2x2".parse().unwrap(),
            Objective::Score,
            Spawn4::default(),
            Precision::Bits32,
            Some(8),
        );
        let mut writer = Run::open_or_create(&path, &params.unwrap(), Unnamed::Refuse).unwrap();
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
            writer
                .append(JournalRecord::Commit(Record { commit, shards, threads: Vec::new(), took: None }))
                .unwrap();
            served.refresh().unwrap();
            assert_eq!(served.now().layers.last().map(|counts| counts.layer), Some(layer));
        }
        assert_eq!((served.now().phase, served.now().layers.len()), (RunPhase::Enumerated, 3));
        assert!(!served.now().is_solved());
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }
}
