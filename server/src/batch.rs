//! Many boards a message, several messages under way.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::board::Board;
use exact2048_net::status;
use exact2048_proto::v1::{BatchGetValuesRequest, BatchGetValuesResponse, BoardStatus};
use exact2048_run::{Oracle, QueryError};
use futures_util::{Stream, StreamExt};
use metrics::counter;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::messages::is_board;
use crate::{failures, observe};

/// Boards that one message may hold.
pub const MAX_BOARDS: usize = 1 << 16;

/// Boards after which a question looks whether anyone still waits for its answer.
const CHUNK: usize = 4096;

/// Messages of a stream that are worked on at once, beside those that wait for their turn to be sent.
const UNDER_WAY: usize = 4;

/// Answers the messages of a stream, in their order.
pub fn answer(
    oracle: Arc<Oracle>,
    threads: Arc<Semaphore>,
    idle_time: Duration,
    requests: impl Stream<Item = Result<BatchGetValuesRequest, Status>> + Send + 'static,
) -> impl Stream<Item = Result<BatchGetValuesResponse, Status>> + Send + 'static {
    let requests = tokio_stream::StreamExt::timeout(requests, idle_time);
    let answers = tokio_stream::StreamExt::map(requests, move |request| {
        let (oracle, threads) = (Arc::clone(&oracle), Arc::clone(&threads));
        async move {
            let idle = || format!("no message came for {} s", idle_time.as_secs_f64());
            let request = request.map_err(|_| Status::deadline_exceeded(idle()))??;
            answer_one(oracle, &threads, request.boards).await
        }
    });
    StreamExt::buffered(answers, UNDER_WAY)
}

async fn answer_one(
    oracle: Arc<Oracle>,
    threads: &Semaphore,
    boards: Vec<u64>,
) -> Result<BatchGetValuesResponse, Status> {
    if boards.len() > MAX_BOARDS {
        let what = format!("{} boards in a message: expected at most {MAX_BOARDS}", boards.len());
        return Err(status::invalid_argument("boards", what));
    }
    // Kept until the answer is there: whoever gives the request up cancels the rest of the work.
    let given_up = CancellationToken::new();
    let _guard = given_up.clone().drop_guard();
    let _thread = threads.acquire().await.map_err(|_| status::unavailable("the server is stopping"))?;
    let work = move || {
        let mut response = BatchGetValuesResponse {
            values: Vec::with_capacity(boards.len()),
            statuses: Vec::with_capacity(boards.len()),
        };
        for chunk in boards.chunks(CHUNK).take_while(|_| !given_up.is_cancelled()) {
            append(&oracle, chunk, &mut response)?;
        }
        Ok(response)
    };
    let answered = tokio::task::spawn_blocking(work).await.map_err(|error| failures::of_panic(&error))?;
    let response = answered.map_err(|error: QueryError| failures::of_query(&error))?;
    count(&response);
    Ok(response)
}

fn append(oracle: &Oracle, packed: &[u64], to: &mut BatchGetValuesResponse) -> Result<(), QueryError> {
    let size = oracle.params().board;
    // What is no board is asked as the empty one, which no run reaches, so that all keep their places.
    let board = |&packed: &u64| if is_board(packed, size) { Board(packed) } else { Board::default() };
    let boards: Vec<Board> = packed.iter().map(board).collect();
    for (value, &packed) in oracle.values(&boards)?.into_iter().zip(packed) {
        let status = match value {
            Some(_) => BoardStatus::Ok,
            None if is_board(packed, size) => BoardStatus::Unreachable,
            None => BoardStatus::Invalid,
        };
        to.values.push(value.unwrap_or_default());
        to.statuses.push(status.into());
    }
    Ok(())
}

/// Counts the states answered, by what they were told.
fn count(response: &BatchGetValuesResponse) {
    for (status, name) in [
        (BoardStatus::Ok, observe::OK),
        (BoardStatus::Unreachable, observe::UNREACHABLE),
        (BoardStatus::Invalid, observe::INVALID),
    ] {
        let of_status = response.statuses.iter().filter(|&&found| found == i32::from(status)).count();
        counter!(observe::STATES, "status" => name).increment(of_status as u64);
    }
}
