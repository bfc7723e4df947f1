//! The best move, from a solved run.

use std::sync::Arc;

use exact2048_game::rules::Move;
use exact2048_solution::Oracle;

use super::{Player, PlayerError, Turn};

/// Takes the best move: from the stored best moves if the run has them, else by value. Ties go to the first move.
pub struct Perfect(pub Arc<Oracle>);

impl Player for Perfect {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let best = if self.0.params().contents().stores_best_moves() {
            self.0.advise(turn.board)?.best
        } else {
            self.0.evaluate(turn.board, &|| true)?.best
        };
        Ok(best.unwrap_or_else(|| turn.moves.iter().next().expect("a move is legal").0))
    }
}
