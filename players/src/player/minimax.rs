//! The best move against adversarial spawns.

use exact2048_game::Board;
use exact2048_game::rules::{self, Move};

use super::{Player, PlayerError, Turn};
use crate::engine::{Engine, LegalMoves};

/// Takes the move with the best worst case by a heuristic.
///
/// An alpha-beta search over moves and spawns deepens until it has seen enough boards. It follows only the worst
/// spawns: the spawns that maximise the number of groups of equal tiles minus the smoothness of the board.
///
/// The heuristic after a move is 0.1 smoothness + monotonicity + 2.7 ln(empty cells) + the largest exponent.
///
/// The source is the program of M. Overlan (github.com/ovolve/2048-AI). Its search deepens for 100 ms. This search
/// counts boards instead, so the same board has the same move on every machine. In the source, a 2048 wins and ends the
/// search; this search continues after a 2048.
pub struct Minimax {
    /// Number of boards after which no deeper search begins.
    pub positions: u32,
}

const SMOOTH_WEIGHT: f64 = 0.1;
const EMPTY_WEIGHT: f64 = 2.7;
/// Value of a board without a legal move.
const LOST: f64 = -10_000.0;
/// Largest search depth in moves. With few legal moves, the limit on boards alone would allow a very deep search.
const DEEPEST: u32 = 32;

/// Natural logarithms of the numbers of empty cells. As constants, they have the same bits on every machine.
#[rustfmt::skip]
const LN: [f64; 17] = [
    f64::NEG_INFINITY, 0.0, std::f64::consts::LN_2, 1.098_612_288_668_109_8, 1.386_294_361_119_890_6,
    1.609_437_912_434_100_3, 1.791_759_469_228_055, 1.945_910_149_055_313_2, 2.079_441_541_679_835_7,
    2.197_224_577_336_219_6, std::f64::consts::LN_10, 2.397_895_272_798_370_7, 2.484_906_649_788_000_4,
    2.564_949_357_461_536_7, 2.639_057_329_615_258_4, 2.708_050_201_102_21, 2.772_588_722_239_781,
];

/// A search of one move.
struct Search<'a> {
    engine: &'a Engine,
    positions: u32,
}

impl Search<'_> {
    /// The value of a board before a move, and the best move. Tries `first` first.
    ///
    /// After each tried move, the search continues for `further` moves.
    fn before_move(
        &mut self,
        moves: &LegalMoves,
        further: u32,
        (mut alpha, beta): (f64, f64),
        first: Option<Move>,
    ) -> (f64, Option<Move>) {
        let mut best = (LOST, None);
        let in_order = moves.iter().filter(|&(direction, ..)| Some(direction) == first);
        let in_order = in_order.chain(moves.iter().filter(|&(direction, ..)| Some(direction) != first));
        for (direction, after, _) in in_order {
            self.positions += 1;
            let value = match further {
                0 => heuristic(self.engine, after),
                _ => self.before_spawn(after, further, (alpha, beta)),
            };
            if best.1.is_none() || value > best.0 {
                best = (value, Some(direction));
            }
            alpha = alpha.max(value);
            if alpha >= beta {
                break;
            }
        }
        best
    }

    /// The value of a board before a spawn.
    fn before_spawn(&mut self, after: Board, further: u32, (alpha, mut beta): (f64, f64)) -> f64 {
        let mut worst = f64::INFINITY;
        let spawns = spawns(self.engine, after)
            .map(|board| (board, -smoothness(self.engine, board) + groups(self.engine, board)));
        let spawns: Vec<_> = spawns.collect();
        let most = spawns.iter().map(|&(_, hurt)| hurt).fold(f64::NEG_INFINITY, f64::max);
        for (board, _) in spawns.into_iter().filter(|&(_, hurt)| hurt == most) {
            self.positions += 1;
            let moves = self.engine.moves(board);
            let (value, _) = self.before_move(&moves, further - 1, (alpha, beta), None);
            worst = worst.min(value);
            beta = beta.min(value);
            if alpha >= beta {
                break;
            }
        }
        worst
    }
}

/// All boards that a spawn can make: first with a 2, then with a 4.
fn spawns(engine: &Engine, after: Board) -> impl Iterator<Item = Board> {
    let size = engine.size();
    let with = move |exponent| rules::empty_cells(after, size).map(move |cell| after.with(cell, exponent));
    [1, 2].into_iter().flat_map(with)
}

impl Player for Minimax {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let mut search = Search { engine: turn.engine, positions: 0 };
        let mut best = None;
        for further in 0..DEEPEST {
            let window = (f64::NEG_INFINITY, f64::INFINITY);
            let (value, found) = search.before_move(turn.moves, further, window, best);
            if best.is_some() && value <= LOST {
                // At this depth, every move can lose. The move of the shallower search is more useful.
                break;
            }
            best = found;
            if search.positions >= self.positions {
                break;
            }
        }
        Ok(best.expect("a move is legal"))
    }
}

