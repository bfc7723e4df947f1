//! The inner loops: functions of flat plans and of slices, without memory accounting, threads or files.
//!
//! A plan holds what a block needs: source rows, edges between rows, and an index map for each run of edges. A kernel
//! writes the target's rows of some slots; who calls it for which slots changes no result. Functions are compiled for
//! several instruction sets and picked at run time. Integer sums and maxima, and f64 operations that are never contracted,
//! give the same bits in all of them.

pub mod bit_moves;
pub mod index_map;
pub mod maxima;
pub mod means;

use exact2048_game::rowset::{RowSet, is_set};
use exact2048_game::transitions::MoveEdge;

use index_map::IndexMap;

/// Rows of values, and which of them were computed.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, V> {
    /// Values a row, a multiple of [`index_map::LANES`].
    pub stride: usize,
    /// The rows that there are.
    pub set: &'a RowSet,
    /// One bit a row of the class: whether its values were computed.
    pub occupied: &'a [u64],
    /// The rows.
    pub values: &'a [V],
}

/// The edges of moves that share an index map.
#[derive(Clone, Copy, Debug)]
pub struct MoveRun<'a> {
    /// The edges, ascending by slot.
    pub edges: &'a [MoveEdge],
    /// What they do to columns.
    pub map: &'a IndexMap,
}

impl<'a, V> Rows<'a, V> {
    #[inline(always)]
    fn has(&self, row: u32) -> bool {
        is_set(self.occupied, row)
    }

    #[inline(always)]
    fn row(&self, row: u32) -> &'a [V] {
        &self.values[self.set.slot(row) * self.stride..][..self.stride]
    }
}

/// Columns that a kernel works on at a time where rows are long, and values of the target: what the former lead to stays in
/// the first cache, the latter in the second. Measured in deep layers of 4×3; short rows do not feel them.
const COLUMNS_AT_ONCE: usize = 1024;
const VALUES_AT_ONCE: usize = 1 << 16;

/// Target rows of a length that a kernel works on at a time.
fn rows_at_once(stride: usize) -> usize {
    (VALUES_AT_ONCE / stride.clamp(1, COLUMNS_AT_ONCE)).max(1)
}
