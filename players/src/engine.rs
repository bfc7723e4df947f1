//! Fast rules and random spawns for boards of one size.

use exact2048_game::board::MAX_EXPONENT;
pub use exact2048_game::packed::LegalMoves;
use exact2048_game::packed::PackedRules;
use exact2048_game::{Board, BoardSize, Spawn4};
use rand::Rng;

/// The game on boards of one size.
#[derive(Clone, Debug)]
pub struct Engine {
    packed: PackedRules,
    spawn4: Spawn4,
}

impl Engine {
    /// Builds tables with the moves of all possible lines of up to four cells: 65,536 lines of four cells.
    #[must_use]
    pub fn new(size: BoardSize, spawn4: Spawn4) -> Self {
        Self { packed: PackedRules::new(size), spawn4 }
    }

    /// The size of the boards.
    #[must_use]
    pub fn size(&self) -> BoardSize {
        self.packed.size()
    }

    /// The rules on packed boards.
    #[inline]
    #[must_use]
    pub fn packed(&self) -> &PackedRules {
        &self.packed
    }

    /// Returns a copy of the engine with another probability of a 4.
    #[must_use]
    pub fn with_spawn4(&self, spawn4: Spawn4) -> Self {
        Self { spawn4, ..self.clone() }
    }

    /// Probability that a spawned tile is a 4.
    #[must_use]
    pub fn spawn4(&self) -> Spawn4 {
        self.spawn4
    }

    /// All legal moves. Costs a few tens of nanoseconds.
    #[inline]
    #[must_use]
    pub fn moves(&self, board: Board) -> LegalMoves {
        self.packed.moves(board)
    }

    /// Number of empty cells.
    #[inline]
    #[must_use]
    pub fn empty_cells(&self, board: Board) -> u32 {
        self.empty(board).count_ones()
    }

    /// Mask with the lowest bit of each empty cell set.
    #[inline]
    #[must_use]
    pub fn empty(&self, board: Board) -> u64 {
        self.packed.empty(board)
    }

    /// Returns a board without tiles, with the loose stones in random cells.
    pub fn without_tiles(&self, generator: &mut impl Rng) -> Board {
        (0..self.size().loose()).fold(Board::default(), |board, _| {
            board.with(self.random_empty_cell(board, generator) as usize, MAX_EXPONENT)
        })
    }

    #[inline]
    fn random_empty_cell(&self, board: Board, generator: &mut impl Rng) -> u32 {
        let empty = self.empty(board);
        let skipped = generator.random_range(0..empty.count_ones());
        (0..skipped).fold(empty, |rest, _| rest & (rest - 1)).trailing_zeros() / 4
    }

    /// Spawns a random tile in a random empty cell, and returns the new board, the cell and the tile's exponent.
    ///
    /// The board must have an empty cell.
    #[inline]
    pub fn spawn(&self, board: Board, generator: &mut impl Rng) -> (Board, u8, u8) {
        let cell = self.random_empty_cell(board, generator);
        let four = generator.random_range(0..self.spawn4.denominator()) < self.spawn4.weight4();
        let exponent = 1 + u8::from(four);
        (Board(board.0 | u64::from(exponent) << (4 * cell)), cell as u8, exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::rules::{Move, make_move};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn moves_are_those_of_the_rules() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        for size in ["2x2", "3x2", "2x3", "3x3", "4x3", "4x4", "1x5", "8x2", "2x8"] {
            let size: BoardSize = size.parse().unwrap();
            let engine = Engine::new(size, Spawn4::default());
            for _ in 0..2_000 {
                let largest = generator.random_range(1..15u8);
                let board = (0..size.cells()).fold(Board::default(), |board, cell| {
                    board.with(cell, generator.random_range(0..=largest))
                });
                let moves = engine.moves(board);
                for direction in Move::ALL {
                    let want = make_move(board, direction, size);
                    assert_eq!(
                        moves.get(direction),
                        want,
                        "{size} {} {}",
                        board.to_text(size),
                        direction.name()
                    );
                }
                assert_eq!(
                    engine.empty_cells(board),
                    (0..size.cells()).filter(|&c| board.get(c) == 0).count() as u32
                );
            }
        }
    }

    #[test]
    fn spawns_are_as_likely_as_they_should_be() {
        let engine = Engine::new("2x2".parse().unwrap(), "1/4".parse().unwrap());
        let mut generator = ChaCha8Rng::seed_from_u64(2);
        let mut seen = [[0u32; 2]; 4];
        for _ in 0..30_000 {
            let (board, cell, exponent) = engine.spawn(Board(0x0030), &mut generator);
            assert_eq!(board.get(usize::from(cell)), exponent);
            seen[usize::from(cell)][usize::from(exponent) - 1] += 1;
        }
        assert_eq!(seen[1], [0, 0], "taken");
        for cell in [0, 2, 3] {
            assert!((7_300..7_700).contains(&seen[cell][0]), "{seen:?}");
            assert!((2_350..2_650).contains(&seen[cell][1]), "{seen:?}");
        }
    }
}
