//! The solver's kernels: what a worker does, one block or layer at a time.
//!
//! A worker enumerates blocks upward, states ([`Worker::enumerate_states`]) before afterstates
//! ([`Worker::enumerate_afterstates`]), backs them up downward, afterstates ([`Worker::back_up_afterstates`]) before states
//! ([`Worker::back_up_states`]), and seals finished layers into shard frames ([`Worker::seal`]). Which task is next is not
//! decided here.

mod any;
mod backup;
pub mod bits;
mod blocks;
mod bytes_list;
mod dense;
mod enumerate;
mod exchange;
mod fingerprint;
mod follow;
mod footprint;
pub mod kernels;
mod memory;
mod open_block;
pub mod pieces;
mod policy;
mod seal;
mod tables;

use std::sync::Arc;

use exact2048_game::backup::Backup;
use exact2048_game::lane::Step;
use exact2048_game::legal::Legality;
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{Archive, Blame, ItemKind, PayloadError, ReadError};
use exact2048_storage::{ErrorKind, ScratchPlace, StorageError};
use parking_lot::{Mutex, MutexGuard};

pub use any::{AnyFollower, AnyWorker, new_worker};
pub use backup::BlockValues;
pub use bytes_list::BytesList;
pub use follow::{BestMoves, FollowSums, Follower};
pub use footprint::{heap_limit_bytes, least_memory_bytes};
pub use memory::Memory;
pub use seal::Sealed;

use blocks::{BlockMap, ReachBlock, ValueBlock};
use kernels::index_map::stride;
use kernels::{Kernels, Vectors};
use memory::{Need, Reservation};
use pieces::Pieces;
use seal::Unsealed;
use tables::{MapCache, Tables};

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A published item cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A scratch file cannot be written or read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A block from another worker does not parse.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

impl From<WorkerError> for ReadError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Read(error) => error,
            WorkerError::Storage(error) => error.into(),
            WorkerError::Payload(error) => error.into(),
        }
    }
}

impl WorkerError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            // Its sender is to blame, and no file.
            Self::Payload(_) => ErrorKind::Internal,
        }
    }

    /// The shard or item to make again, if the error comes from one.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Read(error) => error.blames(),
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            Self::Payload(_) => None,
        }
    }
}

/// The heap of the process, as its allocator knows it.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// Counts the live bytes.
    pub live_bytes: fn() -> usize,
    /// Tells how much memory of the process is resident, mapped files aside; 0 where that is not known.
    pub resident_bytes: fn() -> usize,
    /// Gives pages that are free between live blocks back to the system, if the allocator can. It may take a tenth of a
    /// second.
    pub give_back: fn(),
}

impl Heap {
    /// A heap whose allocator gives free pages back without being asked.
    #[must_use]
    pub const fn of(live_bytes: fn() -> usize) -> Self {
        Self { live_bytes, resident_bytes: || 0, give_back: || () }
    }
}

/// Settings that change the speed and the memory of a worker, and no result.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The limit on live bytes of the heap.
    pub limit_bytes: usize,
    /// The heap of the process.
    pub heap: Heap,
    /// Classes with at most this many rows keep the transitions of all of them, and most of their blocks hold all rows.
    /// Blocks of larger classes hold only the rows that occur.
    pub dense_rows: usize,
    /// The least length in bytes of the pieces of a block of values that threads share; pieces of a block of bits are
    /// an eighth as long.
    pub piece_bytes: usize,
}

impl Tuning {
    /// The `dense_rows` that measured well on all boards; see `docs/dev/performance.md`, and [`Tuning::for_run`].
    pub const DENSE_ROWS: usize = 1 << 18;

    /// Work on a piece of this length takes so long that handing it to another thread adds hardly anything.
    pub const PIECE_BYTES: usize = 512 << 10;

    /// The usual tuning for so many live bytes of the heap.
    #[must_use]
    pub fn within(limit_bytes: u64, heap: Heap) -> Self {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        Self { limit_bytes, heap, dense_rows: Self::DENSE_ROWS, piece_bytes: Self::PIECE_BYTES }
    }
}

/// Pieces for each thread that works on a block, so that they end at about the same time.
const PIECES_A_THREAD: usize = 4;

/// The most pieces to cut a block into, if `helpers` threads may help with it. Every piece reads the index maps anew,
/// so a block that no other thread helps with is not cut.
fn most_pieces(helpers: usize) -> usize {
    if helpers == 0 { 1 } else { PIECES_A_THREAD * (helpers + 1) }
}

/// A worker: the tables and blocks that its tasks share. Any number of threads may run tasks on it.
pub struct Worker<V> {
    tables: Tables,
    steps: Vec<Step>,
    backup: Backup,
    kernels: Box<dyn Kernels<V>>,
    piece_bytes: usize,
    memory: Arc<Memory>,
    archive: Arc<dyn Archive>,
    reach: BlockMap<ReachBlock>,
    after_reach: BlockMap<ReachBlock>,
    values: BlockMap<ValueBlock<V>>,
    after_values: BlockMap<ValueBlock<V>>,
    unsealed_reach: Unsealed,
    unsealed_values: Unsealed,
    unsealed_best_moves: Unsealed,
    /// Which moves are legal; `None` unless the run stores best moves.
    legality: Option<Legality>,
    /// One thread at a time makes room: what it moves must not be moved twice.
    making_room: Mutex<()>,
}

