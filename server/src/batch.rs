//! Batches, with many boards per message and several messages in progress.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::board::{Board, BoardSize};
use exact2048_net::status;
use exact2048_proto::v1::{BatchGetValuesRequest, BatchGetValuesResponse, BoardStatus, GetValueResponse};
use exact2048_solution::{Oracle, QueryError, QuestionLimits};
use futures_util::Stream;
use metrics::counter;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::messages::{MAX_BOARDS, MAX_BOARDS_WITH_MOVES, is_board, packed_advice, packed_value};
use crate::turns::Turns;
use crate::{failures, observe, stream};

/// Answers the messages of a stream, in order.
pub fn answer(
    oracle: Arc<Oracle>,
    threads: Arc<Semaphore>,
    turns: Turns,
    idle_time: Duration,
    requests: impl Stream<Item = Result<BatchGetValuesRequest, Status>> + Send + 'static,
) -> impl Stream<Item = Result<BatchGetValuesResponse, Status>> + Send + 'static {
    stream::answers(requests, idle_time, move |request| {
        let (oracle, threads, turns) = (Arc::clone(&oracle), Arc::clone(&threads), turns.clone());
        // Each answer runs in a separate task, because the stream of a stalled client must not hold a turn that
        // other requests need.
        let answering = tokio::spawn(async move { answer_one(oracle, &threads, &turns, request).await });
        let answering = AbortOnDropHandle::new(answering);
        async move { answering.await.map_err(|error| failures::of_panic(&error))? }
    })
}

async fn answer_one(
    oracle: Arc<Oracle>,
    threads: &Arc<Semaphore>,
    turns: &Turns,
    request: BatchGetValuesRequest,
) -> Result<BatchGetValuesResponse, Status> {
    let BatchGetValuesRequest { boards, with_moves, with_values } = request;
    let most = if with_moves { MAX_BOARDS_WITH_MOVES } else { MAX_BOARDS };
    if boards.len() > most {
        let moves = if with_moves { " with moves" } else { "" };
        let what = format!("expected at most {most} boards{moves} in a message, found {}", boards.len());
        return Err(status::invalid_argument("boards", what));
    }
    let boards: Arc<[u64]> = boards.into();
    let best_moves_only = oracle.params().contents().stores_best_moves() && !with_values;
    let question = move |oracle: &Oracle, limits: &QuestionLimits<'_>| {
        if best_moves_only {
            advice(oracle, &boards, with_moves, limits)
        } else if with_moves {
            evaluations(oracle, &boards, limits)
        } else {
            values(oracle, &boards, limits)
        }
    };
    let (mut response, cost) = turns.ask(oracle, Some(threads), question).await?;
    response.cost = Some(cost);
    count(&response);
    Ok(response)
}

/// Returns the values of boards.
fn values(
    oracle: &Oracle,
    packed: &[u64],
    limits: &QuestionLimits<'_>,
) -> Result<BatchGetValuesResponse, QueryError> {
    let size = oracle.params().game().board();
    let values = oracle.values_as(&boards_of(packed, size), limits)?;
    let status = |(value, &packed): (&Option<f64>, &u64)| status_of(value.is_some(), packed, size);
    Ok(BatchGetValuesResponse {
        statuses: values.iter().zip(packed).map(status).collect(),
        values: values.into_iter().map(Option::unwrap_or_default).collect(),
        answers: Vec::new(),
        cost: None,
    })
}

/// Returns the values of boards and of their moves.
fn evaluations(
    oracle: &Oracle,
    packed: &[u64],
    limits: &QuestionLimits<'_>,
) -> Result<BatchGetValuesResponse, QueryError> {
    let size = oracle.params().game().board();
    let mut response = BatchGetValuesResponse::default();
    for (answer, &packed) in oracle.evaluate_as(&boards_of(packed, size), limits)?.into_iter().zip(packed) {
        response.statuses.push(status_of(answer.is_ok(), packed, size));
        response.values.push(answer.as_ref().map_or(0.0, |answer| answer.value));
        response.answers.push(answer.map_or_else(|_| GetValueResponse::default(), |a| packed_value(&a)));
    }
    Ok(response)
}

/// Returns the best moves of boards, without values.
fn advice(
    oracle: &Oracle,
    packed: &[u64],
    with_moves: bool,
    limits: &QuestionLimits<'_>,
) -> Result<BatchGetValuesResponse, QueryError> {
    let size = oracle.params().game().board();
    let mut response = BatchGetValuesResponse::default();
    for (advice, &packed) in
        oracle.advise_all(&boards_of(packed, size), limits.wanted)?.into_iter().zip(packed)
    {
        let status = match advice {
            Ok(_) => BoardStatus::BestMoveOnly.into(),
            Err(_) => status_of(false, packed, size),
        };
        response.statuses.push(status);
        response.values.push(0.0);
        if with_moves {
            response.answers.push(advice.map_or_else(|_| GetValueResponse::default(), |c| packed_advice(&c)));
        }
    }
    Ok(response)
}

/// Returns the boards of a message. An invalid board becomes the empty board, which is unreachable in every run.
/// So the positions of the other boards do not change.
fn boards_of(packed: &[u64], size: BoardSize) -> Vec<Board> {
    packed
        .iter()
        .map(|&packed| if is_board(packed, size) { Board(packed) } else { Board::default() })
        .collect()
}

/// Returns the status of a board of a message.
fn status_of(has_value: bool, packed: u64, size: BoardSize) -> i32 {
    let status = match (has_value, is_board(packed, size)) {
        (true, _) => BoardStatus::Ok,
        (false, true) => BoardStatus::Unreachable,
        (false, false) => BoardStatus::Invalid,
    };
    status.into()
}

/// Counts the answered states, by status.
fn count(response: &BatchGetValuesResponse) {
    for (status, name) in [
        (BoardStatus::Ok, observe::OK),
        (BoardStatus::BestMoveOnly, observe::OK),
        (BoardStatus::Unreachable, observe::UNREACHABLE),
        (BoardStatus::Invalid, observe::INVALID),
    ] {
        let of_status = response.statuses.iter().filter(|&&found| found == i32::from(status)).count();
        counter!(observe::STATES, "status" => name).increment(of_status as u64);
    }
}
