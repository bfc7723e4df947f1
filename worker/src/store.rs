//! The store of a worker's blocks: which blocks it holds, in which form, and the memory for them.
//!
//! A block is in memory, packed, or in a scratch file. A task reserves its memory first. If the memory does not
//! suffice, the store packs, moves or drops data that no task uses.

use std::sync::Arc;

use exact2048_game::bitset::BitSet;
use exact2048_game::class::Class;
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::transitions::Transitions;
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};
use exact2048_storage::StorageError;
use parking_lot::{Mutex, MutexGuard};

use crate::bits::BitMatrix;
use crate::blocks::{BlockMap, Entries, ReachBits, ReachBlock, ValueBlock};
use crate::memory::{Memory, Need, Reservation};
use crate::tables::{MapCache, Tables};
use exact2048_arena::Area;

/// Data that a worker holds, and that a caller can release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// The states of a layer, and their values.
    States(Layer),
    /// The afterstates of a layer, and their values.
    Afterstates(Layer),
    /// The values of a block's states.
    BlockStates(Layer, Lane),
    /// The values of a block's afterstates.
    BlockAfterstates(Layer, Lane),
    /// The tables of a lane. A later task makes them again if it needs them.
    Lane(Lane),
    /// All blocks, and the items that were not sealed.
    All,
}

/// The blocks that a worker holds, and the memory for them.
pub struct BlockStore<V> {
    tables: Arc<Tables>,
    memory: Arc<Memory>,
    states: BlockMap<ReachBlock>,
    afterstates: BlockMap<ReachBlock>,
    state_values: BlockMap<ValueBlock<V>>,
    after_values: BlockMap<ValueBlock<V>>,
    /// Locked by the thread that makes memory free, because no block must move twice.
    making_free: Mutex<()>,
}

impl<V: Value> BlockStore<V> {
    /// A store without blocks.
    pub fn new(tables: Arc<Tables>, memory: Arc<Memory>) -> Self {
        Self {
            tables,
            memory,
            states: BlockMap::default(),
            afterstates: BlockMap::default(),
            state_values: BlockMap::default(),
            after_values: BlockMap::default(),
            making_free: Mutex::default(),
        }
    }

    /// The memory of the blocks.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The reachable states of a block, if the store holds them.
    pub fn states(&self, layer: Layer, lane: Lane) -> Option<Arc<ReachBlock>> {
        self.states.get(layer, lane)
    }

    /// Holds the reachable states of a block.
    ///
    /// # Errors
    ///
    /// If they cannot be written to a scratch file.
    pub fn hold_states(
        &self,
        layer: Layer,
        lane: Lane,
        states: Option<Entries>,
    ) -> Result<Arc<ReachBlock>, StorageError> {
        Ok(self.states.insert(layer, lane, ReachBlock::of(states, &self.memory)?))
    }

    /// The reachable afterstates of a block, if the store holds them.
    pub fn afterstates(&self, layer: Layer, lane: Lane) -> Option<Arc<ReachBlock>> {
        self.afterstates.get(layer, lane)
    }

    /// Holds the reachable afterstates of a block.
    ///
    /// # Errors
    ///
    /// As for [`BlockStore::hold_states`].
    pub fn hold_afterstates(
        &self,
        layer: Layer,
        lane: Lane,
        afterstates: Option<Entries>,
    ) -> Result<Arc<ReachBlock>, StorageError> {
        Ok(self.afterstates.insert(layer, lane, ReachBlock::of(afterstates, &self.memory)?))
    }

    /// The values of a block's states, if the store holds them. They may be packed.
    pub fn state_values(&self, layer: Layer, lane: Lane) -> Option<Arc<ValueBlock<V>>> {
        self.state_values.get(layer, lane)
    }

    /// Holds the values of a block's states.
    pub fn hold_state_values(&self, layer: Layer, lane: Lane, values: ValueBlock<V>) -> Arc<ValueBlock<V>> {
        self.state_values.insert(layer, lane, values)
    }

    /// The values of a block's afterstates, if the store holds any.
    pub fn after_values(&self, layer: Layer, lane: Lane) -> Option<Arc<ValueBlock<V>>> {
        self.after_values.get(layer, lane).filter(|block| !block.values.is_empty())
    }

    /// Holds the values of a block's afterstates.
    pub fn hold_after_values(&self, layer: Layer, lane: Lane, values: ValueBlock<V>) {
        self.after_values.insert(layer, lane, values);
    }

    /// Releases blocks or tables.
    pub fn release(&self, holding: Holding) {
        match holding {
            Holding::States(layer) => {
                self.states.release(layer);
                self.state_values.release(layer);
            }
            Holding::Afterstates(layer) => {
                self.afterstates.release(layer);
                self.after_values.release(layer);
            }
            Holding::BlockStates(layer, lane) => self.state_values.release_block(layer, lane),
            Holding::BlockAfterstates(layer, lane) => self.after_values.release_block(layer, lane),
            Holding::Lane(lane) => self.tables.release_lane(lane),
            Holding::All => {
                self.states.clear();
                self.state_values.clear();
                self.afterstates.clear();
                self.after_values.clear();
            }
        }
    }

