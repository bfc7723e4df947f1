//! Calls the pure code with the time, and tells all who wait what follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{
    Cluster, ClusterConfig, ClusterError, EpochId, EpochProgress, Errand, Event, JobId, Pull, PullReply,
    Refusal, Secrets, Signal, WorkerId,
};
use exact2048_game::Params;
use exact2048_net::text::with_causes;
use exact2048_proto::v1;
use exact2048_storage::{Location, StorageError};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::board::{self, Changes, ClusterSnapshot};
use super::carry_out::Work;
use super::estimates::Estimates;
use super::holding::{LastReply, PullDecision, hold};
use super::job_run::JobRun;
use super::queue::Queue;
use super::{AppendError, observe};
use crate::wire::{Answer, OpeningId, cluster_status};

/// Interval at which the shell checks that no other coordinator has taken over.
///
/// Appends would notice a takeover, but only when there is something to append.
const CONFIRM: Duration = Duration::from_secs(10);

/// A coordinator.
pub struct Shell {
    pub(super) store: Location,
    pub(super) config: ClusterConfig,
    begun: Instant,
    state: Mutex<State>,
    /// The urgent part of the signal for workers, without its progress.
    urgent: watch::Sender<Signal>,
    progress: watch::Sender<Option<EpochProgress>>,
    /// Counts changes of jobs' states.
    job_states: watch::Sender<u64>,
    /// Pending work on journals, one item at a time.
    work: mpsc::UnboundedSender<Work>,
    /// Jobs whose end or progress is to be written to the queue.
    news: mpsc::UnboundedSender<JobId>,
    /// The other ends, until `carry_out` and `note_jobs` take them.
    pub(super) receivers: Mutex<Option<(mpsc::UnboundedReceiver<Work>, mpsc::UnboundedReceiver<JobId>)>>,
    pub(super) estimates: Arc<Estimates>,
    board: Mutex<Arc<ClusterSnapshot>>,
    /// Something was decided since the board was looked at.
    is_stale: AtomicBool,
    pub(super) queue: Arc<Mutex<Queue>>,
    /// One change of the queue at a time.
    pub(super) changing: Arc<tokio::sync::Mutex<()>>,
    /// Why this coordinator does nothing more.
    fenced: OnceLock<String>,
    /// Cancelled when this coordinator is to end.
    pub(super) stop: CancellationToken,
}

/// Why a pull has no answer.
#[derive(Debug)]
pub enum PullError {
    /// It is refused.
    Refused(Refusal),
    /// The coordinator is stopping.
    Stopping,
}

impl From<Refusal> for PullError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// State that is read and changed only as a whole.
pub(super) struct State {
    pub cluster: Cluster,
    pub jobs: BTreeMap<JobId, Known>,
    /// The last answer to each worker.
    told: HashMap<WorkerId, LastReply>,
}

/// The shell's data about a job.
#[derive(Clone)]
pub(super) struct Known {
    pub params: Params,
    /// How many bytes its run may take of the disk, if there is a limit.
    pub disk_limit: Option<u64>,
    pub location: Location,
    /// The URL of its place, for workers and people.
    pub url: String,
    /// Its run, while it is open for writing: only while the cluster holds it.
    pub held: Option<HeldRun>,
    pub check: Check,
}

/// The run of a job that is open for writing.
#[derive(Clone)]
pub(super) struct HeldRun {
    pub run: Arc<Mutex<JobRun>>,
    /// The latest opening record.
    pub opening: OpeningId,
}

/// Whether the shards of a job that is done are being read again.
#[derive(Clone)]
pub(super) enum Check {
    None,
    UnderWay,
    /// They could not be read, for this reason.
    Failed(String),
}

impl Check {
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::UnderWay)
    }

    /// Describes a failed check for users.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("cannot reread its shards: {why}")),
            Self::None | Self::UnderWay => None,
        }
    }
}

impl Known {
    /// A job whose run is not open.
    pub fn new(params: Params, disk_limit: Option<u64>, location: Location) -> Result<Self, StorageError> {
        let url = location.url()?;
        Ok(Self { params, disk_limit, location, url, held: None, check: Check::None })
    }
}

