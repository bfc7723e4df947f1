//! The move with the highest expected value of a heuristic.

use exact2048_game::Board;
use exact2048_game::packed::transposed;
use exact2048_game::rules::Move;
use rustc_hash::FxHashMap;

use super::{Player, PlayerError, Turn};
use crate::engine::Engine;

/// Parameters of expectimax.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExpectimaxParams {
    /// Number of moves and spawns to look ahead. With `None`, the search is deeper on boards with more different tiles.
    pub depth: Option<u32>,
    /// The search ends a path if the probability of its spawns is below this cutoff.
    pub cutoff: f32,
}

/// Looks some moves ahead over all moves and spawns, and takes the move with the highest expected value of a heuristic.
///
/// The search ends a path early if the path is less likely than a cutoff. Each search caches the values of its boards.
///
/// The heuristic is the sum of values of all rows and columns. Tables hold these values. The form and the constants of
/// the heuristic are from R. Xiao's program (github.com/nneonneo/2048-ai). The program's author found the constants by
/// optimisation.
pub struct Expectimax {
    params: ExpectimaxParams,
    /// Heuristic of each possible row; the index is the row's bits.
    rows: Vec<f32>,
    /// Heuristic of each possible column; the index is the column's bits.
    columns: Vec<f32>,
    /// Cached boards before a spawn, with their search depth and value.
    known: FxHashMap<Board, (u32, f32)>,
}

/// Base value of each line. It ranks every continuing game above a lost game of value 0.
const ALIVE: f32 = 200_000.0;
const EMPTY_WEIGHT: f32 = 270.0;
const MERGES_WEIGHT: f32 = 700.0;
const MONOTONICITY_WEIGHT: f32 = 47.0;
const SUM_WEIGHT: f32 = 11.0;

impl Expectimax {
    /// Builds the tables of the heuristic.
    pub fn new(engine: &Engine, params: ExpectimaxParams) -> Self {
        let size = engine.size();
        Self { params, rows: table(size.cols()), columns: table(size.rows()), known: FxHashMap::default() }
    }

    /// The value of a board after a move, before the spawn. `likely` is the probability of the path to this board.
    fn before_spawn(&mut self, engine: &Engine, board: Board, depth: u32, likely: f32) -> f32 {
        if depth == 0 || likely < self.params.cutoff {
            return self.heuristic(engine, board);
        }
        if let Some(&(searched, value)) = self.known.get(&board)
            && searched >= depth
        {
            return value;
        }
        let share = 1.0 / engine.empty_cells(board) as f32;
        let four = engine.spawn4().probability() as f32;
        let (mut value, mut empty) = (0.0, engine.empty(board));
        while empty != 0 {
            let cell = empty & empty.wrapping_neg();
            empty ^= cell;
            for (exponent, chance) in [(1, 1.0 - four), (2, four)] {
                if chance > 0.0 {
                    let spawned = Board(board.0 | (cell * exponent));
                    value += chance * self.before_move(engine, spawned, depth, likely * share * chance);
                }
            }
        }
        value *= share;
        self.known.insert(board, (depth, value));
        value
    }

    /// The value of a board before a move; 0 if the game is over.
    fn before_move(&mut self, engine: &Engine, board: Board, depth: u32, likely: f32) -> f32 {
        let moves = engine.moves(board);
        moves.iter().fold(0.0, |best: f32, (_, after, _)| {
            best.max(self.before_spawn(engine, after, depth - 1, likely))
        })
    }

    fn heuristic(&self, engine: &Engine, board: Board) -> f32 {
        let (rows, cols) = (engine.size().rows(), engine.size().cols());
        let across = transposed(board.0, rows, cols);
        in_lines(&self.rows, board.0, rows, cols) + in_lines(&self.columns, across, cols, rows)
    }
}

/// The sum of the values of the rows of a board.
#[inline]
fn in_lines(table: &[f32], board: u64, rows: usize, cols: usize) -> f32 {
    let line = |row: usize| (board >> (4 * cols * row)) as usize & ((1 << (4 * cols)) - 1);
    (0..rows).map(|row| look_up(table, line(row), cols)).sum()
}

impl Player for Expectimax {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        self.known.clear();
        let depth = self.params.depth.unwrap_or_else(|| depth_for(turn));
        let mut best = None;
        for (direction, board, _) in turn.moves.iter() {
            let value = self.before_spawn(turn.engine, board, depth, 1.0);
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, direction));
            }
        }
        Ok(best.expect("a move is legal").1)
    }
}

/// Search depth: three moves, or more on boards with more than five different tiles, because games are lost on such
/// boards.
fn depth_for(turn: &Turn<'_>) -> u32 {
    let kinds = (0..turn.engine.size().places()).fold(0u32, |seen, cell| seen | 1 << turn.board.get(cell));
    (kinds & !1).count_ones().saturating_sub(2).max(3)
}

/// Length of the longest lines in the tables.
const LONGEST_IN_TABLE: usize = 4;

fn table(length: usize) -> Vec<f32> {
    let size = if length <= LONGEST_IN_TABLE { 1usize << (4 * length) } else { 0 };
    (0..size).map(|line| of_line(line, length)).collect()
}

fn look_up(table: &[f32], line: usize, length: usize) -> f32 {
    table.get(line).copied().unwrap_or_else(|| of_line(line, length))
}

/// The heuristic of a line.
///
/// The heuristic rewards empty cells and equal neighbours. It penalises tiles that do not decrease towards one side,
/// and a large sum of e^3.5 over the exponents e.
fn of_line(line: usize, length: usize) -> f32 {
    let exponents = || (0..length).map(move |cell| (line >> (4 * cell)) as u8 & 15);
    let power = |exponent: u8| f32::from(exponent).powi(4);
    let (mut sum, mut empty, mut merges, mut run) = (0.0, 0.0, 0.0, 0u8);
    let mut previous = 0;
    for exponent in exponents() {
        // Computes e^3.5. A square root has the same bits on every machine; a fractional power need not.
        sum += f32::from(exponent).powi(3) * f32::from(exponent).sqrt();
        if exponent == 0 {
            empty += 1.0;
            continue;
        }
        if exponent == previous {
            run += 1;
        } else if run > 0 {
            merges += 1.0 + f32::from(run);
            run = 0;
        }
        previous = exponent;
    }
    if run > 0 {
        merges += 1.0 + f32::from(run);
    }
    let (mut falling, mut rising) = (0.0, 0.0);
    for (left, right) in exponents().zip(exponents().skip(1)) {
        let difference = power(left) - power(right);
        if difference > 0.0 { falling += difference } else { rising -= difference }
    }
    ALIVE + EMPTY_WEIGHT * empty + MERGES_WEIGHT * merges
        - MONOTONICITY_WEIGHT * f32::min(falling, rising)
        - SUM_WEIGHT * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_lines_follow_from_the_constants() {
        assert_eq!(of_line(0, 4), ALIVE + 4.0 * EMPTY_WEIGHT);
        let two_equal = of_line(0x0011, 4);
        assert_eq!(two_equal, ALIVE + 2.0 * EMPTY_WEIGHT + 2.0 * MERGES_WEIGHT - 2.0 * SUM_WEIGHT);
        assert!(of_line(0x4321, 4) > of_line(0x4132, 4), "tiles that fall to one side are worth more");
    }
}
