//! A best move, by a solved run.

use std::sync::Arc;

use exact2048_game::rules::Move;
use exact2048_solution::Oracle;

use super::{Player, PlayerError, Turn};

/// Looks every move up. Among moves of equal value it takes the first.
pub struct Perfect(pub Arc<Oracle>);

impl Player for Perfect {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let best = self.0.evaluate(turn.board, &|| true)?.best;
        Ok(best.unwrap_or_else(|| turn.moves.iter().next().expect("a move is legal").0))
    }
}
