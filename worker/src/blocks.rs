//! Blocks, packed blocks, and blocks in scratch files.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use exact2048_game::bitset::{self, BitSet};
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::transitions::Transitions;
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};
use exact2048_solution::packing::{WORD, pack_row, unpack_row};
use exact2048_storage::StorageError;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::bits::{BitMatrix, Source, Summary};
use crate::kernels::Rows;
use crate::kernels::means::Marks;
use crate::memory::{Buffer, Memory};
use crate::pieces::Pieces;

/// The reachable entries of a block: rows of bits. In a symmetric row the bits of all images of an entry are set.
#[derive(Debug)]
pub struct ReachBlock {
    /// The rows that the block holds.
    pub rows: Arc<RowSet>,
    /// Words a row; 0 in a block without entries.
    pub words: usize,
    /// The rows' words.
    pub bits: Buffer<u64>,
    /// Totals of the entries.
    pub summary: Summary,
    /// The transitions of the rows, made when needed. The cell stays empty if the class keeps its transitions.
    pub transitions: OnceLock<Arc<Transitions>>,
}

impl ReachBlock {
    /// The block of some entries, in memory or in a scratch file.
    ///
    /// # Errors
    ///
    /// If the entries cannot be written to a scratch file.
    pub fn of(entries: Option<Entries>, memory: &Memory) -> Result<Self, StorageError> {
        let (matrix, summary) = match entries {
            Some(Entries { matrix, summary }) => (matrix, summary),
            None => (BitMatrix::new(Arc::new(RowSet::all(0)), 0), Summary::default()),
        };
        Ok(Self {
            rows: Arc::clone(matrix.rows()),
            words: matrix.words(),
            summary,
            bits: memory.settle(matrix.into_bits())?,
            transitions: OnceLock::new(),
        })
    }

    /// Whether the block has no reachable entry.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The rows, for the kernels.
    pub fn source(&self) -> Source<'_> {
        Source { words: self.words, bits: &self.bits, occupied: &self.summary.occupied }
    }
}

/// The reachable entries of a block, after all of them were found.
#[derive(Debug)]
pub struct Entries {
    /// The entries.
    pub matrix: BitMatrix,
    /// Totals of the entries.
    pub summary: Summary,
}

impl Entries {
    /// The entries of a matrix, which is searched in pieces; `None` if it has none.
    pub fn of(matrix: BitMatrix, pieces: &Pieces) -> Option<Self> {
        let summary = matrix.summary(pieces);
        (summary.ones > 0).then_some(Self { matrix, summary })
    }

    /// A copy of the entries of a held block; `None` if it has none.
    pub fn of_block(block: &ReachBlock) -> Option<Self> {
        let matrix = BitMatrix::of_rows(Arc::clone(&block.rows), block.words, block.bits.to_vec());
        (!block.is_empty()).then(|| Self { matrix, summary: block.summary.clone() })
    }

    /// The entries, to be read.
    pub fn source(&self) -> Source<'_> {
        Source { words: self.matrix.words(), bits: self.matrix.bits(), occupied: &self.summary.occupied }
    }

    /// These entries, without the rows that have no entry.
    pub fn of_occurring_rows(self) -> Self {
        let Summary { ones, occupied } = self.summary;
        let matrix = self.matrix.of_slots(&occupied);
        let occupied = BitSet::below(matrix.rows().len());
        Self { matrix, summary: Summary { ones, occupied } }
    }
}

/// The values of a block. A row has a value for each column, and then the padding that index maps lead to.
#[derive(Debug)]
pub struct ValueBlock<V> {
    /// The rows that the block holds.
    pub rows: Arc<RowSet>,
    /// Values a row, padding included; 0 in a block without rows.
    pub stride: usize,
    /// The rows whose values were computed.
    pub occupied: BitSet<Row>,
    /// The rows in order. If they are packed, only the values of the entries in `marks`.
    pub values: Buffer<V>,
    /// The reachable entries, if the block is packed or can be packed.
    pub marks: Option<Arc<ReachBits>>,
    /// Whether `values` has only those of reachable entries.
    pub is_packed: bool,
}

/// The reachable entries of a block: rows of words, one bit a column.
#[derive(Debug)]
pub struct ReachBits {
    /// Words a row.
    words: usize,
    bits: Vec<u64>,
    /// Bits that are set.
    ones: usize,
}

/// Values of shorter blocks are not packed, because that frees little memory.
const LEAST_PACKED_BYTES: usize = 1 << 20;

