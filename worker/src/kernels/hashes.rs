//! The hashes of states, whose sum is the fingerprint of a run. `docs/dev/format.md` defines them and lists the errors
//! that the sum detects.
//!
//! A state is hashed as one of its images. Each cell adds fixed random words for the exponent that it holds. So the
//! small tiles of a row give one part of a board's words, and the large tiles of a column give the other.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use exact2048_game::bitset::{self, Number};
use exact2048_game::rowset::Slot;
use exact2048_game::sequence::Sequence;
use exact2048_game::value::Value;
use multiversion::multiversion;
use xxhash_rust::xxh3::xxh3_128;

/// The words of a board or of a part of it: two sums over its cells, modulo 2^64.
pub type Words = [u64; 2];

/// The words of two parts of a board together.
#[inline(always)]
pub fn both([a, b]: Words, [c, d]: Words) -> Words {
    [a.wrapping_add(c), b.wrapping_add(d)]
}

/// The words that each cell adds, by the exponent that it holds.
pub type Cells = [[Words; 16]; 16];

/// The words that each cell adds, by the exponent that it holds.
pub static CELLS: LazyLock<Box<Cells>> = LazyLock::new(|| {
    let words = |cell: usize, exponent: usize| {
        let random = xxh3_128(&[cell as u8, exponent as u8]);
        [random as u64, (random >> 64) as u64]
    };
    Box::new(std::array::from_fn(|cell| std::array::from_fn(|exponent| words(cell, exponent))))
});

/// The hash of a state, from the words of its canonical image and the bits of its value: two words, the low one first.
#[inline(always)]
pub fn hash([a, b]: Words, value: u64) -> Words {
    let upper = value >> 32;
    [mix(a, value.wrapping_add(upper)), mix(b, value.wrapping_add(upper << 1))]
}

/// A product of two 32-bit numbers, folded so that each of its bits depends on higher and on lower bits of the product.
/// For a given word, values that differ in their low 32 bits give different results, because the second factor is odd
/// and the folding can be undone.
#[inline(always)]
fn mix(word: u64, value: u64) -> u64 {
    let product = (word.wrapping_add(value) & 0xffff_ffff) * (word >> 32 | 1);
    let folded = product ^ product >> 24;
    folded ^ folded << 16
}

/// The words of some cells. `contents` has their exponents as hexadecimal digits, the first cell's lowest.
#[inline(always)]
pub fn words_of(cells: impl Iterator<Item = u8>, contents: u64) -> Words {
    let (all, mut rest) = (&**CELLS, contents);
    let (mut a, mut b) = (0u64, 0u64);
    for cell in cells {
        let [x, y] = all[usize::from(cell & 15)][rest as usize & 15];
        (a, b, rest) = (a.wrapping_add(x), b.wrapping_add(y), rest >> 4);
    }
    [a, b]
}

/// Working memory of [`ColumnWords::fill`].
#[derive(Debug)]
pub struct PairTables(Vec<[Words; 256]>);

impl Default for PairTables {
    fn default() -> Self {
        Self(vec![[Words::default(); 256]; 8])
    }
}

/// The number of columns that are worked on together. Lists with an element for each column are padded to a multiple of
/// it.
pub const GROUP: usize = 8;

/// The words of some columns' large tiles in one image, as two lists.
#[derive(Clone, Default, Debug)]
pub struct ColumnWords([Vec<u64>; 2]);

/// Columns whose words are wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedColumns<'a> {
    /// The large tiles of the columns.
    pub sequences: &'a [Sequence],
    /// One bit a column, set if the column is wanted.
    pub marked: &'a [u64],
    /// All exponents that occur.
    pub exponents: &'a RangeInclusive<u8>,
}

