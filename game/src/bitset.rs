//! Rows of bits in words of 64, the lowest bit of the first word first; and sets of numbers of one kind, a bit each.

use std::marker::PhantomData;
use std::ops::Range;

/// A number of something: of a row, say, or of a slot.
pub trait Number: Copy {
    /// The number for use in lists.
    fn index(self) -> usize;
    /// What an index stands for.
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

/// A set of numbers of one kind, one bit each.
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
    /// The set of the numbers whose bits are set.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self { words, of: PhantomData }
    }

    /// All numbers below an end.
    pub fn below(end: usize) -> Self {
        let mut words = vec![u64::MAX; end.div_ceil(64)];
        if let Some(last) = words.last_mut()
            && !end.is_multiple_of(64)
        {
            *last = (1 << (end % 64)) - 1;
        }
        Self::from_words(words)
    }

    /// An empty set, with room for the numbers below `end`.
    pub fn with_room(end: usize) -> Self {
        Self::from_words(vec![0; end.div_ceil(64)])
    }

    /// One bit a number.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        ones(&self.words) as usize
    }

    /// Whether no number is in the set.
    pub fn is_empty(&self) -> bool {
        !any(&self.words)
    }
}

impl<N: Number> BitSet<N> {
    /// Whether a number is in the set; there is no room for those that are too large.
    #[inline(always)]
    pub fn contains(&self, number: N) -> bool {
        let index = number.index();
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Adds a number.
    ///
    /// # Panics
    ///
    /// If there is no room for it.
    #[inline(always)]
    pub fn insert(&mut self, number: N) {
        let index = number.index();
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = N> + '_ {
        self.words.iter().enumerate().flat_map(|(w, &word)| {
            let rest = std::iter::successors(Some(word), |&rest| Some(rest & rest.wrapping_sub(1)));
            let bits = rest.take_while(|&rest| rest != 0);
            bits.map(move |rest| N::from_index(w * 64 + rest.trailing_zeros() as usize))
        })
    }
}

/// Number of bits set.
#[inline]
pub fn ones(row: &[u64]) -> u64 {
    row.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Whether a row has any bit set.
#[inline]
pub fn any(row: &[u64]) -> bool {
    row.iter().any(|&w| w != 0)
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

/// Calls `visit` with the column of each bit, ascending.
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

#[cfg(test)]
mod tests {
    use super::*;

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
