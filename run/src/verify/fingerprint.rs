//! The hashes of states, as `docs/dev/format.md` defines them, computed from the images of whole boards.

use xxhash_rust::xxh3::xxh3_128;

use super::geometry::Geometry;

/// The hash of a state in the fingerprint of a run, by the format of the run.
#[derive(Debug)]
pub enum Fingerprint {
    /// Format 1: XXH3-128 of the canonical board and the value, 8 bytes each.
    Whole,
    /// Since format 2: a mix of the value and of the sum over the cells of one image.
    ByCells(Box<Cells>),
}

/// For each byte of a board, which is two cells, the sum of their terms by the value of the byte.
type Cells = [[[u64; 2]; 256]; 8];

impl Fingerprint {
    /// The fingerprint of a format, for boards of this geometry. The cells of stones add nothing to it.
    pub fn of_format(version: u32, geometry: &Geometry) -> Self {
        if version == 1 {
            return Self::Whole;
        }
        let of_cell = |cell: usize, exponent: usize| match xxh3_128(&[cell as u8, exponent as u8]) {
            random if geometry.playable().any(|playable| playable == cell) => {
                [random as u64, (random >> 64) as u64]
            }
            _ => [0; 2],
        };
        let of_byte =
            |at: usize, byte: usize| plus(of_cell(2 * at, byte & 15), of_cell(2 * at + 1, byte >> 4));
        let table = |at| std::array::from_fn(|byte| of_byte(at, byte));
        Self::ByCells(Box::new(std::array::from_fn(table)))
    }

    /// The hash of a state, from its canonical board and its value.
    pub fn hash(&self, geometry: &Geometry, board: u64, value: u64) -> u128 {
        match self {
            Self::Whole => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&board.to_le_bytes());
                bytes[8..].copy_from_slice(&value.to_le_bytes());
                xxh3_128(&bytes)
            }
            Self::ByCells(cells) => {
                let images = geometry.images(board);
                let first = images.map(first_cells).into_iter().min();
                let candidates = images.into_iter().filter(|&image| Some(first_cells(image)) == first);
                let words = candidates.map(|image| words(cells, image)).min().unwrap_or_default();
                mixed(words, value)
            }
        }
    }
}

fn plus([a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
    [a.wrapping_add(c), b.wrapping_add(d)]
}

/// The cells of a board that are empty, that hold a 2, and that hold a 4: three sets with one bit in every four.
fn first_cells(board: u64) -> [u64; 3] {
    [0, 1, 2].map(|exponent| {
        let differs = board ^ (exponent * 0x1111_1111_1111_1111);
        let halves = differs | differs >> 2;
        !(halves | halves >> 1) & 0x1111_1111_1111_1111
    })
}

/// The sums A and B over the cells of a board.
fn words(cells: &Cells, board: u64) -> [u64; 2] {
    let bytes = board.to_le_bytes().into_iter().zip(cells);
    bytes.fold([0; 2], |sum, (byte, table)| plus(sum, table[usize::from(byte)]))
}

/// The hash of a state from the sums over the cells of its image.
fn mixed([a, b]: [u64; 2], value: u64) -> u128 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    let (once, twice) = (low.wrapping_add(high), low.wrapping_add(high).wrapping_add(high));
    let mix = |word: u64, value: u32| {
        let product = u64::from((word as u32).wrapping_add(value)) * ((word >> 32) | 1);
        let folded = product ^ (product >> 24);
        folded ^ (folded << 16)
    };
    u128::from(mix(b, twice)) << 64 | u128::from(mix(a, once))
}
