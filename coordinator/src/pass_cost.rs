//! What the passes of a run have to do, counted before any of it is done: from the time that a small run takes on a machine
//! follows, about, what a large one takes there.

use std::collections::BTreeMap;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::{Params, Precision, lane};
use exact2048_solution::Phase;

/// Core-seconds that a pass takes for one of each, on the machine of `docs/dev/performance.md`: fitted to runs of 4x2, 3x3,
/// 5x2 and 4x3, whole and to tiles.
struct Costs {
    /// A block: its task and its items.
    block: f64,
    /// A column of a lane: where it merges, and the maps that it is in.
    column: f64,
    /// A row of a class, whose transitions are made once and kept.
    class_row: f64,
    /// A row of a block.
    row: f64,
    /// An entry, reachable or not.
    entry: f64,
}

const UP: Costs = Costs { block: 22e-6, column: 1.46e-6, class_row: 1.12e-6, row: 28e-9, entry: 0.84e-9 };
const DOWN: Costs = Costs { block: 0.0, column: 2.04e-6, class_row: 0.15e-6, row: 132e-9, entry: 2.0e-9 };

/// Of the rows of a class that is too large for its transitions to be kept, so many occur in a block, and they are made there.
const OCCURRING: f64 = 0.37;
const OF_OCCURRING_ROW: f64 = 0.5e-6;

/// How many times as long the way down takes with 64 bits a value.
const WIDE: f64 = 1.4;

/// What the passes of a run cost.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PassCost {
    blocks: f64,
    /// Columns of all lanes.
    columns: f64,
    rows: f64,
    /// Rows of the classes whose transitions are kept.
    class_rows: f64,
    /// Rows of the blocks of all other classes.
    rows_made_anew: f64,
    entries: f64,
    is_wide: bool,
}

impl PassCost {
    /// Counts what a run has to do, where the transitions of classes of up to `dense_rows` rows are kept. Cost: a step a
    /// block; 0.1 s for 4x3.
    pub fn new(params: &Params, dense_rows: usize) -> Self {
        let space = Space::new(params);
        let (mut rows_of_class, mut cost) = (BTreeMap::new(), Self::default());
        cost.is_wide = params.precision == Precision::Bits64;
        for lane in lane::lanes(params) {
            let columns = Columns::count(params, lane) as f64;
            let (first, last) = lane::layer_range(params, lane);
            cost.columns += columns;
            let layers = first.to(last.min(params.last_layer()));
            for id in layers.filter_map(|layer| ClassId::of(layer, lane)) {
                let rows = *rows_of_class.entry(id).or_insert_with(|| space.rows_about(id) as f64);
                cost.blocks += 1.0;
                cost.rows += rows;
                cost.entries += rows * columns;
                if rows > dense_rows as f64 {
                    cost.rows_made_anew += rows;
                }
            }
        }
        cost.class_rows = rows_of_class.into_values().filter(|rows| *rows <= dense_rows as f64).sum();
        cost
    }

    /// How many seconds of a core a pass takes, on the machine that was measured.
    pub fn core_seconds(&self, phase: Phase) -> f64 {
        let (costs, wide) = match phase {
            Phase::Enumerate => (UP, 1.0),
            Phase::BackUp => (DOWN, if self.is_wide { WIDE } else { 1.0 }),
        };
        costs.block * self.blocks
            + costs.column * self.columns
            + costs.class_row * self.class_rows
            + OCCURRING * OF_OCCURRING_ROW * self.rows_made_anew
            + wide * (costs.row * self.rows + costs.entry * self.entries)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use super::*;
    use exact2048_game::Spawn4;

    fn seconds(board: &str, objective: &str, precision: Precision, large: Option<u8>) -> [f64; 2] {
        let (board, objective) = (board.parse().unwrap(), objective.parse().unwrap());
        let params = Params::new(board, objective, Spawn4::default(), precision, None).unwrap();
        let (params, dense_rows) = match large {
            Some(large) => (Params { large, huge: 9, ..params }, 1 << 21),
            None => (params, 1 << 18),
        };
        let cost = PassCost::new(&params, dense_rows);
        [Phase::Enumerate, Phase::BackUp].map(|phase| cost.core_seconds(phase))
    }

    /// What runs took beside what a run of 3x3 took on the same machine within some minutes, up and down. Of 4x3 it is by
    /// the rates at which it ran where nothing else did.
    #[test]
    fn large_runs_take_about_what_small_ones_say() {
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
}