impl ReachBits {
    /// The reachable entries of a block with these values. `None` for a short block, which is never packed.
    pub fn of<V>(entries: Entries, values: &[V]) -> Option<Arc<Self>> {
        let Entries { matrix, summary } = entries;
        let (words, ones) = (matrix.words(), summary.ones as usize);
        let can_be_packed = size_of_val(values) >= LEAST_PACKED_BYTES;
        can_be_packed.then(|| Arc::new(Self { words, bits: matrix.into_bits(), ones }))
    }
}

impl<V: Value> ValueBlock<V> {
    /// A block without rows.
    pub fn empty() -> Self {
        let (rows, occupied) = (Arc::new(RowSet::all(0)), BitSet::default());
        Self { rows, stride: 0, occupied, values: Buffer::default(), marks: None, is_packed: false }
    }

    /// The rows, for the kernels. They must not be packed.
    pub fn rows(&self) -> Rows<'_, V> {
        Rows { stride: self.stride, set: &self.rows, occupied: &self.occupied, values: &self.values }
    }

    /// The reachable entries of a block that can be packed.
    pub fn marks(&self) -> Option<Marks<'_>> {
        self.marks.as_ref().map(|marks| Marks { words: marks.words, bits: &marks.bits })
    }

    /// Whether packing would free enough memory, and the packed values fit.
    fn can_be_packed(&self, memory: &Memory) -> bool {
        let Some(marks) = self.marks.as_ref().filter(|_| !self.is_packed) else { return false };
        let bytes = marks.ones * size_of::<V>();
        self.values.heap_bytes() > bytes + bytes / 8 && memory.fits(bytes)
    }

    /// The block with only the values of reachable entries. Kernels may read other values too, but these change no
    /// result.
    ///
    /// Cost: a nanosecond or two an entry.
    fn packed(&self, memory: &Memory) -> Option<Self> {
        let marks = self.marks.as_ref()?;
        let mut packed = memory.area::<V>(marks.ones + WORD);
        let (mut filled, mut row) = (0, Vec::with_capacity(self.stride + WORD));
        let rows = self.values.chunks_exact(self.stride).zip(marks.bits.chunks_exact(marks.words));
        for (values, marked) in rows {
            row.clear();
            pack_row(&mut row, values, marked);
            packed[filled..][..row.len()].copy_from_slice(&row);
            filled += row.len();
        }
        Some(Self { values: packed.into(), is_packed: true, ..self.copy_without_values() })
    }

    /// The block as the kernels read it; `None` if it is not packed.
    pub fn unpacked(&self, memory: &Memory) -> Option<Self> {
        let marks = self.marks.as_ref().filter(|_| self.is_packed)?;
        let mut values = memory.area::<V>(self.rows.len() * self.stride);
        let mut rest = &self.values[..];
        for (row, marked) in values.chunks_exact_mut(self.stride).zip(marks.bits.chunks_exact(marks.words)) {
            // Kernels also read padding.
            row[64 * (marks.words - 1)..].fill(V::default());
            unpack_row(rest, row, marked);
            rest = &rest[bitset::ones(marked) as usize..];
        }
        Some(Self { values: values.into(), is_packed: false, ..self.copy_without_values() })
    }

    fn copy_without_values(&self) -> Self {
        Self {
            rows: Arc::clone(&self.rows),
            stride: self.stride,
            occupied: self.occupied.clone(),
            values: Buffer::default(),
            marks: self.marks.clone(),
            is_packed: self.is_packed,
        }
    }
}

/// A block that can leave the heap.
pub trait Spill: Sized {
    /// An estimate of the bytes that leaving the heap would free.
    fn heap_bytes(&self) -> usize;

    /// The same block, in scratch files.
    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError>;
}

impl Spill for ReachBlock {
    fn heap_bytes(&self) -> usize {
        let transitions = self.transitions.get().map_or(0, |transitions| transitions.heap_bytes());
        self.bits.heap_bytes() + transitions
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        Ok(Self {
            rows: Arc::clone(&self.rows),
            words: self.words,
            bits: memory.spilled(&self.bits)?,
            summary: self.summary.clone(),
            // A task that needs them makes them again.
            transitions: OnceLock::new(),
        })
    }
}

impl<V: Value> Spill for ValueBlock<V> {
    fn heap_bytes(&self) -> usize {
        self.values.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        Ok(Self { values: memory.spilled(&self.values)?, ..self.copy_without_values() })
    }
}

/// Finished blocks of one kind, by layer and lane.
#[derive(Debug)]
pub struct BlockMap<B>(Mutex<BTreeMap<Layer, FxHashMap<Lane, Arc<B>>>>);

