//! A worker: it runs the stages of blocks, seals layers, and exchanges blocks with other workers.

use std::sync::Arc;

use exact2048_game::legal::Legality;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Lane, Layer, Params, Precision, SpawnKind};
use exact2048_solution::{Archive, Owners};
use exact2048_storage::{ScratchPlace, ShardKind};

use crate::backup::{BackUpAfterstates, BackUpStates};
use crate::blocks::ValueBlock;
use crate::bytes_list::BytesList;
use crate::enumerate::{FindAfterstates, FindStates};
use crate::error::WorkerError;
use crate::exchange;
use crate::follow::{BestMoves, Chances, Follower};
use crate::footprint::shape;
use crate::held;
use crate::kernels::Kernels;
use crate::kernels::index_map::stride;
use crate::open_block::OpenBlock;
use crate::seal::{Sealed, Sealer, packing_of_values};
use crate::shared::Shared;
use crate::sink::{Drain, Outcome, Sink};
use crate::stage::run;
use crate::store::Holding;
use crate::tuning::Tuning;

/// A task on one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockTask {
    /// Finds the reachable states. It needs the lane's own afterstates of the two layers below.
    FindStates(Sink),
    /// Finds the reachable afterstates. It needs the states of this layer in this lane and in every lane from which
    /// moves lead to it.
    FindAfterstates,
    /// Backs up the afterstates. It needs the lane's own values of the two layers above.
    BackUpAfterstates,
    /// Backs up the states. It needs the values of this layer's afterstates in this lane and in every lane to which
    /// moves from this lane lead.
    BackUpStates(Sink),
}

/// A [`Worker`] for values of 32 or 64 bits.
///
/// The kernels are large, and generic over that width. Crates that call this trait do not compile them again.
pub trait BlockEngine: Send + Sync {
    /// Sets the owners of lanes, of which this worker is the member `me`. A new worker owns all lanes.
    fn join(&self, owners: &Owners, me: usize);

    /// Runs a task on a block. `helpers` is the number of threads without a task, which may help.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    fn compute(
        &self,
        task: BlockTask,
        layer: Layer,
        lane: Lane,
        helpers: usize,
    ) -> Result<Outcome, WorkerError>;

    /// Packs and compresses the items of a finished layer for its shard.
    ///
    /// # Errors
    ///
    /// If data cannot be compressed, or cannot be written to a scratch file.
    fn seal(&self, kind: ShardKind, layer: Layer) -> Result<Sealed, WorkerError>;

    /// The states of a block that this worker enumerated, for other workers. Empty if the block has none.
    fn states_payload(&self, layer: Layer, lane: Lane) -> BytesList;

    /// Reads and holds the states of a block that another worker enumerated.
    ///
    /// # Errors
    ///
    /// If the payload is not one that [`BlockEngine::states_payload`] makes for a block of this run, or if the block
    /// cannot be written to a scratch file.
    fn accept_states(&self, layer: Layer, lane: Lane, payload: BytesList) -> Result<(), WorkerError>;

    /// The values of the afterstates of a block that this worker backed up, for each of some other members. A payload has
    /// only the afterstates to which states of the member's lanes lead.
    ///
    /// # Errors
    ///
    /// If these afterstates are not noted, and the states of the lanes cannot be read.
    fn after_values_payloads(
        &self,
        layer: Layer,
        lane: Lane,
        members: &[usize],
    ) -> Result<Vec<BytesList>, WorkerError>;

    /// Reads and holds the values of the afterstates of a block that another worker backed up.
    ///
    /// # Errors
    ///
    /// If the payload is not one that [`BlockEngine::after_values_payloads`] makes for a block of this run, or if the
    /// block cannot be written to a scratch file.
    fn accept_after_values(&self, layer: Layer, lane: Lane, payload: BytesList) -> Result<(), WorkerError>;

    /// Sets the states at which enumerating begins, in place of the starts of games.
    fn begin_at(&self, states: &[Board]);

    /// The lane of a board; `None` for a board with more large tiles than any game makes.
    fn lane_of(&self, board: Board) -> Option<Lane>;

    /// An image of each held state of a block, in the order of the block's entries. A state in a symmetric row has
    /// several.
    fn held_boards(&self, layer: Layer, lane: Lane) -> Vec<Board>;

    /// The held values of the states of a block, in the order of [`BlockEngine::held_boards`].
    fn held_values(&self, layer: Layer, lane: Lane) -> Vec<Stored>;

    /// Holds values of the held states of a block, in the order of [`BlockEngine::held_boards`].
    ///
    /// # Errors
    ///
    /// If they cannot be written to a scratch file.
    fn hold_values(&self, layer: Layer, lane: Lane, values: &[Stored]) -> Result<(), WorkerError>;

    /// Releases blocks or tables.
    fn release(&self, holding: Holding);

    /// Whether a task divides the block into pieces, so that threads without a task can help.
    fn has_pieces(&self, layer: Layer, lane: Lane) -> bool;

    /// Whether memory is short, so that callers should move data to disk.
    fn is_memory_short(&self) -> bool;

    /// Whether memory suffices for blocks that are not needed yet.
    fn has_spare_memory(&self) -> bool;

    /// Follows games through the run of this worker, whose layers have best moves. Chances below `least` are not
    /// followed.
    fn follower(&self, best_moves: BestMoves, least: f64) -> Box<dyn Follower + '_>;
}

