//! The parts of a worker that all its tasks share.

use std::sync::Arc;

use exact2048_game::Params;
use exact2048_game::backup::Backup;
use exact2048_game::value::Value;
use exact2048_solution::Archive;
use exact2048_storage::ScratchPlace;

use crate::enumerate::Starts;
use crate::kernels::{Kernels, Vectors};
use crate::memory::Memory;
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
    /// The operations on rows.
    pub kernels: Box<dyn Kernels<V>>,
    /// The blocks that are held.
    pub store: Arc<BlockStore<V>>,
    /// The sources of inputs.
    pub sources: Sources<V>,
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
        Self { tables, starts, backup: Backup::new(params.game()), kernels, store, sources, piece_length }
    }
}
