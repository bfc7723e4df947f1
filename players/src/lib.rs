//! Players of 2048: a fast engine ([`Engine`]), players from random to perfect ([`PlayerSpec`]), and what comes of many
//! games ([`Stats`]). `docs/players.md` says what each player does and where it is from.
//!
//! Games depend on the seed and their number alone, whatever threads play them.

mod engine;
pub mod evaluate;
mod game;
mod many;
mod player;
mod stats;
mod symmetry;

pub use engine::{Engine, LegalMoves};
pub use game::{CutShort, GameId, GameRecord, PlayedGame, PlayedMove, Rules, play};
pub use many::{ManyGames, StepOutcome};
pub use player::{
    CommandError, Corner, CornerParams, Decides, ExpectimaxParams, LinearPathsParams, Player, PlayerError,
    PlayerSpec, RandomGameCount, SpecError, Turn,
};
pub use stats::{Stats, WonShare};
pub use symmetry::Image;
