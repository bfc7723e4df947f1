//! Answers about one state, common to all services.

use std::sync::Arc;

use exact2048_game::board::Board;
use exact2048_proto::v1;
use exact2048_solution::{Oracle, QueryError, QuestionLimits, StateAnswer};
use metrics::counter;
use tonic::Status;

use crate::turns::Turns;
use crate::{failures, observe};

/// Returns the value of a state and of each of its moves. For a run that stores best moves, returns only a best
/// move, unless values are requested. Counts the state as answered.
///
/// # Errors
///
/// NOT_FOUND if the board is unreachable in the run, and the errors of [`Turns::ask`].
pub async fn answer_state(
    oracle: Arc<Oracle>,
    turns: &Turns,
    board: Board,
    with_values: bool,
) -> Result<(StateAnswer, v1::Cost), Status> {
    let best_move_only = oracle.params().contents().stores_best_moves() && !with_values;
    // For a single board, "unreachable" counts as an answer with a cost.
    let question = move |oracle: &Oracle, limits: &QuestionLimits<'_>| {
        Ok(if best_move_only {
            oracle.advise_all(&[board], limits.wanted)?.swap_remove(0).map(StateAnswer::BestMove)
        } else {
            oracle.evaluate_as(&[board], limits)?.swap_remove(0).map(StateAnswer::Values)
        })
    };
    let (answer, cost) = turns.ask(oracle, None, question).await?;
    match &answer {
        Ok(_) => counter!(observe::STATES, "status" => observe::OK).increment(1),
        Err(QueryError::Unreachable { .. }) => {
            counter!(observe::STATES, "status" => observe::UNREACHABLE).increment(1)
        }
        Err(_) => {}
    }
    Ok((answer.map_err(|error| failures::of_query(&error))?, cost))
}
