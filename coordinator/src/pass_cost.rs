//! Estimates the cost of a run's passes before any work is done. With these costs, the time of a small run
//! predicts the time of a large run on the same machine. The time of some layers predicts the time of the other
//! layers.

use std::collections::BTreeMap;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::{Layer, Params, Precision, lane};
use exact2048_solution::{Phase, Segment};

use crate::layer_sums::LayerSums;
use crate::states;
use crate::workload::occurring;

/// Core-seconds of a pass per unit of work, on the machine of `docs/dev/performance.md`.
struct Costs {
    /// Cost of a block: its task and its items.
    block: f64,
    /// Cost of a column of a lane: its merges, and the maps that contain it.
    column: f64,
    /// Cost of a row of a kept class. Its transitions are computed once and kept for all blocks of the class.
    class_row: f64,
    /// Cost of a row that occurs in a block of any other class. Its transitions are computed anew for each block.
    row_made_anew: f64,
    /// Cost of a row of a block.
    row: f64,
    /// Cost of an entry, reachable or not.
    entry: f64,
    /// Additional cost of an entry of a large block, compared with a small block.
    entry_of_large: f64,
    /// Additional cost of an entry of a huge block, compared with a large block.
    entry_of_huge: f64,
}

/// Costs for comparing runs with each other. They are fitted to the times of runs of 4x2, 3x3, 5x2, 4x3 and 4x4.
/// Some of these runs compute the score, others the probability of reaching a tile.
const RUN_UP: Costs = Costs {
    block: 22e-6,
    column: 1.46e-6,
    class_row: 1.12e-6,
    row_made_anew: 750e-9,
    row: 28e-9,
    entry: 0.84e-9,
    entry_of_large: 0.0,
    entry_of_huge: 0.0,
};
const RUN_DOWN: Costs = Costs {
    block: 0.0,
    column: 2.04e-6,
    class_row: 0.15e-6,
    row_made_anew: 1.8e-6,
    row: 132e-9,
    entry: 2.0e-9,
    entry_of_large: 0.0,
    entry_of_huge: 0.0,
};

/// Costs for comparing the layers and passes of one run. They are fitted to the relative progress over time of
/// runs of 3x3, 5x2, and 4x3 with `reach:256` and `reach:512`. They also fit the ratio of the two passes of a
/// whole 4x3 run. No single fit serves both comparisons.
const LAYER_UP: Costs = Costs {
    block: 13e-6,
    column: 0.2e-6,
    class_row: 0.8e-6,
    row_made_anew: 750e-9,
    row: 134e-9,
    entry: 0.49e-9,
    entry_of_large: 0.43e-9,
    entry_of_huge: 0.7e-9,
};
const LAYER_DOWN: Costs = Costs {
    block: 0.0,
    column: 0.12e-6,
    class_row: 28e-9,
    row_made_anew: 1.8e-6,
    row: 146e-9,
    entry: 3.9e-9,
    entry_of_large: 1.3e-9,
    entry_of_huge: -1.9e-9,
};

/// Number of entries above which a block does not fit a cache.
const LARGE_BLOCK: f64 = (1 << 18) as f64;

/// Number of entries above which a block is huge. Only large boards have huge blocks, and few entries of these blocks
/// are states.
const HUGE_BLOCK: f64 = (1 << 25) as f64;

/// Number of layers that share the cost of a lane's index maps. They are the first layers of the lane.
const MAPS_LAYERS: usize = 8;

/// Ratio of the time of a downward pass with 64-bit values to its time with 32-bit values.
const WIDE: f64 = 1.4;

/// Cost of a run's passes, in total and by layer.
#[derive(Clone, PartialEq, Debug)]
pub struct PassCost {
    /// Core-seconds of the upward pass and of the downward pass.
    of_run: [f64; 2],
    /// Cost of layers in the upward and in the downward pass, in the units of [`of_pass`](Self::of_pass).
    of_layers: [LayerSums; 2],
}

/// Remaining cost of a run, in the units of [`PassCost::of_pass`].
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct RemainingCost {
    /// Remaining cost of the current pass.
    pub of_pass: f64,
    /// Cost of the whole current pass, or the remaining cost if that is higher. It is higher if reach is enumerated
    /// twice.
    pub whole_pass: f64,
    /// Cost of the later passes.
    pub later: f64,
}