fn heuristic(engine: &Engine, board: Board) -> f64 {
    SMOOTH_WEIGHT * smoothness(engine, board)
        + monotonicity(engine, board)
        + EMPTY_WEIGHT * LN[engine.empty_cells(board) as usize]
        + f64::from(engine.size().largest(board))
}

/// The lines of a board as exponents: its rows from the left, or its columns from the top.
fn lines(engine: &Engine, board: Board, by_rows: bool) -> impl Iterator<Item = [u8; 8]> {
    let (rows, cols) = (engine.size().rows(), engine.size().cols());
    let (lines, length) = if by_rows { (rows, cols) } else { (cols, rows) };
    (0..lines).map(move |line| {
        let mut exponents = [0; 8];
        for (at, exponent) in exponents.iter_mut().enumerate().take(length) {
            *exponent = board.get(if by_rows { line * cols + at } else { at * cols + line });
        }
        exponents
    })
}

/// Minus the sum of the differences of exponents between adjacent tiles in rows and columns, skipping empty cells.
fn smoothness(engine: &Engine, board: Board) -> f64 {
    let mut sum = 0u32;
    for line in lines(engine, board, true).chain(lines(engine, board, false)) {
        let mut before = 0;
        for exponent in line.into_iter().filter(|&exponent| exponent != 0) {
            sum += if before == 0 { 0 } else { u32::from(exponent.abs_diff(before)) };
            before = exponent;
        }
    }
    -f64::from(sum)
}

/// Minus the sum of the falls of exponents along lines, or minus the sum of the rises, whichever sum is smaller.
///
/// Rows and columns are counted separately. As in the source, empty cells are skipped, except that an empty first or
/// last cell of a line counts as 0.
fn monotonicity(engine: &Engine, board: Board) -> f64 {
    let of = |by_rows: bool| {
        let length = if by_rows { engine.size().cols() } else { engine.size().rows() };
        let (mut fallen, mut risen) = (0, 0);
        for line in lines(engine, board, by_rows) {
            let mut before = line[0];
            for (at, &exponent) in line.iter().enumerate().take(length).skip(1) {
                if exponent == 0 && at + 1 < length {
                    continue;
                }
                fallen += u32::from(before.saturating_sub(exponent));
                risen += u32::from(exponent.saturating_sub(before));
                before = exponent;
            }
        }
        fallen.min(risen)
    };
    -f64::from(of(true) + of(false))
}

/// Number of connected groups of equal tiles.
fn groups(engine: &Engine, board: Board) -> f64 {
    let (rows, cols, places) = (engine.size().rows(), engine.size().cols(), engine.size().places());
    let mut left: u16 = (0..places).filter(|&cell| board.get(cell) != 0).fold(0, |set, cell| set | 1 << cell);
    let mut groups = 0u32;
    while left != 0 {
        groups += 1;
        let first = left.trailing_zeros() as usize;
        let mut open: u16 = 1 << first;
        left &= !open;
        while open != 0 {
            let cell = open.trailing_zeros() as usize;
            open &= open - 1;
            let (row, col) = (cell / cols, cell % cols);
            let neighbours = [
                (col > 0).then(|| cell - 1),
                (col + 1 < cols).then(|| cell + 1),
                (row > 0).then(|| cell - cols),
                (row + 1 < rows).then(|| cell + cols),
            ];
            for next in neighbours.into_iter().flatten() {
                if left >> next & 1 == 1 && board.get(next) == board.get(first) {
                    open |= 1 << next;
                    left &= !(1 << next);
                }
            }
        }
    }
    f64::from(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_heuristic_are_those_of_the_source() {
        let engine = Engine::new("3x3".parse().unwrap(), Default::default());
        let board = Board::parse("2 0 8 / 2 4 0 / 0 0 16", engine.size()).unwrap();
        // Adjacent exponents in rows: 1 and 3, 1 and 2. In columns: 1 and 1, 3 and 4.
        assert_eq!(smoothness(&engine, board), -(2.0 + 1.0 + 0.0 + 1.0));
        // Exponents of the rows are 1, 3; 1, 2, 0; 0, 4: the falls add up to 2, the rises to 2 + 1 + 4. Exponents of
        // the columns are 1, 1, 0; 0, 2, 0; 3, 4: the falls add up to 1 + 2, the rises to 2 + 1.
        assert_eq!(monotonicity(&engine, board), -(2.0 + 3.0));
        assert_eq!(groups(&engine, board), 4.0);
        let value = heuristic(&engine, board);
        assert_eq!(value, -0.1 * 4.0 - 5.0 + 2.7 * LN[4] + 4.0);
        for (number, ln) in LN.iter().enumerate() {
            assert!(number == 0 || (ln - (number as f64).ln()).abs() < 1e-15, "{number}");
        }
    }
}
