//! The epochs that the coordinator assigns to this worker, from their assignment to their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use exact2048_coordinator::cluster::{EpochId, EpochStage, WorkerId};
use metrics::counter;

use super::epoch::Present;
use super::membership::Membership;
use super::observe;
use crate::wire::{Answer, Assignment};

/// An epoch that the runner must run.
pub struct Start {
    /// The share of this worker, and the location of the run.
    pub assignment: Assignment,
    /// Becomes true when the epoch must end.
    pub stop: Arc<AtomicBool>,
    /// Whether the runner has left the epoch, by request or by failure, and has reported any failure.
    pub has_left: AtomicBool,
}

/// The assigned epochs of a worker.
pub struct AssignedEpochs {
    worker: WorkerId,
    present: Arc<Present>,
    starts: Sender<Arc<Start>>,
    /// The epoch that this worker has begun and not left.
    current: Option<Arc<Start>>,
    /// The epoch that this worker has begun last. It may be over, but answers assign it until the coordinator knows
    /// that it was begun.
    last: Option<Membership>,
}

impl AssignedEpochs {
    /// Creates a worker without an epoch. `starts` leads to the runner with the other values.
    pub fn new(worker: WorkerId, present: Arc<Present>, starts: Sender<Arc<Start>>) -> Self {
        Self { worker, present, starts, current: None, last: None }
    }

    /// Returns the epoch that this worker has begun and not left.
    pub fn current(&self) -> Option<EpochId> {
        self.current.as_ref().map(|start| start.assignment.share.epoch)
    }

    /// Returns the epoch that the next pull names, and its stage. A pull names an epoch only after the runner has
    /// entered the epoch. Otherwise an epoch would look active while the runner hangs in the epoch before.
    pub fn named(&self) -> (Option<EpochId>, EpochStage) {
        let Some(epoch) = *self.present.entered.lock() else { return (None, EpochStage::Preparing) };
        let stage = match self.present.running.borrow().as_ref().filter(|running| running.number() == epoch) {
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
        self.last = Some(membership);
        self.present.joined.send_replace(Some(membership));
        let start = Arc::new(Start { assignment, stop: Arc::default(), has_left: AtomicBool::new(false) });
        self.current = Some(Arc::clone(&start));
        counter!(observe::EPOCHS).increment(1);
        // Without a receiver, the process is ending.
        let _ = self.starts.send(start);
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
        if self.current.as_ref().is_some_and(|start| start.has_left.load(Ordering::Relaxed)) {
            self.leave();
        }
    }

    /// Passes the progress and the order in an answer to the running epoch.
    pub fn pass_on(&self, answer: &Answer) {
        let running = self.present.running.borrow().clone();
        if let Some(running) = running {
            running.follow(answer);
        }
    }

    /// Stops work on the epoch at once.
    pub fn leave(&mut self) {
        if let Some(start) = self.current.take() {
            let share = &start.assignment.share;
            self.present.joined.send_replace(None);
            start.stop.store(true, Ordering::Relaxed);
            if let Some(running) =
                self.present.running.borrow().as_ref().filter(|r| r.number() == share.epoch)
            {
                running.stop();
            }
            tracing::info!(worker = %self.worker, job = %share.job, epoch = %share.epoch, "epoch ends");
        }
    }
}