/// Amounts of work in a layer.
#[derive(Clone, Copy, Default)]
struct LayerWork {
    blocks: f64,
    /// Number of columns with index maps that are computed in this layer.
    columns: f64,
    rows: f64,
    /// Number of rows of the kept classes that occur in no earlier layer.
    class_rows: f64,
    /// Number of rows that occur in blocks of classes that are not kept.
    rows_made_anew: f64,
    entries_made_anew: f64,
    entries: f64,
    entries_of_large: f64,
    entries_of_huge: f64,
}

impl PassCost {
    /// Counts the work of a run that keeps the transitions of classes with up to `dense_rows` rows. Cost: a step
    /// per block; 0.1 s for 4x3.
    pub fn new(params: &Params, dense_rows: usize) -> Self {
        let layers = work(params, dense_rows);
        let wide = if params.game().precision() == Precision::Bits64 { WIDE } else { 1.0 };
        let of_run = [(RUN_UP, 1.0), (RUN_DOWN, wide)]
            .map(|(costs, wide)| layers.iter().map(|work| costs.of(work, wide)).sum());
        let of_layers = [(LAYER_UP, 1.0), (LAYER_DOWN, wide)]
            .map(|(costs, wide)| LayerSums::new(layers.iter().map(|work| costs.of(work, wide))));
        Self { of_run, of_layers }
    }

    /// Returns the core-seconds of a pass on the measured machine.
    pub fn core_seconds(&self, phase: Phase) -> f64 {
        self.of_run[index_of(phase)]
    }

    /// Returns the cost of a pass. A unit of this cost takes about the same time in both passes and in all layers of a
    /// run.
    pub fn of_pass(&self, phase: Phase) -> f64 {
        self.of_layers[index_of(phase)].whole()
    }

    /// Returns the cost of a pass's layers from `first` to `end`, excluding `end`, in the units of
    /// [`of_pass`](Self::of_pass).
    pub fn of_layers(&self, phase: Phase, first: Layer, end: Layer) -> f64 {
        self.of_layers[index_of(phase)].between(first, end)
    }

    /// Returns the cost of a segment, in the units of [`of_pass`](Self::of_pass).
    pub fn of(&self, segment: Segment) -> f64 {
        self.of_layers(segment.phase, segment.first, segment.last.up(1))
    }

    /// Returns the remaining cost, given the missing segments in order.
    pub fn left(&self, missing: &[Segment]) -> RemainingCost {
        let Some(phase) = missing.first().map(|segment| segment.phase) else {
            return RemainingCost::default();
        };
        let of = |is_of_pass: bool| -> f64 {
            missing.iter().filter(|part| (part.phase == phase) == is_of_pass).map(|&part| self.of(part)).sum()
        };
        let of_pass = of(true);
        RemainingCost { of_pass, whole_pass: self.of_pass(phase).max(of_pass), later: of(false) }
    }

    /// Returns the cost of a segment's finished part, in the units of [`of_pass`](Self::of_pass). `at` is the current
    /// layer of the pass.
    pub fn of_finished(&self, segment: Segment, at: Layer) -> f64 {
        match segment.phase {
            Phase::Enumerate => self.of_layers(segment.phase, segment.first, at),
            Phase::BackUp => self.of_layers(segment.phase, at.up(1), segment.last.up(1)),
        }
    }
}

impl Costs {
    /// Returns the cost of an amount of work. Work on rows and entries takes `wide` times as long as with 32-bit
    /// values.
    fn of(&self, work: &LayerWork, wide: f64) -> f64 {
        self.block * work.blocks
            + self.column * work.columns
            + self.class_row * work.class_rows
            + self.row_made_anew * work.rows_made_anew
            + wide
                * (self.row * work.rows
                    + self.entry * work.entries
                    + self.entry_of_large * work.entries_of_large
                    + self.entry_of_huge * work.entries_of_huge)
    }
}

