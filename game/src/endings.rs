//! Numbers of arrangements by their beginnings and endings, without a table of all arrangements.
//!
//! In lexicographic order, the arrangements of a multiset with the same beginning are contiguous. The offset of an
//! arrangement among them is the number of its ending among all arrangements of the ending's exponents. So each
//! multiset needs only the number of the first arrangement with each beginning. An ending has four exponents, and its
//! number is the same for all multisets.

use std::sync::OnceLock;

use crate::sequence::{Sequence, arrangements};

/// Number of exponents of an ending.
const PLACES: u32 = 4;
/// Number of bits of an ending.
const BITS: u32 = 4 * PLACES;

/// Number of each ending, indexed by the ending.
pub(crate) type Endings = [u8; 1 << BITS];

/// Returns the exponents of a sequence except the last four.
#[inline]
pub(crate) fn beginning(sequence: Sequence) -> Sequence {
    sequence >> BITS
}

/// Iterates over the beginnings of sequences in lexicographic order, each with the number of its first sequence.
pub(crate) fn beginnings(sequences: &[Sequence]) -> impl Iterator<Item = (Sequence, u32)> {
    let mut last = None;
    (0..).zip(sequences).filter_map(move |(number, &sequence)| {
        let begins = beginning(sequence);
        (last.replace(begins) != Some(begins)).then_some((begins, number))
    })
}

/// Returns the number of each ending among its arrangements.
///
/// A sequence of fewer exponents has leading zeros. Zero is less than any exponent, so the arrangements with all zeros
/// in front have the lowest numbers. These equal the numbers without the zeros.
pub(crate) fn endings() -> &'static Endings {
    static ENDINGS: OnceLock<Box<Endings>> = OnceLock::new();
    ENDINGS.get_or_init(|| {
        let mut numbers = Box::new([0; 1 << BITS]);
        for multiset in 0..1u32 << BITS {
            let exponents = [12, 8, 4, 0].map(|shift| (multiset >> shift) as u8 & 15);
            if exponents.is_sorted() {
                for (number, arrangement) in (0..).zip(arrangements(exponents.to_vec())) {
                    numbers[arrangement as usize] = number;
                }
            }
        }
        numbers
    })
}

/// Returns the number of the ending of a sequence; `endings` is the table of [`endings`].
#[inline]
pub(crate) fn ending(endings: &Endings, sequence: Sequence) -> u32 {
    u32::from(endings[sequence as u16 as usize])
}
