//! The vectors of a row that hold a wanted entry.
//!
//! In deep layers of large boards, two fifths of the entries of occurring rows are reachable. In the longest rows, only
//! a tenth is reachable, so many vectors hold no wanted entry.

use exact2048_game::bitset::ones;

use super::COLUMNS_AT_ONCE;
use super::index_map::LANES;

/// In rows of at least this many values, kernels skip entries that are not wanted if that saves time. Shorter rows are
/// nearly full.
pub const LONG_ROW_VALUES: usize = 512;

/// For each row, the list of its wanted vectors by number, in up to [`COLUMNS_AT_ONCE`] columns.
#[derive(Default)]
pub struct WantedVectors {
    vectors: Vec<u8>,
    /// The beginning and the end of each row's list in `vectors`; `None` if all vectors of the row are wanted.
    of_rows: Vec<Option<(u32, u32)>>,
}

/// The numbers of all vectors.
const ALL_VECTORS: [u8; COLUMNS_AT_ONCE / LANES] = {
    let mut all = [0; COLUMNS_AT_ONCE / LANES];
    let mut number = 0;
    while number < all.len() {
        all[number] = number as u8;
        number += 1;
    }
    all
};

impl WantedVectors {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.vectors.clear();
        self.of_rows.clear();
    }

    /// Adds a row whose vectors are all wanted.
    pub fn add_all(&mut self) {
        self.of_rows.push(None);
    }

    /// Adds a row of `columns` columns; `words` says which entries are wanted, one bit a column.
    #[inline(always)]
    pub fn add(&mut self, words: &[u64], columns: usize) {
        if ones(words) as usize * 4 > columns * 3 {
            return self.add_all();
        }
        let begin = self.vectors.len();
        self.vectors.resize(begin + words.len() * (64 / LANES), 0);
        let mut end = begin;
        let vectors = words.iter().flat_map(|word| [0, 16, 32, 48].map(|shift| word >> shift & 0xffff));
        // The loop does not branch, because the processor cannot predict which vectors are empty.
        for (number, vector) in (0..).zip(vectors) {
            self.vectors[end] = number;
            end += usize::from(vector != 0);
        }
        self.vectors.truncate(end);
        self.of_rows.push(Some((begin as u32, end as u32)));
    }

    /// The numbers of the wanted vectors of a row, which has `count` vectors.
    #[inline(always)]
    pub fn of_row(&self, row: usize, count: usize) -> &[u8] {
        match self.of_rows[row] {
            Some((begin, end)) => &self.vectors[begin as usize..end as usize],
            None => &ALL_VECTORS[..count],
        }
    }

    /// Whether all vectors of a row are wanted.
    #[inline(always)]
    pub fn is_all(&self, row: usize) -> bool {
        self.of_rows[row].is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_those_with_a_bit() {
        let mut wanted = WantedVectors::default();
        wanted.add(&[1 << 16 | 1 << 31, 1 << 63], 128);
        wanted.add(&[0, 0], 128);
        wanted.add(&[u64::MAX, u64::MAX >> 20], 128);
        assert_eq!(wanted.of_row(0, 8), [1, 7]);
        assert!(wanted.of_row(1, 8).is_empty());
        assert_eq!(wanted.of_row(2, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!([0, 1, 2].map(|row| wanted.is_all(row)), [false, false, true]);
    }
}
