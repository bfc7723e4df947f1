//! Statistics of perfect play. One upward pass computes the chance that a game reaches each state, block by block, with
//! the kernels that solve runs.
//!
//! Best moves are computed for one span of layers at a time, from the next stored values above, and released after the
//! span. So a run with few stored values needs neither memory nor disk for all of its moves. A span costs as much as
//! its solve, and removed reach is enumerated again.

mod checkpoint;
mod sums;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exact2048_game::{Layer, Params};
use exact2048_solution::{LayerCounts, QueryError, ReadError, Run, ShardArchive};
use exact2048_stats::chances::LEAST_CHANCE;
use exact2048_stats::{FollowPlay, PlayStatistics, StatsProgress};
use exact2048_storage::{ScratchPlace, ShardKind, StorageError};
use exact2048_worker::{BestMoves, FollowSums, Follower, Holding, Sink, Tuning, WorkerError};

use crate::layers::{LayerPasses, lost_layers, packed};
use checkpoint::Checkpoint;
use sums::PlaySums;

/// The least number of layers of a span, even if values are stored more often. Each span reads the values of two
/// layers, so fewer and larger spans cost less.
const LEAST_LAYERS: u32 = 32;

/// The folder of the checkpoint file, and the time between its writes.
#[derive(Clone, Debug)]
pub struct PlayProgress {
    /// The folder of the checkpoint file.
    pub folder: PathBuf,
    /// The least time between two writes of the file.
    pub interval: Duration,
    /// Called once with the error if the file cannot be written, for example on a full disk. Games are followed anyway.
    pub unkept: fn(&StorageError),
}

/// Returns a follower of games through a solved run.
///
/// Data that does not fit into memory is moved to the folder for temporary files. With `progress`, the follower resumes
/// from the checkpoint file of an earlier process, and removes the file at the end.
///
/// # Errors
///
/// [`QueryError::MissingValues`] if the run is not solved.
pub fn play_follower(
    run: &Run,
    tuning: Tuning,
    progress: Option<PlayProgress>,
) -> Result<Box<dyn FollowPlay>, QueryError> {
    if let Some(missing) = run.why_not_solved() {
        return Err(missing.into());
    }
    Ok(Box::new(SolvedRun {
        params: run.params().clone(),
        archive: Arc::clone(run.archive()),
        counts: run.layer_counts(),
        lost: lost_layers(run),
        tuning: tuning.for_statistics(run.params()),
        scratch: std::env::temp_dir().into(),
        run_id: run.dir().run_id().to_string(),
        fingerprint: run.fingerprint().unwrap_or_default(),
        progress,
    }))
}

/// A solved run, and the settings for following its games.
struct SolvedRun {
    params: Params,
    archive: Arc<ShardArchive>,
    counts: Vec<LayerCounts>,
    /// Layers whose reach is not stored.
    lost: Vec<Layer>,
    tuning: Tuning,
    scratch: ScratchPlace,
    run_id: String,
    fingerprint: u128,
    progress: Option<PlayProgress>,
}

impl SolvedRun {
    /// Whether the reach of a layer is not stored.
    fn is_lost(&self, layer: Layer) -> bool {
        self.lost.binary_search(&layer).is_ok()
    }
}

impl FollowPlay for SolvedRun {
    fn follow(
        &self,
        least_chance: f64,
        progress: &mut dyn FnMut(StatsProgress),
    ) -> Result<PlayStatistics, QueryError> {
        Pass::new(self).follow(least_chance, progress).map_err(|error| ReadError::from(error).into())
    }
}

/// The relative costs of the steps of a pass for each state: to enumerate it, to back it up, and to follow games
/// through it.
const COSTS: [f64; 3] = [1.0, 3.0, 2.0];

/// The spans of layers that are processed one after the other.
///
/// If best moves are not stored, each span ends below two layers with stored values, or with the last layer.
fn spans(params: &Params) -> Vec<(Layer, Layer)> {
    let end = params.last_layer();
    let (mut spans, mut first) = (Vec::new(), params.first_layer());
    while first <= end {
        let next = first.up(LEAST_LAYERS);
        let next = if params.contents().stores_best_moves() {
            next
        } else {
            params.contents().kept().next_cut(next)
        };
        let next = next.min(end.up(1));
        spans.extend(next.down(1).map(|last| (first, last)));
        first = next;
    }
    spans
}

/// The largest number of bytes of the best moves of a span of layers, before compression.
#[must_use]
pub fn span_bytes(run: &Run) -> u64 {
    if run.params().contents().stores_best_moves() {
        return 0;
    }
    let counts = run.layer_counts();
    let states = |(first, last): (Layer, Layer)| -> u64 {
        let those = counts.iter().filter(|counts| (first..=last).contains(&counts.layer));
        those.map(|counts| counts.states).sum()
    };
    // Four bits for each state.
    spans(run.params()).into_iter().map(states).max().unwrap_or(0) / 2
}

struct Pass<'a> {
    run: &'a SolvedRun,
    passes: LayerPasses,
}

impl<'a> Pass<'a> {
    fn new(run: &'a SolvedRun) -> Self {
        let params = run.params.with_all_contents();
        let (lost, scratch) = (run.lost.clone(), run.scratch.clone());
        Self { run, passes: LayerPasses::new(params, lost, &run.archive, scratch, run.tuning) }
    }

