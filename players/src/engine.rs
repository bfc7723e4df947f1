//! The rules at speed: whole lines by table.

use exact2048_game::rules::Move;
use exact2048_game::{Board, BoardSize, Spawn4};
use rand::Rng;

/// What sliding a line does, in both directions. The score is the same in both: it counts the pairs in each run of
/// equal tiles.
#[derive(Clone, Copy, Debug, Default)]
struct Slid {
    /// Towards the first cell, the lowest four bits.
    first: u32,
    /// Towards the last cell.
    last: u32,
    score: u32,
}

/// Lines of one length.
#[derive(Clone, Debug)]
struct Lines {
    length: usize,
    /// By the line's bits; empty where a table would be too large, and lines are slid one by one.
    table: Vec<Slid>,
}

/// Longest line that has a table: 65,536 lines.
const LONGEST_IN_TABLE: usize = 4;

impl Lines {
    fn new(length: usize) -> Self {
        let size = if length <= LONGEST_IN_TABLE { 1u32 << (4 * length) } else { 0 };
        Self { length, table: (0..size).map(|line| slide_both(line, length)).collect() }
    }

    #[inline]
    fn slid(&self, line: u32) -> Slid {
        self.table.get(line as usize).copied().unwrap_or_else(|| slide_both(line, self.length))
    }
}

fn slide_both(line: u32, length: usize) -> Slid {
    let reversed = |line: u32| (0..length).fold(0, |r, cell| r << 4 | (line >> (4 * cell) & 15));
    let (first, score) = slide(line, length);
    let (last, _) = slide(reversed(line), length);
    Slid { first, last: reversed(last), score }
}

/// Slides a line towards its first cell. Two 32,768s do not merge: 65,536 does not fit four bits.
fn slide(line: u32, length: usize) -> (u32, u32) {
    let (mut slid, mut taken, mut resting, mut score) = (0u32, 0, 0, 0);
    for exponent in (0..length).map(|cell| line >> (4 * cell) & 15).filter(|&e| e != 0) {
        if exponent == resting && exponent < 15 {
            slid += 1 << (4 * (taken - 1));
            score += 2 << exponent;
            resting = 0;
        } else {
            slid |= exponent << (4 * taken);
            taken += 1;
            resting = exponent;
        }
    }
    (slid, score)
}

/// The legal moves of a board, by [`Move`]: each with the afterstate and its score.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moves([Option<(Board, u32)>; 4]);

impl Moves {
    /// Afterstate and score of a move, where it is legal.
    #[inline]
    #[must_use]
    pub fn get(&self, direction: Move) -> Option<(Board, u32)> {
        self.0[direction as usize]
    }

    /// The legal moves, in the order in which ties are broken.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Move, Board, u32)> + '_ {
        Move::ALL
            .into_iter()
            .zip(&self.0)
            .filter_map(|(direction, made)| made.map(|(to, score)| (direction, to, score)))
    }

    /// Whether no move is legal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// The game on boards of one size.
#[derive(Clone, Debug)]
pub struct Engine {
    size: BoardSize,
    spawn4: Spawn4,
    rows: Lines,
    columns: Lines,
    /// The lowest bit of each cell.
    cells: u64,
}

impl Engine {
    /// Tables for a size: 65,536 lines of each length up to 4.
    #[must_use]
    pub fn new(size: BoardSize, spawn4: Spawn4) -> Self {
        Self {
            size,
            spawn4,
            rows: Lines::new(size.cols()),
            columns: Lines::new(size.rows()),
            cells: (0..size.cols() * size.rows()).fold(0, |bits, cell| bits | 1 << (4 * cell)),
        }
    }

    /// The size of the boards.
    #[must_use]
    pub fn size(&self) -> BoardSize {
        self.size
    }

    /// The same boards with another chance of a 4.
    #[must_use]
    pub fn with_spawn4(&self, spawn4: Spawn4) -> Self {
        Self { spawn4, ..self.clone() }
    }

    /// How likely a spawned tile is a 4.
    #[must_use]
    pub fn spawn4(&self) -> Spawn4 {
        self.spawn4
    }

