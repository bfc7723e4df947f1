//! The fingerprint: a sum over all states that depends on nothing but boards and values.
//!
//! It adds, modulo 2^128, the hash of (canonical board, value bits) of every state once, so it does
//! not depend on order, on shards, or on the split between skeleton and sequence.

use std::ops::Range;

use exact2048_game::bitset::{self, for_each_bit};
use exact2048_game::class::Space;
use exact2048_game::columns::{Columns, Sequence};
use exact2048_game::rowset::is_set;
use exact2048_game::skeleton::Config;
use exact2048_game::value::Value;
use multiversion::multiversion;
use xxhash_rust::xxh3::xxh3_128;

use crate::Worker;
use crate::backup::{BackedUp, BlockValues, stride};
use crate::pieces::of_slots;
use crate::tables::{MapCache, SymmetricColumns};

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

impl<V: Value> Worker<V> {
    /// Counts the states of a block, up to symmetry, and sums their hashes.
    pub(crate) fn fingerprint(&self, block: &BackedUp<'_, V>, cache: &mut MapCache) -> BlockValues {
        let BackedUp { tables, transitions, reach, .. } = *block;
        let occurs = |slot| is_set(&reach.summary.occupied, slot as u32);
        let symmetric = self.tables.symmetric_rows(cache, tables, transitions, occurs);
        let pieces = self.value_pieces(reach.matrix.rows().len(), stride(tables));
        let found = pieces.map(|slots| self.fingerprint_of(block, slots, &symmetric));
        found.into_iter().fold(BlockValues::default(), |all, piece| BlockValues {
            states: all.states + piece.states,
            fingerprint: all.fingerprint.wrapping_add(piece.fingerprint),
        })
    }

    fn fingerprint_of(
        &self,
        block: &BackedUp<'_, V>,
        slots: Range<usize>,
        symmetric: &[SymmetricColumns<'_>],
    ) -> BlockValues {
        let BackedUp { class, tables, transitions, reach, states } = *block;
        let (held, columns) = (reach.matrix.rows(), tables.columns.len());
        let configs = &self.tables.skeletons(transitions).configs;
        let mut found = BlockValues::default();
        let mut canonical = CanonicalBoards::new(&self.tables.space, &tables.columns);
        let mut marked = Vec::new();
        let mut symmetric = of_slots(symmetric, slots.clone(), |row| row.slot).iter().peekable();
        let rows = held.row(slots.start) as usize..held.row(slots.end) as usize;
        for mask in 0..class.masks() {
            let of_mask = class.mask_rows(mask);
            let rows = of_mask.start.max(rows.start)..of_mask.end.min(rows.end);
            if rows.is_empty() {
                continue;
            }
            let before = symmetric.clone();
            for first in (0..columns).step_by(CanonicalBoards::COLUMNS) {
                let some = first..(first + CanonicalBoards::COLUMNS).min(columns);
                let words = first / 64..some.end.div_ceil(64);
                symmetric = before.clone();
                for slot in held.rows_in(rows.clone()).map(|row| held.slot(row)) {
                    if !is_set(&reach.summary.occupied, slot as u32) {
                        continue;
                    }
                    marked.clear();
                    marked.extend_from_slice(&reach.matrix.slot(slot)[words.clone()]);
                    if let Some(row) = symmetric.next_if(|row| row.slot as usize == slot) {
                        let one_an_orbit = &row.representatives[words.clone()];
                        marked.iter_mut().zip(one_an_orbit).for_each(|(m, o)| *m &= o);
                    }
                    if !bitset::any(&marked) {
                        continue;
                    }
                    let boards = canonical.of_row(mask, some.clone(), configs[slot]);
                    let values = &states[slot * stride(tables) + first..][..some.len()];
                    for_each_bit(&marked, |column| {
                        found.states += 1;
                        let hash = state_hash(boards[column], values[column].to_bits());
                        found.fingerprint = found.fingerprint.wrapping_add(hash);
                    });
                }
            }
        }
        found
    }
}

/// The canonical boards of a block, mask by mask and some columns at a time: an image of a board is the image of its small
/// tiles plus that of its large ones, and both halves repeat.
#[derive(Debug)]
pub struct CanonicalBoards<'a> {
    space: &'a Space,
    columns: &'a Columns,
    mask: Option<usize>,
    /// The columns whose images are there.
    range: Range<usize>,
    /// Where the digits of a config go in each image, in bits from the lowest; the last digit first.
    small_places: Vec<[u32; SYMMETRIES]>,
    /// For each symmetry of the board, the image of each column's large tiles in the current mask.
    large_images: Vec<u64>,
    boards: Vec<u64>,
}

impl<'a> CanonicalBoards<'a> {
    /// Columns at a time that measured well, a multiple of 64: their images fit a core's cache.
    pub const COLUMNS: usize = 4096;

    /// For the block of a lane with these columns.
    pub fn new(space: &'a Space, columns: &'a Columns) -> Self {
        let (small_places, large_images, boards) = (Vec::new(), Vec::new(), Vec::new());
        Self { space, columns, mask: None, range: 0..0, small_places, large_images, boards }
    }

    /// The canonical boards of some of a row's columns, in order. Fast where mask and columns are mostly those of the call
    /// before.
    pub fn of_row(&mut self, mask: usize, columns: Range<usize>, config: Config) -> &[u64] {
        if self.mask != Some(mask) || self.range != columns {
            self.set(mask, columns);
        }
        let mut small = [0u64; SYMMETRIES];
        for (i, places) in self.small_places.iter().enumerate() {
            let digit = config >> (4 * i) & 15;
            small.iter_mut().zip(places).for_each(|(image, &place)| *image |= digit << place);
        }
        smallest_images(&mut self.boards, &small, &self.large_images);
        &self.boards
    }

    fn set(&mut self, mask: usize, columns: Range<usize>) {
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
        let sequences = &self.columns.sequences()[columns.clone()];
        self.boards.resize(sequences.len(), 0);
        self.large_images.clear();
        self.large_images.resize(permutations.len() * sequences.len(), 0);
        for (perm, images) in permutations.iter().zip(self.large_images.chunks_exact_mut(sequences.len())) {
            for (i, &cell) in cells.large_cells.iter().rev().enumerate() {
                add_images(images, sequences, 4 * i as u32, place(perm, cell));
            }
        }
        (self.mask, self.range) = (Some(mask), columns);
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
