//! Players, one in each file, and their names.

mod canonical;
mod command;
mod corner;
mod expectimax;
mod greedy;
mod linear_paths;
mod minimax;
mod monte_carlo;
mod perfect;
mod random;
mod spec;
mod win_fraction;

use exact2048_game::Board;
use exact2048_game::rules::Move;
use exact2048_solution::QueryError;
use rand_chacha::ChaCha8Rng;

use crate::engine::{Engine, LegalMoves};

pub use command::CommandError;
pub use corner::{Corner, CornerParams};
pub use expectimax::ExpectimaxParams;
pub use linear_paths::LinearPathsParams;
pub use spec::{Decides, PlayerSpec, SpecError};
pub use win_fraction::RandomGameCount;

/// Input of a player's decision. At least one move is legal.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The game.
    pub engine: &'a Engine,
    /// The board.
    pub board: Board,
    /// Legal moves of the board.
    pub moves: &'a LegalMoves,
    /// Whether a move that changes nothing is allowed while a cell is empty: see
    /// [`Rules::of_the_paper`](crate::Rules::of_the_paper).
    pub takes_idle_moves: bool,
    /// Random numbers for the player's choices. Only this game's player uses them, so the same seed gives the same game.
    pub generator: &'a mut ChaCha8Rng,
}

/// A player. One object plays several games in sequence.
pub trait Player: Send {
    /// Begins a game.
    ///
    /// # Errors
    ///
    /// If the player cannot play the game.
    fn begin(&mut self, _engine: &Engine) -> Result<(), PlayerError> {
        Ok(())
    }

    /// The move to make, which must be legal.
    ///
    /// # Errors
    ///
    /// If the player cannot choose a move. The game then ends.
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError>;

    /// Ends the game.
    fn end(&mut self, _score: u64) {}
}

/// Error that ends a game early.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The external program failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The run could not answer for the board.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The chosen move changes nothing.
    #[error("expected a legal move on {board}, found {}", direction.name())]
    Illegal {
        /// The move.
        direction: Move,
        /// The board.
        board: String,
    },
}
