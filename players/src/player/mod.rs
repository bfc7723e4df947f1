//! Players, one in a file, and how they are named.

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
pub use linear_paths::LinearPathsParams;
pub use spec::{Decides, ExpectimaxParams, PlayerSpec, SpecError};
pub use win_fraction::RandomGameCount;

/// What a player sees when it is to move. At least one move is legal.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The game.
    pub engine: &'a Engine,
    /// The board.
    pub board: Board,
    /// Its legal moves.
    pub moves: &'a LegalMoves,
    /// Whether a move may be chosen that changes nothing, while there is an empty cell: see
    /// [`Rules::of_the_paper`](crate::Rules::of_the_paper).
    pub takes_idle_moves: bool,
    /// For players that draw lots: of this game and player alone, so that the same seed gives the same game.
    pub generator: &'a mut ChaCha8Rng,
}

/// Somebody who plays. One object plays one game after another.
pub trait Player: Send {
    /// A game begins.
    ///
    /// # Errors
    ///
    /// If the player cannot play it.
    fn begin(&mut self, _engine: &Engine) -> Result<(), PlayerError> {
        Ok(())
    }

    /// The move to make, which must be legal.
    ///
    /// # Errors
    ///
    /// If the player has none: its game is over then.
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError>;

    /// The game is over.
    fn end(&mut self, _score: u64) {}
}

/// Why a game could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The program that plays did not answer as it should.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The run does not know the board.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A move was chosen that changes nothing.
    #[error("{} changes nothing on {board}", direction.name())]
    Illegal {
        /// The move.
        direction: Move,
        /// The board.
        board: String,
    },
}
