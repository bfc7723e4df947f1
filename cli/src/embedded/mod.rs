//! A run on one machine: planner, workers and writer in this process, until nothing is missing.

pub mod disk;
mod segment;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use exact2048_game::value::Value;
use exact2048_solution::Run;
use exact2048_text::with_causes;
use exact2048_worker::{Tuning, Worker};

use crate::Failure;
use crate::display;
use crate::progress::ProgressDisplay;
use crate::units;
use segment::{SegmentEnd, run_segment};

/// Runs what is missing; a shard that turns out to be damaged on the way is made again.
pub fn solve<V: Value>(run: &mut Run, tuning: Tuning, threads: usize, stop: &Arc<AtomicBool>) -> Result<()> {
    let worker = Arc::new(Worker::<V>::new(run.params(), tuning, run.dir().scratch(), run.archive().clone()));
    let progress = ProgressDisplay::of(run);
    let mut made_again = HashSet::new();
    // Times that room was made since something was last finished: each time more of it.
    let mut short = 0;
    loop {
        let missing_bytes = disk::make_room(run, 1 + short)?;
        let missing = run.missing();
        let Some((&segment, later)) = missing.split_first() else { return Ok(()) };
        if short > 0 && missing_bytes > 0 {
            // What was forecast may be off; what has found no room is not.
            return Err(too_small(run, missing_bytes).into());
        }
        let records = run.records();
        progress.start(segment, later, &run.layer_counts());
        let ended = run_segment(&worker, run, segment, threads, stop, &progress);
        progress.finish();
        worker.release_all();
        match ended {
            Ok(SegmentEnd::Done) => short = 0,
            Ok(SegmentEnd::Stopped) => {
                return Err(Failure::interrupted(format!(
                    "stopped; {} is intact, and the same command resumes it",
                    run.dir().place()
                ))
                .into());
            }
            Err(error) if error.is_over_limit() && short < MOST_SHORT => {
                short = if run.records() > records { 1 } else { short + 1 };
            }
            Err(error) => {
                let blamed = error.blames().and_then(|blame| run.catalog().blamed(&blame));
                let Some(shard) = blamed else { return Err(error.into()) };
                // Twice the same range: making it again does not help.
                let range = (shard.commit.phase, shard.commit.first);
                if !made_again.insert(range) {
                    return Err(error.into());
                }
                display::say(&format!("warning: {}; recomputing it", with_causes(&error)));
                run.catalog().remove(&shard);
            }
        }
    }
}

/// How often in a row more room is made than last time, before a limit counts as too small.
const MOST_SHORT: u64 = 4;

/// A run that does not fit into its limit.
fn too_small(run: &Run, missing_bytes: u64) -> Failure {
    let limit = run.dir().allowance().map_or(0, |allowance| allowance.limit_bytes());
    Failure::usage(format!(
        "--disk {} is too small: what is left of this run needs at least {}; what is committed is safe, and the same \
         command with more goes on",
        units::size(limit),
        units::size_at_least(limit + missing_bytes),
    ))
}
