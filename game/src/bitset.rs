//! Rows of bits in 64-bit words, and sets of numbers stored as such rows. Bit 0 is the lowest bit of the first word.

use std::marker::PhantomData;
use std::ops::Range;

/// Type of numbers of one kind, for example numbers of rows or of slots.
pub trait Number: Copy {
    /// Converts the number to an index.
    fn index(self) -> usize;
    /// Converts an index to the number.
    fn from_index(index: usize) -> Self;
}

impl Number for u32 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }

    fn from_index(index: usize) -> Self {
        index as u32
    }
}

/// Set of numbers of one kind, one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitSet<N> {
    words: Vec<u64>,
    of: PhantomData<N>,
}

impl<N> Default for BitSet<N> {
    fn default() -> Self {
        Self::from_words(Vec::new())
    }
}

impl<N> BitSet<N> {
    /// Creates the set of the numbers whose bits are set.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self { words, of: PhantomData }
    }

    /// Creates the set of all numbers below `end`.
    pub fn below(end: usize) -> Self {
        let mut words = vec![u64::MAX; end.div_ceil(64)];
        if let Some(last) = words.last_mut() {
            *last = last_word(end);
        }
        Self::from_words(words)
    }

    /// Creates an empty set with capacity for the numbers below `end`.
    pub fn with_room(end: usize) -> Self {
        Self::from_words(vec![0; end.div_ceil(64)])
    }

    /// Words of the set, one bit per number.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words of the set, one bit per number.
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        ones(&self.words) as usize
    }

    /// Whether no number is in the set.
    pub fn is_empty(&self) -> bool {
        !any(&self.words)
    }
}

impl<N: Number> BitSet<N> {
    /// Whether a number is in the set. Returns false for numbers beyond the capacity of the set.
    #[inline(always)]
    pub fn contains(&self, number: N) -> bool {
        let index = number.index();
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Adds a number.
    ///
    /// # Panics
    ///
    /// If the number is beyond the capacity of the set.
    #[inline(always)]
    pub fn insert(&mut self, number: N) {
        set(&mut self.words, number.index());
    }

    /// Iterates over the numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = N> + '_ {
        self.words.iter().enumerate().flat_map(|(w, &word)| {
            let rest = std::iter::successors(Some(word), |&rest| Some(rest & rest.wrapping_sub(1)));
            let bits = rest.take_while(|&rest| rest != 0);
            bits.map(move |rest| N::from_index(w * 64 + rest.trailing_zeros() as usize))
        })
    }
}

/// Number of bits set.
#[inline(always)]
pub fn ones(row: &[u64]) -> u64 {
    row.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Whether a row has any bit set.
#[inline]
pub fn any(row: &[u64]) -> bool {
    row.iter().any(|&w| w != 0)
}

/// Whether a bit is set.
#[inline(always)]
pub fn is_set(row: &[u64], bit: usize) -> bool {
    row[bit / 64] >> (bit % 64) & 1 == 1
}

/// Sets a bit.
#[inline(always)]
pub fn set(row: &mut [u64], bit: usize) {
    row[bit / 64] |= 1 << (bit % 64);
}

/// Returns a word whose lowest `count` bits are set; `count` is below 64.
#[inline(always)]
pub fn lowest(count: usize) -> u64 {
    (1 << count) - 1
}

/// Returns the last word of a row of `bits` set bits; `bits` is at least 1.
#[inline(always)]
pub fn last_word(bits: usize) -> u64 {
    u64::MAX >> (bits.next_multiple_of(64) - bits)
}

/// Clears the bits of a range.
pub fn clear(row: &mut [u64], range: Range<usize>) {
    let words = range.start / 64..range.end.div_ceil(64);
    for (word, bits) in words.clone().zip(&mut row[words]) {
        let before = range.start.saturating_sub(64 * word);
        let behind = (64 * (word + 1)).saturating_sub(range.end);
        *bits &= !(u64::MAX << before & u64::MAX >> behind);
    }
}

/// Calls `visit` with the index of each set bit, ascending.
#[inline]
pub fn for_each_bit(row: &[u64], mut visit: impl FnMut(usize)) {
    for (w, &word) in row.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            visit(w * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// For each word of a row, the number of bits set in all earlier words.
///
/// With these numbers, counting the set bits before a bit takes constant time. Finding the set bit with a given number
/// takes logarithmic time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    before: Box<[u32]>,
    ones: u32,
}

impl Ranks {
    /// Counts the bits of a row. Callers must pass the same row to the other methods.
    pub fn of(row: &[u64]) -> Self {
        let mut ones = 0;
        let before = row.iter().map(|word| {
            let before = ones;
            ones += word.count_ones();
            before
        });
        Self { before: before.collect(), ones }
    }

    /// Number of set bits.
    #[inline(always)]
    pub fn ones(&self) -> usize {
        self.ones as usize
    }

    /// Returns the number of set bits before a bit of the row.
    #[inline(always)]
    pub fn before(&self, row: &[u64], bit: usize) -> u32 {
        self.before[bit / 64] + (row[bit / 64] & lowest(bit % 64)).count_ones()
    }

    /// Returns the set bit with this number, counted from 0; `None` if fewer bits are set.
    pub fn bit(&self, row: &[u64], number: u32) -> Option<usize> {
        if number >= self.ones {
            return None;
        }
        let word = self.before.partition_point(|&before| before <= number) - 1;
        let below = number - self.before[word];
        let rest = (0..below).fold(row[word], |rest, _| rest & (rest - 1));
        Some(word * 64 + rest.trailing_zeros() as usize)
    }

    /// Size of the counts in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_are_counted_and_found_by_their_numbers() {
        let mut row = [0u64; 5];
        let bits = [0, 1, 63, 64, 130, 191, 256, 319];
        bits.iter().for_each(|&bit| set(&mut row, bit));
        let ranks = Ranks::of(&row);
        assert_eq!(ranks.ones(), bits.len());
        for bit in 0..320 {
            let before = bits.iter().filter(|&&set| set < bit).count();
            assert_eq!(ranks.before(&row, bit) as usize, before, "{bit}");
            assert_eq!(is_set(&row, bit), bits.contains(&bit), "{bit}");
        }
        let found = (0..9).map(|number| ranks.bit(&row, number));
        assert!(found.eq(bits.map(Some).into_iter().chain([None])));
        assert_eq!(Ranks::of(&[]).bit(&[], 0), None);
    }

    #[test]
    fn the_last_word_of_a_row_has_the_bits_that_are_left() {
        for bits in [1, 63, 64, 65, 128, 129] {
            let all = BitSet::<u32>::below(bits);
            assert_eq!(all.words().last(), Some(&last_word(bits)), "{bits}");
            assert_eq!(ones(all.words()) as usize, bits);
        }
    }

    #[test]
    fn bits_of_a_range_are_cleared() {
        for range in [0..64, 4..64, 3..4, 126..128, 127..129, 63..192, 5..5, 64..64] {
            let mut row = [u64::MAX; 3];
            clear(&mut row, range.clone());
            let is_set = |bit: usize| row[bit / 64] >> (bit % 64) & 1 == 1;
            assert!((0..192).all(|bit| is_set(bit) != range.contains(&bit)), "{range:?}");
        }
    }
}
