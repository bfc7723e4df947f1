//! Why a question has no answer.

use exact2048_cone::TooLarge;
use exact2048_game::Layer;
use exact2048_game::board::BoardError;
use exact2048_storage::ErrorKind;

use super::estimate::ConeEstimate;
use crate::read_error::{Blame, ReadError};
use crate::run::MissingValues;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The text is no board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The run does not reach the board.
    #[error("{board} is not reachable in this run{reason}")]
    Unreachable {
        /// The board.
        board: String,
        /// The reason, if the board itself shows it; else empty.
        reason: String,
    },
    /// The run is not solved yet.
    #[error(transparent)]
    MissingValues(#[from] MissingValues),
    /// A shard could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Computing the value takes more memory than allowed.
    #[error(
        "the value is not stored and cannot be computed: {0}; give more memory, choose a state nearer to the next \
         stored layers, or use a run that stores more layers"
    )]
    TooLarge(TooLarge),
    /// Computing the value takes longer than the question may take.
    #[error(
        "the value is not stored, and computing about {} states takes about {} s, with {} s left until the deadline; set \
         a longer deadline, choose a state nearer to the next stored layers, or use a run that stores more layers",
        .0.states, .0.time.as_secs() + 1, .0.left.as_secs()
    )]
    TooSlow(ConeEstimate),
    /// The run stores no best moves.
    #[error("the run stores values but no best moves; compare the values of the moves instead")]
    NoBestMoves,
    /// The run no longer stores which boards games reach in a layer.
    #[error(
        "the states of layer {0} are no longer stored, because the run removed them to save disk space; use a run of \
         the same job without a disk limit"
    )]
    ReachRemoved(Layer),
    /// The answer is no longer wanted.
    #[error("the question was cancelled before it was answered")]
    GivenUp,
}

impl QueryError {
    /// The kind of the error; `None` if the question has no answer.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Read(error) => Some(error.kind()),
            Self::MissingValues(MissingValues::OlderFormat(_)) => Some(ErrorKind::Refused),
            Self::MissingValues(_) => Some(ErrorKind::NotComputed),
            Self::Board(_)
            | Self::Unreachable { .. }
            | Self::TooLarge(_)
            | Self::TooSlow(_)
            | Self::NoBestMoves
            | Self::ReachRemoved(_)
            | Self::GivenUp => None,
        }
    }

    /// The shard or item to recompute, if one caused the error.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Read(error) => error.blames(),
            _ => None,
        }
    }
}
