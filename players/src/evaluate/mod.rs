//! Loss of a player against perfect play.
//!
//! If a player's moves follow from the board alone, or are uniformly random, [`exactly`] visits all boards that the player
//! can reach. For any other player, [`sampled`] plays games. Both report the loss of each move. The loss is the value of
//! the board minus the value of making the move, with perfect play afterwards.

mod exact;
mod losses;
mod sample;

use exact2048_solution::QueryError;

use crate::player::PlayerError;

pub use exact::{EvaluationLimits, EvaluationProgress, ExactEvaluation, exactly};
pub use losses::{LossTable, Losses, SIZES, WorstMove};
pub use sample::{Sample, sampled};

/// Error of an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The run could not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The player failed.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// The boards of a few layers exceed the memory limit.
    #[error(
        "expected at most {limit} bytes for the boards that the player reaches, found {bytes} at layer {layer}; raise \
         the limit"
    )]
    Memory {
        /// The layer.
        layer: u32,
        /// Bytes needed.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
}
