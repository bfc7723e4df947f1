//! State shared by all request handlers.

use std::sync::Arc;

use exact2048_net::token::CheckToken;
use exact2048_proto::v1::Cost;
use exact2048_server::{RunSnapshot, Runs, Served, Turns};
use exact2048_solution::{Oracle, QueryError, QuestionLimits};
use exact2048_stats::FollowerOfRun;
use tokio::sync::Semaphore;
use tonic::Status;

use crate::statistics::{PerfectPlay, PlayLimits};

/// The served runs and the resources that all requests share.
#[derive(Clone)]
pub struct Explorer(Arc<Shared>);

struct Shared {
    runs: Runs,
    turns: Turns,
    /// Permits of concurrent requests that read many states.
    threads: Arc<Semaphore>,
    perfect_play: PerfectPlay,
    token: CheckToken,
}

impl Explorer {
    /// Creates an explorer of some runs. The first run is the default.
    ///
    /// Up to `threads` requests that read many states run at once. Long requests wait in `turns`. `follower` follows
    /// perfect play within `memory_bytes` bytes of memory.
    #[must_use]
    pub fn new(
        runs: Runs,
        threads: usize,
        turns: Turns,
        token: CheckToken,
        (follower, memory_bytes): (FollowerOfRun, u64),
    ) -> Self {
        // Half of the threads are reserved for other requests.
        let perfect_play =
            PerfectPlay::new(PlayLimits { follower, threads: (threads / 2).max(1), memory_bytes });
        Self(Arc::new(Shared {
            runs,
            turns,
            threads: Arc::new(Semaphore::new(threads)),
            perfect_play,
            token,
        }))
    }

    /// The runs, by name.
    pub(crate) fn runs(&self) -> &Runs {
        &self.0.runs
    }

    /// The latest snapshot of the run with a name.
    pub(crate) fn run(&self, name: Option<&str>) -> Result<Arc<RunSnapshot>, Status> {
        Ok(self.0.runs.named(name)?.now())
    }

    /// The run with a name.
    pub(crate) fn served(&self, name: Option<&str>) -> Result<&Arc<Served>, Status> {
        self.0.runs.named(name)
    }

    /// The statistics of perfect play.
    pub(crate) fn perfect_play(&self) -> &PerfectPlay {
        &self.0.perfect_play
    }

    /// The turns of questions that take long.
    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// The check of the token.
    pub(crate) fn token(&self) -> &CheckToken {
        &self.0.token
    }

    /// Asks a question that reads many states.
    pub(crate) async fn ask_heavy<T: Send + 'static>(
        &self,
        oracle: Arc<Oracle>,
        question: impl Fn(&Oracle, &QuestionLimits<'_>) -> Result<T, QueryError> + Clone + Send + 'static,
    ) -> Result<T, Status> {
        let answer = self.0.turns.ask(oracle, Some(&self.0.threads), question).await;
        answer.map(|(answer, Cost { .. })| answer)
    }
}
