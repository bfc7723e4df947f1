//! Rows of bits, one bit a column, and what index maps do to them.

use std::ops::Range;
use std::sync::Arc;

use exact2048_game::maps::IndexMap;
use exact2048_game::rowset::{RowSet, is_set};
use exact2048_game::transitions::MoveEdge;
use multiversion::multiversion;

use crate::pieces::{Pieces, SlotBits};

/// Which entries of a block are reachable: a row of `words` words for each row of a set.
#[derive(Debug)]
pub struct BitMatrix {
    rows: Arc<RowSet>,
    words: usize,
    bits: Vec<u64>,
}

/// What is known of a matrix as a whole.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Number of bits set.
    pub ones: u64,
    /// The columns in which some row has a bit, one bit a column.
    pub columns_used: Vec<u64>,
    /// The slots whose rows have a bit, one bit a slot.
    pub occupied: Vec<u64>,
}

/// Some rows of a matrix, to be changed by one thread.
#[derive(Debug)]
pub struct BitRows<'a> {
    held: &'a RowSet,
    words: usize,
    slots: Range<usize>,
    /// The rows of the class that may lie here.
    rows: Range<u32>,
    bits: &'a mut [u64],
}

/// Rows of a matrix that are read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Words a row.
    pub words: usize,
    /// The words of all rows.
    pub bits: &'a [u64],
    /// The slots whose rows have a bit, one bit a slot.
    pub occupied: &'a [u64],
}

impl BitMatrix {
    /// A matrix without a bit set.
    pub fn new(rows: Arc<RowSet>, words: usize) -> Self {
        Self { words, bits: vec![0; rows.len() * words], rows }
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
    pub fn slot(&self, slot: usize) -> &[u64] {
        &self.bits[slot * self.words..][..self.words]
    }

    /// A row of the set, to be changed.
    #[inline]
    pub fn row_mut(&mut self, row: u32) -> &mut [u64] {
        &mut self.bits[self.rows.slot(row) * self.words..][..self.words]
    }

    /// Calls `change` with the rows of each piece; gives the results in order.
    pub fn map_pieces<R: Send>(
        &mut self,
        pieces: &Pieces,
        change: impl Fn(&mut BitRows<'_>) -> R + Sync,
    ) -> Vec<R> {
        let (held, words) = (&*self.rows, self.words);
        pieces.map_of(&mut self.bits, words, |slots, bits| {
            let rows = held.row(slots.start)..held.row(slots.end);
            change(&mut BitRows { held, words, slots, rows, bits })
        })
    }

    /// What is known of the matrix as a whole.
    pub fn summary(&self, pieces: &Pieces) -> Summary {
        let of_piece = |slots: Range<usize>| {
            let (mut ones, mut columns_used) = (0, vec![0u64; self.words]);
            let mut occupied = SlotBits::new(&slots);
            let rows = self.bits[slots.start * self.words..].chunks_exact(self.words.max(1));
            for (slot, row) in slots.zip(rows) {
                let in_row = self::ones(row);
                if in_row > 0 {
                    ones += in_row;
                    occupied.set(slot);
                    columns_used.iter_mut().zip(row).for_each(|(used, word)| *used |= word);
                }
            }
            (ones, columns_used, occupied)
        };
        let (mut all_ones, mut all_columns, mut occupied) = (0, vec![0; self.words], Vec::new());
        for (ones, columns_used, of_piece) in pieces.map(of_piece) {
            all_ones += ones;
            all_columns.iter_mut().zip(&columns_used).for_each(|(all, used)| *all |= used);
            occupied.push(of_piece);
        }
        let occupied = SlotBits::of_all(self.rows.len(), occupied);
        Summary { ones: all_ones, columns_used: all_columns, occupied }
    }

    /// The words of all rows.
    pub fn into_bits(self) -> Vec<u64> {
        self.bits
    }
}

impl BitRows<'_> {
    /// The slots of the rows.
    pub fn slots(&self) -> Range<usize> {
        self.slots.clone()
    }

    /// The row of the class, where it is one of these.
    #[inline(always)]
    pub fn row_mut(&mut self, row: u32) -> Option<&mut [u64]> {
        let is_here = self.rows.contains(&row);
        is_here.then(|| &mut self.bits[(self.held.slot(row) - self.slots.start) * self.words..][..self.words])
    }

    /// The row in a slot, which must be one of these.
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u64] {
        &mut self.bits[(slot - self.slots.start) * self.words..][..self.words]
    }

    /// Clears the bits behind the last column of every row.
    pub fn clear_padding(&mut self, columns: usize) {
        if !columns.is_multiple_of(64) {
            let keep = (1u64 << (columns % 64)) - 1;
            self.bits.iter_mut().skip(self.words - 1).step_by(self.words).for_each(|word| *word &= keep);
        }
    }
}

impl<'a> Source<'a> {
    /// The row in a slot, where it has a bit.
    #[inline(always)]
    pub fn row(&self, slot: u32) -> Option<&'a [u64]> {
        is_set(self.occupied, slot).then(|| &self.bits[slot as usize * self.words..][..self.words])
    }
}

