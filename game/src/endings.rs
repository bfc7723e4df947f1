//! Numbers of arrangements by how they begin and end, in place of a table of all of them.
//!
//! In lexicographic order the arrangements of a multiset that begin alike follow one another, and among these the number
//! of one is that of its ending among the arrangements of the ending alone. So of each multiset only the number of the
//! first arrangement with each beginning has to be known. The numbers of endings, of four exponents each, are the same
//! for all multisets.

use std::sync::OnceLock;

use crate::columns::{Sequence, arrangements};

/// Exponents of an ending.
const PLACES: u32 = 4;
/// Bits of an ending.
const BITS: u32 = 4 * PLACES;

/// The number of each ending, by the ending itself.
pub(crate) type Endings = [u8; 1 << BITS];

/// The exponents of a sequence but for the last four.
#[inline]
pub(crate) fn beginning(sequence: Sequence) -> Sequence {
    sequence >> BITS
}

/// Each way that sequences in lexicographic order begin, with the number of the first of them.
pub(crate) fn beginnings(sequences: &[Sequence]) -> impl Iterator<Item = (Sequence, u32)> {
    let mut last = None;
    (0..).zip(sequences).filter_map(move |(number, &sequence)| {
        let begins = beginning(sequence);
        (last.replace(begins) != Some(begins)).then_some((begins, number))
    })
}

/// The number of each ending among its arrangements, by the ending itself. A sequence of fewer exponents has zeros in
/// front. Zeros are less than any exponent, so the arrangements with all zeros in front come first, and their numbers
/// are those without the zeros.
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

/// The number of a sequence's ending; `endings` are those of [`endings`].
#[inline]
pub(crate) fn ending(endings: &Endings, sequence: Sequence) -> u32 {
    u32::from(endings[sequence as u16 as usize])
}
