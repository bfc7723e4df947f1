//! Players of 2048: a fast engine ([`Engine`]), players from random to perfect ([`PlayerSpec`]), and statistics of many
//! games ([`Stats`]). `docs/players.md` describes each player and its source.
//!
//! A game depends only on its seed and its number, not on the threads.

mod engine;
pub mod evaluate;
mod game;
mod many;
mod player;
mod stats;
mod symmetry;

pub use engine::{Engine, LegalMoves};
pub use game::{EarlyEnd, GameId, GameRecord, PlayedGame, PlayedMove, Rules, play};
pub use many::{ManyGames, StepOutcome};
pub use player::{
    CommandError, Corner, CornerParams, Decides, ExpectimaxParams, LinearPathsParams, Player, PlayerError,
    PlayerSpec, RandomGameCount, SpecError, Turn,
};
pub use stats::{Stats, WonShare};
pub use symmetry::Image;
