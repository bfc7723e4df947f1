//! Squeezed multisets of exponents.
//!
//! Squeezing replaces the exponents by consecutive numbers that start at `large` or `large + 1`. It preserves their
//! order and the equalities among them. The module `shapes` uses squeezed multisets.

use crate::sequence::Sequence;

/// Squeezed multiset of exponents.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub(crate) squeezed: Sequence,
    pub(crate) tiles: u8,
    /// Actual exponent of each squeezed exponent.
    actual: [u8; 16],
}

impl Shape {
    /// Squeezes a multiset of `k` exponents of at least `large`, sorted downward. With `births`, the shape also records
    /// whether the smallest exponent is `large`.
    pub(crate) fn new(births: bool, multiset: Sequence, k: u8, large: u8) -> Self {
        let mut actual = [0; 16];
        if births {
            actual[large as usize] = large;
        }
        let mut squeezed = 0;
        let (mut last, mut squeezed_last): (Option<u8>, u8) = (None, large);
        // The exponents are sorted downward, so the lowest nibble is the smallest.
        for i in 0..k {
            let exponent = (multiset >> (4 * i)) as u8 & 15;
            squeezed_last += match last {
                Some(last) => (exponent - last).min(1),
                None if births => (exponent - large).min(1),
                None => 0,
            };
            last = Some(exponent);
            actual[squeezed_last as usize] = exponent;
            squeezed |= Sequence::from(squeezed_last) << (4 * i);
        }
        Self { squeezed, tiles: k, actual }
    }

    /// Returns the actual multiset of `squeezed`, which is this shape or the target of one of the shape's maps.
    pub(crate) fn actual(&self, squeezed: Sequence) -> Sequence {
        let (mut rest, mut multiset, mut shift) = (squeezed, 0, 0);
        while rest != 0 {
            multiset |= Sequence::from(self.actual[(rest & 15) as usize]) << shift;
            (rest, shift) = (rest >> 4, shift + 4);
        }
        multiset
    }
}
