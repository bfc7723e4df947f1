//! The parts of a worker that all its tasks share.

use std::sync::Arc;

use exact2048_game::Params;
use exact2048_game::backup::Backup;
use exact2048_game::value::Value;
use exact2048_game::value_step::Rounding;
use exact2048_solution::Archive;
use exact2048_storage::ScratchPlace;

use crate::enumerate::Starts;
use crate::kernels::{Kernels, Vectors};
use crate::memory::Memory;
use crate::notes::Notes;
use crate::pieces::PieceLength;
use crate::sources::Sources;
use crate::store::BlockStore;
use crate::tables::Tables;
use crate::tuning::Tuning;

/// The parts of a worker that all its tasks share. Each owns one thing.
pub struct Shared<V> {
    /// Data that follows from the parameters.
    pub tables: Arc<Tables>,
    /// The states at which enumerating begins.
    pub starts: Starts,
    /// The arithmetic of values.
    pub backup: Backup,
    /// The rounding of stored values, if the run rounds them.
    pub rounding: Option<Rounding>,
    /// The operations on rows.
    pub kernels: Box<dyn Kernels<V>>,
    /// The blocks that are held.
    pub store: Arc<BlockStore<V>>,
    /// The sources of inputs.
    pub sources: Sources<V>,
    /// The owners of lanes, and what their states lead to.
    pub notes: Notes,
    /// The length of the pieces that threads share.
    pub piece_length: PieceLength,
}

impl<V: Value> Shared<V> {
    /// The parts of a worker for a run, with a folder for scratch files and the published shards.
    pub fn new(params: &Params, tuning: Tuning, scratch: ScratchPlace, archive: Arc<dyn Archive>) -> Self {
        let memory = Arc::new(Memory::new(tuning.limit_bytes, tuning.heap, scratch));
        let tables = Arc::new(Tables::new(params, Arc::clone(&memory), tuning.dense_rows));
        let store = Arc::new(BlockStore::new(Arc::clone(&tables), memory));
        let piece_length = PieceLength(tuning.piece_bytes);
        let sources = Sources::new(Arc::clone(&tables), Arc::clone(&store), archive, piece_length);
        let kernels = Box::new(Vectors);
        let starts = Starts::of_games(&tables.space);
        let backup = Backup::new(params.game());
        let rounding = params.contents().value_step().map(|step| Rounding::new(params.game(), step));
        let notes = Notes::new(tuning.limit_bytes);
        Self { tables, starts, backup, rounding, kernels, store, sources, notes, piece_length }
    }
}