    fn follow(
        &self,
        least_chance: f64,
        progress: &mut dyn FnMut(StatsProgress),
    ) -> Result<PlayStatistics, WorkerError> {
        let (run, params) = (self.run, &self.run.params);
        let best_moves =
            if params.contents().stores_best_moves() { BestMoves::Stored } else { BestMoves::WorkedOut };
        let follower = self.passes.worker.follower(best_moves, least_chance.max(LEAST_CHANCE));
        let new_sums = || PlaySums::new(params, self.passes.lane_count());
        let mut kept = run.progress.as_ref().map(|kept| {
            (Checkpoint::new(&kept.folder, &run.run_id, run.fingerprint, least_chance), kept, false)
        });
        let is_next = |next: Layer| spans(params).iter().any(|&(_, last)| last.up(1) == next);
        let resumed =
            kept.as_ref().and_then(|(checkpoint, ..)| checkpoint.read(new_sums(), is_next, &*follower));
        let (next, mut sums) = resumed.unwrap_or_else(|| (params.first_layer(), new_sums()));
        let (mut work, mut written) = (Work::new(run), Instant::now());
        for (first, last) in spans(params) {
            if last < next {
                first.to(last).for_each(|layer| work.skip(layer));
                continue;
            }
            if !params.contents().stores_best_moves() {
                // The downward pass needs the memory.
                follower.set_aside()?;
                self.passes.enumerate(first, last, &mut |layer| {
                    progress(work.finish(0, layer, &sums));
                    true
                })?;
                self.back_up(first, last, &mut |layer| progress(work.finish(1, layer, &sums)))?;
            }
            for layer in first.to(last) {
                self.follow_layer(&*follower, layer, &mut sums)?;
                progress(work.finish(2, layer, &sums));
            }
            self.passes.release_lanes_below(last);
            if let Some((checkpoint, kept, is_told)) = &mut kept
                && written.elapsed() >= kept.interval
            {
                let is_kept = checkpoint.write(last.up(1), &sums, &*follower);
                if let Err(error) = is_kept
                    && !std::mem::replace(is_told, true)
                {
                    (kept.unkept)(&error);
                }
                written = Instant::now();
            }
        }
        kept.inspect(|(checkpoint, ..)| checkpoint.remove());
        Ok(sums.into_statistics())
    }

    /// Finds the best moves of a span.
    fn back_up(&self, first: Layer, last: Layer, done: &mut dyn FnMut(Layer)) -> Result<(), WorkerError> {
        let LayerPasses { worker, archive, .. } = &self.passes;
        for layer in first.to(last).rev() {
            let items = self.passes.back_up(layer, Sink::BestMoves, &|outcome| Ok(packed(outcome.items)?))?;
            archive.add(ShardKind::Values, layer, items, worker.is_memory_short())?;
            done(layer);
        }
        worker.release(Holding::All);
        Ok(())
    }

    /// Follows games into the states of a layer, and from these states to their afterstates.
    fn follow_layer(
        &self,
        follower: &dyn Follower,
        layer: Layer,
        sums: &mut PlaySums,
    ) -> Result<(), WorkerError> {
        let states: Vec<FollowSums> =
            self.passes.for_lanes(layer, &|lane, _| follower.follow_states(layer, lane))?;
        let terms = self.passes.for_lanes(layer, &|lane, _| follower.follow_moves(layer, lane))?;
        follower.release_states(layer);
        if let Some(passed) = layer.down(Layer::RISE) {
            follower.release_afterstates(passed);
        }
        self.passes.archive.release(layer);
        sums.take_layer(layer, &states, terms.into_iter().max().unwrap_or(0));
        Ok(())
    }
}

/// The finished share of the work.
struct Work<'a> {
    run: &'a SolvedRun,
    done: f64,
    all: f64,
}

impl<'a> Work<'a> {
    fn new(run: &'a SolvedRun) -> Self {
        let mut work = Self { run, done: 0.0, all: 1.0 };
        run.counts.iter().for_each(|counts| work.skip(counts.layer));
        Self { done: 0.0, all: work.done.max(1.0), run }
    }

    /// The cost of a step for a layer; a step is an index of [`COSTS`].
    fn cost(&self, step: usize, layer: Layer) -> f64 {
        let is_left_out = match step {
            0 => !self.run.is_lost(layer),
            1 => self.run.params.contents().stores_best_moves(),
            _ => false,
        };
        let at = self.run.counts.binary_search_by_key(&layer, |counts| counts.layer);
        let states = at.map_or(0, |at| self.run.counts[at].states);
        if is_left_out { 0.0 } else { states as f64 * COSTS[step] }
    }

    /// Records that all steps are done for a layer.
    fn skip(&mut self, layer: Layer) {
        self.done += (0..COSTS.len()).map(|step| self.cost(step, layer)).sum::<f64>();
    }

    /// Records that a step is done for a layer. Returns the progress.
    fn finish(&mut self, step: usize, layer: Layer, sums: &PlaySums) -> StatsProgress {
        self.done += self.cost(step, layer);
        let last_layer = self.run.params.last_layer().0;
        let share = (self.done / self.all).min(1.0);
        StatsProgress { layer: layer.0, last_layer, states: sums.states(), share }
    }
}