    /// Reserves the memory that a task needs. Waits until it is free.
    ///
    /// # Errors
    ///
    /// If data cannot be written to a scratch file.
    pub fn reserve(&self, need: Need) -> Result<Reservation<'_>, StorageError> {
        self.memory.reserve(need, |bytes| self.make_free(bytes))
    }

    /// Makes `bytes` more bytes free, as far as data is not in use by a task.
    ///
    /// The data of shapes is dropped first, if there is much of it. Then blocks of bits move to disk, because they are
    /// small, and values are packed. Then transitions move, which are written once for all layers, and then values,
    /// which are written for each layer. Index maps are dropped last. Data moves until memory for unreserved
    /// allocations is free, too. Otherwise index maps would be dropped, and made again for each layer.
    ///
    /// # Errors
    ///
    /// If data cannot be written to a scratch file.
    pub fn make_free(&self, bytes: usize) -> Result<(), StorageError> {
        let memory = &*self.memory;
        if memory.fits(bytes) {
            return Ok(());
        }
        let _one = self.lock_making_free();
        let enough = || memory.fits(bytes.saturating_add(memory.unreserved_bytes()));
        self.tables.forget_many_shapes();
        self.afterstates.spill(memory, enough)?;
        self.states.spill(memory, enough)?;
        self.state_values.pack(memory, enough);
        self.tables.spill_transitions(enough)?;
        self.after_values.spill(memory, enough)?;
        self.state_values.spill(memory, enough)?;
        if !memory.fits(bytes) {
            self.tables.forget_maps(enough);
        }
        Ok(())
    }

    /// Keeps the index maps that a task made, at its end.
    ///
    /// If they leave too little memory, values are packed, which takes less time than making maps again. If that is not
    /// enough, the maps are dropped.
    pub fn settle_maps(&self, maps: &mut MapCache) {
        if !self.tables.maps_leave_enough() {
            let _one = self.lock_making_free();
            self.state_values.pack(&self.memory, || self.tables.maps_leave_enough());
        }
        self.tables.settle_maps(maps);
    }

    /// The transitions of the rows of a block that is not empty.
    ///
    /// # Errors
    ///
    /// As for [`BlockStore::make_free`].
    pub fn transitions_of(
        &self,
        class: &Class,
        block: &ReachBlock,
    ) -> Result<Arc<Transitions>, StorageError> {
        if self.tables.all_rows(class).is_some() {
            // The class keeps them, and moves them to disk if memory is short. A block that kept them too would hold
            // them in memory.
            return self.transitions(class, &block.rows);
        }
        if let Some(transitions) = block.transitions.get() {
            return Ok(Arc::clone(transitions));
        }
        let transitions = self.transitions(class, &block.rows)?;
        Ok(Arc::clone(block.transitions.get_or_init(|| transitions)))
    }

    /// The transitions of rows of a class. Makes memory free for them, unless the class keeps those of all its rows.
    ///
    /// # Errors
    ///
    /// As for [`BlockStore::make_free`].
    pub fn transitions(&self, class: &Class, rows: &Arc<RowSet>) -> Result<Arc<Transitions>, StorageError> {
        if !self.tables.keeps_transitions(class.id()) {
            self.make_free(rows.len() * Transitions::BYTES_TO_MAKE_A_ROW)?;
        }
        Ok(self.tables.transitions(class, rows))
    }

    /// A matrix of rows of `words` words, without a bit set.
    ///
    /// # Errors
    ///
    /// As for [`BlockStore::make_free`].
    pub fn new_matrix(&self, rows: Arc<RowSet>, words: usize) -> Result<BitMatrix, StorageError> {
        self.make_free(8 * rows.len() * words)?;
        Ok(BitMatrix::new(rows, words))
    }

    /// A block of values in memory or in a scratch file, of which the slots in `computed` were computed.
    ///
    /// # Errors
    ///
    /// As for [`BlockStore::make_free`].
    pub fn settle_values(
        &self,
        rows: Arc<RowSet>,
        stride: usize,
        computed: &BitSet<Slot>,
        values: Area<V>,
    ) -> Result<ValueBlock<V>, StorageError> {
        let occupied = rows.rows_in_slots(computed);
        // Other data moves to disk first, because it is needed later.
        self.make_free(0)?;
        let values = self.memory.settle(values)?;
        Ok(ValueBlock { rows, stride, occupied, values, marks: None, is_packed: false })
    }

    /// The block of the values of states, of which the rows with reachable entries were computed.
    ///
    /// # Errors
    ///
    /// As for [`BlockStore::make_free`].
    pub fn settle_state_values(
        &self,
        reach: Entries,
        stride: usize,
        values: Area<V>,
    ) -> Result<ValueBlock<V>, StorageError> {
        let rows = Arc::clone(reach.matrix.rows());
        let occupied = reach.summary.occupied.clone();
        let marks = ReachBits::of(reach, &values);
        Ok(ValueBlock { marks, ..self.settle_values(rows, stride, &occupied, values)? })
    }

    fn lock_making_free(&self) -> MutexGuard<'_, ()> {
        self.making_free.lock()
    }
}
