//! The move that merges the largest number of pairs.

use exact2048_game::rules::Move;

use super::{Player, PlayerError, Turn};

/// Takes the move that merges the largest number of pairs, and so leaves the largest number of empty cells.
///
/// Ties go to the move with the highest score, then to the first move.
pub struct Greedy;

impl Player for Greedy {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let worth = |board, score| (turn.engine.empty_cells(board), score);
        let best = turn
            .moves
            .iter()
            .reduce(|best, other| if worth(other.1, other.2) > worth(best.1, best.2) { other } else { best });
        Ok(best.expect("a move is legal").0)
    }
}
