//! The solver's kernels: what a worker does, one block or layer at a time.
//!
//! A worker enumerates blocks upward ([`Worker::enumerate`]), backs them up downward
//! ([`Worker::back_up`]) and seals finished layers into shard frames ([`Worker::seal`]). Which block is
//! next is not decided here.

mod backup;
pub mod bits;
mod blocks;
mod enumerate;
mod fingerprint;
mod memory;
mod payload;
pub mod rows;
mod seal;
mod tables;
mod value;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use exact2048_game::class::Space;
use exact2048_game::columns::Columns;
use exact2048_game::lane::Step;
use exact2048_game::maps::IndexMap;
use exact2048_game::{Lane, Layer, Params, lane};
use exact2048_storage::{ItemKey, ShardKind, StorageError};

pub use backup::BlockValues;
pub use blocks::Archive;
pub use enumerate::BlockCounts;
pub use fingerprint::state_hash;
pub use memory::Memory;
pub use payload::{Parts, PayloadError, for_each_bit};
pub use seal::Sealed;
pub use value::{Backup, Value};

use blocks::{BlockMap, ReachBlock, ValueBlock};
use tables::Tables;

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Reading or writing a file.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An item that does not parse.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// An item that must be there is not.
    #[error("the shard that covers layer {} has no values for lane {:#x}, part {}; remove the values shard of that layer and run solve again", .0.layer, .0.lane, .0.part)]
    ItemMissing(ItemKey),
    /// No shard covers the layer.
    #[error("no {kind:?} shard covers layer {layer}; run solve again to recompute it")]
    NotCovered {
        /// Kind of shard.
        kind: ShardKind,
        /// The layer.
        layer: u32,
    },
}

/// What changes the speed and the memory of a worker, and no result.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Heap bytes that finished blocks and tables may take.
    pub budget_bytes: usize,
    /// Blocks of classes with at most so many rows hold all of them, and keep their transitions; blocks of
    /// larger classes hold only the rows that occur.
    pub dense_rows: usize,
}

impl Tuning {
    /// The number of rows that measured well on all boards; see `docs/performance.md`.
    pub const DENSE_ROWS: usize = 1 << 18;
}

/// Items of finished blocks whose layer is not sealed yet.
type PendingItems = BTreeMap<ItemKey, Vec<u8>>;

/// Bytes that tasks need at once beside the budget for finished blocks: what they are working on, and
/// what does not depend on the board.
pub fn working_set_bytes(params: &Params, threads: usize) -> u64 {
    const FIXED: u64 = 48 << 20;
    let value_bytes = u64::from(u8::from(params.precision)) / 8;
    let space = Space::new(params);
    let block = |lane: &Lane| -> u64 {
        let columns = IndexMap::stride(Columns::count(params, *lane) as usize) as u64;
        space.most_rows(lane.k).min(Tuning::DENSE_ROWS as u64)
            * columns
            * if params.until_layer.is_some() { 1 } else { value_bytes }
    };
    let largest = lane::lanes(params).iter().map(block).max().unwrap_or(0);
    // An afterstate block and a state block are in the making on each thread.
    FIXED + 2 * largest * threads as u64
}

/// A worker: the tables and blocks that its tasks share. Any number of threads may run tasks on it.
pub struct Worker<V> {
    tables: Tables,
    steps: Vec<Step>,
    backup: Backup,
    memory: Arc<Memory>,
    archive: Arc<dyn Archive>,
    reach: BlockMap<ReachBlock>,
    after_reach: BlockMap<ReachBlock>,
    values: BlockMap<ValueBlock<V>>,
    after_values: BlockMap<ValueBlock<V>>,
    pending_reach: Mutex<PendingItems>,
    pending_values: Mutex<PendingItems>,
}

impl<V: Value> Worker<V> {
    /// A worker for a run, with a folder to spill to and the published shards.
    pub fn new(params: &Params, tuning: Tuning, scratch: PathBuf, archive: Arc<dyn Archive>) -> Self {
        let memory = Memory::new(tuning.budget_bytes, scratch);
        Self {
            tables: Tables::new(params, Arc::clone(&memory), tuning.dense_rows),
            steps: Step::all(params),
            backup: Backup::new(params),
            memory,
            archive,
            reach: BlockMap::default(),
            after_reach: BlockMap::default(),
            values: BlockMap::default(),
            after_values: BlockMap::default(),
            pending_reach: Mutex::default(),
            pending_values: Mutex::default(),
        }
    }

    /// Lets go of a layer's states, or of its values.
    pub fn release_states(&self, layer: Layer) {
        self.reach.release(layer);
        self.values.release(layer);
    }

    /// Lets go of a layer's afterstates, or of their values.
    pub fn release_afterstates(&self, layer: Layer) {
        self.after_reach.release(layer);
        self.after_values.release(layer);
    }

    /// Lets go of every block and of items that were not sealed.
    pub fn release_all(&self) {
        self.reach.clear();
        self.values.clear();
        self.after_reach.clear();
        self.after_values.clear();
        self.pending(ShardKind::Reach).clear();
        self.pending(ShardKind::Values).clear();
    }

    /// Lets go of what is kept for a lane.
    pub fn release_lane(&self, lane: Lane) {
        self.tables.release_lane(lane);
    }

    fn pending(&self, kind: ShardKind) -> MutexGuard<'_, PendingItems> {
        let pending = match kind {
            ShardKind::Reach => &self.pending_reach,
            ShardKind::Values => &self.pending_values,
        };
        pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
