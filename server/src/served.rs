//! The run that is served: read again until it is solved.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use anyhow::{Context, Result};
use exact2048_run::{Oracle, QueryError, Run, StartValues};
use metrics::{counter, gauge};
use tonic::Status;

use crate::observe;

/// Opens the run that is served. The one place that knows where it is.
pub type OpenRun = Box<dyn Fn() -> Result<Run> + Send + Sync>;

/// A run that is served, also while another process still solves it.
pub struct Served {
    open: OpenRun,
    cache_bytes: u64,
    /// Held while the run is read again, which one thread at a time does.
    reading: Mutex<()>,
    now: RwLock<Arc<Snapshot>>,
}

/// A run as it was when it was opened last.
pub struct Snapshot {
    /// The run.
    pub run: Run,
    /// What answers, or why nothing does.
    oracle: Result<Arc<Oracle>, String>,
    /// What the starts are worth, of a solved run.
    pub start: Option<StartValues>,
}

impl Served {
    /// Opens the run. Of decoded parts, at most `cache_bytes` are kept.
    ///
    /// # Errors
    ///
    /// Those of `open`, and of reading the values of the starts.
    pub fn new(open: OpenRun, cache_bytes: u64) -> Result<Self> {
        let now = RwLock::new(Arc::new(Snapshot::take(&open, cache_bytes)?));
        Ok(Self { open, cache_bytes, reading: Mutex::default(), now })
    }

    /// The run as it was read last.
    pub fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads a run again that was not solved. Blocks on files.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new); what was read before stays.
    pub fn refresh(&self) -> Result<()> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.now().is_solved() {
            let snapshot = Arc::new(Snapshot::take(&self.open, self.cache_bytes)?);
            *self.now.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
        }
        Ok(())
    }

    /// Puts the use of the cache into the metrics.
    pub fn record_metrics(&self) {
        let now = self.now();
        gauge!(observe::RUN_SOLVED).set(if now.is_solved() { 1.0 } else { 0.0 });
        if let Ok(oracle) = &now.oracle {
            let cache = oracle.cache_use();
            counter!(observe::CACHE_HITS).absolute(cache.hits);
            counter!(observe::CACHE_MISSES).absolute(cache.misses);
            gauge!(observe::CACHE_BYTES).set(cache.bytes as f64);
            gauge!(observe::CACHE_CAPACITY_BYTES).set(cache.capacity_bytes as f64);
        }
    }
}

impl Snapshot {
    fn take(open: &OpenRun, cache_bytes: u64) -> Result<Self> {
        let run = open()?;
        let oracle = match Oracle::with_cache(&run, cache_bytes) {
            Ok(oracle) => Ok(Arc::new(oracle)),
            Err(error @ QueryError::NotSolved { .. }) => Err(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        let start = oracle.as_ref().ok().map(|oracle| oracle.starts());
        let start = start.transpose().context("cannot read what the starts are worth")?;
        Ok(Self { run, oracle, start })
    }

    /// Whether every state has a value.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.oracle.is_ok()
    }

    /// Why states have no values, where they have none.
    #[must_use]
    pub fn not_solved(&self) -> Option<&str> {
        self.oracle.as_ref().err().map(String::as_str)
    }

    /// What answers.
    ///
    /// # Errors
    ///
    /// FAILED_PRECONDITION where the run is not solved.
    pub fn oracle(&self) -> Result<Arc<Oracle>, Status> {
        self.oracle.clone().map_err(Status::failed_precondition)
    }
}
