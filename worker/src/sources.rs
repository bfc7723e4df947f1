//! The sources of a task's inputs. A block is held, read from the archive, or computed again.

use std::ops::Range;
use std::sync::Arc;

use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};
use exact2048_solution::{Archive, ItemKind, Parts, ReadError};
use exact2048_storage::{ItemKey, ShardKind};

use crate::bits::BitMatrix;
use crate::blocks::{Entries, ReachBlock, ValueBlock};
use crate::error::WorkerError;
use crate::open_block::OpenBlock;
use crate::pieces::{PieceLength, Pieces};
use crate::store::BlockStore;
use crate::tables::Tables;

/// The sources of blocks.
pub struct Sources<V> {
    tables: Arc<Tables>,
    store: Arc<BlockStore<V>>,
    archive: Arc<dyn Archive>,
    piece_length: PieceLength,
}

impl<V: Value> Sources<V> {
    /// The sources of a worker, with the published shards.
    pub fn new(
        tables: Arc<Tables>,
        store: Arc<BlockStore<V>>,
        archive: Arc<dyn Archive>,
        piece_length: PieceLength,
    ) -> Self {
        Self { tables, store, archive, piece_length }
    }

    /// The reachable states of a block: held, or read from its shard and then held.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or cannot be written to a scratch file.
    pub fn states(&self, layer: Layer, lane: Lane) -> Result<Arc<ReachBlock>, WorkerError> {
        if let Some(block) = self.store.states(layer, lane) {
            return Ok(block);
        }
        let entries = self.read_states(layer, lane)?;
        Ok(self.store.hold_states(layer, lane, entries)?)
    }

    /// The reachable afterstates of a block: held, or found again by `enumerate` and then held.
    ///
    /// # Errors
    ///
    /// Those of `enumerate`, or if they cannot be written to a scratch file.
    pub fn afterstates(
        &self,
        layer: Layer,
        lane: Lane,
        enumerate: impl FnOnce() -> Result<Option<Entries>, WorkerError>,
    ) -> Result<Arc<ReachBlock>, WorkerError> {
        if let Some(block) = self.store.afterstates(layer, lane) {
            return Ok(block);
        }
        let entries = enumerate()?;
        Ok(self.store.hold_afterstates(layer, lane, entries)?)
    }

    /// The values of a block's states: held, or read from its shards and then held.
    ///
    /// The block is empty if it has no states. The task must have reserved memory to read them.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or cannot be written to a scratch file.
    pub fn state_values(&self, layer: Layer, lane: Lane) -> Result<Arc<ValueBlock<V>>, WorkerError> {
        if let Some(block) = self.store.state_values(layer, lane) {
            return Ok(block.unpacked(self.store.memory()).map_or(block, Arc::new));
        }
        let block = self.read_values(layer, lane)?.unwrap_or_else(ValueBlock::empty);
        Ok(self.store.hold_state_values(layer, lane, block))
    }

    /// Whether a task gets the values of a block's states without reading or unpacking them.
    pub fn has_state_values(&self, layer: Layer, lane: Lane) -> bool {
        self.store.state_values(layer, lane).is_some_and(|block| !block.is_packed)
    }

