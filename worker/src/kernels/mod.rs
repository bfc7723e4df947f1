//! The inner loops: functions of flat plans and of slices, without memory accounting, threads or files.
//!
//! A plan holds the inputs of a block: source rows, edges between rows, and an index map for each run of edges. A
//! kernel writes the rows of the target in some slots, and the choice of slots changes no result. [`Kernels`] lists all
//! operations on entries, including the hashes of the fingerprint and the chances of statistics. So kernels for an
//! accelerator could keep blocks in the accelerator's memory. [`Vectors`] implements the kernels for the processor.
//! `worker/tests/kernels.rs` has a slow and simple implementation, and compares both block by block.

pub mod bit_moves;
pub mod block_hashes;
pub mod chances;
pub mod hashes;
pub mod index_map;
pub mod maxima;
pub mod means;
mod wanted;

use std::ops::Range;

use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::transitions::{Direction, MoveEdge, SpawnEdge};
use exact2048_game::value::Value;

use crate::bits::{BitRows, Source};
use crate::pieces::SlotBits;
use block_hashes::{BlockHashes, HashSum};
use chances::{ChanceMoves, ChanceSpawns, ChanceSums};
use index_map::{IndexMap, Permutation};
use maxima::Maxima;
use means::Means;

/// Operations on rows: for enumerating, backing up, fingerprints and statistics.
pub trait Kernels<V>: Send + Sync {
    /// Sets the bits of the states that spawns lead to.
    fn spawn_bits(&self, plan: &BitSpawns<'_>, states: &mut BitRows<'_>);

    /// Sets the bits of the afterstates that moves lead to.
    ///
    /// A kernel drops bits that lead to a padding column, or leaves them to [`BitRows::clear_padding`]. Targets of rows
    /// without a bit need not be rows of the block.
    fn move_bits(&self, plan: &BitMoves<'_>, afterstates: &mut BitRows<'_>);

    /// Writes the means over spawns in the `slots` whose spawns all lead to computed rows. Returns the slots that it
    /// wrote.
    ///
    /// `after` has the rows of all `slots`. The returned slots include all reachable afterstates. No reachable state
    /// reads others. An entry may be 0 if a spawned 2 leads to a state that is not reachable.
    fn means(&self, plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits;

    /// Computes `state[c] = max(state[c], after[map[c]])` for each edge from one of the `slots` and each wanted state.
    ///
    /// `states` has the rows of the `slots`.
    fn maxima(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]);

    /// Computes [`Kernels::maxima`], and writes the move with the largest value to `best`.
    ///
    /// Of equal moves it takes the one with the lowest number. If no move raises the value, `best` stays unchanged.
    fn best_moves(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V], best: &mut [Direction]);

    /// Counts the states in some slots, up to symmetry, and sums their hashes.
    fn hashes(&self, plan: &BlockHashes<'_, V>, slots: Range<usize>) -> HashSum;

    /// Adds the chances that spawns send to the rows of states. Returns the sum of the chances that were left out.
    ///
    /// A chance is rounded twice, and added in the order of the slots and edges.
    fn spawn_chances(&self, plan: &ChanceSpawns<'_>, states: &mut ChanceSums<'_>) -> f64;

    /// Adds the chances that best moves send to the rows of afterstates, in the order of the edges.
    ///
    /// It may also add to padding.
    fn move_chances(&self, plan: &ChanceMoves<'_>, afterstates: &mut ChanceSums<'_>);
}

/// The kernels for the vector instructions of the processor.
///
/// They are compiled for several instruction sets, and the program picks one at run time. Integer sums and maxima, and
/// f64 operations that are never contracted, give the same bits in all of them.
#[derive(Clone, Copy, Debug)]
pub struct Vectors;

impl<V: Value> Kernels<V> for Vectors {
    fn spawn_bits(&self, plan: &BitSpawns<'_>, states: &mut BitRows<'_>) {
        bit_moves::spawn_bits(plan, states);
    }

    fn move_bits(&self, plan: &BitMoves<'_>, afterstates: &mut BitRows<'_>) {
        bit_moves::move_bits(plan, afterstates);
    }

    fn means(&self, plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits {
        means::means(plan, slots, after)
    }

    fn maxima(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]) {
        maxima::maxima(plan, slots, states);
    }

    fn best_moves(
        &self,
        plan: &Maxima<'_, V>,
        slots: Range<usize>,
        states: &mut [V],
        best: &mut [Direction],
    ) {
        maxima::best_moves(plan, slots, states, best);
    }

    fn hashes(&self, plan: &BlockHashes<'_, V>, slots: Range<usize>) -> HashSum {
        block_hashes::sum_hashes(plan, slots)
    }

    fn spawn_chances(&self, plan: &ChanceSpawns<'_>, states: &mut ChanceSums<'_>) -> f64 {
        chances::spawn_chances(plan, states)
    }

    fn move_chances(&self, plan: &ChanceMoves<'_>, afterstates: &mut ChanceSums<'_>) {
        chances::move_chances(plan, afterstates);
    }
}

/// The spawns of a block, with the afterstates that they start from.
#[derive(Clone, Copy, Debug)]
pub struct BitSpawns<'a> {
    /// For each slot of the afterstates, the index in `edges` at which its edges begin. The last number is the end of
    /// all.
    pub start: &'a [u32],
    /// The rows that the spawns lead to.
    pub edges: &'a [SpawnEdge],
    /// Their effects on columns, by the numbers in `edges`.
    pub maps: &'a [&'a Permutation],
    /// The afterstates.
    pub afterstates: Source<'a>,
}

/// The moves of a block into another, with the states that they start from.
#[derive(Clone, Copy, Debug)]
pub struct BitMoves<'a> {
    /// The moves, by their effect on columns.
    pub runs: &'a [MoveRun<'a>],
    /// The states.
    pub states: Source<'a>,
}

/// Rows of values, with the set of those that were computed.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, V> {
    /// Values a row, a multiple of [`index_map::LANES`].
    pub stride: usize,
    /// The rows that are held.
    pub set: &'a RowSet,
    /// The rows whose values were computed.
    pub occupied: &'a BitSet<Row>,
    /// The rows.
    pub values: &'a [V],
}

/// The edges of moves that share an index map.
#[derive(Clone, Copy, Debug)]
pub struct MoveRun<'a> {
    /// The edges, ascending by slot.
    pub edges: &'a [MoveEdge],
    /// Their effect on columns.
    pub map: IndexMap<'a>,
}

impl<'a, V> Rows<'a, V> {
    /// Whether a row was computed.
    #[inline(always)]
    pub fn has(&self, row: Row) -> bool {
        self.occupied.contains(row)
    }

    /// The values of a row, which must be held.
    #[inline(always)]
    pub fn row(&self, row: Row) -> &'a [V] {
        &self.values[self.set.slot(row).index() * self.stride..][..self.stride]
    }
}

/// The number of columns that a kernel works on at a time if rows are long. The target values of this many columns stay
/// in the first-level cache.
pub const COLUMNS_AT_ONCE: usize = 1024;

/// The number of target values that a kernel works on at a time. These values stay in the second-level cache.
const VALUES_AT_ONCE: usize = 1 << 16;

/// The number of target rows of `stride` values that a kernel works on at a time.
fn rows_at_once(stride: usize) -> usize {
    (VALUES_AT_ONCE / stride.clamp(1, COLUMNS_AT_ONCE)).max(1)
}
