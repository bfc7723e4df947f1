//! First images of a board, in an order that depends only on the empty cells, the 2s and the 4s.

use crate::configs::Config;
use crate::skeleton::Mask;
use crate::symmetry::Symmetries;

/// Number of symmetries of a square board. Other boards have fewer.
pub const MOST_SYMMETRIES: usize = 8;

/// Finds the first images of the skeletons of one mask.
///
/// Images are compared by the mask of their empty cells, then by the mask of their 2s, then by the mask of their 4s. A
/// 2 or a 4 is small for every `large`.
#[derive(Debug)]
pub struct FirstImages {
    /// For each cell of a config, from the last to the first: its bit in the image of each symmetry.
    bits: Vec<[u64; MOST_SYMMETRIES]>,
    /// Initial keys: 0 for each symmetry of the board. Other entries have the largest key, so they are never first.
    start: [u64; MOST_SYMMETRIES],
}

/// Number of bits of a mask.
const CELLS: u64 = 16;

impl FirstImages {
    /// Computes the bits and the initial keys for the skeletons of a mask.
    pub fn new(symmetries: &Symmetries, mask: &Mask) -> Self {
        let permutations = symmetries.permutations();
        let bit = |perm: &[u8], cell: u8| {
            let place = perm.iter().position(|&from| from == cell).unwrap_or(0);
            1 << (2 * CELLS) << place
        };
        let bits = mask.small_cells.iter().rev().map(|&cell| {
            let mut bits = [0; MOST_SYMMETRIES];
            bits.iter_mut().zip(permutations).for_each(|(bits, perm)| *bits = bit(perm, cell));
            bits
        });
        let start = |symmetry| if symmetry < permutations.len() { 0 } else { u64::MAX };
        Self { bits: bits.collect(), start: std::array::from_fn(start) }
    }

    /// Returns the symmetries whose images of a skeleton are first, one bit each. Cost: about ten nanoseconds.
    #[inline]
    pub fn of(&self, config: Config) -> u8 {
        let mut keys = self.start;
        let mut digits = config;
        for bits in &self.bits {
            // Empty cells use the highest bits, then 2s and 4s. Other tiles are shifted out.
            let shift = CELLS * (digits & 15).min(3);
            keys.iter_mut().zip(bits).for_each(|(key, bit)| *key |= bit >> shift);
            digits >>= 4;
        }
        let first = keys.into_iter().fold(u64::MAX, u64::min);
        (0..MOST_SYMMETRIES).fold(0, |symmetries, i| symmetries | u8::from(keys[i] == first) << i)
    }
}