impl<V: Value> Worker<V> {
    /// A worker for a run, with a folder to spill to and the published shards.
    pub fn new(
        params: &Params,
        tuning: Tuning,
        scratch: impl Into<ScratchPlace>,
        archive: Arc<dyn Archive>,
    ) -> Self {
        let memory = Arc::new(Memory::new(tuning.limit_bytes, tuning.heap, scratch.into()));
        Self {
            tables: Tables::new(params, Arc::clone(&memory), tuning.dense_rows),
            steps: Step::all(params),
            backup: Backup::new(params.game()),
            kernels: Box::new(Vectors),
            piece_bytes: tuning.piece_bytes,
            memory,
            archive,
            reach: BlockMap::default(),
            after_reach: BlockMap::default(),
            values: BlockMap::default(),
            after_values: BlockMap::default(),
            unsealed_reach: Unsealed::default(),
            unsealed_values: Unsealed::default(),
            unsealed_best_moves: Unsealed::default(),
            legality: params.contents().stores_best_moves().then(|| Legality::new(params.game().board())),
            making_room: Mutex::default(),
        }
    }

    /// The same worker, with other kernels.
    pub fn with_kernels(self, kernels: impl Kernels<V> + 'static) -> Self {
        Self { kernels: Box::new(kernels), ..self }
    }

    /// Releases a layer's states, or of its values.
    pub fn release_states(&self, layer: Layer) {
        self.reach.release(layer);
        self.values.release(layer);
    }

    /// Releases a layer's afterstates, or of their values.
    pub fn release_afterstates(&self, layer: Layer) {
        self.after_reach.release(layer);
        self.after_values.release(layer);
    }

    /// Releases the values of one block's states.
    pub fn release_block_states(&self, layer: Layer, lane: Lane) {
        self.values.release_block(layer, lane);
    }

    /// Releases the values of one block's afterstates.
    pub fn release_block_afterstates(&self, layer: Layer, lane: Lane) {
        self.after_values.release_block(layer, lane);
    }

    /// Releases every block and of items that were not sealed.
    pub fn release_all(&self) {
        self.reach.clear();
        self.values.clear();
        self.after_reach.clear();
        self.after_values.clear();
        self.unsealed_reach.clear();
        self.unsealed_values.clear();
        self.unsealed_best_moves.clear();
    }

    /// Bytes of the index maps that are kept, while no task is running.
    pub fn map_bytes(&self) -> usize {
        self.tables.map_bytes()
    }

    /// Drops the tables of a lane, which are made again when they are needed.
    pub fn release_lane(&self, lane: Lane) {
        self.tables.release_lane(lane);
    }

    /// Whether a block is worked on in pieces, so that threads without a task can help with it.
    pub fn has_pieces(&self, layer: Layer, lane: Lane) -> bool {
        let (rows, columns) = self.shape(layer, lane);
        self.value_pieces(rows as usize, stride(columns as usize)).count() > 1
    }

    /// How a block of rows of `stride` values is cut into pieces.
    fn value_pieces(&self, rows: usize, stride: usize) -> Pieces {
        Pieces::of_bytes(rows, stride * size_of::<V>(), self.piece_bytes)
    }

    /// How a block of rows of `words` words of bits is cut into pieces: so few that looking through all edges once for
    /// each piece costs little.
    fn bit_pieces(&self, rows: usize, words: usize) -> Pieces {
        Pieces::of_bytes(rows, words * size_of::<u64>(), self.piece_bytes / 8).at_most(words / 4)
    }

    fn unsealed(&self, kind: ItemKind) -> &Unsealed {
        match kind {
            ItemKind::Reach => &self.unsealed_reach,
            ItemKind::Values => &self.unsealed_values,
            ItemKind::BestMoves => &self.unsealed_best_moves,
        }
    }

    /// Whether memory is short, so that callers should move what they can to disk.
    pub fn is_memory_short(&self) -> bool {
        !self.memory.fits(0)
    }

    /// Whether there is memory for blocks that are not needed yet.
    pub fn has_room_to_spare(&self) -> bool {
        self.memory.fits(self.memory.limit_bytes() / 4)
    }

    /// Reserves the memory that a task needs; waits until there is room for it.
    fn reserve(&self, need: Need) -> Result<Reservation<'_>, WorkerError> {
        self.memory.reserve(need, |bytes| self.make_room(bytes))
    }

    /// Makes room for `bytes` more, as far as there is something to pack, move or drop that no task is using.
    /// Data known about many shapes is dropped first. Blocks of bits, which are small, move to disk next;
    /// then values are packed. Then transitions move, which are written once for all layers, and after them
    /// values, which are written anew for each layer. Index maps are dropped last. Data moves until there is
    /// also room for allocations that no task reserved: else index maps would be dropped, and made again for
    /// each layer.
    fn make_room(&self, bytes: usize) -> Result<(), WorkerError> {
        if self.memory.fits(bytes) {
            return Ok(());
        }
        let _one = self.lock_making_room();
        let enough = || self.memory.fits(bytes.saturating_add(self.memory.unreserved_bytes()));
        self.tables.forget_many_shapes();
        self.after_reach.spill(&self.memory, enough)?;
        self.reach.spill(&self.memory, enough)?;
        self.values.pack(&self.memory, enough);
        self.tables.spill_transitions(enough)?;
        self.after_values.spill(&self.memory, enough)?;
        self.values.spill(&self.memory, enough)?;
        if !self.memory.fits(bytes) {
            self.tables.forget_maps(enough);
        }
        Ok(())
    }

    /// At the end of a task, keeps the index maps that it made. Where they would leave too little memory, values are packed
    /// for them, which takes less time than making maps again; where that is not enough, they are dropped.
    fn settle_maps(&self, cache: &mut MapCache) {
        if !self.tables.maps_leave_enough() {
            let _one = self.lock_making_room();
            self.values.pack(&self.memory, || self.tables.maps_leave_enough());
        }
        self.tables.settle_maps(cache);
    }

    fn lock_making_room(&self) -> MutexGuard<'_, ()> {
        self.making_room.lock()
    }
}
