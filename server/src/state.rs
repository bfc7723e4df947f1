//! One state, for whatever service was asked.

use std::sync::Arc;

use exact2048_game::board::Board;
use exact2048_proto::v1;
use exact2048_solution::{Asking, Oracle, QueryError, StateAnswer};
use metrics::counter;
use tonic::Status;

use crate::turns::Turns;
use crate::{failures, observe};

/// What a state is worth, and each of its moves; of a run that stores best moves a best move alone, unless values are
/// asked for. Counts the state among those answered.
///
/// # Errors
///
/// NOT_FOUND where the run does not reach the board, and those of [`Turns::ask`].
pub async fn answer_state(
    oracle: Arc<Oracle>,
    turns: &Turns,
    board: Board,
    with_values: bool,
) -> Result<(StateAnswer, v1::Cost), Status> {
    let best_move_only = oracle.params().best_moves && !with_values;
    // For one board, "not reachable" is an answer, and it costs something too.
    let question = move |oracle: &Oracle, asking: &Asking<'_>| {
        Ok(if best_move_only {
            oracle.advise_all(&[board], asking.wanted)?.swap_remove(0).map(StateAnswer::BestMove)
        } else {
            oracle.evaluate_as(&[board], asking)?.swap_remove(0).map(StateAnswer::Values)
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
