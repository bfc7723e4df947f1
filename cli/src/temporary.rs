//! Solves runs that a command needs only while it works.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use exact2048_game::Params;
use exact2048_run::alone::{self, RunSolveError};
use exact2048_solution::{Run, UnnamedPolicy};
use exact2048_storage::Location;
use exact2048_worker::Tuning;

use crate::Failure;
use crate::progress::{ProgressDisplay, unsolved};

/// Solves a run in a folder that the caller removes, and shows the progress. `stopped` describes what a stop by the user
/// leaves undone.
pub fn solve(
    location: &Location,
    params: &Params,
    tuning: Tuning,
    threads: usize,
    stop: &Arc<AtomicBool>,
    stopped: &str,
) -> Result<Run> {
    let mut run = Run::open_or_create(location, params, UnnamedPolicy::Refuse)?;
    let watch = ProgressDisplay::of(&run, tuning.dense_rows);
    alone::solve(&mut run, tuning, threads, stop, &watch).map_err(|error| match error {
        RunSolveError::Stopped(_) => Failure::interrupted(stopped.to_owned()).into(),
        error => unsolved(error, None),
    })?;
    Ok(run)
}
