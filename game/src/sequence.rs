//! Sequences of exponents: packing, counts and arrangements.

/// Sequence of exponents, one per nibble, with the first in the highest nibble.
pub type Sequence = u64;

/// Number of occurrences of each exponent in a sequence, one nibble per exponent.
///
/// Two sequences of the same length have the same counts if and only if they are arrangements of one multiset.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Hash)]
pub struct Counts(u64);

impl Counts {
    /// Counts the exponents of a sequence of any length. No exponent may be 0.
    #[inline]
    pub fn of(sequence: Sequence) -> Self {
        let (mut rest, mut counts) = (sequence, 0u64);
        while rest != 0 {
            counts = counts.wrapping_add(1 << (4 * (rest & 15)));
            rest >>= 4;
        }
        Self(counts)
    }

    /// Number of occurrences of an exponent in the sequence.
    #[inline]
    pub fn of_exponent(self, exponent: u8) -> u64 {
        self.0 >> (4 * exponent) & 15
    }

    /// Returns the counts with one more tile of this exponent.
    #[inline]
    pub fn with(self, exponent: u8) -> Self {
        Self(self.0.wrapping_add(1 << (4 * exponent)))
    }

    /// Returns the counts after two tiles of an exponent merged: two fewer of these tiles, and one more of the next
    /// exponent.
    #[inline]
    pub fn merged(self, exponent: u8) -> Self {
        Self(self.0.wrapping_add(14 << (4 * exponent)))
    }
}

/// Number of a sequence among the sequences of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(pub u64);

/// Packs exponents into a sequence.
pub fn pack(exponents: &[u8]) -> Sequence {
    exponents.iter().fold(0, |s, &e| s << 4 | Sequence::from(e))
}

/// Unpacks the `k` exponents of a sequence.
pub fn unpack(sequence: Sequence, k: u8) -> Vec<u8> {
    (0..k).rev().map(|i| (sequence >> (4 * i)) as u8 & 15).collect()
}

/// Iterates over all arrangements of exponents in lexicographic order. The exponents must be sorted upward.
pub fn arrangements(exponents: Vec<u8>) -> impl Iterator<Item = Sequence> {
    let mut next = Some(exponents);
    std::iter::from_fn(move || {
        let mut exponents = next.take()?;
        let sequence = pack(&exponents);
        next = next_arrangement(&mut exponents).then_some(exponents);
        Some(sequence)
    })
}

/// Replaces an arrangement by the next arrangement in lexicographic order. Returns `false` for the last arrangement.
fn next_arrangement(exponents: &mut [u8]) -> bool {
    let Some(pivot) = exponents.windows(2).rposition(|w| w[0] < w[1]) else { return false };
    let Some(swap) = exponents.iter().rposition(|&e| e > exponents[pivot]) else { return false };
    exponents.swap(pivot, swap);
    exponents[pivot + 1..].reverse();
    true
}
