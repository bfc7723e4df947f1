//! The epochs that the coordinator assigns to this worker, from their assignment to their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use exact2048_coordinator::cluster::{EpochId, EpochStage, JobId, WorkerId};
use metrics::counter;

use super::exchange::Current;
use super::membership::{Joined, Membership};
use super::observe;
use crate::wire::{Answer, Assignment};

/// An epoch that the runner must run.
pub struct Start {
    /// The share of this worker, and the location of the run.
    pub assignment: Assignment,
    /// Becomes true when the epoch must end.
    pub stop: Arc<AtomicBool>,
}

/// Epochs of the runner, as other threads see them. The number 0 stands for no epoch.
#[derive(Debug, Default)]
pub struct RunnerEpochs {
    /// The epoch that the runner is in.
    entered: AtomicU64,
    /// The epoch that the runner has left last, by request or by failure.
    left: AtomicU64,
}

impl RunnerEpochs {
    /// Records the epoch that the runner is in.
    pub fn enter(&self, epoch: EpochId) {
        self.entered.store(epoch.0, Ordering::Relaxed);
    }

    /// Records that the runner is in no epoch. It may still have to report why.
    pub fn exit(&self) {
        self.entered.store(0, Ordering::Relaxed);
    }

    /// Records that the runner has left an epoch and has reported any failure.
    pub fn leave(&self, epoch: EpochId) {
        self.left.store(epoch.0, Ordering::Relaxed);
    }

    fn entered(&self) -> Option<EpochId> {
        Some(self.entered.load(Ordering::Relaxed)).filter(|&epoch| epoch > 0).map(EpochId)
    }

    fn has_left(&self, epoch: EpochId) -> bool {
        self.left.load(Ordering::Relaxed) == epoch.0
    }
}

/// An epoch that this worker has begun and not left.
struct Begun {
    number: EpochId,
    job: JobId,
    stop: Arc<AtomicBool>,
}

/// The assigned epochs of a worker.
pub struct AssignedEpochs {
    worker: WorkerId,
    /// The epoch that the runner computes.
    running: Arc<Current>,
    joined: Arc<Joined>,
    runner: Arc<RunnerEpochs>,
    starts: Sender<Start>,
    current: Option<Begun>,
    /// The epoch that this worker has begun last. It may be over, but answers assign it until the coordinator knows
    /// that it was begun.
    last: Option<Membership>,
}

impl AssignedEpochs {
    /// Creates a worker without an epoch. `starts` leads to the runner with the other values.
    pub fn new(
        worker: WorkerId,
        (joined, running): (Arc<Joined>, Arc<Current>),
        runner: Arc<RunnerEpochs>,
        starts: Sender<Start>,
    ) -> Self {
        Self { worker, running, joined, runner, starts, current: None, last: None }
    }

    /// Returns the epoch that this worker has begun and not left.
    pub fn current(&self) -> Option<EpochId> {
        self.current.as_ref().map(|epoch| epoch.number)
    }

    /// Returns the epoch that the next pull names, and its stage. A pull names an epoch only after the runner has
    /// entered the epoch. Otherwise an epoch would look active while the runner hangs in the epoch before.
    pub fn named(&self) -> (Option<EpochId>, EpochStage) {
        let Some(epoch) = self.runner.entered() else { return (None, EpochStage::Preparing) };
        let stage = match self.running.borrow().as_ref().filter(|running| running.number() == epoch) {
            None => EpochStage::Preparing,
            Some(running) if running.is_waiting() => EpochStage::Waiting,
            Some(_) => EpochStage::Working,
        };
        (Some(epoch), stage)
    }

    /// Leaves the epoch and begins the assigned one.
    pub fn begin(&mut self, assignment: Assignment) {
        self.leave();
        let membership = Membership::of(&assignment.share);
        let (number, job) = (assignment.share.epoch, assignment.share.job.clone());
        self.last = Some(membership);
        self.joined.send_replace(Some(membership));
        // A coordinator of another store may use the number of an epoch that the runner has left.
        self.runner.leave(EpochId(0));
        let stop = Arc::new(AtomicBool::new(false));
        self.current = Some(Begun { number, job, stop: Arc::clone(&stop) });
        counter!(observe::EPOCHS).increment(1);
        // Without a receiver, the process is ending.
        let _ = self.starts.send(Start { assignment, stop });
    }

    /// Returns whether an assignment is of another epoch than the one that this worker has begun last.
    pub fn is_new(&self, assignment: &Assignment) -> bool {
        self.last != Some(Membership::of(&assignment.share))
    }

    /// Leaves the epoch if an answer withdraws it.
    pub fn withdraw(&mut self, withdrawn: Option<EpochId>) {
        if withdrawn.is_some() && withdrawn == self.current() {
            self.leave();
        }
    }

    /// Leaves the epoch if the runner has left it after a failure. Pulls no longer name that epoch, so the coordinator
    /// does not withdraw it.
    pub fn leave_if_failed(&mut self) {
        if self.current().is_some_and(|epoch| self.runner.has_left(epoch)) {
            self.leave();
        }
    }

    /// Passes the progress and the order in an answer to the running epoch.
    pub fn pass_on(&self, answer: &Answer) {
        let Some(running) = self.running.borrow().clone() else { return };
        if let Some(progress) = answer.progress.filter(|progress| progress.epoch == running.number()) {
            running.progress(progress);
        }
        if let Some(write) = answer.write.filter(|write| write.epoch == running.number()) {
            running.order(write);
        }
    }

    /// Stops work on the epoch at once.
    pub fn leave(&mut self) {
        if let Some(Begun { number, job, stop }) = self.current.take() {
            self.joined.send_replace(None);
            stop.store(true, Ordering::Relaxed);
            if let Some(running) = self.running.borrow().as_ref().filter(|r| r.number() == number) {
                running.stop();
            }
            tracing::info!(worker = %self.worker, %job, epoch = %number, "epoch ends");
        }
    }
}