impl ColumnWords {
    /// Replaces the words by those of the wanted columns; the words of other columns have no meaning. `cells` has the
    /// cells of a sequence's tiles in the image, the last tile's cell first. `pairs` is working memory.
    pub fn fill(&mut self, cells: &[u8], wanted: &WantedColumns<'_>, pairs: &mut PairTables) {
        let exponents = wanted.exponents;
        self.0.iter_mut().for_each(|list| list.resize(wanted.sequences.len().next_multiple_of(GROUP), 0));
        if cells.is_empty() || (bitset::ones(wanted.marked) as usize) < exponents.len().pow(2) {
            return self.fill_by_tiles(cells, wanted);
        }
        let count = cells.len().div_ceil(2);
        for (pair, table) in cells.chunks(2).zip(&mut pairs.0) {
            let words = |i: usize, exponent: u8| CELLS[usize::from(pair[i])][usize::from(exponent)];
            for low in exponents.clone() {
                if pair.len() < 2 {
                    table[usize::from(low)] = words(0, low);
                    continue;
                }
                for high in exponents.clone() {
                    table[usize::from(high << 4 | low)] = both(words(0, low), words(1, high));
                }
            }
        }
        match count {
            1 => self.fill_by_pairs::<1>(pairs, wanted),
            2 => self.fill_by_pairs::<2>(pairs, wanted),
            3 => self.fill_by_pairs::<3>(pairs, wanted),
            4 => self.fill_by_pairs::<4>(pairs, wanted),
            5 => self.fill_by_pairs::<5>(pairs, wanted),
            6 => self.fill_by_pairs::<6>(pairs, wanted),
            7 => self.fill_by_pairs::<7>(pairs, wanted),
            _ => self.fill_by_pairs::<8>(pairs, wanted),
        }
    }

    /// Looks up pairs of tiles. Enough columns must be wanted to justify the tables. If a column of a group is wanted,
    /// the whole group is filled.
    fn fill_by_pairs<const COUNT: usize>(&mut self, pairs: &PairTables, wanted: &WantedColumns<'_>) {
        let Some(pairs) = pairs.0.first_chunk::<COUNT>() else { return };
        let [first, second] = &mut self.0;
        let groups =
            first.chunks_mut(GROUP).zip(second.chunks_mut(GROUP)).zip(wanted.sequences.chunks(GROUP));
        let marks = wanted.marked.iter().flat_map(|word| word.to_le_bytes());
        for (((first, second), sequences), _) in groups.zip(marks).filter(|&(_, marks)| marks != 0) {
            for ((first, second), sequence) in first.iter_mut().zip(second).zip(sequences) {
                let bytes = pairs.iter().zip(sequence.to_le_bytes());
                let words = bytes.map(|(table, byte)| table[usize::from(byte)]);
                [*first, *second] = words.fold(Words::default(), both);
            }
        }
    }

    /// Looks up tile by tile.
    fn fill_by_tiles(&mut self, cells: &[u8], wanted: &WantedColumns<'_>) {
        let [first, second] = &mut self.0;
        bitset::for_each_bit(wanted.marked, |column| {
            [first[column], second[column]] = words_of(cells.iter().copied(), wanted.sequences[column]);
        });
    }

    /// The words of a column.
    #[inline(always)]
    fn of(&self, column: usize) -> Words {
        [self.0[0][column], self.0[1][column]]
    }
}

/// A sum of hashes modulo 2^128, held as sums that vector instructions can compute.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sums {
    /// Low words, modulo 2^64.
    low: [u64; GROUP],
    /// The sums of the upper halves of the low words, from which the carries follow.
    upper: [u64; GROUP],
    /// High words, modulo 2^64.
    high: [u64; GROUP],
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, i: usize, [low, high]: Words) {
        self.low[i] = self.low[i].wrapping_add(low);
        self.upper[i] = self.upper[i].wrapping_add(low >> 32);
        self.high[i] = self.high[i].wrapping_add(high);
    }

    /// The sum, exact for up to 2^32 hashes.
    pub fn total(&self) -> u128 {
        (0..GROUP).fold(0, |sum: u128, i| {
            let lower = self.low[i].wrapping_sub(self.upper[i] << 32);
            let low = (u128::from(self.upper[i]) << 32) + u128::from(lower);
            sum.wrapping_add(low).wrapping_add(u128::from(self.high[i]) << 64)
        })
    }
}