/// Counts the work of each layer of a run.
fn work(params: &Params, dense_rows: usize) -> Vec<LayerWork> {
    let space = Space::new(params);
    let mut rows_of_class = BTreeMap::new();
    let mut layers = vec![LayerWork::default(); params.last_layer().index() + 1];
    for lane in lane::lanes(params) {
        let columns = Columns::count(params, lane) as f64;
        let (first, last) = lane::layer_range(params, lane);
        let in_run = first.to(last.min(params.last_layer()));
        let classes: Vec<_> = in_run.filter_map(|layer| Some((layer, ClassId::of(layer, lane)?))).collect();
        let map_layers = classes.len().min(MAPS_LAYERS);
        for (nth, (layer, id)) in classes.into_iter().enumerate() {
            let Some(work) = layers.get_mut(layer.index()) else { continue };
            let known = rows_of_class.get(&id).copied();
            let rows = known.unwrap_or_else(|| space.estimate_rows(id) as f64);
            let (is_kept, entries) = (rows <= dense_rows as f64, rows * columns);
            if known.is_none() {
                rows_of_class.insert(id, rows);
                work.class_rows += if is_kept { rows } else { 0.0 };
            }
            work.blocks += 1.0;
            work.columns += if nth < map_layers { columns / map_layers as f64 } else { 0.0 };
            work.rows += rows;
            work.entries += entries;
            if !is_kept {
                work.rows_made_anew += rows;
                work.entries_made_anew += entries;
            }
            work.entries_of_large += if entries > LARGE_BLOCK { entries } else { 0.0 };
            work.entries_of_huge += if entries > HUGE_BLOCK { entries } else { 0.0 };
        }
    }
    let [rows, entries] = [|work: &LayerWork| work.rows, |work: &LayerWork| work.entries]
        .map(|of| layers.iter().map(of).collect::<Vec<_>>());
    let states = states::of_layers(params, &rows, &entries);
    for (work, states) in layers.iter_mut().zip(states) {
        work.leave_out_rows(states);
    }
    layers
}

impl LayerWork {
    /// Subtracts rows without a state, for classes that are not kept. The layer has `states` states.
    fn leave_out_rows(&mut self, states: f64) {
        if self.rows_made_anew <= 0.0 {
            return;
        }
        let share = self.entries_made_anew / self.entries;
        let occurring = occurring(states * share, self.rows_made_anew, self.entries_made_anew);
        self.rows -= (1.0 - occurring) * self.rows_made_anew;
        self.rows_made_anew *= occurring;
        // Nearly all blocks of such classes are large, so one factor serves all entries.
        let held = 1.0 - (1.0 - occurring) * share;
        self.entries *= held;
        self.entries_of_large *= held;
        self.entries_of_huge *= held;
    }
}

fn index_of(phase: Phase) -> usize {
    usize::from(phase == Phase::BackUp)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use super::*;

    fn cost_of(board: &str, objective: &str, precision: Precision, large: Option<u8>) -> PassCost {
        let params = Params::usual(board, objective).precision(precision);
        let (params, dense_rows) = match large {
            Some(large) => (params.large(large).huge(9), 1 << 21),
            None => (params, 1 << 18),
        };
        PassCost::new(&params.build().unwrap(), dense_rows)
    }

    fn seconds(board: &str, objective: &str, precision: Precision, large: Option<u8>) -> [f64; 2] {
        let cost = cost_of(board, objective, precision, large);
        [Phase::Enumerate, Phase::BackUp].map(|phase| cost.core_seconds(phase))
    }

    /// Compares the times of both passes with those of a 3x3 run. Both runs were measured on the same machine, only
    /// minutes apart. The times of the whole 4x3 run follow from rates measured while the machine was otherwise
    /// idle.
    #[test]
    fn large_runs_take_about_the_time_that_small_ones_predict() {
        let of_sample = seconds("3x3", "score", Precision::Bits32, None);
        for (board, objective, precision, large, times) in [
            ("5x2", "reach:128", Precision::Bits32, None, [2.1, 0.92]),
            ("5x2", "reach:1024", Precision::Bits32, None, [5.7, 5.9]),
            ("5x2", "score", Precision::Bits32, None, [12.5, 17.6]),
            ("4x3", "reach:128", Precision::Bits32, None, [14.9, 14.6]),
            ("4x3", "reach:256", Precision::Bits32, None, [59.3, 60.6]),
            ("4x3", "score", Precision::Bits64, Some(4), [7_600.0, 13_400.0]),
        ] {
            let of_run = seconds(board, objective, precision, large);
            for ((of_run, of_sample), times) in of_run.into_iter().zip(of_sample).zip(times) {
                let off = of_run / of_sample / times;
                assert!((0.65..1.35).contains(&off), "{board} {objective}: {of_run} s, off by {off}");
            }
        }
    }

    /// Measured on a whole 4x3 run with 8 GiB on an otherwise idle machine. The upward pass did 120 to 160 million
    /// states per second, the downward pass 54 to 63 million.
    #[test]
    fn the_passes_of_the_largest_run_have_the_measured_ratio() {
        let cost = cost_of("4x3", "score", Precision::Bits32, Some(4));
        let times = cost.of_pass(Phase::BackUp) / cost.of_pass(Phase::Enumerate);
        assert!(
            (1.9..2.9).contains(&times),
            "the downward pass takes {times} times as long as the upward pass"
        );
    }
}
