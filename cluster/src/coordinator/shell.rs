//! Calls the pure code with the time, and carries out what it asks for.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{
    Action, Cluster, Config, Event, JobId, JobState, Progress, Pull, PullReply, Refusal, Secrets, Signal,
    Status, WorkerId,
};
use exact2048_game::Params;
use exact2048_storage::Location;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::holding::{Hold, Told, hold};
use super::job_run::JobRun;
use super::queue::Queue;
use super::{AppendError, observe, records};
use crate::wire::Answer;

/// How often it is looked whether another coordinator has taken over, which appends would notice only when there is
/// something to append.
const CONFIRM: Duration = Duration::from_secs(10);

/// A coordinator.
pub struct Shell {
    pub(super) store: Location,
    pub(super) config: Config,
    begun: Instant,
    state: Mutex<State>,
    /// What is told at once, without progress.
    urgent: watch::Sender<Signal>,
    progress: watch::Sender<Option<Progress>>,
    /// Counts changes of jobs' states.
    job_states: watch::Sender<u64>,
    actions: mpsc::UnboundedSender<Action>,
    /// Taken by `carry_out`.
    asked_for: Mutex<Option<mpsc::UnboundedReceiver<Action>>>,
    pub(super) queue: Arc<Mutex<Queue>>,
    /// One change of the queue at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Why this coordinator does nothing more.
    fenced: OnceLock<String>,
    /// Cancelled when this coordinator is to end.
    stop: CancellationToken,
}

/// What is only looked at and changed as a whole.
pub(super) struct State {
    pub cluster: Cluster,
    pub jobs: BTreeMap<JobId, Known>,
    /// What each worker was told last.
    told: HashMap<WorkerId, Told>,
    /// The job with an append under way.
    appending: Option<JobId>,
}

/// What the shell knows of a job.
pub(super) struct Known {
    pub params: Params,
    pub location: Location,
    /// What workers and people are told of its place.
    pub url: String,
    /// Its run, while it is open for writing.
    pub run: Option<Arc<Mutex<JobRun>>>,
    /// The number of the latest opening record.
    pub opening: u64,
    /// Why the cluster does not know of it: its run cannot be opened.
    pub unavailable: Option<String>,
    /// Whether the run is to be let go of.
    pub stopped: bool,
    /// Whether its shards are being read again.
    pub checking: bool,
    /// What keeps it from going on, or kept it from being checked.
    pub trouble: Option<String>,
}

impl Shell {
    /// A coordinator without jobs that owns a queue. `stop` is cancelled when it is fenced off.
    pub(super) fn new(
        store: Location,
        queue: Queue,
        config: Config,
        secrets: Secrets,
        stop: CancellationToken,
    ) -> Self {
        let (actions, asked_for) = mpsc::unbounded_channel();
        // Epochs are above 0, which workers take for none.
        let cluster = Cluster::new(queue.fence() << 32, config.clone(), secrets, Duration::ZERO);
        let state = State { cluster, jobs: BTreeMap::new(), told: HashMap::new(), appending: None };
        Self {
            store,
            config,
            begun: Instant::now(),
            state: Mutex::new(state),
            urgent: watch::Sender::default(),
            progress: watch::Sender::default(),
            job_states: watch::Sender::default(),
            actions,
            asked_for: Mutex::new(Some(asked_for)),
            queue: Arc::new(Mutex::new(queue)),
            changing: tokio::sync::Mutex::default(),
            fenced: OnceLock::new(),
            stop,
        }
    }

    /// Why this coordinator does nothing more, if another one owns the store.
    #[must_use]
    pub fn fenced(&self) -> Option<&str> {
        self.fenced.get().map(String::as_str)
    }

