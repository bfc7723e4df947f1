//! How games of perfect play end: worked out once for a run, beside the requests, and kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::extract::State;
use exact2048_net::pages::{RequestFailure, ToldAnswer};
use exact2048_net::text::numbers::count;
use exact2048_server::{RunSnapshot, Served, of_query};
use exact2048_stats::{
    FollowerOfRun, KeptStatistics, LEAST_FOLLOWED, StatsProgress, ToldStatistics, has_usual_rules,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tonic::Status;

use crate::asked::Asked;
use crate::runs::Explorer;

/// States of the largest run whose statistics a server works out: some minutes of one core. Those of larger runs it has where
/// `exact2048 stats` has kept them.
const MOST_STATES: u64 = 200_000_000;

/// Time that a request waits for what may soon be there.
const PATIENCE: Duration = Duration::from_millis(500);

/// How far the statistics of a run are.
#[derive(Clone)]
enum PlayState {
    /// The share of the work that is done.
    Working(f64),
    Done(Arc<RawValue>),
    Failed(Status),
}

/// The statistics of the runs of a server, as far as they were asked for.
pub struct PerfectPlay {
    /// By id and fingerprint: other values have other statistics.
    of_runs: Mutex<HashMap<(String, u128), watch::Receiver<PlayState>>>,
    /// Held by the thread that works statistics out: for one run after the other.
    turn: Arc<Mutex<()>>,
    limits: PlayLimits,
}

/// What works statistics out, and what that may take.
#[derive(Clone, Copy, Debug)]
pub struct PlayLimits {
    /// Makes what follows games through a run.
    pub follower: FollowerOfRun,
    /// Threads.
    pub threads: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

impl PerfectPlay {
    /// Nothing yet.
    pub fn new(limits: PlayLimits) -> Self {
        Self { of_runs: Mutex::default(), turn: Arc::default(), limits }
    }

    /// How far the statistics of a run are; begins to work them out where nobody has.
    fn of(&self, run: &RunSnapshot, work: PlayWork) -> Result<watch::Receiver<PlayState>, Status> {
        let key = (run.run_id.clone(), run.fingerprint.unwrap_or_default());
        let mut of_runs = self.of_runs.lock();
        if let Some(known) = of_runs.get(&key).filter(|known| is_of_use(known)) {
            return Ok(known.clone());
        }
        let (tell, told) = watch::channel(PlayState::Working(0.0));
        let (turn, limits) = (Arc::clone(&self.turn), self.limits);
        // A thread of its own: a server that stops does not wait for it.
        let begun = thread::Builder::new().name("perfect play".to_owned()).spawn(move || {
            let end = work.end(&turn, limits, &tell).unwrap_or_else(PlayState::Failed);
            tell.send_replace(end);
        });
        begun.map_err(|error| Status::internal(format!("cannot start a thread: {error}")))?;
        of_runs.insert(key, told.clone());
        Ok(told)
    }
}

/// Whether work need not begin anew. It does after a failure, since a file that was missing may be back.
fn is_of_use(told: &watch::Receiver<PlayState>) -> bool {
    match *told.borrow() {
        PlayState::Working(_) => is_worked_on(told),
        PlayState::Done(_) => true,
        PlayState::Failed(_) => false,
    }
}

/// Whether the thread that tells how far it is still runs.
fn is_worked_on(told: &watch::Receiver<PlayState>) -> bool {
    told.has_changed().is_ok()
}

/// What is to be worked out.
struct PlayWork {
    served: Arc<Served>,
    /// The run that was asked about, by id and fingerprint.
    asked: (String, u128),
    kept: Option<KeptStatistics>,
    states: u64,
}

impl PlayWork {
    /// The statistics: those that are kept, or new ones.
    fn end(
        &self,
        turn: &Mutex<()>,
        limits: PlayLimits,
        tell: &watch::Sender<PlayState>,
    ) -> Result<PlayState, Status> {
        if let Some(kept) = self.kept.as_ref().and_then(KeptStatistics::read) {
            return done(&kept);
        }
        check_size(self.states)?;
        let _turn = turn.lock();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(limits.threads).build();
        let found = pool.map_err(|error| internal(&error))?.install(|| self.follow(limits, tell))?;
        if let Some(Err(error)) = self.kept.as_ref().map(|kept| kept.keep(&found)) {
            tracing::warn!(%error, "perfect-play statistics not kept; the next server follows the games again");
        }
        done(&found)
    }

    fn follow(&self, limits: PlayLimits, tell: &watch::Sender<PlayState>) -> Result<ToldStatistics, Status> {
        let run = self.served.open_again().map_err(|error| Status::unavailable(format!("{error:#}")))?;
        check_identity(&self.asked, (run.dir().run_id().to_string(), run.fingerprint().unwrap_or_default()))?;
        let follower = (limits.follower)(&run, limits.memory_bytes).map_err(|error| of_query(&error))?;
        // The work continues without requests, so that the next request gets its answer at once.
        let mut progress = |at: StatsProgress| {
            tell.send_replace(PlayState::Working(at.share));
        };
        let found = ToldStatistics::follow(&run, &*follower, LEAST_FOLLOWED, &mut progress);
        found.map_err(|error| of_query(&error))
    }
}

fn done(statistics: &ToldStatistics) -> Result<PlayState, Status> {
    let json = serde_json::value::to_raw_value(statistics).map_err(|error| internal(&error))?;
    Ok(PlayState::Done(json.into()))
}

fn internal(error: &dyn std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

/// An error if another run lies in the place of the one that was asked about: its statistics are not this run's.
fn check_identity(asked: &(String, u128), found: (String, u128)) -> Result<(), Status> {
    if found == *asked {
        return Ok(());
    }
    Err(Status::unavailable(format!(
        "expected run {} with fingerprint {:032x}, found run {} with fingerprint {:032x} in its place; ask again when the \
         server has opened the new run",
        asked.0, asked.1, found.0, found.1
    )))
}

/// An error for a run with more states than a server works statistics out for.
fn check_size(states: u64) -> Result<(), Status> {
    if states <= MOST_STATES {
        return Ok(());
    }
    Err(Status::failed_precondition(format!(
        "the run has {} states, and how perfect games end is worked out here for up to {}: \
         \"exact2048 stats\" does it for any run, and keeps the answer where this server finds it",
        count(states),
        count(MOST_STATES)
    )))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayAsked {
    run: Option<String>,
}

/// The statistics, or how far they are.
#[derive(Serialize)]
pub struct PlayAnswer {
    /// The share of the work that is done, about.
    progress: f64,
    /// What `exact2048 stats --json` prints; `None` while it is worked out.
    statistics: Option<Box<RawValue>>,
}

/// `GET /api/v1/perfect-play`.
pub async fn told(
    State(explorer): State<Explorer>,
    Asked(asked): Asked<PlayAsked>,
) -> Result<ToldAnswer<PlayAnswer>, RequestFailure> {
    let served = explorer.served(asked.run.as_deref())?;
    let run = served.now();
    run.oracle()?;
    if !has_usual_rules(&run.params) {
        let what = "games by chance are not worth what the values of this run say: how they end is told of runs of the \
                    score or a tile to reach, without a discount, where tiles come by chance";
        return Err(Status::failed_precondition(what).into());
    }
    let asked = (run.run_id.clone(), run.fingerprint.unwrap_or_default());
    let kept = served.kept_folder().map(|folder| KeptStatistics::new(folder, &asked.0, asked.1));
    let states = run.layers.iter().map(|counts| counts.states).sum();
    let mut state =
        explorer.perfect_play().of(&run, PlayWork { served: Arc::clone(served), asked, kept, states })?;
    let is_over = |state: &PlayState| !matches!(state, PlayState::Working(_));
    let _ = tokio::time::timeout(PATIENCE, state.wait_for(is_over)).await;
    // Looked at before the state: a thread that ends in between has told its last state.
    let is_worked_on = is_worked_on(&state);
    let now = state.borrow().clone();
    match now {
        PlayState::Working(_) if !is_worked_on => {
            Err(Status::internal("the server failed on this question; its log says how").into())
        }
        PlayState::Working(progress) => Ok(ToldAnswer(PlayAnswer { progress, statistics: None })),
        PlayState::Done(told) => {
            Ok(ToldAnswer(PlayAnswer { progress: 1.0, statistics: Some((*told).to_owned()) }))
        }
        PlayState::Failed(status) => Err(status.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_runs_are_left_to_the_program() {
        assert!(check_size(MOST_STATES).is_ok());
        let refused = check_size(1_814_373_350).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
        for says in ["1,814,373,350", "200,000,000", "exact2048 stats"] {
            assert!(refused.message().contains(says), "{refused}");
        }
    }

    #[test]
    fn a_run_that_was_replaced_in_place_has_statistics_of_its_own() {
        let asked = ("a1".to_owned(), 7);
        assert!(check_identity(&asked, asked.clone()).is_ok());
        for replaced in [("a2".to_owned(), 7), ("a1".to_owned(), 8)] {
            let refused = check_identity(&asked, replaced).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::Unavailable);
        }
    }
}
