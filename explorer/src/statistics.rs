//! Statistics of perfect play. A background thread computes them once for each run and stores them.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use exact2048_net::text::numbers::count;
use exact2048_server::{RunSnapshot, Served, of_query};
use exact2048_stats::{FollowerOfRun, KeptStatistics, LEAST_FOLLOWED, StatisticsView, StatsProgress};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tonic::Status;

/// Largest number of states of a run whose statistics a server computes. One core takes some minutes for such a run.
///
/// For larger runs, the server reads the statistics that `exact2048 stats` has stored.
const MOST_STATES: u64 = 200_000_000;

/// Time that a request waits for statistics that may be complete soon.
const PATIENCE: Duration = Duration::from_millis(500);

/// Progress of the statistics of a run.
#[derive(Clone)]
enum PlayState {
    /// The completed share of the work.
    Working(f64),
    Done(Arc<RawValue>),
    Failed(Status),
}

/// The statistics, or their progress.
#[derive(Serialize)]
pub struct PlayAnswer {
    /// Estimated share of the completed work.
    progress: f64,
    /// The output of `exact2048 stats --json`; `None` during the computation.
    statistics: Option<Box<RawValue>>,
}

/// The requested statistics of the runs of a server.
pub struct PerfectPlay {
    /// Statistics by the run's id and fingerprint, because they change with the run's values.
    of_runs: Mutex<HashMap<(String, u128), watch::Receiver<PlayState>>>,
    /// Lock of the computing thread. It lets one thread compute at a time.
    turn: Arc<Mutex<()>>,
    limits: PlayLimits,
}

/// Method and limits of the computation.
#[derive(Clone, Copy, Debug)]
pub struct PlayLimits {
    /// Creates the object that computes the probabilities of perfect play in a run.
    pub follower: FollowerOfRun,
    /// Number of threads.
    pub threads: usize,
    /// Memory limit in bytes.
    pub memory_bytes: u64,
}

impl PerfectPlay {
    /// Creates an empty set of statistics.
    pub fn new(limits: PlayLimits) -> Self {
        Self { of_runs: Mutex::default(), turn: Arc::default(), limits }
    }

    /// Returns the statistics of a run, or their progress if they are not complete soon. Starts the computation if
    /// necessary.
    pub async fn find(&self, served: &Arc<Served>, run: &RunSnapshot) -> Result<PlayAnswer, Status> {
        let mut state = self.state_of(served, run)?;
        let is_over = |state: &PlayState| !matches!(state, PlayState::Working(_));
        let _ = tokio::time::timeout(PATIENCE, state.wait_for(is_over)).await;
        // Check the thread before reading the state. A thread sends its last state before it ends, so if it has ended, the
        // state that is read below is the last one.
        let is_worked_on = is_worked_on(&state);
        let now = state.borrow().clone();
        match now {
            PlayState::Working(_) if !is_worked_on => {
                Err(Status::internal("the server failed to compute the statistics; see its log"))
            }
            PlayState::Working(progress) => Ok(PlayAnswer { progress, statistics: None }),
            PlayState::Done(found) => Ok(PlayAnswer { progress: 1.0, statistics: Some((*found).to_owned()) }),
            PlayState::Failed(status) => Err(status),
        }
    }

    /// Returns the state of a run's statistics. Starts the computation if necessary.
    fn state_of(
        &self,
        served: &Arc<Served>,
        run: &RunSnapshot,
    ) -> Result<watch::Receiver<PlayState>, Status> {
        let key = (run.run_id.clone(), run.fingerprint.unwrap_or_default());
        let mut of_runs = self.of_runs.lock();
        if let Some(known) = of_runs.get(&key).filter(|known| is_of_use(known)) {
            return Ok(known.clone());
        }
        let work = PlayWork::new(served, run, key.clone());
        let (sender, state) = watch::channel(PlayState::Working(0.0));
        let (turn, limits) = (Arc::clone(&self.turn), self.limits);
        // The thread is detached, so a stopping server does not wait for it.
        let begun = thread::Builder::new().name("perfect play".to_owned()).spawn(move || {
            let end = work.end(&turn, limits, &sender).unwrap_or_else(PlayState::Failed);
            sender.send_replace(end);
        });
        begun.map_err(|error| Status::internal(format!("cannot start a thread: {error}")))?;
        of_runs.insert(key, state.clone());
        Ok(state)
    }
}

