//! What is said of a state.

use exact2048_game::board::Board;
use exact2048_solution::{Advice, Evaluation};

/// What is said of a state.
#[derive(Clone)]
pub enum StateAnswer {
    /// Its value and that of each of its moves.
    Values(Evaluation),
    /// A best move alone, of a run that stores these.
    BestMove(Advice),
}

impl StateAnswer {
    /// The board, its canonical image and the sum of its tiles.
    pub fn state(&self) -> (Board, Board, u32) {
        match self {
            Self::Values(of) => (of.board, of.canonical, of.layer.0),
            Self::BestMove(of) => (of.board, of.canonical, of.layer.0),
        }
    }
}
