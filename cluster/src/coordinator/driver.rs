//! Calls the pure code with the time, and passes on the results.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{
    Append, Cluster, ClusterError, EpochProgress, Errand, Event, JobId, Pull, PullDecision, Refusal, Signal,
};
use exact2048_proto::v1;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::board::{Board, ClusterSnapshot};
use super::known::State;
use super::observe;
use super::statuses::stopping;
use crate::wire::{Answer, cluster_status, job_message, refusal_status};

/// Work on the journals and shards of jobs.
#[derive(Clone)]
pub(super) enum Work {
    Append(Append),
    Errand(Errand),
    /// Releases the runs that are no longer needed, so that other processes can open them.
    Release,
}

/// Connects the pure code of a coordinator to a clock. The driver makes no decisions.
pub(super) struct Driver {
    begun: Instant,
    state: Mutex<State>,
    pub signals: Signals,
    orders: UnboundedSender<Work>,
    news: UnboundedSender<JobId>,
    pub board: Board,
    /// Reason why this coordinator stopped working; set if another one owns the store.
    pub fenced: OnceLock<String>,
    /// Cancelled when this coordinator must end.
    pub stop: CancellationToken,
}

/// Orders of the pure code, on their way to the code that carries them out.
pub(super) struct Pending {
    pub work: UnboundedReceiver<Work>,
    /// Jobs whose end or progress is to be written to the queue.
    pub news: UnboundedReceiver<JobId>,
}

impl Driver {
    /// Drives a cluster without jobs. `stop` is cancelled when another coordinator fences this one off.
    pub fn new(cluster: Cluster, stop: CancellationToken) -> (Self, Pending) {
        let ((orders, work), (news, to_note)) = (unbounded_channel(), unbounded_channel());
        let driver = Self {
            begun: Instant::now(),
            state: Mutex::new(State { cluster, jobs: BTreeMap::new() }),
            signals: Signals::default(),
            orders,
            news,
            board: Board::default(),
            fenced: OnceLock::new(),
            stop,
        };
        (driver, Pending { work, news: to_note })
    }

    /// Calls the pure code, and passes on its events, orders and signals.
    pub fn with<T>(&self, call: impl FnOnce(&mut State, Duration) -> T) -> T {
        let mut state = self.state.lock();
        let result = call(&mut state, self.begun.elapsed());
        for event in state.cluster.take_events() {
            observe::log_event(&event);
            self.follow(event);
        }
        let appends = state.cluster.take_appends().into_iter().map(Work::Append);
        let errands = state.cluster.take_errands().into_iter().map(Work::Errand);
        appends.chain(errands).for_each(|work| self.order(work));
        let signal = state.cluster.signal();
        drop(state);
        self.signals.publish(signal);
        result
    }

    /// Orders work. A stopping coordinator has no receiver and ignores the order.
    fn order(&self, work: Work) {
        let _ = self.orders.send(work);
    }

    fn follow(&self, event: Event) {
        let changed = match event {
            Event::Job { job, state } => {
                self.board.mark_stale();
                self.signals.job_states.send_modify(|changes| *changes += 1);
                state.has_ended().then_some(job)
            }
            Event::Progress { job } => Some(job),
            _ => None,
        };
        if let Some(job) = changed {
            // A stopping coordinator has no receiver.
            let _ = self.news.send(job);
        }
    }

    /// Answers a worker as soon as there is news, or without news when the pull has waited long enough.
    ///
    /// # Errors
    ///
    /// The status of a refusal, or UNAVAILABLE if the coordinator is stopping.
    pub async fn pull(&self, pull: &Pull) -> Result<Answer, Status> {
        let begun = Instant::now();
        let mut news = self.signals.listen();
        loop {
            news.forget();
            let decided = self.with(|state, now| {
                let (reply, decision) = state.cluster.answer(now, pull, begun.elapsed())?;
                Ok((state.answer(reply), decision))
            });
            let (answer, decision) = decided.map_err(|refusal: Refusal| {
                observe::refused(pull.worker, &refusal);
                refusal_status(&refusal)
            })?;
            if decision == PullDecision::Answer {
                return Ok(answer);
            }
            if self.stop.run_until_cancelled(news.wait(decision)).await.is_none() {
                return Err(stopping());
            }
        }
    }

    /// Returns the visible state, shared by all callers within a fifth of a second unless it became stale meanwhile.
    pub fn snapshot(&self) -> Arc<ClusterSnapshot> {
        self.board.current(|last| {
            let (changed, workers) = self.with(|state, now| {
                let changed = state.cluster.take_changed();
                let look = |job: JobId| {
                    let found = state.cluster.job_status(&job, now).zip(state.jobs.get(&job).cloned());
                    (job, found)
                };
                (changed.into_iter().map(look).collect(), state.cluster.worker_statuses(now))
            });
            last.with(changed, &workers)
        })
    }

    /// Returns the current state of a job.
    ///
    /// # Errors
    ///
    /// NOT_FOUND.
    pub fn job_view(&self, job: &JobId) -> Result<v1::Job, Status> {
        let found = self.with(|state, now| {
            let found = state.cluster.job_status(job, now).zip(state.jobs.get(job));
            found.map(|(status, known)| job_message(&status, &known.params, &known.url))
        });
        found.ok_or_else(|| cluster_status(&ClusterError::Unknown(job.clone())))
    }

    /// Passes the time to the pure code in steps until the coordinator stops. Also orders the release of unneeded runs.
    pub async fn keep_time(self: Arc<Self>, step: Duration) {
        let mut ticks = tokio::time::interval(step);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let is_idle = self.with(|state, now| {
                state.cluster.tick(now);
                state.not_needed().is_empty()
            });
            if !is_idle {
                self.order(Work::Release);
            }
        }
    }

    /// Stops this coordinator, because another one owns the store.
    pub fn fence(&self, reason: String) {
        tracing::error!(reason, "another coordinator owns the store, stopping");
        let _ = self.fenced.set(reason);
        self.with(|state, now| state.cluster.fence(now));
        self.stop.cancel();
    }
}

/// Signals of a coordinator.
#[derive(Default)]
pub(super) struct Signals {
    /// The urgent part of the signal for workers, without its progress.
    urgent: watch::Sender<Signal>,
    progress: watch::Sender<Option<EpochProgress>>,
    /// Counts changes of jobs' states.
    pub job_states: watch::Sender<u64>,
}

/// A pull that waits for news.
struct Listener {
    urgent: watch::Receiver<Signal>,
    progress: watch::Receiver<Option<EpochProgress>>,
}

impl Signals {
    /// Publishes the news for workers.
    fn publish(&self, signal: Signal) {
        let urgent = Signal { progress: None, ..signal };
        self.urgent.send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        self.progress.send_if_modified(|known| std::mem::replace(known, signal.progress) != signal.progress);
    }

    fn listen(&self) -> Listener {
        Listener { urgent: self.urgent.subscribe(), progress: self.progress.subscribe() }
    }
}

impl Listener {
    /// Ignores all news until now.
    fn forget(&mut self) {
        self.urgent.mark_unchanged();
        self.progress.mark_unchanged();
    }

    /// Waits for news, at most for the time in the decision. A pull that gathers news waits for urgent news only.
    async fn wait(&mut self, decision: PullDecision) {
        let (wait, gathers) = match decision {
            PullDecision::Answer => return,
            PullDecision::Gather(wait) => (wait, true),
            PullDecision::Wait(wait) => (wait, false),
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = self.urgent.changed() => {}
            _ = self.progress.changed(), if !gathers => {}
        }
    }
}