/// Whether a state is still usable. Work restarts after a failure, because a missing file may have returned.
fn is_of_use(state: &watch::Receiver<PlayState>) -> bool {
    match *state.borrow() {
        PlayState::Working(_) => is_worked_on(state),
        PlayState::Done(_) => true,
        PlayState::Failed(_) => false,
    }
}

/// Whether the thread that sends the state is still running.
fn is_worked_on(state: &watch::Receiver<PlayState>) -> bool {
    state.has_changed().is_ok()
}

/// Statistics to compute.
struct PlayWork {
    served: Arc<Served>,
    /// Id and fingerprint of the requested run.
    asked: (String, u128),
    kept: Option<KeptStatistics>,
    states: u64,
}

impl PlayWork {
    fn new(served: &Arc<Served>, run: &RunSnapshot, asked: (String, u128)) -> Self {
        let kept = served.kept_folder().map(|folder| KeptStatistics::new(folder, &asked.0, asked.1));
        let states = run.layers.iter().map(|counts| counts.states).sum();
        Self { served: Arc::clone(served), asked, kept, states }
    }

    /// Returns the kept statistics, or computes them.
    fn end(
        &self,
        turn: &Mutex<()>,
        limits: PlayLimits,
        sender: &watch::Sender<PlayState>,
    ) -> Result<PlayState, Status> {
        if let Some(kept) = self.kept.as_ref().and_then(KeptStatistics::read) {
            return done(&kept);
        }
        check_size(self.states)?;
        let _turn = turn.lock();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(limits.threads).build();
        let found = pool.map_err(|error| internal(&error))?.install(|| self.follow(limits, sender))?;
        if let Some(Err(error)) = self.kept.as_ref().map(|kept| kept.keep(&found)) {
            tracing::warn!(%error, "perfect-play statistics not kept; the next server computes them again");
        }
        done(&found)
    }

    fn follow(
        &self,
        limits: PlayLimits,
        sender: &watch::Sender<PlayState>,
    ) -> Result<StatisticsView, Status> {
        let run = self.served.open_again().map_err(|error| Status::unavailable(format!("{error:#}")))?;
        check_identity(&self.asked, (run.dir().run_id().to_string(), run.fingerprint().unwrap_or_default()))?;
        let follower = (limits.follower)(&run, limits.memory_bytes).map_err(|error| of_query(&error))?;
        // The work continues after its request has ended, so a later request gets its answer at once.
        let mut progress = |at: StatsProgress| {
            sender.send_replace(PlayState::Working(at.share));
        };
        let found = StatisticsView::follow(&run, &*follower, LEAST_FOLLOWED, &mut progress);
        found.map_err(|error| of_query(&error))
    }
}

fn done(statistics: &StatisticsView) -> Result<PlayState, Status> {
    let json = serde_json::value::to_raw_value(statistics).map_err(|error| internal(&error))?;
    Ok(PlayState::Done(json.into()))
}

fn internal(error: &dyn std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

/// Checks that no other run has replaced the requested run. The statistics of two runs differ.
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

/// Checks that a server may compute the statistics of a run with this number of states.
fn check_size(states: u64) -> Result<(), Status> {
    if states <= MOST_STATES {
        return Ok(());
    }
    Err(Status::failed_precondition(format!(
        "the run has {} states, and this server computes these statistics only for runs of up to {} states. Run \
         \"exact2048 stats\", which has no such limit and keeps the answer for this server",
        count(states),
        count(MOST_STATES)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_runs_are_left_to_the_command() {
        assert!(check_size(MOST_STATES).is_ok());
        let refused = check_size(1_814_373_350).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
        for says in ["1,814,373,350", "200,000,000", "exact2048 stats"] {
            assert!(refused.message().contains(says), "{refused}");
        }
    }

    #[test]
    fn a_replaced_run_does_not_get_the_old_statistics() {
        let asked = ("a1".to_owned(), 7);
        assert!(check_identity(&asked, asked.clone()).is_ok());
        for replaced in [("a2".to_owned(), 7), ("a1".to_owned(), 8)] {
            let refused = check_identity(&asked, replaced).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::Unavailable);
        }
    }
}
