//! A run on one machine: planner, workers and writer in this process, until nothing is missing.

mod crew;
mod mend;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use exact2048_coordinator::{Phase, Segment};
use exact2048_run::Run;
use exact2048_worker::{Tuning, Value, Worker};
use serde::Serialize;

use crate::Failure;
use crate::progress::Progress;
use crew::{Ended, new_worker, run_segment};

pub use crew::phase_name;
pub use mend::forget_damaged_shards;

/// How long a run took.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Seconds {
    /// Enumerating.
    pub enumerate: f64,
    /// Backing up.
    pub solve: f64,
    /// In all, opening and checking included.
    pub total: f64,
}

/// Runs what is missing; a shard that turns out to be damaged on the way is made again.
pub fn solve<V: Value>(run: &mut Run, tuning: Tuning, threads: usize, stop: &AtomicBool) -> Result<Seconds> {
    let worker: Worker<V> = new_worker(run, tuning);
    let progress = Progress::new();
    let mut seconds = Seconds::default();
    let mut made_again = HashSet::new();
    while let Some(&segment) = run.missing().first() {
        progress.start(segment, states_of(run, segment));
        let begun = Instant::now();
        let ended = run_segment(&worker, run, segment, threads, stop, &progress);
        progress.finish();
        worker.release_all();
        let took = begun.elapsed().as_secs_f64();
        match segment.phase {
            Phase::Enumerate => seconds.enumerate += took,
            Phase::BackUp => seconds.solve += took,
        }
        match ended {
            Ok(Ended::Done) => {}
            Ok(Ended::Stopped) => {
                return Err(Failure::interrupted(format!(
                    "stopped; {} is intact, and the same command resumes it",
                    run.dir().path().display()
                ))
                .into());
            }
            Err(error) => {
                let Some(shard) = mend::blamed_shard(run, &error) else { return Err(error) };
                // Twice the same range: making it again does not help.
                let range = (shard.commit.phase, shard.commit.first);
                if !made_again.insert(range) {
                    return Err(error);
                }
                eprintln!("warning: {error:#}; recomputing it");
                run.catalog().remove(&shard.path);
            }
        }
    }
    Ok(seconds)
}

/// The number of states that a segment has, where that is known already.
fn states_of(run: &Run, segment: Segment) -> Option<u64> {
    let layers = segment.first..=segment.last;
    let counts = run.layer_counts();
    let states = || counts.iter().filter(|c| layers.contains(&c.layer)).map(|c| c.states).sum();
    (segment.phase == Phase::BackUp).then(states)
}
