//! The sources of values, in the order in which they are asked.

use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer};

use super::{QueryError, QuestionLimits};

/// A source of the values of states that the run does not store.
pub(super) trait ValueSource {
    /// Fills in the missing values that the source has. `states` lists canonical boards below one cut with their layers,
    /// ascending.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::GivenUp`]. A source that computes values adds
    /// [`QueryError::TooLarge`] and [`QueryError::TooSlow`].
    fn fill(
        &self,
        states: &[(Layer, Board)],
        values: &mut [Option<Stored>],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError>;
}

/// Asks some sources, one after the other, until no value is missing.
///
/// # Errors
///
/// Those of the sources.
pub(super) fn fill_from(
    sources: &[&dyn ValueSource],
    states: &[(Layer, Board)],
    values: &mut [Option<Stored>],
    question: &QuestionLimits<'_>,
) -> Result<(), QueryError> {
    for source in sources {
        if values.iter().all(Option::is_some) {
            break;
        }
        source.fill(states, values, question)?;
    }
    Ok(())
}
