//! The fingerprint: a sum over all states that depends on nothing but boards and values.
//!
//! It adds, modulo 2^128, the hash of (canonical board, value bits) of every state once, so it does
//! not depend on order, on shards, or on the split between skeleton and sequence.

use exact2048_game::class::Space;
use exact2048_game::columns::{Columns, Sequence};
use exact2048_game::skeleton::Config;
use multiversion::multiversion;
use xxhash_rust::xxh3::xxh3_128;

/// Symmetries of a square board; others have fewer, and repeat the identity.
const SYMMETRIES: usize = 8;

/// The hash of one state: XXH3-128 of the packed canonical board and the value bits, 8 bytes each,
/// little endian.
#[inline]
pub fn state_hash(canonical_board: u64, value_bits: u64) -> u128 {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&canonical_board.to_le_bytes());
    bytes[8..].copy_from_slice(&value_bits.to_le_bytes());
    xxh3_128(&bytes)
}

/// The canonical boards of a block, mask by mask: an image of a board is the image of its small
/// tiles plus that of its large ones, and both halves repeat.
#[derive(Debug)]
pub struct CanonicalBoards<'a> {
    space: &'a Space,
    columns: &'a Columns,
    mask: Option<usize>,
    /// Where the digits of a config go in each image, in bits from the lowest; the last digit first.
    small_places: Vec<[u32; SYMMETRIES]>,
    /// For each symmetry of the board, the image of each column's large tiles in the current mask.
    large_images: Vec<u64>,
    boards: Vec<u64>,
}

impl<'a> CanonicalBoards<'a> {
    /// For the block of a lane with these columns.
    pub fn new(space: &'a Space, columns: &'a Columns) -> Self {
        let boards = vec![0; columns.len()];
        Self { space, columns, mask: None, small_places: Vec::new(), large_images: Vec::new(), boards }
    }

    /// The canonical boards of a row's columns, in order. Fastest where rows come mask by mask, as they
    /// are numbered.
    pub fn of_row(&mut self, mask: usize, config: Config) -> &[u64] {
        if self.mask != Some(mask) {
            self.set_mask(mask);
        }
        let mut small = [0u64; SYMMETRIES];
        for (i, places) in self.small_places.iter().enumerate() {
            let digit = config >> (4 * i) & 15;
            small.iter_mut().zip(places).for_each(|(image, &place)| *image |= digit << place);
        }
        smallest_images(&mut self.boards, &small, &self.large_images);
        &self.boards
    }

    fn set_mask(&mut self, mask: usize) {
        self.mask = Some(mask);
        let k = self.columns.lane().k;
        let cells = &self.space.masks(k)[mask];
        let permutations = self.space.symmetries().permutations();
        // In bits: where a symmetry's image holds what was in `cell`.
        let place =
            |perm: &[u8], cell: u8| 4 * perm.iter().position(|&from| from == cell).unwrap_or(0) as u32;
        let small_places = cells.small_cells.iter().rev().map(|&cell| {
            std::array::from_fn(|g| place(permutations.get(g).unwrap_or(&permutations[0]), cell))
        });
        self.small_places = small_places.collect();
        self.large_images.clear();
        self.large_images.resize(permutations.len() * self.columns.len(), 0);
        for (perm, images) in permutations.iter().zip(self.large_images.chunks_exact_mut(self.columns.len()))
        {
            for (i, &cell) in cells.large_cells.iter().rev().enumerate() {
                add_images(images, self.columns.sequences(), 4 * i as u32, place(perm, cell));
            }
        }
    }
}

/// Puts the exponent at bit `from` of each sequence at bit `to` of each image.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn add_images(images: &mut [u64], sequences: &[Sequence], from: u32, to: u32) {
    images.iter_mut().zip(sequences).for_each(|(image, sequence)| *image |= (sequence >> from & 15) << to);
}

/// For each column, the smallest sum of the images of the small and of the large tiles.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn smallest_images(boards: &mut [u64], small: &[u64; SYMMETRIES], large_images: &[u64]) {
    boards.fill(u64::MAX);
    for (small, large) in small.iter().zip(large_images.chunks_exact(boards.len())) {
        for (board, large) in boards.iter_mut().zip(large) {
            *board = (*board).min(small + large);
        }
    }
}