/// A worker. Any number of threads may run tasks on it.
pub struct Worker<V> {
    shared: Shared<V>,
    sealer: Sealer,
    /// The legal moves; `None` unless the run stores best moves.
    legality: Option<Legality>,
}

/// A worker for a run, with the width of values that the run has.
///
/// The function is not generic, so the kernels are compiled in this crate.
pub fn new_block_engine(
    params: &Params,
    tuning: Tuning,
    scratch: ScratchPlace,
    archive: Arc<dyn Archive>,
) -> Arc<dyn BlockEngine> {
    match params.game().precision() {
        Precision::Bits32 => Arc::new(Worker::<u32>::new(params, tuning, scratch, archive)),
        Precision::Bits64 => Arc::new(Worker::<u64>::new(params, tuning, scratch, archive)),
    }
}

impl<V: Value> Worker<V> {
    /// A worker for a run, with a folder for scratch files and the published shards.
    pub fn new(
        params: &Params,
        tuning: Tuning,
        scratch: impl Into<ScratchPlace>,
        archive: Arc<dyn Archive>,
    ) -> Self {
        let shared = Shared::new(params, tuning, scratch.into(), archive);
        let sealer = Sealer::new(Arc::clone(shared.store.memory()), packing_of_values(params.game()));
        Self {
            shared,
            sealer,
            legality: params.contents().stores_best_moves().then(|| Legality::new(params.game().board())),
        }
    }

    /// The same worker, with other kernels.
    pub fn with_kernels(mut self, kernels: impl Kernels<V> + 'static) -> Self {
        self.shared.kernels = Box::new(kernels);
        self
    }

    /// Bytes of the kept index maps, without those of lanes that a task works in.
    pub fn map_bytes(&self) -> usize {
        self.shared.tables.map_bytes()
    }

    /// Holds an empty block if it is known to have no entry. Otherwise returns `false`.
    ///
    /// Nearly all blocks of a run from a position or with stones have no entry, and listing the columns of their lanes takes
    /// long.
    fn is_without_entries(&self, task: BlockTask, layer: Layer, lane: Lane) -> Result<bool, WorkerError> {
        let (store, sources, tables) = (&self.shared.store, &self.shared.sources, &self.shared.tables);
        if tables.params().game().is_whole() {
            return Ok(false);
        }
        let is_empty = match task {
            BlockTask::FindStates(_) => {
                let first = tables.params().first_layer();
                let no_afterstates = |spawn: SpawnKind| match layer.before(spawn).filter(|&at| at >= first) {
                    Some(below) => store.afterstates(below, lane).is_some_and(|held| held.is_empty()),
                    None => true,
                };
                self.shared.starts.of(layer, lane).is_empty()
                    && SpawnKind::ALL.into_iter().all(no_afterstates)
            }
            BlockTask::FindAfterstates => {
                let no_states = |lane: &Lane| store.states(layer, *lane).is_some_and(|held| held.is_empty());
                no_states(&lane) && lane.source_lanes(tables.params()).iter().all(no_states)
            }
            BlockTask::BackUpAfterstates => {
                SpawnKind::ALL.into_iter().any(|spawn| sources.has_no_values(layer.after(spawn), lane))
            }
            BlockTask::BackUpStates(_) => sources.has_no_states(layer, lane),
        };
        if is_empty {
            match task {
                BlockTask::FindStates(_) => drop(store.hold_states(layer, lane, None)?),
                BlockTask::FindAfterstates => drop(store.hold_afterstates(layer, lane, None)?),
                BlockTask::BackUpAfterstates => store.hold_after_values(layer, lane, ValueBlock::empty()),
                BlockTask::BackUpStates(_) => drop(store.hold_state_values(layer, lane, ValueBlock::empty())),
            }
        }
        Ok(is_empty)
    }

