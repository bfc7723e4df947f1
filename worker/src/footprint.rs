//! The memory that tasks need, and so the least memory for a run.
//!
//! The estimates exceed the use. So a task that might not fit into memory with others waits for them.

use std::collections::BTreeMap;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::lane;
use exact2048_game::transitions::{Direction, Transitions};
use exact2048_game::{Lane, Layer, Params};
use rustc_hash::FxHashSet;

use crate::kernels::index_map::stride;
use crate::memory::Need;
use crate::tables::Tables;
use crate::tuning::Tuning;

/// Memory of the process outside its heap: code, memory of the compressors, and memory that the allocator keeps.
const FIXED_BYTES: u64 = 24 << 20;

/// Memory of a thread outside the heap: its stack and a compressor.
const THREAD_BYTES: u64 = 4 << 20;

/// Heap that does not depend on the board: decoded frames, the journal, waiting items.
pub(crate) const SHARED_HEAP_BYTES: u64 = 24 << 20;

/// Used bytes of every 16 that the process takes. The rest is lost between allocations.
const IN_USE_OF_16: u64 = 15;

/// Bytes of a column in the data of a lane: sequence, potential, number, bits of equal pairs, and the index maps that
/// a task uses at once.
const COLUMN_BYTES: u64 = 128;

/// Bytes of a config's rank in the tables of a class.
const RANK_BYTES: u64 = 6;

/// The heap that a process with `threads` compute threads may use to stay within `memory_bytes`.
pub fn heap_limit_bytes(memory_bytes: u64, threads: usize) -> u64 {
    let outside = FIXED_BYTES + THREAD_BYTES * threads as u64;
    memory_bytes.saturating_sub(outside) / 16 * IN_USE_OF_16
}

/// The least memory for a run, in bytes. Boards of 15 and 16 cells can need more, because their blocks hold only the
/// rows that occur, and their number is unknown.
pub fn least_memory_bytes(params: &Params, threads: usize) -> u64 {
    process_bytes(least_heap_bytes(params, Tuning::DENSE_ROWS), threads)
}

/// Memory of a process with `threads` compute threads and `heap` bytes of heap.
pub(crate) fn process_bytes(heap: u64, threads: usize) -> u64 {
    heap / IN_USE_OF_16 * 16 + FIXED_BYTES + THREAD_BYTES * threads as u64
}

/// The least heap, if blocks of classes with at most `dense_rows` rows hold all their rows.
pub fn least_heap_bytes(params: &Params, dense_rows: usize) -> u64 {
    let space = Space::new(params);
    let until = params.last_layer();
    let (mut largest, mut kept, mut with_columns) = (0, BTreeMap::<u32, i64>::new(), FxHashSet::default());
    for lane in lane::lanes(params) {
        let (first, last) = lane::layer_range(params, lane);
        if first > until {
            continue;
        }
        let columns = Columns::count(params, lane);
        if with_columns.insert(lane.in_first_sector()) {
            let lane_bytes = (columns * COLUMN_BYTES) as i64;
            *kept.entry(first.0).or_default() += lane_bytes;
            *kept.entry(last.up(1).0).or_default() -= lane_bytes;
        }
        let classes = first.to(last.min(until)).filter_map(|layer| ClassId::of(layer, lane));
        let rows = classes.map(|id| space.estimate_rows(id)).max().unwrap_or(0).min(dense_rows as u64);
        let task = if params.contents().enumerates_only() {
            enumerate_bytes(rows, columns)
        } else {
            back_up_bytes(
                rows,
                columns,
                params.game().precision().bytes(),
                params.contents().stores_best_moves(),
            )
        };
        largest = largest.max(task);
    }
    let mut now = 0;
    let lanes = kept.values().map(|change| {
        now += change;
        now
    });
    let lanes = lanes.max().unwrap_or(0) as u64;
    SHARED_HEAP_BYTES + largest + lanes + RANK_BYTES * space.table_ranks(until.0)
}

/// Bytes to enumerate a block: for the made matrix, a matrix to read, items, and the transitions of one class.
fn enumerate_bytes(rows: u64, columns: u64) -> u64 {
    rows * (Transitions::BYTES_TO_MAKE_A_ROW as u64 + 24 * columns.div_ceil(64))
}

/// Bytes to back up a block: for reading its entries, for values of afterstates and states, and perhaps for best
/// moves.
fn back_up_bytes(rows: u64, columns: u64, value_bytes: u64, best_moves: bool) -> u64 {
    let stride = stride(columns as usize) as u64;
    enumerate_bytes(rows, columns) + rows * stride * (2 * value_bytes + u64::from(best_moves))
}

/// Numbers of rows and columns of a block. The number of rows is a guess if a block holds only those that occur.
pub(crate) fn shape(tables: &Tables, layer: Layer, lane: Lane) -> (usize, usize) {
    let rows = tables.class(layer, lane).map_or(0, |class| class.rows()).min(tables.dense_rows());
    (rows, tables.lane(lane).map_or(0, |tables| tables.columns.len()))
}

/// The memory to enumerate a block of this shape.
pub(crate) fn enumerate_need((rows, columns): (usize, usize)) -> Need {
    Need { areas: 0, other: enumerate_bytes(rows as u64, columns as u64) as usize }
}

/// The memory to enumerate a block of this shape, and to note the afterstates of one other member at a time.
pub(crate) fn noted_need((rows, columns): (usize, usize)) -> Need {
    let Need { areas, other } = enumerate_need((rows, columns));
    Need { areas, other: other + 2 * rows * columns.div_ceil(64) * size_of::<u64>() }
}

/// The memory to find out which afterstates of a block to back up.
///
/// It covers the effects of spawns, and the values of `unread` blocks of states that are to be read or unpacked.
pub(crate) fn means_input_need<V>((rows, columns): (usize, usize), unread: usize) -> Need {
    let Need { areas, other } = means_need::<V>(rows, unread * rows * stride(columns));
    let reach = if unread > 0 { enumerate_need((rows, columns)).other } else { 0 };
    Need { areas, other: other + reach }
}

/// The memory to back up the afterstates in some rows: for their values and transitions.
pub(crate) fn means_need<V>(rows: usize, values: usize) -> Need {
    Need { areas: values * size_of::<V>(), other: rows * Transitions::BYTES_TO_MAKE_A_ROW }
}

/// The memory to back up the states in some rows: for their values and transitions, and perhaps their best moves.
pub(crate) fn maxima_need<V>(rows: usize, values: usize, finds_best_moves: bool) -> Need {
    let best = if finds_best_moves { values * size_of::<Direction>() } else { 0 };
    let Need { areas, other } = means_need::<V>(rows, values);
    Need { areas: areas + best, other }
}