    /// Calls the pure code, and sees to what follows from it.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut State, Duration) -> T) -> T {
        let mut state = lock(&self.state);
        let result = call(&mut state, self.begun.elapsed());
        for event in state.cluster.take_events() {
            observe::tell(&event);
            state.note(&event);
            if matches!(event, Event::Job { .. }) {
                self.job_states.send_modify(|changes| *changes += 1);
            }
        }
        for action in state.cluster.take_actions() {
            state.appending = Some(job_of(&action).clone());
            // Nobody carries anything out any more when the coordinator is stopping.
            let _ = self.actions.send(action);
        }
        let signal = state.cluster.signal();
        drop(state);
        let urgent = Signal { progress: None, ..signal };
        self.urgent.send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        self.progress.send_if_modified(|known| std::mem::replace(known, signal.progress) != signal.progress);
        result
    }

    /// Answers a worker, as soon as there is something new to tell it, or after a while.
    ///
    /// # Errors
    ///
    /// `Some(refusal)`, or `None` where the coordinator is stopping.
    pub async fn pull(&self, pull: &Pull) -> Result<Answer, Option<Refusal>> {
        let begun = Instant::now();
        let (mut urgent, mut progress) = (self.urgent.subscribe(), self.progress.subscribe());
        loop {
            urgent.mark_unchanged();
            progress.mark_unchanged();
            let (mut answer, hold) = self.look(pull, begun.elapsed())?;
            let (wait, gathers) = match hold {
                Hold::Answer => {
                    // It has been waited for here already.
                    answer.pause = Duration::ZERO;
                    return Ok(answer);
                }
                Hold::Gather(wait) => (wait, true),
                Hold::Wait(wait) => (wait, false),
            };
            tokio::select! {
                () = self.stop.cancelled() => return Err(None),
                () = tokio::time::sleep(wait) => {}
                _ = urgent.changed() => {}
                _ = progress.changed(), if !gathers => {}
            }
        }
    }

    /// The answer to a pull, and whether it is given.
    fn look(&self, pull: &Pull, waited: Duration) -> Result<(Answer, Hold), Refusal> {
        self.with(|state, now| {
            let reply = state.cluster.pull(now, pull)?;
            let told = Told::of(pull.incarnation, &reply);
            let has_reports = reply.acknowledged > pull.first_report;
            let hold = hold(state.told.get(&pull.worker), &told, has_reports, waited, reply.pause);
            if hold == Hold::Answer {
                state.told.insert(pull.worker, told);
            }
            Ok((state.answer(reply), hold))
        })
    }

    /// Told of whenever a job changes its state.
    pub(super) fn job_states(&self) -> watch::Receiver<u64> {
        self.job_states.subscribe()
    }

    /// What the cluster is doing.
    #[must_use]
    pub fn status(&self) -> Status {
        self.with(|state, now| state.cluster.status(now))
    }

    /// Puts what the cluster is doing into the metrics.
    pub fn record_metrics(&self) {
        observe::record(&self.status());
    }

    /// Lets time pass for the cluster until the coordinator stops.
    pub(super) async fn keep_time(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.config.lease / 5);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.with(|state, now| {
                state.cluster.tick(now);
                state.let_go();
            });
        }
    }

    /// Looks now and then whether another coordinator has taken over.
    pub(super) async fn keep_watch(self: Arc<Self>) {
        while self.stop.run_until_cancelled(tokio::time::sleep(CONFIRM)).await.is_some() {
            let queue = Arc::clone(&self.queue);
            match tokio::task::spawn_blocking(move || lock(&queue).confirm()).await {
                Ok(Ok(())) => {}
                Ok(Err(AppendError::Fenced(reason))) => self.fence(reason),
                Ok(Err(AppendError::Failed(error))) => {
                    let error = format!("{:#}", anyhow::Error::from(error));
                    tracing::warn!(error, "cannot look whether another coordinator has taken over");
                }
                Err(error) => {
                    tracing::error!(%error, "cannot look whether another coordinator has taken over")
                }
            }
        }
    }

    /// Carries out what the cluster asks for, one thing at a time, until the coordinator stops: what is under way
    /// then is carried out.
    pub(super) async fn carry_out(self: Arc<Self>) {
        let Some(mut actions) = lock(&self.asked_for).take() else { return };
        while let Some(Some(action)) = self.stop.run_until_cancelled(actions.recv()).await {
            let (shell, asked) = (Arc::clone(&self), action.clone());
            let done = tokio::task::spawn_blocking(move || shell.append(&asked)).await;
            match done.unwrap_or_else(|panic| Err(Refused::Failed(anyhow::Error::from(panic)))) {
                Ok(committed_bytes) => self.with(|state, now| {
                    state.appending = None;
                    state.trouble(job_of(&action), None);
                    state.cluster.committed(now, action.ticket(), committed_bytes);
                }),
                Err(Refused::Never(reason)) => {
                    tracing::error!(job = %job_of(&action), reason, "a range cannot be committed");
                    self.with(|state, now| {
                        state.appending = None;
                        state.cluster.commit_refused(now, action.ticket(), None, reason);
                    });
                }
                Err(Refused::Fenced(reason)) => self.fence(reason),
                Err(Refused::Failed(error)) => {
                    observe::append_failed(&action, &error);
                    let trouble =
                        format!("its journal cannot be written to, which is tried again: {error:#}");
                    self.with(|state, now| {
                        state.trouble(job_of(&action), Some(trouble));
                        state.cluster.commit_failed(now, action.ticket(), false);
                    });
                }
            }
        }
    }

    /// Makes an append, and returns the bytes of the run's shards after it. Blocks on the store.
    fn append(&self, action: &Action) -> Result<u64, Refused> {
        let record = records::of_action(action).map_err(Refused::Never)?;
        let job = job_of(action);
        let run = self.run_of(job)?;
        let mut run = lock(&run);
        let appended = run.append(record, || lock(&self.queue).confirm());
        let (opening, committed_bytes) = (run.opening(), run.committed_bytes());
        drop(run);
        self.with(|state, _| {
            if let Some(known) = state.jobs.get_mut(job) {
                known.opening = opening;
            }
        });
        appended?;
        Ok(committed_bytes)
    }

    /// The run of a job. One that had stopped is opened again, with what is in its journal.
    fn run_of(&self, job: &JobId) -> Result<Arc<Mutex<JobRun>>, Refused> {
        let found = self.with(|state, _| {
            let known = state.jobs.get_mut(job)?;
            known.stopped = false;
            Some(known.run.clone().ok_or_else(|| known.location.clone()))
        });
        let location = match found {
            Some(Ok(run)) => return Ok(run),
            Some(Err(location)) => location,
            None => return Err(Refused::Never(format!("there is no job {job}"))),
        };
        lock(&self.queue).confirm()?;
        let (run, _) = JobRun::go_on(&location).map_err(|error| Refused::Failed(error.into()))?;
        let (opening, run) = (run.opening(), Arc::new(Mutex::new(run)));
        self.with(|state, _| {
            if let Some(known) = state.jobs.get_mut(job) {
                known.opening = opening;
                known.run = Some(Arc::clone(&run));
            }
        });
        Ok(run)
    }

    /// Another coordinator owns the store: this one does nothing more, and ends.
    pub(super) fn fence(&self, reason: String) {
        tracing::error!(reason, "another coordinator owns the store: this one ends");
        let _ = self.fenced.set(reason);
        self.with(|state, now| state.cluster.commit_failed(now, 0, true));
        self.stop.cancel();
    }

    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Cancelled when this coordinator is to end.
    pub(super) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }
}

