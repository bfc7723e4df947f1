//! How much a player loses against perfect play.
//!
//! Where a player's moves follow from the board alone, or are even lots, [`exactly`] goes through all boards that it can
//! come to. Any other player is [`sampled`]. Both say what each move lost: the value of the board less the value of
//! making the move, both under perfect play from there on.

mod exact;
mod losses;
mod sample;

use exact2048_solution::QueryError;

use crate::player::PlayerError;

pub use exact::{EvaluationLimits, EvaluationProgress, ExactEvaluation, exactly};
pub use losses::{LossTable, Losses, SIZES, Worst};
pub use sample::{Sample, sampled};

/// Why a player could not be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The run does not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The player does not.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// The boards of a few layers take too much memory.
    #[error(
        "the player comes to more boards than memory holds: those up to layer {layer} take {bytes} bytes at once, and {limit} are allowed"
    )]
    Memory {
        /// The layer.
        layer: u32,
        /// Bytes that are taken.
        bytes: u64,
        /// Bytes that may be taken.
        limit: u64,
    },
}
