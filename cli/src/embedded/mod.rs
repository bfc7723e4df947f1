//! A run on one machine: planner, workers and writer in this process, until nothing is missing.

mod segment;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use exact2048_coordinator::Workload;
use exact2048_game::value::Value;
use exact2048_solution::Run;
use exact2048_text::with_causes;
use exact2048_worker::{Tuning, Worker};

use crate::Failure;
use crate::display;
use crate::progress::ProgressDisplay;
use segment::{SegmentEnd, run_segment};

/// Runs what is missing; a shard that turns out to be damaged on the way is made again.
pub fn solve<V: Value>(run: &mut Run, tuning: Tuning, threads: usize, stop: &Arc<AtomicBool>) -> Result<()> {
    let scratch = run.dir().scratch_folder().to_path_buf();
    let worker = Arc::new(Worker::<V>::new(run.params(), tuning, scratch, run.archive().clone()));
    let progress = ProgressDisplay::new(Workload::new(run.params()));
    let mut made_again = HashSet::new();
    while let Some((&segment, later)) = run.missing().split_first() {
        progress.start(segment, later, &run.layer_counts());
        let ended = run_segment(&worker, run, segment, threads, stop, &progress);
        progress.finish();
        worker.release_all();
        match ended {
            Ok(SegmentEnd::Done) => {}
            Ok(SegmentEnd::Stopped) => {
                return Err(Failure::interrupted(format!(
                    "stopped; {} is intact, and the same command resumes it",
                    run.dir().place()
                ))
                .into());
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
    Ok(())
}