/// Number of bits set.
pub fn ones(row: &[u64]) -> u64 {
    row.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Whether a row has any bit set.
#[inline]
pub fn any(row: &[u64]) -> bool {
    row.iter().any(|&w| w != 0)
}

/// For each edge, from a slot of the source to a row that is in the target, sets the bits of the target row that
/// the map leads to. Bits that lead to a padding column are dropped, or cleared by [`BitRows::clear_padding`].
/// Rows without entries are passed over: their targets need not be rows of the target's set at all.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub fn or_mapped(target: &mut BitRows<'_>, source: Source<'_>, edges: &[MoveEdge], map: &IndexMap) {
    match map {
        IndexMap::Identity => for_each_edge(target, source, edges, |target, source| {
            for (t, &s) in target.iter_mut().zip(source) {
                *t |= s;
            }
        }),
        IndexMap::Dense(map) => {
            for_each_edge(target, source, edges, |target, source| or_dense(target, source, map.leads_to()));
        }
        IndexMap::Sparse(map) => {
            for_each_edge(target, source, edges, |target, source| or_sparse(target, source, map.pairs()));
        }
    }
}

#[inline(always)]
fn for_each_edge(
    target: &mut BitRows<'_>,
    source: Source<'_>,
    edges: &[MoveEdge],
    mut visit: impl FnMut(&mut [u64], &[u64]),
) {
    for &MoveEdge { from, to } in edges {
        if let Some(from) = source.row(from)
            && let Some(to) = target.row_mut(to)
        {
            visit(to, from);
        }
    }
}

/// [`or_mapped`] for one row, where the target is not the matrix of the source.
pub fn or_mapped_row(target: &mut [u64], source: &[u64], map: &IndexMap) {
    match map {
        IndexMap::Identity => target.iter_mut().zip(source).for_each(|(t, &s)| *t |= s),
        IndexMap::Dense(map) => or_dense(target, source, map.leads_to()),
        IndexMap::Sparse(map) => or_sparse(target, source, map.pairs()),
    }
}

#[inline(always)]
fn or_dense(target: &mut [u64], source: &[u64], leads_to: &[u32]) {
    for (w, &word) in source.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            let to = leads_to[w * 64 + rest.trailing_zeros() as usize] as usize;
            rest &= rest - 1;
            set(target, to);
        }
    }
}

#[inline(always)]
fn or_sparse(target: &mut [u64], source: &[u64], pairs: &[(u32, u32)]) {
    if !any(source) {
        return;
    }
    for &(from, to) in pairs {
        if source[from as usize / 64] >> (from % 64) & 1 == 1 {
            set(target, to as usize);
        }
    }
}

/// Sets a bit; padding columns may lie in the last word, and are cleared by [`BitRows::clear_padding`], or
/// behind it.
#[inline(always)]
fn set(target: &mut [u64], column: usize) {
    if let Some(word) = target.get_mut(column / 64) {
        *word |= 1 << (column % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::maps::DenseMap;

    /// A matrix of as many rows of two words, to which a map moved the bits of edges, in pieces of one row.
    fn moved(rows: usize, source: &[u64], edges: &[MoveEdge], map: &IndexMap) -> BitMatrix {
        let mut target = BitMatrix::new(Arc::new(RowSet::all(rows)), 2);
        let source = Source { words: 2, bits: source, occupied: &[u64::MAX] };
        target.map_pieces(&Pieces::new(rows, 1), |rows| {
            or_mapped(rows, source, edges, map);
            rows.clear_padding(70);
        });
        target
    }

    #[test]
    fn maps_move_bits_and_drop_padding() {
        // 70 columns, reversed; column 3 leads nowhere, column 4 to the wanted tile.
        let mut to: Vec<u32> = (0..70).rev().collect();
        (to[3], to[4]) = (70, 71);
        let source = [u64::MAX, 0x3f];
        let edge = [MoveEdge { from: 0, to: 1 }];
        let target = moved(2, &source, &edge, &IndexMap::Dense(DenseMap::new(to, 70)));
        assert_eq!(target.slot(0), [0, 0]);
        assert_eq!(target.slot(1), [u64::MAX, 0x3f & !(1 << 1 | 1 << 2)]);
        let mut target = vec![0, 0];
        or_sparse(&mut target, &source, &[(65, 0), (1, 71)]);
        assert_eq!(target, [1, 1 << 7]);
    }

    #[test]
    fn a_summary_says_what_rows_and_columns_there_are() {
        let mut matrix = BitMatrix::new(Arc::new(RowSet::all(130)), 2);
        for (row, word, bits) in [(0, 0, 5), (64, 1, 1 << 63), (129, 0, 4)] {
            matrix.row_mut(row)[word] = bits;
        }
        for rows_each in [1, 7, 200] {
            let Summary { ones, columns_used, occupied } = matrix.summary(&Pieces::new(130, rows_each));
            assert_eq!((ones, columns_used, occupied), (4, vec![5, 1 << 63], vec![1, 1, 2]), "{rows_each}");
        }
    }
}
