//! Images of packed boards under rotation and reflection, by shifts: what [`exact2048_game::symmetry`] does cell by
//! cell, as fast as a move.

use exact2048_game::Board;
use exact2048_game::rules::Move;

use crate::engine::{Engine, transposed};

/// One of the symmetries of a board: transposed or not, then mirrored or not, then flipped or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Image {
    transposed: bool,
    /// Columns were reversed.
    mirrored: bool,
    /// Rows were reversed.
    flipped: bool,
}

impl Image {
    /// The move on the board that is this move on its image.
    #[must_use]
    pub fn undo(self, direction: Move) -> Move {
        let reversed = match direction {
            Move::Left if self.mirrored => Move::Right,
            Move::Right if self.mirrored => Move::Left,
            Move::Up if self.flipped => Move::Down,
            Move::Down if self.flipped => Move::Up,
            same => same,
        };
        match (self.transposed, reversed) {
            (false, same) => same,
            (true, Move::Left) => Move::Up,
            (true, Move::Up) => Move::Left,
            (true, Move::Right) => Move::Down,
            (true, Move::Down) => Move::Right,
        }
    }
}

/// The symmetries that map a board to one of its size: the first four on any board, all of them on a square one.
const IMAGES: [Image; 8] = [
    Image { transposed: false, mirrored: false, flipped: false },
    Image { transposed: false, mirrored: true, flipped: false },
    Image { transposed: false, mirrored: false, flipped: true },
    Image { transposed: false, mirrored: true, flipped: true },
    Image { transposed: true, mirrored: false, flipped: false },
    Image { transposed: true, mirrored: true, flipped: false },
    Image { transposed: true, mirrored: false, flipped: true },
    Image { transposed: true, mirrored: true, flipped: true },
];

impl Engine {
    /// The smallest image of a board as a packed number, as [`exact2048_game::symmetry`] has it. Costs about ten
    /// nanoseconds.
    #[inline]
    #[must_use]
    pub fn canonical(&self, board: Board) -> Board {
        let least = |images: [u64; 8]| Board(images.into_iter().fold(u64::MAX, u64::min));
        // With sides that the compiler knows, loops over them are unrolled.
        match (self.size().rows(), self.size().cols()) {
            (3, 3) => least(images(board.0, 3, 3)),
            (4, 4) => least(images(board.0, 4, 4)),
            (rows, cols) => least(images(board.0, rows, cols)),
        }
    }

    /// The canonical image, and which it is.
    #[must_use]
    pub fn canonical_image(&self, board: Board) -> (Board, Image) {
        let images = images(board.0, self.size().rows(), self.size().cols());
        let least = IMAGES.into_iter().zip(images).min_by_key(|&(_, bits)| bits);
        least.map_or((board, IMAGES[0]), |(image, bits)| (Board(bits), image))
    }
}

/// A board under each of the symmetries; those that change its size leave it as it is.
#[inline(always)]
fn images(bits: u64, rows: usize, cols: usize) -> [u64; 8] {
    let across = if rows == cols { transposed(bits, rows, cols) } else { bits };
    let [mirrored, across_mirrored] = [bits, across].map(|bits| mirrored(bits, rows, cols));
    let flipped = |bits| flipped(bits, rows, cols);
    [
        bits,
        mirrored,
        flipped(bits),
        flipped(mirrored),
        across,
        across_mirrored,
        flipped(across),
        flipped(across_mirrored),
    ]
}

/// The board with its columns reversed.
#[inline(always)]
fn mirrored(bits: u64, rows: usize, cols: usize) -> u64 {
    let first = (0..rows).fold(0, |cells, row| cells | 15u64 << (4 * row * cols));
    let middle = if cols % 2 == 1 { bits & first << (4 * (cols / 2)) } else { 0 };
    (0..cols / 2).fold(middle, |image, col| {
        let (column, shift) = (first << (4 * col), 4 * (cols - 1 - 2 * col));
        image | (bits & column) << shift | bits >> shift & column
    })
}

/// The board with its rows reversed.
#[inline(always)]
fn flipped(bits: u64, rows: usize, cols: usize) -> u64 {
    let width = 4 * cols;
    let first = (1u64 << width) - 1;
    let middle = if rows % 2 == 1 { bits & first << (width * (rows / 2)) } else { 0 };
    (0..rows / 2).fold(middle, |image, row| {
        let (line, shift) = (first << (width * row), width * (rows - 1 - 2 * row));
        image | (bits & line) << shift | bits >> shift & line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::BoardSize;
    use exact2048_game::symmetry::Symmetries;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn canonical_boards_and_moves_are_those_of_the_rules() {
        let mut generator = ChaCha8Rng::seed_from_u64(3);
        for size in ["2x2", "3x2", "2x3", "3x3", "4x3", "3x4", "4x4", "1x5", "8x2", "2x8", "5x3"] {
            let size: BoardSize = size.parse().unwrap();
            let (engine, symmetries) = (Engine::new(size, Default::default()), Symmetries::new(size));
            for _ in 0..500 {
                let board = (0..size.cells())
                    .fold(Board::default(), |board, cell| board.with(cell, generator.random_range(0..5)));
                let (canonical, image) = engine.canonical_image(board);
                assert_eq!(canonical, symmetries.canonical(board), "{size}");
                assert_eq!(canonical, engine.canonical(board), "{size}");
                for (direction, after, score) in engine.moves(canonical).iter() {
                    let (made, scored) = engine.moves(board).get(image.undo(direction)).unwrap();
                    assert_eq!(engine.canonical(made), engine.canonical(after), "{size} {image:?}");
                    assert_eq!(scored, score);
                }
            }
        }
    }
}
