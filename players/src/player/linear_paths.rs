//! Tiles weighted along snakes through the board.

use exact2048_game::Board;
use exact2048_game::board::tile;
use exact2048_game::rules::Move;

use super::corner::{Corner, snake};
use super::{Player, PlayerError, Turn};
use crate::engine::{Engine, LegalMoves};

/// Values a board by its best path, and looks some moves ahead.
///
/// The value of a path is the sum of the tiles along a snake, each weighted by a power of a ratio. The search assumes that
/// each spawn is a 2 in the first empty cell of the best path.
///
/// The value of a move is the value of the board after it, plus a discounted value of the best next move. The discount is
/// 0.9 raised to the number of moves made. A board without a legal move has value −1.
///
/// Source: N. Pezzotti (diaryofatinker.blogspot.com, 2014). The source gives ratio 1/4, depth 3, and either eight paths or
/// the two paths from one corner.
pub struct LinearPaths {
    params: LinearPathsParams,
    paths: Vec<Path>,
}

/// A path: its cells in order from the corner, and their weights.
type Path = Vec<(u8, f64)>;

/// Parameters of linear paths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinearPathsParams {
    /// Whether to use the eight paths from all corners, or only the two paths from the top left.
    pub all_corners: bool,
    /// Ratio of a cell's weight to the weight of the previous cell.
    pub ratio: f64,
    /// Number of moves to look ahead after the first.
    pub depth: u32,
}

/// Discount per move ahead.
const BASE: f64 = 0.9;
/// Value of a board without a legal move.
const LOST: f64 = -1.0;

impl LinearPaths {
    /// Builds the weighted paths of a board size.
    pub fn new(engine: &Engine, params: LinearPathsParams) -> Self {
        let weighted = |cells: Vec<u8>| {
            let weights = std::iter::successors(Some(1.0), |weight| Some(weight * params.ratio));
            cells.into_iter().zip(weights).collect::<Path>()
        };
        let corners = if params.all_corners { &Corner::ALL[..] } else { &Corner::ALL[..1] };
        let paths = corners
            .iter()
            .flat_map(|&corner| [true, false].map(|by_rows| weighted(snake(engine, corner, by_rows))))
            .collect();
        Self { params, paths }
    }

    /// The value of the best path, and the first empty cell on this path.
    fn best_path(&self, board: Board) -> (f64, Option<u8>) {
        let worth = |path: &Path| -> f64 {
            path.iter().map(|&(cell, weight)| f64::from(tile(board.get(usize::from(cell)))) * weight).sum()
        };
        let mut best = (f64::NEG_INFINITY, None);
        for path in &self.paths {
            let value = worth(path);
            if value > best.0 {
                let empty = path.iter().find(|&&(cell, _)| board.get(usize::from(cell)) == 0);
                best = (value, empty.map(|&(cell, _)| cell));
            }
        }
        best
    }

    /// The best move and its value; `None` if no move is legal. The search continues for `further` moves.
    fn best_move(&self, engine: &Engine, moves: &LegalMoves, further: u32) -> (f64, Option<Move>) {
        let mut best = (LOST, None);
        for (direction, after, _) in moves.iter() {
            let (mut value, empty) = self.best_path(after);
            if further > 0 {
                let spawned = empty.map_or(after, |cell| after.with(usize::from(cell), 1));
                let made = self.params.depth - further + 1;
                let discount = (0..made).fold(1.0, |product, _| product * BASE);
                value += self.best_move(engine, &engine.moves(spawned), further - 1).0 * discount;
            }
            if best.1.is_none() || value > best.0 {
                best = (value, Some(direction));
            }
        }
        best
    }
}

impl Player for LinearPaths {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let (_, best) = self.best_move(turn.engine, turn.moves, self.params.depth);
        Ok(best.expect("a move is legal"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_weighted_from_their_corner() {
        let engine = Engine::new("2x2".parse().unwrap(), Default::default());
        let board = Board::parse("4 8 / 0 2", engine.size()).unwrap();
        let player =
            |all_corners| LinearPaths::new(&engine, LinearPathsParams { all_corners, ratio: 0.5, depth: 0 });
        // By rows from the top left: 4 + 8/2 + 2/4 + 0/8; by columns 4 + 0/2 + 2/4 + 8/8.
        assert_eq!(player(false).best_path(board), (8.5, Some(2)));
        // From the top right by rows: 8 + 4/2 + 0/4 + 2/8; by columns: 8 + 2/2 + 0/4 + 4/8.
        assert_eq!(player(true).best_path(board), (10.25, Some(2)));
    }
}
