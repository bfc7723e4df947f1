//! Rows of bits, one bit a column, and what index maps do to them.

use std::sync::Arc;

use exact2048_game::maps::IndexMap;
use exact2048_game::rowset::RowSet;
use exact2048_game::transitions::MoveEdge;
use multiversion::multiversion;

/// Which entries of a block are reachable: a row of `words` words for each row of a set.
#[derive(Debug)]
pub struct BitMatrix {
    rows: Arc<RowSet>,
    words: usize,
    bits: Vec<u64>,
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

    /// Words a row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The row in a slot.
    #[inline]
    pub fn slot(&self, slot: usize) -> &[u64] {
        &self.bits[slot * self.words..][..self.words]
    }

    /// The row in a slot, to be changed.
    #[inline]
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u64] {
        &mut self.bits[slot * self.words..][..self.words]
    }

    /// A row of the set, to be changed.
    #[inline(always)]
    pub fn row_mut(&mut self, row: u32) -> &mut [u64] {
        &mut self.bits[self.rows.slot(row) * self.words..][..self.words]
    }

    /// The columns in which some row has a bit, one bit a column.
    pub fn columns_used(&self) -> Vec<u64> {
        columns_used(&self.bits, self.words)
    }

    /// Number of bits set.
    pub fn count_ones(&self) -> u64 {
        self.bits.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The words of all rows.
    pub fn into_bits(self) -> Vec<u64> {
        self.bits
    }
}

/// The columns in which some row has a bit, one bit a column; rows have `words` words.
pub fn columns_used(bits: &[u64], words: usize) -> Vec<u64> {
    let mut used = vec![0u64; words];
    for row in bits.chunks_exact(words.max(1)) {
        used.iter_mut().zip(row).for_each(|(u, r)| *u |= r);
    }
    used
}

/// Whether a row has any bit set.
#[inline]
pub fn any(row: &[u64]) -> bool {
    row.iter().any(|&w| w != 0)
}

/// For each edge, from a slot of the source to a row of the target, sets the bits of the target row that
/// the map leads to. Bits that lead to a padding column are dropped.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub fn or_mapped(target: &mut BitMatrix, source: &[u64], words: usize, edges: &[MoveEdge], map: &IndexMap) {
    let source_row = |from: u32| &source[from as usize * words..][..words];
    // Rows without entries are passed over: their targets need not be rows of the target at all.
    let edges = edges.iter().filter(|edge| any(source_row(edge.from)));
    match map {
        IndexMap::Identity => {
            for &MoveEdge { from, to } in edges {
                for (t, &s) in target.row_mut(to).iter_mut().zip(source_row(from)) {
                    *t |= s;
                }
            }
        }
        IndexMap::Dense(map) => {
            for &MoveEdge { from, to } in edges {
                or_dense(target.row_mut(to), source_row(from), map.leads_to());
            }
        }
        IndexMap::Sparse(map) => {
            for &MoveEdge { from, to } in edges {
                or_sparse(target.row_mut(to), source_row(from), map.pairs());
            }
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

/// Sets a bit; padding columns may lie in the last word, and are cleared by [`clear_padding`], or
/// behind it.
#[inline(always)]
fn set(target: &mut [u64], column: usize) {
    if let Some(word) = target.get_mut(column / 64) {
        *word |= 1 << (column % 64);
    }
}

/// Clears the bits behind the last column of every row.
pub fn clear_padding(matrix: &mut BitMatrix, columns: usize) {
    let words = matrix.words;
    if !columns.is_multiple_of(64) {
        let keep = (1u64 << (columns % 64)) - 1;
        matrix.bits.iter_mut().skip(words - 1).step_by(words).for_each(|w| *w &= keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::maps::DenseMap;

    #[test]
    fn maps_move_bits_and_drop_padding() {
        // 70 columns, reversed; column 3 leads nowhere, column 4 to the wanted tile.
        let mut to: Vec<u32> = (0..70).rev().collect();
        (to[3], to[4]) = (70, 71);
        let source = [u64::MAX, 0x3f];
        let mut target = BitMatrix::new(Arc::new(RowSet::all(2)), 2);
        or_mapped(
            &mut target,
            &source,
            2,
            &[MoveEdge { from: 0, to: 1 }],
            &IndexMap::Dense(DenseMap::new(to, 70)),
        );
        clear_padding(&mut target, 70);
        assert_eq!(target.slot(0), [0, 0]);
        assert_eq!(target.slot(1), [u64::MAX, 0x3f & !(1 << 1 | 1 << 2)]);
        let mut target = BitMatrix::new(Arc::new(RowSet::all(1)), 2);
        or_sparse(target.row_mut(0), &source, &[(65, 0), (1, 71)]);
        clear_padding(&mut target, 70);
        assert_eq!(target.slot(0), [1, 0]);
    }
}
