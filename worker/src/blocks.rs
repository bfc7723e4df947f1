//! Blocks in memory, and where they come from when they are not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use exact2048_game::bitset::BitSet;
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::transitions::Transitions;
use exact2048_game::{Lane, Layer};
use exact2048_storage::StorageError;
use rustc_hash::FxHashMap;

use crate::bits::{BitMatrix, Source, Summary};
use crate::kernels::Rows;
use crate::memory::{Buffer, Memory};
use crate::pieces::Pieces;

/// The reachable entries of a block: rows of bits, all images of a symmetric row's entries set.
#[derive(Debug)]
pub struct ReachBlock {
    /// The rows that the block holds.
    pub rows: Arc<RowSet>,
    /// Words a row; 0 in a block without entries.
    pub words: usize,
    /// The rows' words.
    pub bits: Buffer<u64>,
    /// What is known of the entries as a whole.
    pub summary: Summary,
    /// The transitions of the rows from when they are first needed, where the class does not keep them.
    pub transitions: OnceLock<Arc<Transitions>>,
}

impl ReachBlock {
    /// Whether the block has no reachable entry.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The rows, for the kernels.
    pub fn source(&self) -> Source<'_> {
        Source { words: self.words, bits: &self.bits, occupied: &self.summary.occupied }
    }
}

/// The reachable entries of a block, when all of them are found.
#[derive(Debug)]
pub struct Entries {
    /// The entries.
    pub matrix: BitMatrix,
    /// What is known of them as a whole.
    pub summary: Summary,
}

impl Entries {
    /// The entries that a matrix has, if any; it is looked at in pieces.
    pub fn of(matrix: BitMatrix, pieces: &Pieces) -> Option<Self> {
        let summary = matrix.summary(pieces);
        (summary.ones > 0).then_some(Self { matrix, summary })
    }

    /// The same without the rows that have no entry.
    pub fn of_occurring_rows(self) -> Self {
        let Summary { ones, occupied } = self.summary;
        let matrix = self.matrix.of_slots(&occupied);
        let occupied = BitSet::below(matrix.rows().len());
        Self { matrix, summary: Summary { ones, occupied } }
    }
}

/// The values of a block: rows of columns, behind them the padding that index maps lead to.
#[derive(Debug)]
pub struct ValueBlock<V> {
    /// The rows that the block holds.
    pub rows: Arc<RowSet>,
    /// Values a row, padding included; 0 in a block without rows.
    pub stride: usize,
    /// The rows whose values were computed.
    pub occupied: BitSet<Row>,
    /// The rows.
    pub values: Buffer<V>,
}

impl<V: bytemuck::Pod> ValueBlock<V> {
    /// The rows, for the kernels.
    pub fn rows(&self) -> Rows<'_, V> {
        Rows { stride: self.stride, set: &self.rows, occupied: &self.occupied, values: &self.values }
    }
}

/// A block that can leave the heap.
pub trait Spill: Sized {
    /// Bytes that this would free, about.
    fn heap_bytes(&self) -> usize;

    /// The same block, in scratch files.
    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError>;
}

impl Spill for ReachBlock {
    fn heap_bytes(&self) -> usize {
        self.bits.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        Ok(Self {
            rows: Arc::clone(&self.rows),
            words: self.words,
            bits: memory.spilled(&self.bits)?,
            summary: self.summary.clone(),
            // Made again where they are needed again.
            transitions: OnceLock::new(),
        })
    }
}

impl<V: bytemuck::Pod> Spill for ValueBlock<V> {
    fn heap_bytes(&self) -> usize {
        self.values.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        Ok(Self {
            rows: Arc::clone(&self.rows),
            stride: self.stride,
            occupied: self.occupied.clone(),
            values: memory.spilled(&self.values)?,
        })
    }
}

/// Finished blocks of one kind that are held, by layer and lane.
#[derive(Debug)]
pub struct BlockMap<B>(Mutex<BTreeMap<Layer, FxHashMap<Lane, Arc<B>>>>);

impl<B> Default for BlockMap<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B> BlockMap<B> {
    /// The block, if it is held.
    pub fn get(&self, layer: Layer, lane: Lane) -> Option<Arc<B>> {
        self.lock().get(&layer)?.get(&lane).cloned()
    }

    /// Whether a block is held.
    pub fn holds(&self, layer: Layer, lane: Lane) -> bool {
        self.lock().get(&layer).is_some_and(|lanes| lanes.contains_key(&lane))
    }

    /// The blocks of a layer that are held, in the order of the lanes.
    pub fn of_layer(&self, layer: Layer) -> Vec<(Lane, Arc<B>)> {
        let blocks = self.lock();
        let of_layer = blocks.get(&layer).into_iter().flatten();
        let mut found: Vec<_> = of_layer.map(|(&lane, block)| (lane, Arc::clone(block))).collect();
        drop(blocks);
        found.sort_unstable_by_key(|&(lane, _)| lane);
        found
    }

    /// Holds a block.
    pub fn insert(&self, layer: Layer, lane: Lane, block: B) -> Arc<B> {
        let block = Arc::new(block);
        self.lock().entry(layer).or_default().insert(lane, Arc::clone(&block));
        block
    }

    /// Lets go of a layer's blocks.
    pub fn release(&self, layer: Layer) {
        let released = self.lock().remove(&layer);
        drop(released); // after the lock: blocks can be large
    }

    /// Lets go of one block.
    pub fn release_block(&self, layer: Layer, lane: Lane) {
        let released = self.lock().get_mut(&layer).and_then(|lanes| lanes.remove(&lane));
        drop(released); // after the lock, too
    }

    /// Lets go of all blocks.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Layer, FxHashMap<Lane, Arc<B>>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<B: Spill> BlockMap<B> {
    /// Moves blocks that no task is using to scratch files until `enough` says so.
    pub fn spill(&self, memory: &Memory, enough: impl Fn() -> bool) -> Result<(), StorageError> {
        while !enough() {
            // Written without the lock: other tasks go on, and may take the old block meanwhile.
            let Some((layer, lane, block)) = self.idle_on_heap() else { break };
            let spilled = Arc::new(block.spilled(memory)?);
            if let Some(held) = self.lock().get_mut(&layer).and_then(|lanes| lanes.get_mut(&lane))
                && Arc::ptr_eq(held, &block)
            {
                *held = spilled;
            }
        }
        Ok(())
    }

    /// A block on the heap that no task is using.
    fn idle_on_heap(&self) -> Option<(Layer, Lane, Arc<B>)> {
        let blocks = self.lock();
        let all = blocks
            .iter()
            .flat_map(|(&layer, lanes)| lanes.iter().map(move |(&lane, block)| (layer, lane, block)));
        let mut idle = all.filter(|(.., block)| Arc::strong_count(block) == 1 && block.heap_bytes() > 0);
        idle.next().map(|(layer, lane, block)| (layer, lane, Arc::clone(block)))
    }
}