/// Why an append was not made.
enum Refused {
    /// And never will be.
    Never(String),
    /// Because another process owns the store.
    Fenced(String),
    /// For another reason; it is tried again.
    Failed(anyhow::Error),
}

impl From<AppendError> for Refused {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Fenced(reason) => Self::Fenced(reason),
            AppendError::Failed(error) => Self::Failed(error.into()),
        }
    }
}

impl State {
    fn answer(&self, reply: PullReply) -> Answer {
        Answer::new(reply, |share| {
            let known = self.jobs.get(&share.job)?;
            Some((known.url.clone(), known.opening))
        })
    }

    /// Remembers what follows from an event outside of the pure code.
    fn note(&mut self, event: &Event) {
        match event {
            Event::WorkerLost { worker, .. } => {
                self.told.remove(worker);
            }
            Event::Job { job, state } => {
                let stopped = !matches!(state, JobState::Queued | JobState::Running);
                self.jobs.get_mut(job).into_iter().for_each(|known| known.stopped = stopped);
            }
            _ => {}
        }
    }

    /// Remembers what keeps a job from going on, or that nothing does.
    pub(super) fn trouble(&mut self, job: &JobId, trouble: Option<String>) {
        if let Some(known) = self.jobs.get_mut(job) {
            known.trouble = trouble;
        }
    }

    /// Lets go of the runs of jobs that have stopped, so that others may open them.
    pub(super) fn let_go(&mut self) {
        let appending = self.appending.as_ref();
        for (_, known) in self.jobs.iter_mut().filter(|(job, known)| known.stopped && appending != Some(job))
        {
            known.run = None;
        }
    }
}

fn job_of(action: &Action) -> &JobId {
    let (Action::Commit { job, .. } | Action::Retract { job, .. }) = action;
    job
}

/// Whoever panicked with a lock in hand has not left a half-made change: calls of the pure code come and go as a
/// whole, and journals open themselves again.
pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
