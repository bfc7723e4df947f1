//! Sets of rows of a class, with a number for each row in the set.

use std::ops::Range;

/// A set of rows. Its rows are numbered in order: the *slots* of a block that holds just these rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    bits: Vec<u64>,
    /// Rows of the set before each word of bits.
    before: Vec<u32>,
    len: usize,
    /// Whether the rows are the first ones of the class: then slots are rows.
    without_gap: bool,
}

impl RowSet {
    /// The set of all of `rows` rows: every row's slot is its number.
    pub fn all(rows: usize) -> Self {
        let mut bits = vec![u64::MAX; rows.div_ceil(64)];
        if let Some(last) = bits.last_mut()
            && !rows.is_multiple_of(64)
        {
            *last = (1 << (rows % 64)) - 1;
        }
        Self::new(bits)
    }

    /// The set of the rows whose bits are set, row 0 in the lowest bit of the first word.
    pub fn new(bits: Vec<u64>) -> Self {
        let mut len = 0;
        let before = bits.iter().map(|word| {
            let before = len as u32;
            len += word.count_ones() as usize;
            before
        });
        let before = before.collect();
        let last = bits.iter().rposition(|&word| word != 0);
        let rows = last.map_or(0, |word| word * 64 + 64 - bits[word].leading_zeros() as usize);
        Self { bits, before, len, without_gap: rows == len }
    }

    /// Number of rows in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One bit a row.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Whether a row is in the set.
    #[inline(always)]
    pub fn contains(&self, row: u32) -> bool {
        is_set(&self.bits, row)
    }

    /// The slot of a row that is in the set.
    #[inline(always)]
    pub fn slot(&self, row: u32) -> usize {
        if self.without_gap {
            return row as usize;
        }
        let (word, bit) = (row as usize / 64, row % 64);
        let below = self.bits[word] & ((1u64 << bit) - 1);
        self.before[word] as usize + below.count_ones() as usize
    }

    /// The row in a slot; behind the last slot a row behind the last.
    pub fn row(&self, slot: usize) -> u32 {
        if self.without_gap {
            return slot as u32;
        }
        let word = self.before.partition_point(|&before| before as usize <= slot).saturating_sub(1);
        let Some(&bits) = self.bits.get(word) else { return 0 };
        let below = slot - self.before[word] as usize;
        let in_word = (0..below.min(64)).fold(bits, |rest, _| rest & rest.wrapping_sub(1));
        word as u32 * 64 + in_word.trailing_zeros()
    }

    /// The rows in some slots, one bit each; so are the slots.
    pub fn rows_in_slots(&self, slots: &[u64]) -> Vec<u64> {
        if self.without_gap {
            return slots.to_vec();
        }
        let mut rows = vec![0u64; self.bits.len()];
        let of_slots = self.iter().enumerate().filter(|&(slot, _)| is_set(slots, slot as u32));
        of_slots.for_each(|(_, row)| set(&mut rows, row));
        rows
    }

    /// The rows of the set within a range, ascending.
    pub fn rows_in(&self, range: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        let words = range.start / 64..range.end.div_ceil(64).min(self.bits.len());
        words.flat_map(move |w| {
            let mut word = self.bits[w];
            if w * 64 < range.start {
                word &= u64::MAX << (range.start % 64);
            }
            if (w + 1) * 64 > range.end {
                word &= (1u64 << (range.end % 64)) - 1;
            }
            std::iter::successors((word != 0).then_some(word), |&rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| (w * 64) as u32 + rest.trailing_zeros())
        })
    }

    /// The rows of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows_in(0..self.bits.len() * 64)
    }
}

/// Bit `row` of one bit a row; rows behind the end are not set.
#[inline(always)]
pub fn is_set(bits: &[u64], row: u32) -> bool {
    bits.get(row as usize / 64).is_some_and(|w| w >> (row % 64) & 1 == 1)
}

/// Sets bit `row` of one bit a row.
#[inline(always)]
pub fn set(bits: &mut [u64], row: u32) {
    bits[row as usize / 64] |= 1 << (row % 64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slots_number_the_rows(mut rows in prop::collection::btree_set(0u32..500, 0..200), gap: bool, a in 0usize..500, b in 0usize..520) {
            if !gap {
                rows = (0..rows.len() as u32).collect();
            }
            let mut bits = vec![0u64; 8];
            rows.iter().for_each(|&row| set(&mut bits, row));
            let found = RowSet::new(bits);
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), rows.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(found.len(), rows.len());
            for (slot, &row) in rows.iter().enumerate() {
                prop_assert_eq!(found.slot(row), slot);
                prop_assert_eq!(found.row(slot), row);
            }
            prop_assert!(rows.iter().all(|&row| row < found.row(rows.len())));
            let mut slots = vec![0u64; rows.len().div_ceil(64)];
            (0..rows.len() as u32).step_by(2).for_each(|slot| set(&mut slots, slot));
            let picked: Vec<u32> = rows.iter().copied().step_by(2).collect();
            prop_assert!(RowSet::new(found.rows_in_slots(&slots)).iter().eq(picked));
            let range = a.min(b)..a.max(b);
            let within: Vec<u32> = rows.iter().copied().filter(|&r| range.contains(&(r as usize))).collect();
            prop_assert_eq!(found.rows_in(range).collect::<Vec<_>>(), within);
        }
    }

    #[test]
    fn all_rows_are_their_own_slots() {
        for rows in [0, 1, 63, 64, 65, 200] {
            let all = RowSet::all(rows);
            assert_eq!(all.len(), rows);
            assert!((0..rows as u32).all(|row| all.contains(row) && all.slot(row) == row as usize));
            assert!(!all.contains(rows as u32));
        }
    }
}