    /// The reachable states of a block: a copy of the held ones, or read from its shard. A large block has only its
    /// occurring rows if these are few.
    ///
    /// The task must have reserved memory to read them. A task that waits for more memory while it holds some might
    /// wait for ever.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn occurring_states(&self, layer: Layer, lane: Lane) -> Result<Option<Entries>, WorkerError> {
        let entries = match self.store.states(layer, lane) {
            Some(block) => Entries::of_block(&block),
            None => self.read_states(layer, lane)?,
        };
        let (Some(entries), Some(tables)) = (entries, self.tables.lane(lane)) else { return Ok(None) };
        let (rows, occurring) = (entries.matrix.rows().len(), entries.summary.occupied.len());
        let is_sparse = self.piece_length.is_sparse::<V>(rows, tables.stride(), occurring);
        Ok(Some(if is_sparse { entries.of_occurring_rows() } else { entries }))
    }

    /// Whether a block is known to have no state, without its columns.
    pub fn has_no_states(&self, layer: Layer, lane: Lane) -> bool {
        match self.store.states(layer, lane) {
            Some(held) => held.is_empty(),
            None => layer > self.tables.params().last_layer() || !self.archive.may_have(layer, lane),
        }
    }

    /// Whether a block is known to have no values of states, without its columns.
    pub fn has_no_values(&self, layer: Layer, lane: Lane) -> bool {
        match self.store.state_values(layer, lane) {
            Some(held) => held.rows.is_empty(),
            None => self.has_no_states(layer, lane),
        }
    }

    /// The best moves of a part of a block; empty if it has none, because shards have no empty items.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn best_moves(&self, part: ItemKey) -> Result<Vec<u8>, ReadError> {
        let key = ItemKind::BestMoves.key(part);
        Ok(self.archive.read(ItemKind::BestMoves.shard(), key)?.unwrap_or_default())
    }

    /// Reads the reachable states of a block from its shard; `None` if it has none.
    fn read_states(&self, layer: Layer, lane: Lane) -> Result<Option<Entries>, WorkerError> {
        // Listing the columns of a lane takes long.
        if !self.archive.has_items() {
            return Ok(None);
        }
        let Some(open) = OpenBlock::new(&self.tables, layer, lane, 0) else { return Ok(None) };
        let parts = open.parts();
        let read = |part: u32, bits: &mut [u64]| -> Result<bool, ReadError> {
            let key = Parts::key(layer, lane, part);
            let Some(item) = self.archive.read(ShardKind::Reach, key)? else { return Ok(false) };
            parts.decode_reach_part(key, &item, bits)?;
            Ok(true)
        };
        let matrix = if let Some(all) = self.tables.all_rows(open.class) {
            let mut matrix = BitMatrix::new(all, parts.words());
            let read = |rows: Range<usize>, bits: &mut [u64]| read(parts.of_row(rows.start), bits);
            let read = Pieces::of_parts(parts).map_of(matrix.bits_mut(), parts.words(), read);
            read.into_iter().collect::<Result<Vec<bool>, ReadError>>()?;
            matrix
        } else {
            let mut found = Vec::new();
            for part in 0..parts.count() {
                let mut bits = vec![0u64; parts.rows(part).len() * parts.words()];
                if read(part, &mut bits)? {
                    found.push((part, bits));
                }
            }
            BitMatrix::of_parts(open.class, parts, &found)
        };
        let pieces = self.piece_length.of_bits(matrix.rows().len(), matrix.words());
        Ok(Entries::of(matrix, &pieces))
    }

    /// Reads the values of a block. The task must have reserved memory for them.
    fn read_values(&self, layer: Layer, lane: Lane) -> Result<Option<ValueBlock<V>>, WorkerError> {
        if layer > self.tables.params().last_layer() {
            return Ok(None);
        }
        let Some(open) = OpenBlock::new(&self.tables, layer, lane, 0) else { return Ok(None) };
        let Some(reach) = self.occurring_states(layer, lane)? else { return Ok(None) };
        let (parts, matrix) = (open.parts(), &reach.matrix);
        let (held, stride) = (matrix.rows(), open.tables.stride());
        let mut values = self.store.memory().area(held.len() * stride);
        for part in 0..parts.count() {
            if parts.values_bytes::<V>(part, held, matrix.bits()) > 0 {
                let key = Parts::key(layer, lane, part);
                let missing = ReadError::no_values(key);
                let item = self.archive.read(ShardKind::Values, key)?.ok_or(missing)?;
                parts
                    .decode_values(key, &item, held, matrix.bits(), stride, &mut values)
                    .map_err(ReadError::from)?;
            }
        }
        Ok(Some(self.store.settle_state_values(reach, stride, values)?))
    }
}
