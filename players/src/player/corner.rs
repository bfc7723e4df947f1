//! A player that compares boards with a model, and avoids one direction. In the model, the largest tile is in a corner.

use std::fmt;

use exact2048_game::Board;
use exact2048_game::board::tile;
use exact2048_game::rules::Move;

use super::{Player, PlayerError, Turn};
use crate::engine::Engine;

/// Takes the move after which the board is nearest to the board's model.
///
/// The model has the board's tiles in descending order along a snake that begins in a corner. The player takes the
/// direction away from the first line of the snake only if no other direction is legal.
///
/// The distance of a board from its model is the sum over cells of the absolute difference of the two tiles. Before it
/// computes the distance, the player places a 2 in the last empty cell of the snake, where it expects the next tile.
/// Ties go to the move that leaves the largest number of empty cells, then to the first move.
///
/// Source: the answer with a "model chosen by default" and a "forbidden move" at stackoverflow.com/questions/22342854.
/// The answer gives the idea, but does not define the distance, or when the model changes.
pub struct CornerModel {
    params: CornerParams,
    /// Cells in order from the corner.
    snake: Vec<u8>,
}

/// Parameters of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CornerParams {
    /// The intended place of the largest tile.
    pub corner: Corner,
    /// The avoided direction, away from the corner.
    pub forbidden: Move,
}

/// A corner of the board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corner {
    /// Whether the corner is at the bottom.
    pub bottom: bool,
    /// Whether the corner is on the right.
    pub right: bool,
}

impl Corner {
    /// All corners.
    pub const ALL: [Corner; 4] = [
        Corner { bottom: false, right: false },
        Corner { bottom: false, right: true },
        Corner { bottom: true, right: false },
        Corner { bottom: true, right: true },
    ];

    /// The two directions away from the corner: along a column, and along a row.
    #[must_use]
    pub fn away(self) -> [Move; 2] {
        [if self.bottom { Move::Up } else { Move::Down }, if self.right { Move::Left } else { Move::Right }]
    }
}

impl fmt::Display for Corner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (row, column) =
            (if self.bottom { "bottom" } else { "top" }, if self.right { "right" } else { "left" });
        write!(f, "{row}-{column}")
    }
}

impl CornerModel {
    /// Creates a model for boards of the engine's size.
    pub fn new(engine: &Engine, params: CornerParams) -> Self {
        let by_rows = matches!(params.forbidden, Move::Up | Move::Down);
        Self { params, snake: snake(engine, params.corner, by_rows) }
    }

    /// Adds the expected next tile to a board, and returns the board's distance from its model.
    fn distance(&self, mut board: Board) -> u32 {
        let expected = self.snake.iter().rev().find(|&&cell| board.get(usize::from(cell)) == 0);
        if let Some(&cell) = expected {
            board = board.with(usize::from(cell), 1);
        }
        let mut tiles = [0; 16];
        for (place, &cell) in tiles.iter_mut().zip(&self.snake) {
            *place = tile(board.get(usize::from(cell)));
        }
        let mut model = tiles;
        model.sort_unstable_by(|a, b| b.cmp(a));
        tiles.iter().zip(model).map(|(&tile, wanted)| tile.abs_diff(wanted)).sum()
    }
}

/// All cells in order from a corner, line by line in alternating directions.
pub fn snake(engine: &Engine, corner: Corner, by_rows: bool) -> Vec<u8> {
    let (rows, cols) = (engine.size().rows(), engine.size().cols());
    let (lines, length) = if by_rows { (rows, cols) } else { (cols, rows) };
    let (last_line_first, last_cell_first) =
        if by_rows { (corner.bottom, corner.right) } else { (corner.right, corner.bottom) };
    let turned = |at: usize, count: usize, reversed: bool| if reversed { count - 1 - at } else { at };
    (0..lines * length)
        .map(|at| {
            let (line, cell) = (at / length, at % length);
            let (line, cell) = (
                turned(line, lines, last_line_first),
                turned(cell, length, last_cell_first != (line % 2 == 1)),
            );
            (if by_rows { line * cols + cell } else { cell * cols + line }) as u8
        })
        .collect()
}

impl Player for CornerModel {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let worst_first = |after| (self.distance(after), std::cmp::Reverse(turn.engine.empty_cells(after)));
        let allowed = turn.moves.iter().filter(|&(direction, ..)| direction != self.params.forbidden);
        let best = allowed.min_by_key(|&(_, after, _)| worst_first(after));
        Ok(best.map_or(self.params.forbidden, |(direction, ..)| direction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(size: &str) -> Engine {
        Engine::new(size.parse().unwrap(), Default::default())
    }

    #[test]
    fn snakes_begin_in_their_corner_and_turn() {
        let [top_left, top_right, bottom_left, _] = Corner::ALL;
        assert_eq!(snake(&engine("2x3"), top_left, true), [0, 1, 2, 5, 4, 3]);
        assert_eq!(snake(&engine("2x3"), top_left, false), [0, 3, 4, 1, 2, 5]);
        assert_eq!(snake(&engine("3x2"), top_right, true), [1, 0, 2, 3, 5, 4]);
        assert_eq!(snake(&engine("2x2"), bottom_left, false), [2, 0, 1, 3]);
    }

    #[test]
    fn a_board_that_is_its_model_is_at_distance_0() {
        let params = CornerParams { corner: Corner::ALL[0], forbidden: Move::Down };
        let model = CornerModel::new(&engine("3x3"), params);
        let parsed = |text: &str| Board::parse(text, "3x3".parse().unwrap()).unwrap();
        assert_eq!(
            model.distance(parsed("64 32 16 / 2 4 8 / 2 0 0")),
            4,
            "the expected 2 is not in place yet"
        );
        assert_eq!(model.distance(parsed("64 32 16 / 2 4 8 / 2 2 0")), 0);
        assert_eq!(model.distance(parsed("32 64 16 / 2 4 8 / 2 2 0")), 64);
    }
}