impl Shell {
    /// A coordinator without jobs that owns a queue. `stop` is cancelled when it is fenced off.
    pub(super) fn new(
        store: Location,
        queue: Queue,
        config: ClusterConfig,
        secrets: Secrets,
        stop: CancellationToken,
    ) -> Self {
        let ((work, to_do), (news, to_note)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        // Epochs are numbered above 0: to workers 0 means no epoch.
        let first_epoch = EpochId::first_of(queue.fence());
        let cluster = Cluster::new(first_epoch, config.clone(), secrets, Duration::ZERO);
        let state = State { cluster, jobs: BTreeMap::new(), told: HashMap::new() };
        Self {
            store,
            config,
            begun: Instant::now(),
            state: Mutex::new(state),
            urgent: watch::Sender::default(),
            progress: watch::Sender::default(),
            job_states: watch::Sender::default(),
            work,
            news,
            receivers: Mutex::new(Some((to_do, to_note))),
            estimates: Arc::default(),
            board: Mutex::new(Arc::new(ClusterSnapshot::empty())),
            is_stale: AtomicBool::new(false),
            queue: Arc::new(Mutex::new(queue)),
            changing: Arc::default(),
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
    pub(super) fn with<T>(self: &Arc<Self>, call: impl FnOnce(&mut State, Duration) -> T) -> T {
        let mut state = self.state.lock();
        let result = call(&mut state, self.begun.elapsed());
        for event in state.cluster.take_events() {
            observe::log_event(&event);
            self.follow(&mut state, event);
        }
        // While the coordinator is stopping, this has no receiver any more.
        for append in state.cluster.take_appends() {
            let _ = self.work.send(Work::Append(append));
        }
        for errand in state.cluster.take_errands() {
            match errand {
                Errand::Open { ticket, job, times, may_make } => {
                    drop(self.work.send(Work::Open { ticket, job, times, may_make }))
                }
                Errand::Look(job) => drop(self.work.send(Work::Look(job))),
                Errand::Examine(claim) => self.examine(claim),
            }
        }
        let signal = state.cluster.signal();
        drop(state);
        let urgent = Signal { progress: None, ..signal };
        self.urgent.send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        self.progress.send_if_modified(|known| std::mem::replace(known, signal.progress) != signal.progress);
        result
    }

    /// Sees to what follows from an event outside of the pure code.
    fn follow(&self, state: &mut State, event: Event) {
        match event {
            Event::WorkerLost { worker, .. } => {
                state.told.remove(&worker);
            }
            Event::Job { job, state } => {
                self.is_stale.store(true, Ordering::Release);
                self.job_states.send_modify(|changes| *changes += 1);
                if state.has_ended() {
                    let _ = self.news.send(job);
                }
            }
            Event::Progress { job } => drop(self.news.send(job)),
            _ => {}
        }
    }

    /// Answers a worker, as soon as there is something new to tell it, or after a while.
    ///
    /// # Errors
    ///
    /// `PullError`.
    pub async fn pull(self: &Arc<Self>, pull: &Pull) -> Result<Answer, PullError> {
        let begun = Instant::now();
        let (mut urgent, mut progress) = (self.urgent.subscribe(), self.progress.subscribe());
        loop {
            urgent.mark_unchanged();
            progress.mark_unchanged();
            let (answer, hold) = self.look(pull, begun.elapsed())?;
            let (wait, gathers) = match hold {
                PullDecision::Answer => return Ok(answer),
                PullDecision::Gather(wait) => (wait, true),
                PullDecision::Wait(wait) => (wait, false),
            };
            tokio::select! {
                () = self.stop.cancelled() => return Err(PullError::Stopping),
                () = tokio::time::sleep(wait) => {}
                _ = urgent.changed() => {}
                _ = progress.changed(), if !gathers => {}
            }
        }
    }

    /// The answer to a pull, and whether it is given now or held back.
    fn look(self: &Arc<Self>, pull: &Pull, waited: Duration) -> Result<(Answer, PullDecision), Refusal> {
        self.with(|state, now| {
            let reply = state.cluster.pull(now, pull)?;
            let told = LastReply::of(pull.incarnation, &reply);
            let has_reports = reply.acknowledged > pull.first_report;
            let hold = hold(state.told.get(&pull.worker), &told, has_reports, waited, reply.hold);
            // A worker that said goodbye is not registered any more.
            if hold == PullDecision::Answer && state.cluster.knows(pull.worker) {
                state.told.insert(pull.worker, told);
            }
            Ok((state.answer(reply), hold))
        })
    }

    /// Changes whenever a job changes its state.
    pub(super) fn job_states(&self) -> watch::Receiver<u64> {
        self.job_states.subscribe()
    }

    /// Returns the visible state, shared by all callers within a fifth of a second unless a decision was made
    /// meanwhile.
    #[must_use]
    pub fn snapshot(self: &Arc<Self>) -> Arc<ClusterSnapshot> {
        // A call that comes while a snapshot is made waits for it.
        let mut board = self.board.lock();
        let is_stale = self.is_stale.swap(false, Ordering::AcqRel);
        if is_stale || !board.is_fresh() {
            let changes = self.with(|state, now| {
                let changed = state.cluster.take_changed();
                let look = |job: JobId| {
                    let found = state.cluster.job_status(&job, now).zip(state.jobs.get(&job).cloned());
                    (job, found)
                };
                Changes {
                    jobs: changed.into_iter().map(look).collect(),
                    workers: state.cluster.worker_statuses(now),
                }
            });
            *board = Arc::new(board.with(changes));
        }
        Arc::clone(&board)
    }

    /// One job as it is now.
    ///
    /// # Errors
    ///
    /// NOT_FOUND.
    pub fn job_view(self: &Arc<Self>, job: &JobId) -> Result<v1::Job, tonic::Status> {
        self.with(|state, now| {
            let found = state.cluster.job_status(job, now).zip(state.jobs.get(job));
            found.map(|(status, known)| board::message_of(&status, known))
        })
        .ok_or_else(|| cluster_status(&ClusterError::Unknown(job.clone())))
    }

    /// Has the next who looks at the cluster be shown what was decided, not the picture of before.
    pub(super) fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Puts what the cluster is doing into the metrics.
    pub fn record_metrics(self: &Arc<Self>) {
        let states = self.with(|state, _| state.cluster.states());
        observe::record(&self.snapshot(), states);
    }

    /// Lets time pass for the cluster until the coordinator stops.
    pub(super) async fn keep_time(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.config.lease / 5);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let is_idle = self.with(|state, now| {
                state.cluster.tick(now);
                state.not_needed().is_empty()
            });
            if !is_idle {
                let _ = self.work.send(Work::Release);
            }
        }
    }

    /// Checks now and then that no other coordinator has taken over.
    pub(super) async fn keep_watch(self: Arc<Self>) {
        while self.stop.run_until_cancelled(tokio::time::sleep(CONFIRM)).await.is_some() {
            let queue = Arc::clone(&self.queue);
            match tokio::task::spawn_blocking(move || queue.lock().confirm()).await {
                Ok(Ok(())) => {}
                Ok(Err(AppendError::Fenced(reason))) => self.fence(reason),
                Ok(Err(error)) => {
                    let error = with_causes(&error);
                    tracing::warn!(error, "cannot check ownership of the store");
                    self.with(|state, now| state.cluster.store_is_away(now, error));
                }
                Err(error) => {
                    tracing::error!(%error, "cannot check ownership of the store")
                }
            }
        }
    }

    /// Another coordinator owns the store: this one does nothing more, and ends.
    pub(super) fn fence(self: &Arc<Self>, reason: String) {
        tracing::error!(reason, "another coordinator owns the store, stopping");
        let _ = self.fenced.set(reason);
        self.with(|state, now| state.cluster.fence(now));
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

impl State {
    fn answer(&self, reply: PullReply) -> Answer {
        Answer::new(reply, |share| {
            let known = self.jobs.get(&share.job)?;
            Some((known.url.clone(), known.held.as_ref()?.opening))
        })
    }

    /// The jobs whose runs are open and not needed any more.
    pub(super) fn not_needed(&self) -> Vec<JobId> {
        let held = self.jobs.iter().filter(|(_, known)| known.held.is_some());
        held.filter(|(job, _)| !self.cluster.holds(job)).map(|(job, _)| job.clone()).collect()
    }
}