impl<B> Default for BlockMap<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B> BlockMap<B> {
    /// The block, if the map holds it.
    pub fn get(&self, layer: Layer, lane: Lane) -> Option<Arc<B>> {
        self.0.lock().get(&layer)?.get(&lane).cloned()
    }

    /// The held blocks of a layer, in the order of the lanes.
    pub fn of_layer(&self, layer: Layer) -> Vec<(Lane, Arc<B>)> {
        let blocks = self.0.lock();
        let of_layer = blocks.get(&layer).into_iter().flatten();
        let mut found: Vec<_> = of_layer.map(|(&lane, block)| (lane, Arc::clone(block))).collect();
        drop(blocks);
        found.sort_unstable_by_key(|&(lane, _)| lane);
        found
    }

    /// Holds a block.
    pub fn insert(&self, layer: Layer, lane: Lane, block: B) -> Arc<B> {
        let block = Arc::new(block);
        self.0.lock().entry(layer).or_default().insert(lane, Arc::clone(&block));
        block
    }

    /// Releases a layer's blocks.
    pub fn release(&self, layer: Layer) {
        let released = self.0.lock().remove(&layer);
        drop(released); // after the lock is free, because freeing large blocks takes long
    }

    /// Releases one block.
    pub fn release_block(&self, layer: Layer, lane: Lane) {
        let released = self.0.lock().get_mut(&layer).and_then(|lanes| lanes.remove(&lane));
        drop(released); // after the lock is free
    }

    /// Releases all blocks.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

impl<B: Spill> BlockMap<B> {
    /// Moves blocks that no task uses to scratch files until `enough` is true.
    pub fn spill(&self, memory: &Memory, enough: impl Fn() -> bool) -> Result<(), StorageError> {
        while !enough() {
            // Written without the lock, so other tasks continue, and may take the old block meanwhile.
            let Some((layer, lane, block)) = self.idle(|block| block.heap_bytes() > 0) else { break };
            self.replace((layer, lane, block.clone()), block.spilled(memory)?);
        }
        Ok(())
    }

    /// A block that no task uses and for which `is_wanted` is true.
    fn idle(&self, is_wanted: impl Fn(&B) -> bool) -> Option<(Layer, Lane, Arc<B>)> {
        let blocks = self.0.lock();
        let all = blocks
            .iter()
            .flat_map(|(&layer, lanes)| lanes.iter().map(move |(&lane, block)| (layer, lane, block)));
        let mut idle = all.filter(|(.., block)| Arc::strong_count(block) == 1 && is_wanted(block));
        idle.next().map(|(layer, lane, block)| (layer, lane, Arc::clone(block)))
    }

