//! The inner loops: functions of flat plans and of slices, without memory accounting, threads or files.
//!
//! A plan holds what a block needs: source rows, edges between rows, and an index map for each run of edges. A kernel
//! writes the rows of the target in some slots; which call is for which slots changes no result. [`Kernels`] lists the
//! kernels, and [`Vectors`] implements them for the processor; another kind of machine would need another
//! implementation. A slow and obvious one is in `worker/tests/kernels.rs`, where both are compared block by block. The
//! hashes of the fingerprint and the chances of statistics are functions outside of [`Kernels`], and are tested against
//! boards one by one.

pub mod bit_moves;
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
use index_map::{IndexMap, Permutation};
use maxima::Maxima;
use means::Means;

/// Operations on rows for enumerating and backing up.
pub trait Kernels<V>: Send + Sync {
    /// Sets the bits of the states that spawns lead to.
    fn spawn_bits(&self, plan: &BitSpawns<'_>, states: &mut BitRows<'_>);

    /// Sets the bits of the afterstates that moves lead to. Bits that lead to a padding column are dropped, or left to
    /// [`BitRows::clear_padding`]. Targets of rows without a bit need not be rows of the block.
    fn move_bits(&self, plan: &BitMoves<'_>, afterstates: &mut BitRows<'_>);

    /// Writes the means over spawns in those of the `slots` whose spawns all lead to rows that were computed, and gives
    /// these slots. `after` has the rows of all `slots`. The reachable afterstates are all among them; no reachable
    /// state reads others, which may be 0 where a spawned 2 leads to a state that is not reachable.
    fn means(&self, plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits;

    /// For each edge from one of the `slots`, and each state that is wanted: `state[c] = max(state[c], after[map[c]])`.
    /// `states` has the rows of the `slots`.
    fn maxima(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]);

    /// Like [`Kernels::maxima`], and writes to `best` the move that is worth most, of equal ones the one with the
    /// lowest number. Where no move raises the value, `best` stays as it was, which should be 0.
    fn best_moves(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V], best: &mut [Direction]);
}

/// The kernels for the vector instructions of the processor. They are compiled for several instruction sets and picked at run
/// time. Integer sums and maxima, and f64 operations that are never contracted, give the same bits in all of them.
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
}

/// The spawns of a block, to find out which states they lead to.
#[derive(Clone, Copy, Debug)]
pub struct BitSpawns<'a> {
    /// Where in `edges` those of each slot of the afterstates begin, and at last where they end.
    pub start: &'a [u32],
    /// Where they lead.
    pub edges: &'a [SpawnEdge],
    /// Their effects on columns, by the numbers in `edges`.
    pub maps: &'a [&'a Permutation],
    /// The afterstates.
    pub afterstates: Source<'a>,
}

/// The moves of a block into another, to find out which afterstates they lead to.
#[derive(Clone, Copy, Debug)]
pub struct BitMoves<'a> {
    /// The moves, by what they do to columns.
    pub runs: &'a [MoveRun<'a>],
    /// The states.
    pub states: Source<'a>,
}

/// Rows of values, and which of them were computed.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, V> {
    /// Values a row, a multiple of [`index_map::LANES`].
    pub stride: usize,
    /// The rows that are held.
    pub set: &'a RowSet,
    /// Those whose values were computed.
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

/// The number of columns that a kernel works on at a time where rows are long: what they lead to stays in the
/// first-level cache.
pub const COLUMNS_AT_ONCE: usize = 1024;

/// The number of values of the target that a kernel works on at a time: they stay in the second-level cache.
const VALUES_AT_ONCE: usize = 1 << 16;

/// The number of target rows of `stride` values that a kernel works on at a time.
fn rows_at_once(stride: usize) -> usize {
    (VALUES_AT_ONCE / stride.clamp(1, COLUMNS_AT_ONCE)).max(1)
}