/// Some columns of a block, for [`add_rows`].
#[derive(Clone, Copy, Debug)]
pub struct BlockColumns<'a, V> {
    /// The first column, a multiple of 64.
    pub first: usize,
    /// Number of columns.
    pub columns: usize,
    /// Words a row of bits.
    pub words: usize,
    /// One bit a state, row by row.
    pub bits: &'a [u64],
    /// Values a row, at least the columns padded to a multiple of [`GROUP`].
    pub stride: usize,
    /// The values, row by row.
    pub values: &'a [V],
}

impl<'a, V> BlockColumns<'a, V> {
    /// The bits of a slot's row.
    #[inline(always)]
    pub fn marks(&self, slot: Slot) -> &'a [u64] {
        &self.bits[slot.index() * self.words + self.first / 64..][..self.columns.div_ceil(64)]
    }

    /// The values of a slot's row, padded.
    #[inline(always)]
    pub fn values(&self, slot: Slot) -> &'a [V] {
        &self.values[slot.index() * self.stride + self.first..][..self.columns.next_multiple_of(GROUP)]
    }
}

/// Adds the hashes of the states of some rows whose canonical images all come from the same symmetry. `rows` has slots
/// with the words of their small tiles, `large` the words of the columns' large tiles. Returns the number of states.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
pub fn add_rows<V: Value>(
    sums: &mut Sums,
    block: &BlockColumns<'_, V>,
    rows: &[(Slot, Words)],
    large: &ColumnWords,
) -> u64 {
    let [first, second] = [&large.0[0], &large.0[1]].map(|list| list.as_chunks::<GROUP>().0);
    let (mut all, mut states) = (*sums, 0);
    for &(slot, small) in rows {
        let values = block.values(slot).as_chunks::<GROUP>().0;
        let marks = block.marks(slot);
        let by_word = first.chunks(64 / GROUP).zip(second.chunks(64 / GROUP)).zip(values.chunks(64 / GROUP));
        for (((first, second), values), &word) in by_word.zip(marks) {
            states += u64::from(word.count_ones());
            let mut rest = word;
            for ((first, second), values) in first.iter().zip(second).zip(values) {
                let marks = rest & 255;
                rest >>= GROUP;
                if marks == 0 {
                    continue;
                }
                for i in 0..GROUP {
                    let counts = (marks >> i & 1).wrapping_neg();
                    let [low, high] = hash(both(small, [first[i], second[i]]), values[i].stored().0);
                    all.add(i, [low & counts, high & counts]);
                }
            }
        }
    }
    *sums = all;
    states
}

/// One image of a row's boards: the words of its small tiles, and those of each column's large tiles.
pub type RowImage<'a> = (Words, &'a ColumnWords);

/// Adds the hashes of the states of a row of which several images may be canonical. For each board, the image with the
/// smallest words is canonical. `marked` has a bit for each column that counts. Returns the number of states.
pub fn add_row_of_several<V: Value>(
    sums: &mut Sums,
    marked: &[u64],
    images: &[RowImage<'_>],
    values: &[V],
) -> u64 {
    bitset::for_each_bit(marked, |column| {
        let words = images.iter().map(|&(small, large)| both(small, large.of(column)));
        sums.add(column % GROUP, hash(words.min().unwrap_or_default(), values[column].stored().0));
    });
    bitset::ones(marked)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// One changed value always changes the sum, whatever the words.
        #[test]
        fn values_that_differ_have_other_hashes(
            words in any::<Words>(), value in any::<u64>(), change in 1u64.., small in any::<bool>(),
        ) {
            let change = if small { (change >> 32).max(1) } else { change };
            prop_assert_ne!(hash(words, value), hash(words, value.wrapping_add(change)));
            prop_assert_ne!(hash(words, value), hash(words, value ^ change));
        }

        /// Carries between the words of a sum are not lost.
        #[test]
        fn sums_are_exact(hashes in proptest::collection::vec(any::<Words>(), 0..200)) {
            let mut sums = Sums::default();
            hashes.iter().enumerate().for_each(|(i, &hash)| sums.add(i % GROUP, hash));
            let whole = hashes.iter().map(|&[low, high]| u128::from(high) << 64 | u128::from(low));
            prop_assert_eq!(sums.total(), whole.fold(0, u128::wrapping_add));
        }
    }
}
