//! Retries of a request and their time limit.
//!
//! The HTTP client retries a request a few times. This module continues the retries during an outage, by default for
//! 180 s. It also retries requests that the client considers unsafe to repeat. Every request ends in bounded time.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use object_store::Error;
use tokio::time::{sleep, timeout};

use super::misdirected;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Outcome of a request that was given up.
#[derive(Debug)]
pub(super) struct GivenUp {
    /// Last error from the store; `None` if the last attempt timed out.
    pub(super) error: Option<Error>,
    pub(super) tries: u32,
    pub(super) took: Duration,
}

impl GivenUp {
    pub(super) fn is_not_found(&self) -> bool {
        matches!(&self.error, Some(error @ Error::NotFound { .. }) if !is_no_bucket(error))
    }

    pub(super) fn is_already_there(&self) -> bool {
        matches!(self.error, Some(Error::AlreadyExists { .. } | Error::Precondition { .. }))
    }
}

/// Retry policy of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persistence {
    /// Time after the first failure in which another attempt may begin.
    pub(super) limit: Duration,
    /// Timeout of each attempt.
    pub(super) each: Duration,
    /// Called when the first attempt has failed and another will follow.
    pub(super) on_wait: Option<fn(&str)>,
}

impl Persistence {
    /// Returns the same policy with this timeout per attempt.
    pub(super) fn of(self, each: Duration) -> Self {
        Self { each, ..self }
    }

    /// Repeats `attempt` until it succeeds, fails permanently, or the time limit ends.
    pub(super) async fn persist<T, F: Future<Output = Result<T, Error>>>(
        self,
        attempt: impl Fn() -> F,
    ) -> Result<T, GivenUp> {
        let begun = Instant::now();
        // Start of the outage: the end of the first attempt if it returned an error, its start if it timed out.
        let mut trouble = None;
        let mut pause = FIRST_PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match timeout(self.each, attempt()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            let final_answer = error.as_ref().is_some_and(is_final);
            let since = *trouble.get_or_insert_with(|| if error.is_some() { Instant::now() } else { begun });
            if final_answer || since.elapsed() + pause >= self.limit {
                return Err(GivenUp { error, tries, took: begun.elapsed() });
            }
            if let (1, Some(report)) = (tries, self.on_wait) {
                let seconds = self.limit.saturating_sub(since.elapsed()).as_secs();
                report(&format!("the store does not answer; retrying for {seconds} s"));
            }
            sleep(jittered(pause)).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// Returns half of the pause plus a random part of the other half, so processes do not all retry at the same time.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 1024;
    pause / 2 + pause / 2048 * u32::try_from(random).unwrap_or_default()
}

/// Returns whether the store gave a final answer. A retry would not change such an answer.
fn is_final(error: &Error) -> bool {
    match error {
        // Only the text contains the status. An unrecognized refusal is retried, which only costs time.
        Error::Generic { .. } => {
            let text = error.to_string();
            let refused = text.contains("status code: 4") || text.contains("redirect without LOCATION");
            let busy = text.contains("status code: 408") || text.contains("status code: 429");
            (refused && !busy) || is_full(error) || misdirected::remedy(error).is_some()
        }
        Error::JoinError { .. } => false,
        _ => true,
    }
}

/// Returns whether the bucket is missing, rather than the object.
pub(super) fn is_no_bucket(error: &Error) -> bool {
    error.to_string().contains("NoSuchBucket")
}

/// Returns whether the store or the user's quota is full.
pub(super) fn is_full(error: &Error) -> bool {
    let text = error.to_string();
    ["QuotaExceeded", "status code: 507", "StorageFull", "InsufficientStorage"]
        .iter()
        .any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn waiting(limit: Duration) -> Persistence {
        Persistence { limit, each: limit, on_wait: None }
    }

    fn failing(text: &'static str, good_after: u32) -> (Result<u32, GivenUp>, u32) {
        let tries = AtomicU32::new(0);
        let attempt = || async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                n if n >= good_after => Ok(n),
                _ => Err(Error::Generic { store: "test", source: text.into() }),
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limit = Duration::from_millis(400);
        let result = runtime.block_on(waiting(limit).persist(attempt));
        (result, tries.into_inner())
    }

    #[test]
    fn a_short_outage_is_bridged() {
        assert_eq!(failing("connection reset", 2).0.unwrap(), 2);
    }

    #[test]
    fn a_lasting_outage_ends_in_time() {
        let (result, tries) = failing("connection reset", u32::MAX);
        let given_up = result.unwrap_err();
        assert_eq!(given_up.tries, tries);
        assert!(tries > 1 && given_up.took < Duration::from_secs(2), "{given_up:?}");
    }

    #[test]
    fn a_refusal_is_not_repeated() {
        for text in ["Server returned non-2xx status code: 400 Bad Request", "QuotaExceeded"] {
            assert_eq!(failing(text, u32::MAX).1, 1, "{text}");
        }
        assert!(failing("Server returned non-2xx status code: 429", u32::MAX).1 > 1);
    }

    /// The time limit starts with the failure, regardless of the duration of the failed attempt.
    #[test]
    fn an_outage_after_a_long_attempt_is_bridged() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (limit, tries) = (Duration::from_millis(200), AtomicU32::new(0));
        let attempt = || async {
            if tries.fetch_add(1, Ordering::Relaxed) > 0 {
                return Ok(());
            }
            sleep(2 * limit).await;
            Err(Error::Generic { store: "test", source: "connection reset".into() })
        };
        runtime.block_on(waiting(limit).of(10 * limit).persist(attempt)).unwrap();
    }

    #[test]
    fn a_silent_store_ends_in_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limit = Duration::from_millis(50);
        let given_up = runtime
            .block_on(waiting(limit).persist(|| async { std::future::pending::<Result<(), Error>>().await }))
            .unwrap_err();
        assert!(given_up.error.is_none());
    }
}
