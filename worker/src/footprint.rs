//! How much memory tasks need, and so the least with which a run is possible.
//!
//! The estimates lie above what is used: a task that might not fit into memory beside others waits for them.

use std::collections::BTreeMap;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::lane;
use exact2048_game::transitions::{Direction, Transitions};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, SpawnKind};

use crate::kernels::index_map::stride;
use crate::memory::Need;
use crate::{Tuning, Worker};

/// Memory of the process outside its heap: code, the compressors' own memory, and memory that its allocator
/// holds back.
const FIXED_BYTES: u64 = 24 << 20;

/// Memory of a thread outside the heap: its stack and a compressor.
const THREAD_BYTES: u64 = 4 << 20;

/// Heap that does not depend on the board: decoded frames, the journal, items that wait.
pub(crate) const SHARED_HEAP_BYTES: u64 = 24 << 20;

/// Of every 16 bytes that the process takes, this many are in use; the rest is lost between allocations.
const IN_USE_OF_16: u64 = 15;

/// Bytes that a column needs in the data kept for a lane: sequence, potential, number, bits of equal pairs,
/// and the index maps that a task uses at once.
const COLUMN_BYTES: u64 = 128;

/// Bytes that a rank needs in the tables of a class.
const RANK_BYTES: u64 = 6;

/// The heap that a process with `threads` compute threads may use to stay within `memory_bytes`.
pub fn heap_limit_bytes(memory_bytes: u64, threads: usize) -> u64 {
    let outside = FIXED_BYTES + THREAD_BYTES * threads as u64;
    memory_bytes.saturating_sub(outside) / 16 * IN_USE_OF_16
}

/// The least memory with which a run is possible, in bytes. Boards of 15 and 16 cells, whose blocks hold only
/// the rows that occur, can need more.
pub fn least_memory_bytes(params: &Params, threads: usize) -> u64 {
    process_bytes(least_heap_bytes(params, Tuning::DENSE_ROWS), threads)
}

impl Tuning {
    /// As [`least_memory_bytes`], for statistics of a run.
    pub fn least_statistics_bytes(self, params: &Params, threads: usize) -> u64 {
        let params = params.with_all_contents();
        process_bytes(least_heap_bytes(&params, self.for_statistics(&params).dense_rows), threads)
    }
}

/// Memory of a process with `threads` compute threads and this much heap.
fn process_bytes(heap: u64, threads: usize) -> u64 {
    heap / IN_USE_OF_16 * 16 + FIXED_BYTES + THREAD_BYTES * threads as u64
}

/// The least heap, where blocks of classes with at most `dense_rows` rows hold all of them.
pub(crate) fn least_heap_bytes(params: &Params, dense_rows: usize) -> u64 {
    let space = Space::new(params);
    let until = params.last_layer();
    let (mut largest, mut kept) = (0, BTreeMap::<u32, i64>::new());
    for lane in lane::lanes(params) {
        let (first, last) = lane::layer_range(params, lane);
        if first > until {
            continue;
        }
        let columns = Columns::count(params, lane);
        let lane_bytes = (columns * COLUMN_BYTES) as i64;
        *kept.entry(first.0).or_default() += lane_bytes;
        *kept.entry(last.up(1).0).or_default() -= lane_bytes;
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

/// Bytes to enumerate a block: for the matrix that is made, one that is read, items, and the transitions of one class.
fn enumerate_bytes(rows: u64, columns: u64) -> u64 {
    rows * (Transitions::BYTES_TO_MAKE_A_ROW as u64 + 24 * columns.div_ceil(64))
}

/// Bytes to back up a block: for values of afterstates and states, perhaps best moves, and what reading their entries
/// takes.
fn back_up_bytes(rows: u64, columns: u64, value_bytes: u64, best_moves: bool) -> u64 {
    let stride = stride(columns as usize) as u64;
    enumerate_bytes(rows, columns) + rows * stride * (2 * value_bytes + u64::from(best_moves))
}

impl<V: Value> Worker<V> {
    pub(crate) fn enumerate_need(&self, layer: Layer, lane: Lane) -> Need {
        let (rows, columns) = self.shape(layer, lane);
        Need { areas: 0, other: enumerate_bytes(rows, columns) as usize }
    }

    /// The memory to find the afterstates of a block that are to be backed up.
    ///
    /// It is for the effects of spawns, and for values of states that have to be read or unpacked.
    pub(crate) fn means_input_need(&self, layer: Layer, lane: Lane) -> Need {
        let (rows, columns) = self.shape(layer, lane);
        let is_at_hand =
            |spawn| self.values.get(layer.after(spawn), lane).is_some_and(|block| !block.is_packed);
        let to_read = SpawnKind::ALL.into_iter().filter(|&spawn| !is_at_hand(spawn)).count();
        let values = to_read * rows as usize * stride(columns as usize);
        let Need { areas, other } = self.means_need(rows as usize, values);
        let reach = if to_read > 0 { self.enumerate_need(layer, lane).other } else { 0 };
        Need { areas, other: other + reach }
    }

    /// The memory to back up the afterstates in some rows: for their values and transitions.
    pub(crate) fn means_need(&self, rows: usize, values: usize) -> Need {
        Need { areas: values * size_of::<V>(), other: rows * Transitions::BYTES_TO_MAKE_A_ROW }
    }

    /// The memory to back up the states in some rows: for their values and transitions, and for their best moves where
    /// the run stores these.
    pub(crate) fn maxima_need(&self, rows: usize, values: usize) -> Need {
        let best = if self.legality.is_some() { values * size_of::<Direction>() } else { 0 };
        let Need { areas, other } = self.means_need(rows, values);
        Need { areas: areas + best, other }
    }

    /// The numbers of rows and columns of a block. The rows are a guess where a block holds only those that occur.
    pub(crate) fn shape(&self, layer: Layer, lane: Lane) -> (u64, u64) {
        let rows =
            self.tables.class(layer, lane).map_or(0, |class| class.rows()).min(self.tables.dense_rows());
        let columns = self.tables.lane(lane).map_or(0, |tables| tables.columns.len());
        (rows as u64, columns as u64)
    }
}
