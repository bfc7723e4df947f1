//! Rows of bits, one bit a column.

use std::ops::Range;
use std::sync::Arc;

use exact2048_game::bitset::{self, BitSet, Number};
use exact2048_game::class::Class;
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_solution::Parts;
use multiversion::multiversion;

use crate::pieces::{Pieces, SlotBits};

/// The reachable entries of a block: a row of `words` words for each row of a set.
#[derive(Debug)]
pub struct BitMatrix {
    rows: Arc<RowSet>,
    words: usize,
    bits: Vec<u64>,
}

/// Totals of a whole matrix.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Number of bits set.
    pub ones: u64,
    /// The slots of rows that have a bit.
    pub occupied: BitSet<Slot>,
}

/// Rows of a matrix that one thread changes.
#[derive(Debug)]
pub struct BitRows<'a> {
    held: &'a RowSet,
    words: usize,
    slots: Range<usize>,
    /// The range of the class's rows that these rows lie in.
    rows: Range<Row>,
    bits: &'a mut [u64],
}

/// Rows of a matrix, to be read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Words a row.
    pub words: usize,
    /// The words of all rows.
    pub bits: &'a [u64],
    /// The slots of rows that have a bit.
    pub occupied: &'a BitSet<Slot>,
}

impl BitMatrix {
    /// A matrix without a bit set.
    pub fn new(rows: Arc<RowSet>, words: usize) -> Self {
        Self { words, bits: vec![0; rows.len() * words], rows }
    }

    /// A matrix of these rows, with `words` words each.
    pub fn of_rows(rows: Arc<RowSet>, words: usize, bits: Vec<u64>) -> Self {
        Self { rows, words, bits }
    }

    /// A matrix of the rows of some parts that have an entry. `found` has the numbers and the bits of the parts.
    pub fn of_parts(class: &Class, parts: Parts, found: &[(u32, Vec<u64>)]) -> Self {
        let words = parts.words();
        let rows = || {
            found.iter().flat_map(|(part, bits)| {
                let first = parts.rows(*part).start;
                let rows = bits.chunks_exact(words).enumerate();
                let rows = rows.map(move |(i, row)| (Row::from_index(first + i), row));
                rows.filter(|(_, row)| bitset::any(row))
            })
        };
        let mut held = BitSet::with_room(class.rows());
        rows().for_each(|(row, _)| held.insert(row));
        let mut matrix = Self::new(Arc::new(RowSet::new(held)), words);
        rows().for_each(|(row, bits)| matrix.row_mut(row).copy_from_slice(bits));
        matrix
    }

    /// The rows.
    pub fn rows(&self) -> &Arc<RowSet> {
        &self.rows
    }

    /// The words of all rows.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The words of all rows, to be changed.
    pub fn bits_mut(&mut self) -> &mut [u64] {
        &mut self.bits
    }

    /// Words a row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The row in a slot.
    #[inline]
    pub fn slot(&self, slot: Slot) -> &[u64] {
        &self.bits[slot.index() * self.words..][..self.words]
    }

    /// A row of the set, to be changed.
    #[inline]
    pub fn row_mut(&mut self, row: Row) -> &mut [u64] {
        &mut self.bits[self.rows.slot(row).index() * self.words..][..self.words]
    }

    /// Calls `change` with the rows of each piece. Returns the results in order.
    pub fn map_pieces<R: Send>(
        &mut self,
        pieces: &Pieces,
        change: impl Fn(&mut BitRows<'_>) -> R + Sync,
    ) -> Vec<R> {
        let (held, words) = (&*self.rows, self.words);
        pieces.map_of(&mut self.bits, words, |slots, bits| {
            let rows = held.row(Slot::from_index(slots.start))..held.row(Slot::from_index(slots.end));
            change(&mut BitRows { held, words, slots, rows, bits })
        })
    }

    /// The totals of the whole matrix.
    pub fn summary(&self, pieces: &Pieces) -> Summary {
        let of_piece = |slots| totals(slots, self.words, &self.bits);
        let (ones, occupied): (Vec<u64>, Vec<SlotBits>) = pieces.map(of_piece).into_iter().unzip();
        let occupied = SlotBits::of_all(self.rows.len(), occupied);
        Summary { ones: ones.into_iter().sum(), occupied }
    }

    /// The matrix with only the rows in some slots.
    pub fn of_slots(mut self, slots: &BitSet<Slot>) -> Self {
        let rows = RowSet::new(self.rows.rows_in_slots(slots));
        for (kept, slot) in slots.iter().enumerate() {
            self.bits
                .copy_within(slot.index() * self.words..(slot.index() + 1) * self.words, kept * self.words);
        }
        self.bits.truncate(rows.len() * self.words);
        Self { rows: Arc::new(rows), ..self }
    }

    /// The words of all rows.
    pub fn into_bits(self) -> Vec<u64> {
        self.bits
    }
}

/// The number of bits in the rows of some slots, and the slots of those that have a bit. `bits` has the words of all
/// rows.
///
/// Without the processor's instruction for counting, this took a tenth of an upward pass on 4x3.
#[multiversion(targets("x86_64+popcnt"))]
fn totals(slots: Range<usize>, words: usize, bits: &[u64]) -> (u64, SlotBits) {
    let (mut ones, mut occupied) = (0, SlotBits::new(&slots));
    let rows = bits[slots.start * words..].chunks_exact(words.max(1));
    for (slot, row) in slots.map(Slot::from_index).zip(rows) {
        let in_row = bitset::ones(row);
        if in_row > 0 {
            ones += in_row;
            occupied.set(slot);
        }
    }
    (ones, occupied)
}

impl BitRows<'_> {
    /// Words a row.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The slots of the rows.
    pub fn slots(&self) -> Range<usize> {
        self.slots.clone()
    }

    /// The row of the class, if it is one of these.
    #[inline(always)]
    pub fn row_mut(&mut self, row: Row) -> Option<&mut [u64]> {
        let is_here = self.rows.contains(&row);
        is_here.then(|| self.slot_mut(self.held.slot(row)))
    }

    /// The row in a slot, which must be one of these.
    #[inline(always)]
    pub fn slot_mut(&mut self, slot: Slot) -> &mut [u64] {
        &mut self.bits[(slot.index() - self.slots.start) * self.words..][..self.words]
    }

    /// Clears the bits after the last column of every row.
    pub fn clear_padding(&mut self, columns: usize) {
        if !columns.is_multiple_of(64) {
            let keep = bitset::last_word(columns);
            self.bits.iter_mut().skip(self.words - 1).step_by(self.words).for_each(|word| *word &= keep);
        }
    }
}

impl<'a> Source<'a> {
    /// The row in a slot.
    #[inline(always)]
    pub fn slot(&self, slot: Slot) -> &'a [u64] {
        &self.bits[slot.index() * self.words..][..self.words]
    }

    /// The row in a slot, if it has a bit.
    #[inline(always)]
    pub fn row(&self, slot: Slot) -> Option<&'a [u64]> {
        self.occupied.contains(slot).then(|| self.slot(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_occupied_rows() {
        let mut matrix = BitMatrix::new(Arc::new(RowSet::all(130)), 2);
        for (row, word, bits) in [(0, 0, 5), (64, 1, 1 << 63), (129, 0, 4)] {
            matrix.row_mut(Row(row))[word] = bits;
        }
        for rows_each in [1, 7, 200] {
            let Summary { ones, occupied } = matrix.summary(&Pieces::new(130, rows_each));
            assert_eq!((ones, occupied), (4, BitSet::from_words(vec![1, 1, 2])), "{rows_each}");
        }
    }
}
