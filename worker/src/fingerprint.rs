//! The fingerprint: a sum over all states that depends on nothing but boards and values.
//!
//! It adds, modulo 2^128, the hash of (canonical board, value bits) of every state once, so it does
//! not depend on order, on shards, or on the split between skeleton and sequence.

use exact2048_game::class::{Class, Space};
use exact2048_game::columns::{Columns, Sequence};
use xxhash_rust::xxh3::xxh3_128;

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
    class: &'a Class,
    columns: &'a Columns,
    mask: Option<usize>,
    /// For each symmetry, the image of each column's large tiles in the current mask.
    large_images: Vec<u64>,
}

impl<'a> CanonicalBoards<'a> {
    /// For the block of a class and a lane's columns.
    pub fn new(space: &'a Space, class: &'a Class, columns: &'a Columns) -> Self {
        Self { space, class, columns, mask: None, large_images: Vec::new() }
    }

    /// Calls `visit` with the canonical board of each of the row's columns, in order. Fastest where
    /// rows come mask by mask, as they are numbered.
    pub fn of_row(&mut self, mask: usize, row: u32, boards: &mut Vec<u64>) {
        if self.mask != Some(mask) {
            self.set_mask(mask);
        }
        let small = self.space.small_tiles(self.class, mask, row);
        let count = self.columns.len();
        boards.clear();
        boards.resize(count, u64::MAX);
        for (image, large) in self.space.symmetries().images(small).zip(self.large_images.chunks_exact(count))
        {
            boards.iter_mut().zip(large).for_each(|(board, large)| *board = (*board).min(image.0 + large));
        }
    }

    fn set_mask(&mut self, mask: usize) {
        self.mask = Some(mask);
        self.large_images.clear();
        let k = self.columns.lane().k as usize;
        let cells = &self.space.masks(self.columns.lane().k)[mask].large_cells;
        for perm in self.space.symmetries().permutations() {
            let place = |cell: u8| 4 * perm.iter().position(|&from| from == cell).unwrap_or(0);
            let places: Vec<usize> = cells.iter().map(|&cell| place(cell)).collect();
            let image = |&sequence: &Sequence| -> u64 {
                places.iter().enumerate().map(|(i, &at)| (sequence >> (4 * (k - 1 - i)) & 15) << at).sum()
            };
            self.large_images.extend(self.columns.sequences().iter().map(image));
        }
    }
}
