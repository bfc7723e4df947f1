//! Turns for computing values that are neither stored nor fast to compute.
//!
//! A request is first tried with little memory, which suffices if the next stored layers are near. A request that
//! needs more memory waits for a turn. A limited number of turns run concurrently, a limited number of requests
//! wait, and further requests are refused. So neither memory nor the queue grows with the number of clients.
//! Requests for stored values do not wait for the other requests.

use std::sync::Arc;
use std::time::Instant;

use exact2048_net::requests::deadline;
use exact2048_net::shutdown::Stop;
use exact2048_net::status;
use exact2048_proto::v1;
use exact2048_solution::{CostSum, Oracle, QueryError, QuestionLimits};
use metrics::counter;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{failures, observe};

/// Memory in bytes that any request may take for a cone. This memory suffices for some hundred thousand states.
const TRIAL_BYTES: u64 = 4 << 20;

/// Number of waiting requests per running request.
const WAITING: usize = 32;

/// The turns of a server.
#[derive(Clone, Debug)]
pub struct Turns {
    /// One permit per running request.
    working: Arc<Semaphore>,
    /// One permit per waiting or running request.
    waiting: Arc<Semaphore>,
    /// Cancelled when the server stops.
    stop: CancellationToken,
}

impl Turns {
    /// Creates turns for `at_once` concurrent requests, until the server stops.
    #[must_use]
    pub fn new(at_once: usize, stop: &Stop) -> Self {
        let waiting = at_once.saturating_mul(1 + WAITING).min(Semaphore::MAX_PERMITS);
        Self {
            working: Arc::new(Semaphore::new(at_once)),
            waiting: Arc::new(Semaphore::new(waiting)),
            stop: stop.begun.clone(),
        }
    }

    /// Queries an oracle outside the threads that serve connections. Returns the answer and its cost. `threads` limits the
    /// number of concurrent queries.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if too many requests wait for a turn, and the errors of the oracle.
    pub async fn ask<T: Send + 'static>(
        &self,
        oracle: Arc<Oracle>,
        threads: Option<&Arc<Semaphore>>,
        question: impl Fn(&Oracle, &QuestionLimits<'_>) -> Result<T, QueryError> + Clone + Send + 'static,
    ) -> Result<(T, v1::Cost), Status> {
        let (trial, deadline) = (TRIAL_BYTES.min(oracle.cone_bytes()), deadline());
        let thread = match threads {
            Some(threads) => Some(Arc::clone(threads).acquire_owned().await.map_err(|_| stopping())?),
            None => None,
        };
        let time = Time { deadline, stop: self.stop.clone() };
        match work(Arc::clone(&oracle), trial, time.clone(), thread, question.clone()).await? {
            (Err(QueryError::TooLarge(_)), _) if trial < oracle.cone_bytes() => {}
            (answer, cost) => return Ok((answer.map_err(|error| failures::of_query(&error))?, cost)),
        }
        let place = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            status::exhausted(
                "too many concurrent requests for values that are not stored and slow to compute; try again later",
            )
        })?;
        let turn = Arc::clone(&self.working).acquire_owned().await.map_err(|_| stopping())?;
        let all = oracle.cone_bytes();
        let (answer, cost) = work(oracle, all, time, (place, turn), question).await?;
        Ok((answer.map_err(|error| failures::of_query(&error))?, cost))
    }
}

fn stopping() -> Status {
    status::unavailable("the server is stopping")
}

/// The time for a query.
#[derive(Clone)]
struct Time {
    deadline: Option<Instant>,
    stop: CancellationToken,
}

impl Time {
    /// Whether a query goes on that began at `begun` and whose request has ended. If the deadline ended it, the query
    /// gets as much time again, so that its result answers the next request. If the client went away, the query ends.
    fn is_extended(&self, begun: Instant) -> bool {
        let now = Instant::now();
        let is_late = |deadline: Instant| now >= deadline && now - deadline < deadline.duration_since(begun);
        self.deadline.is_some_and(is_late) && !self.stop.is_cancelled()
    }
}

/// Runs one query. A cancelled request drops this future. The work ends at its next check for cancellation, unless the
/// deadline has just passed, and holds the permits in `allowed` until then.
async fn work<T: Send + 'static>(
    oracle: Arc<Oracle>,
    cone_bytes: u64,
    time: Time,
    allowed: impl Send + 'static,
    question: impl FnOnce(&Oracle, &QuestionLimits<'_>) -> Result<T, QueryError> + Send + 'static,
) -> Result<(Result<T, QueryError>, v1::Cost), Status> {
    let given_up = CancellationToken::new();
    let _guard = given_up.clone().drop_guard();
    let work = move || {
        let (begun, spent) = (Instant::now(), CostSum::default());
        let wanted = || !given_up.is_cancelled() || time.is_extended(begun);
        let limits =
            QuestionLimits { deadline: time.deadline, ..QuestionLimits::new(&wanted, cone_bytes, &spent) };
        let answer = question(&oracle, &limits);
        drop(allowed);
        counter!(observe::CONE_STATES).increment(spent.computed_states());
        let cost = v1::Cost {
            computed_states: spent.computed_states(),
            stored_states: spent.stored_states(),
            found_states: spent.found_states(),
            seconds: begun.elapsed().as_secs_f64(),
        };
        (answer, cost)
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| failures::of_panic(&error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn queries_go_on_after_the_deadline_and_not_without_a_client() {
        let second = Duration::from_secs(1);
        let time = |deadline| Time { deadline, stop: CancellationToken::new() };
        let now = Instant::now();
        let past = time(Some(now - second));
        assert!(past.is_extended(now - 3 * second), "a third more than its time");
        assert!(!past.is_extended(now - 2 * second + second / 2), "more than twice its time");
        assert!(!time(Some(now + second)).is_extended(now - second), "the client went away");
        assert!(!time(None).is_extended(now));
        past.stop.cancel();
        assert!(!past.is_extended(now - 3 * second), "the server stops");
    }
}
