//! Rows of a class, and sets of rows that number their members.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::bitset::{BitSet, Number, Ranks, last_word};

/// Number of a skeleton in its class. If a mask has many configs, its noncanonical skeletons also have numbers. Their
/// rows stay empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Row(pub u32);

/// Number of bits of a row. Edges store a row and a direction in 32 bits.
pub(crate) const ROW_BITS: u32 = 30;

/// Number of a row among the rows that a block holds. The slot is the position of the row in the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Slot(pub u32);

impl Number for Row {
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }

    #[inline(always)]
    fn from_index(index: usize) -> Self {
        Self(index as u32)
    }
}

impl Number for Slot {
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }

    #[inline(always)]
    fn from_index(index: usize) -> Self {
        Self(index as u32)
    }
}

/// Set of rows, numbered in order. The numbers are the *slots* of a block that holds exactly these rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    rows: BitSet<Row>,
    ranks: Ranks,
    /// Whether the rows are the first rows of the class, so each slot equals its row.
    without_gap: bool,
}

impl RowSet {
    /// Builds the set of the first `rows` rows. The slot of each row equals the number of the row.
    pub fn all(rows: usize) -> Self {
        Self::new(BitSet::below(rows))
    }

    /// Builds the set from bits.
    pub fn new(rows: BitSet<Row>) -> Self {
        let (bits, ranks) = (rows.words(), Ranks::of(rows.words()));
        let last = bits.iter().rposition(|&word| word != 0);
        let end = last.map_or(0, |word| word * 64 + 64 - bits[word].leading_zeros() as usize);
        let without_gap = end == ranks.ones();
        Self { rows, ranks, without_gap }
    }

    /// Number of rows in the set.
    pub fn len(&self) -> usize {
        self.ranks.ones()
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row is in the set.
    #[inline(always)]
    pub fn contains(&self, row: Row) -> bool {
        self.rows.contains(row)
    }

    /// Returns the slot of a row that is in the set.
    #[inline(always)]
    pub fn slot(&self, row: Row) -> Slot {
        if self.without_gap {
            return Slot(row.0);
        }
        Slot(self.ranks.before(self.rows.words(), row.index()))
    }

    /// Returns the row in a slot. For a slot after the last slot, returns a row after the last row.
    pub fn row(&self, slot: Slot) -> Row {
        if self.without_gap {
            return Row(slot.0);
        }
        let words = self.rows.words();
        Row::from_index(self.ranks.bit(words, slot.0).unwrap_or(64 * words.len()))
    }

    /// Returns the rows in a set of slots.
    pub fn rows_in_slots(&self, slots: &BitSet<Slot>) -> BitSet<Row> {
        if self.without_gap {
            return BitSet::from_words(slots.words().to_vec());
        }
        let mut rows = BitSet::with_room(self.rows.words().len() * 64);
        let of_slots = self.iter().enumerate().filter(|&(slot, _)| slots.contains(Slot::from_index(slot)));
        of_slots.for_each(|(_, row)| rows.insert(row));
        rows
    }

    /// Iterates over the rows of the set within a range of numbers, ascending.
    pub fn rows_in(&self, range: Range<usize>) -> impl Iterator<Item = Row> + '_ {
        let bits = self.rows.words();
        let words = range.start / 64..range.end.div_ceil(64).min(bits.len());
        words.flat_map(move |w| {
            let mut word = bits[w];
            if w * 64 < range.start {
                word &= u64::MAX << (range.start % 64);
            }
            if (w + 1) * 64 > range.end {
                word &= last_word(range.end);
            }
            std::iter::successors((word != 0).then_some(word), |&rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| Row((w * 64) as u32 + rest.trailing_zeros()))
        })
    }

    /// Counts the rows of the set within a range of numbers.
    pub fn count_in(&self, range: Range<usize>) -> usize {
        let words = self.rows.words();
        let before = |end: usize| {
            if end < 64 * words.len() { self.ranks.before(words, end) as usize } else { self.len() }
        };
        before(range.end).saturating_sub(before(range.start))
    }

    /// Iterates over the rows of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Row> + '_ {
        self.rows_in(0..self.rows.words().len() * 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set_of<N: Number>(end: usize, numbers: impl Iterator<Item = N>) -> BitSet<N> {
        let mut set = BitSet::with_room(end);
        numbers.for_each(|number| set.insert(number));
        set
    }

    proptest! {
        #[test]
        fn slots_number_the_rows(mut rows in prop::collection::btree_set(0u32..500, 0..200), gap: bool, a in 0usize..500, b in 0usize..520) {
            if !gap {
                rows = (0..rows.len() as u32).collect();
            }
            let rows: Vec<Row> = rows.into_iter().map(Row).collect();
            let found = RowSet::new(set_of(500, rows.iter().copied()));
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), rows.clone());
            prop_assert_eq!(found.len(), rows.len());
            for (slot, &row) in (0..).map(Slot).zip(&rows) {
                prop_assert_eq!(found.slot(row), slot);
                prop_assert_eq!(found.row(slot), row);
            }
            prop_assert!(rows.iter().all(|&row| row < found.row(Slot::from_index(rows.len()))));
            let slots = set_of(rows.len(), (0..rows.len()).step_by(2).map(Slot::from_index));
            let picked: Vec<Row> = rows.iter().copied().step_by(2).collect();
            prop_assert!(RowSet::new(found.rows_in_slots(&slots)).iter().eq(picked));
            let range = a.min(b)..a.max(b);
            let within: Vec<Row> = rows.iter().copied().filter(|&r| range.contains(&r.index())).collect();
            prop_assert_eq!(found.count_in(range.clone()), within.len());
            prop_assert_eq!(found.rows_in(range).collect::<Vec<_>>(), within);
        }
    }

    #[test]
    fn all_rows_are_their_own_slots() {
        for rows in [0, 1, 63, 64, 65, 200] {
            let all = RowSet::all(rows);
            assert_eq!(all.len(), rows);
            assert!((0..rows as u32).all(|row| all.contains(Row(row)) && all.slot(Row(row)) == Slot(row)));
            assert!(!all.contains(Row(rows as u32)));
        }
    }
}
