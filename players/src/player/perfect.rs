//! A best move, by a solved run.

use std::sync::Arc;

use exact2048_game::rules::Move;
use exact2048_solution::Oracle;

use super::{Player, PlayerError, Turn};

/// Looks every move up: where the run stores best moves there, else by their values, of equal ones the first.
pub struct Perfect(pub Arc<Oracle>);

impl Player for Perfect {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let best = if self.0.params().best_moves {
            self.0.advise(turn.board)?.best
        } else {
            self.0.evaluate(turn.board, &|| true)?.best
        };
        Ok(best.unwrap_or_else(|| turn.moves.iter().next().expect("a move is legal").0))
    }
}