    fn drain(&self, sink: Sink) -> Drain<'_, V> {
        Drain { sink, shared: &self.shared, sealer: &self.sealer, legality: self.legality.as_ref() }
    }
}

impl<V: Value> BlockEngine for Worker<V> {
    fn join(&self, owners: &Owners, me: usize) {
        self.shared.notes.join(owners, me);
    }

    fn compute(
        &self,
        task: BlockTask,
        layer: Layer,
        lane: Lane,
        helpers: usize,
    ) -> Result<Outcome, WorkerError> {
        let (shared, store) = (&self.shared, &*self.shared.store);
        if self.is_without_entries(task, layer, lane)? {
            return Ok(Outcome::default());
        }
        let open = OpenBlock::new(&shared.tables, layer, lane, helpers);
        let Some(open) = &open else { return Ok(Outcome::default()) };
        match task {
            BlockTask::FindStates(sink) => run(&FindStates { open, drain: self.drain(sink) }, open, store),
            BlockTask::FindAfterstates => run(&FindAfterstates { open, shared }, open, store),
            BlockTask::BackUpAfterstates => run(&BackUpAfterstates { open, shared }, open, store),
            BlockTask::BackUpStates(sink) => {
                run(&BackUpStates { open, drain: self.drain(sink) }, open, store)
            }
        }
    }

    fn seal(&self, kind: ShardKind, layer: Layer) -> Result<Sealed, WorkerError> {
        self.sealer.seal(kind, layer)
    }

    fn states_payload(&self, layer: Layer, lane: Lane) -> BytesList {
        exchange::states_payload(&self.shared, layer, lane)
    }

    fn accept_states(&self, layer: Layer, lane: Lane, payload: BytesList) -> Result<(), WorkerError> {
        exchange::accept_states(&self.shared, layer, lane, payload)
    }

    fn after_values_payloads(
        &self,
        layer: Layer,
        lane: Lane,
        members: &[usize],
    ) -> Result<Vec<BytesList>, WorkerError> {
        exchange::after_values_payloads(&self.shared, layer, lane, members)
    }

    fn accept_after_values(&self, layer: Layer, lane: Lane, payload: BytesList) -> Result<(), WorkerError> {
        exchange::accept_after_values(&self.shared, layer, lane, payload)
    }

    fn begin_at(&self, states: &[Board]) {
        self.shared.starts.set(&self.shared.tables.space, states);
    }

    fn lane_of(&self, board: Board) -> Option<Lane> {
        self.shared.tables.space.locate(board).map(|(lane, ..)| lane)
    }

    fn held_boards(&self, layer: Layer, lane: Lane) -> Vec<Board> {
        held::boards(&self.shared, layer, lane)
    }

    fn held_values(&self, layer: Layer, lane: Lane) -> Vec<Stored> {
        held::values(&self.shared, layer, lane)
    }

    fn hold_values(&self, layer: Layer, lane: Lane, values: &[Stored]) -> Result<(), WorkerError> {
        held::hold_values(&self.shared, layer, lane, values)
    }

    fn release(&self, holding: Holding) {
        self.shared.store.release(holding);
        if holding == Holding::All {
            self.sealer.clear();
        }
    }

    fn has_pieces(&self, layer: Layer, lane: Lane) -> bool {
        let (rows, columns) = shape(&self.shared.tables, layer, lane);
        self.shared.piece_length.of_values::<V>(rows, stride(columns)).count() > 1
    }

    fn is_memory_short(&self) -> bool {
        !self.shared.store.memory().fits(0)
    }

    fn has_spare_memory(&self) -> bool {
        let memory = self.shared.store.memory();
        memory.fits(memory.limit_bytes() / 4)
    }

    fn follower(&self, best_moves: BestMoves, least: f64) -> Box<dyn Follower + '_> {
        Box::new(Chances::new(&self.shared, best_moves, least))
    }
}
