//! The chances of a block's rows.

use std::sync::Arc;

use exact2048_game::rowset::RowSet;
use exact2048_game::transitions::{Direction, Moves};
use exact2048_storage::StorageError;

use crate::blocks::Spill;
use crate::kernels::chances::ChanceRows;
use crate::memory::{Buffer, Memory};

/// The chances of a block's rows.
#[derive(Debug)]
pub struct ChanceBlock {
    pub rows: Arc<RowSet>,
    pub stride: usize,
    pub chances: Buffer<f64>,
}

/// The chances of a block's states, and the moves that games make there.
#[derive(Debug)]
pub struct StateChances {
    pub block: ChanceBlock,
    /// The best move of each entry; [`NO_MOVE`](crate::kernels::chances::NO_MOVE) in entries at which every game ends.
    pub best: Buffer<Direction>,
    /// The moves that are best in some entry of their slot, and moves that win.
    pub moves: Moves,
}

impl ChanceBlock {
    /// Whether the block has no chance.
    pub fn is_empty(&self) -> bool {
        self.chances.is_empty()
    }

    /// The rows, for the kernels.
    pub fn sent(&self) -> ChanceRows<'_> {
        ChanceRows { stride: self.stride, chances: &self.chances }
    }
}

impl Spill for ChanceBlock {
    fn heap_bytes(&self) -> usize {
        self.chances.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        let chances = memory.spilled(&self.chances)?;
        Ok(Self { rows: Arc::clone(&self.rows), stride: self.stride, chances })
    }
}

impl Spill for StateChances {
    fn heap_bytes(&self) -> usize {
        self.block.heap_bytes() + self.best.heap_bytes() + self.moves.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        let (block, best) = (self.block.spilled(memory)?, memory.spilled(&self.best)?);
        Ok(Self { block, best, moves: self.moves.stored_in(&mut &*memory)? })
    }
}