    /// All legal moves. Costs some tens of nanoseconds.
    #[inline]
    #[must_use]
    pub fn moves(&self, board: Board) -> Moves {
        // With sides that the compiler knows, loops over them are unrolled.
        match (self.size.rows(), self.size.cols()) {
            (3, 3) => self.moves_on(board, 3, 3),
            (4, 4) => self.moves_on(board, 4, 4),
            (rows, cols) => self.moves_on(board, rows, cols),
        }
    }

    #[inline(always)]
    fn moves_on(&self, board: Board, rows: usize, cols: usize) -> Moves {
        let [left, right, score] = slide_rows(board.0, rows, cols, &self.rows);
        let across = transposed(board.0, rows, cols);
        let [up, down, score_across] = slide_rows(across, cols, rows, &self.columns);
        let back = |across: u64| transposed(across, cols, rows);
        let made = |after: u64, score: u64| (after != board.0).then_some((Board(after), score as u32));
        Moves([
            made(left, score),
            made(right, score),
            made(back(up), score_across),
            made(back(down), score_across),
        ])
    }

    /// Number of empty cells.
    #[inline]
    #[must_use]
    pub fn empty_cells(&self, board: Board) -> u32 {
        self.empty(board).count_ones()
    }

    /// The lowest bit of each empty cell.
    #[inline]
    #[must_use]
    pub fn empty(&self, board: Board) -> u64 {
        let b = board.0 | board.0 >> 1;
        !(b | b >> 2) & self.cells
    }

    /// A board with a random tile in a random empty cell, of which there must be one; gives the cell and the exponent
    /// too.
    #[inline]
    pub fn spawn(&self, board: Board, generator: &mut impl Rng) -> (Board, u8, u8) {
        let empty = self.empty(board);
        let skipped = generator.random_range(0..empty.count_ones());
        let rest = (0..skipped).fold(empty, |rest, _| rest & (rest - 1));
        let four = generator.random_range(0..self.spawn4.denominator()) < self.spawn4.weight4();
        let (cell, exponent) = (rest.trailing_zeros() / 4, 1 + u8::from(four));
        (Board(board.0 | u64::from(exponent) << (4 * cell)), cell as u8, exponent)
    }

    /// Exponent of the largest tile.
    #[must_use]
    pub fn largest(&self, board: Board) -> u8 {
        (0..self.size.cells()).map(|cell| board.get(cell)).max().unwrap_or(0)
    }
}

/// Slides every row: towards the first cell, towards the last, and the score.
#[inline(always)]
fn slide_rows(board: u64, rows: usize, cols: usize, lines: &Lines) -> [u64; 3] {
    let bits = 4 * cols;
    let mask = (1u64 << bits) - 1;
    let (mut first, mut last, mut score) = (0, 0, 0);
    for row in 0..rows {
        let slid = lines.slid((board >> (bits * row) & mask) as u32);
        first |= u64::from(slid.first) << (bits * row);
        last |= u64::from(slid.last) << (bits * row);
        score += u64::from(slid.score);
    }
    [first, last, score]
}

/// Rows become columns.
#[inline(always)]
pub(crate) fn transposed(board: u64, rows: usize, cols: usize) -> u64 {
    if (rows, cols) == (4, 4) {
        // Swap the off-diagonal cells of each 2×2 square, then the off-diagonal squares.
        let swapped = (board ^ board >> 12) & 0x0000_f0f0_0000_f0f0;
        let board = board ^ swapped ^ swapped << 12;
        let swapped = (board ^ board >> 24) & 0x0000_0000_ff00_ff00;
        return board ^ swapped ^ swapped << 24;
    }
    if (rows, cols) == (3, 3) {
        // Swap the cells beside the diagonal, then the two corners off it.
        let swapped = (board ^ board >> 8) & 0x0_00f0_00f0;
        let board = board ^ swapped ^ swapped << 8;
        let swapped = (board ^ board >> 16) & 0x0_0000_0f00;
        return board ^ swapped ^ swapped << 16;
    }
    let mut across = 0;
    for row in 0..rows {
        for col in 0..cols {
            across |= (board >> (4 * (row * cols + col)) & 15) << (4 * (col * rows + row));
        }
    }
    across
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::rules::make_move;
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
    fn the_largest_tiles_do_not_merge() {
        let engine = Engine::new("2x2".parse().unwrap(), Spawn4::default());
        assert!(engine.moves(Board(0xffff)).is_empty());
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