    /// Replaces a block, if the map still holds it.
    fn replace(&self, (layer, lane, block): (Layer, Lane, Arc<B>), by: B) {
        let by = Arc::new(by);
        if let Some(held) = self.0.lock().get_mut(&layer).and_then(|lanes| lanes.get_mut(&lane))
            && Arc::ptr_eq(held, &block)
        {
            *held = by;
        }
    }
}

impl<V: Value> BlockMap<ValueBlock<V>> {
    /// Packs blocks that no task uses until `enough` is true, as far as the packed values fit.
    pub fn pack(&self, memory: &Memory, enough: impl Fn() -> bool) {
        while !enough()
            && let Some((layer, lane, block)) = self.idle(|block| block.can_be_packed(memory))
            && let Some(packed) = block.packed(memory)
        {
            self.replace((layer, lane, block), packed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::Heap;
    use exact2048_game::Params;
    use exact2048_game::class::{ClassId, Space};
    use exact2048_game::patterns::Patterns;
    use exact2048_game::transitions::Maker;

    /// A block of 300 rows of 500 columns, of which about a third are reachable.
    fn block() -> ValueBlock<u64> {
        let (rows, columns, stride, words) = (300, 500, 512, 8);
        let mut matrix = BitMatrix::new(Arc::new(RowSet::all(rows)), words);
        let is_reached =
            |entry: usize| entry.wrapping_mul(0x9e37_79b9) >> 7 & 3 == 1 || entry.is_multiple_of(7);
        for entry in (0..rows * columns).filter(|&entry| is_reached(entry)) {
            let (row, column) = (entry / columns, entry % columns);
            matrix.bits_mut()[row * words + column / 64] |= 1 << (column % 64);
        }
        // A word with all columns reachable, and one row without any.
        matrix.bits_mut()[5 * words] = u64::MAX;
        matrix.bits_mut()[9 * words..10 * words].fill(0);
        let values: Vec<u64> = (1..=(rows * stride) as u64).collect();
        let entries = Entries::of(matrix, &Pieces::whole(rows)).unwrap();
        let (rows, occupied) = (Arc::clone(entries.matrix.rows()), BitSet::below(rows));
        let marks = ReachBits::of(entries, &values);
        ValueBlock { rows, stride, occupied, values: values.into(), marks, is_packed: false }
    }

    /// Also the transitions of blocks whose bits are already in a file, or too few for one.
    #[test]
    fn transitions_of_blocks_are_dropped_if_memory_is_short() {
        let params = Params::small("3x3");
        let (space, patterns) = (Space::new(&params), Patterns::default());
        let class = space.class(ClassId { k: 4, small_sum: 16, sector: 0 }).unwrap();
        let rows = Arc::new(RowSet::all(class.rows()));
        let memory = Memory::new(1 << 30, Heap::of(|| 0), std::env::temp_dir().into());
        let (blocks, lane) = (BlockMap::default(), Lane::new(4, 0));
        for (layer, words) in [(Layer(4), 1), (Layer(6), 100)] {
            let mut matrix = BitMatrix::new(Arc::clone(&rows), words);
            matrix.bits_mut().fill(u64::MAX);
            let Entries { matrix, summary } = Entries::of(matrix, &Pieces::whole(rows.len())).unwrap();
            let bits = memory.spilled(&matrix.into_bits().into()).unwrap();
            assert_eq!(bits.heap_bytes(), 0);
            let transitions = Arc::new(Transitions::new(class.id(), Arc::clone(&rows)));
            transitions.moves(Maker { space: &space, patterns: &patterns });
            let block =
                ReachBlock { rows: Arc::clone(&rows), words, bits, summary, transitions: transitions.into() };
            assert!(block.heap_bytes() > 0);
            blocks.insert(layer, lane, block);
        }
        blocks.spill(&memory, || false).unwrap();
        for layer in [Layer(4), Layer(6)] {
            let block = blocks.get(layer, lane).unwrap();
            assert!(block.transitions.get().is_none() && block.heap_bytes() == 0, "{layer}");
            assert!(block.bits.iter().all(|&word| word == u64::MAX));
        }
    }

    #[test]
    fn values_of_reachable_entries_stay_when_a_block_is_packed() {
        let memory = Memory::new(1 << 30, Heap::of(|| 0), std::env::temp_dir().into());
        let block = block();
        assert!(block.can_be_packed(&memory) && block.unpacked(&memory).is_none());
        let packed = block.packed(&memory).unwrap();
        assert!(packed.is_packed && !packed.can_be_packed(&memory));
        assert!(packed.heap_bytes() * 2 < block.heap_bytes(), "{} bytes", packed.heap_bytes());
        for packed in [packed.spilled(&memory).unwrap(), packed] {
            let unpacked = packed.unpacked(&memory).unwrap();
            let marks = block.marks.as_ref().unwrap();
            for row in 0..300 {
                for column in 0..block.stride {
                    let word = marks.bits.get(row * 8 + column / 64).filter(|_| column < 500);
                    let is_reached = word.is_some_and(|word| word >> (column % 64) & 1 == 1);
                    let wanted = if is_reached { block.values[row * block.stride + column] } else { 0 };
                    assert_eq!(unpacked.values[row * block.stride + column], wanted, "{row}, {column}");
                }
            }
        }
    }

    #[test]
    fn blocks_are_packed_while_they_fit_and_memory_is_short() {
        let (layer, lanes) = (Layer(8), [Lane::new(1, 8), Lane::new(1, 16), Lane::new(1, 32)]);
        let ample = Memory::new(1 << 30, Heap::of(|| 0), std::env::temp_dir().into());
        let blocks = BlockMap::default();
        let held = lanes.map(|lane| blocks.insert(layer, lane, block()));
        let count = || blocks.of_layer(layer).iter().filter(|(_, block)| block.is_packed).count();
        blocks.pack(&ample, || false);
        assert_eq!(count(), 0, "tasks use them");
        drop(held);
        blocks.pack(&Memory::new(1000, Heap::of(|| 1000), std::env::temp_dir().into()), || false);
        assert_eq!(count(), 0, "the packed blocks do not fit");
        blocks.pack(&ample, || count() >= 2);
        assert_eq!(count(), 2);
        blocks.pack(&ample, || false);
        assert_eq!(count(), 3);
    }
}
