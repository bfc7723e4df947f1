//! Solves a run in this process: planner, compute threads and writer, until nothing is missing.

pub mod disk;
mod segment;
mod watch;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use exact2048_coordinator::room::MOST_SHORT;
use exact2048_solution::{ResumeArchive, Run, RunError};
use exact2048_storage::{ErrorKind, Place};
use exact2048_worker::{Holding, Tuning, new_block_engine};

use crate::member::CrewError;
use segment::{SegmentEnd, run_segment};
pub use watch::SolveWatch;

/// Reason why a run was not solved. Committed data stays, and the next solve resumes from it.
#[derive(Debug, thiserror::Error)]
pub enum RunSolveError {
    /// The caller asked the solve to stop.
    #[error("stopped; {0} is intact. Solve it again to resume")]
    Stopped(Place),
    /// The rest of the run does not fit into the disk limit.
    #[error(
        "the disk limit of {limit_bytes} bytes is too small; the rest of this run needs at least {needed_bytes} bytes. \
         Committed data is safe; solve the run again with a higher limit to resume"
    )]
    OverDisk {
        /// The present limit.
        limit_bytes: u64,
        /// The lowest sufficient limit, as far as it is known.
        needed_bytes: u64,
    },
    /// Computing failed.
    #[error(transparent)]
    Crew(#[from] CrewError),
    /// The run could not be changed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl RunSolveError {
    /// The kind of the error; `None` if its text already says how to resume.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Stopped(_) | Self::OverDisk { .. } => None,
            Self::Crew(error) => Some(error.kind()),
            Self::Run(error) => Some(error.kind()),
        }
    }
}

/// Computes the missing parts of a run. Stops once `stop` is true.
///
/// If a task finds a damaged shard, the shard is computed again.
///
/// # Errors
///
/// See [`RunSolveError`].
pub fn solve(
    run: &mut Run,
    tuning: Tuning,
    threads: usize,
    stop: &Arc<AtomicBool>,
    watch: &dyn SolveWatch,
) -> Result<(), RunSolveError> {
    let archive = Arc::new(ResumeArchive::new(run.params(), run.archive().clone()));
    let worker = new_block_engine(run.params(), tuning, run.dir().scratch(), archive);
    let mut made_again = HashSet::new();
    // Attempts in a row to free disk space without progress. Each attempt frees more than the last.
    let mut short = 0;
    loop {
        let shortage = disk::make_room(run, 1 + short)?;
        let missing = run.missing();
        let Some((&segment, later)) = missing.split_first() else { return Ok(()) };
        // A forecast may be wrong. So it stops the run only if the shortage exceeds its error, or a segment ran out of
        // space.
        if shortage.missing_bytes > 0 && (shortage.is_certain || short > 0) {
            let limit_bytes = run.dir().allowance().map_or(0, |allowance| allowance.limit_bytes());
            let needed_bytes = limit_bytes + shortage.missing_bytes;
            return Err(RunSolveError::OverDisk { limit_bytes, needed_bytes });
        }
        let records = run.records();
        watch.begins(segment, later, &run.layer_counts());
        let ended = run_segment(&worker, run, segment, threads, stop, watch);
        watch.ends();
        worker.release(Holding::All);
        match ended {
            Ok(SegmentEnd::Done) => short = 0,
            Ok(SegmentEnd::Stopped) => return Err(RunSolveError::Stopped(run.dir().place().clone())),
            Err(error) if error.kind() == ErrorKind::OverLimit && short < MOST_SHORT => {
                short = if run.records() > records { 1 } else { short + 1 };
            }
            Err(error) => {
                let blamed = error.blames().and_then(|blame| run.catalog().blamed(&blame));
                let Some(shard) = blamed else { return Err(error.into()) };
                // The same range is damaged a second time, so computing it again does not help.
                let range = (shard.commit.phase, shard.commit.first);
                if !made_again.insert(range) {
                    return Err(error.into());
                }
                watch.repeats(&error);
                run.catalog().remove(&shard);
            }
        }
    }
}
