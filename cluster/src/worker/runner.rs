//! The thread that runs epochs, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use exact2048_coordinator::cluster::{Share, WorkerFailure, WorkerId, WorkerReport};
use exact2048_storage::{Attempt, Scratch};
use metrics::counter;

use super::assigned::Start;
use super::epoch::{Epoch, Present, Running};
use super::jobs::Jobs;
use super::leader::{Orders, RemoteLeader};
use super::membership::Membership;
use super::observe;
use super::options::WorkerOptions;
use super::outbox::Outbox;
use super::peers::PeerCopies;
use crate::wire::Assignment;

/// Interval at which a worker with a full disk checks for free space, and the bytes that must be free.
const FULL_PAUSE: Duration = Duration::from_secs(5);
const FULL_BYTES: usize = 64 << 20;

/// Runs epochs.
pub struct Runner {
    /// Opens the run of each job.
    pub jobs: Jobs,
    /// Reports to the coordinator.
    pub outbox: Arc<Outbox>,
    /// This worker.
    pub worker: WorkerId,
    /// Peers that are asked for copies of shards.
    pub peers: Arc<PeerCopies>,
    /// The epochs that the runner is in, for other threads.
    pub present: Arc<Present>,
    /// Settings of the worker. Peers get the certificates and the token for the coordinator.
    pub options: WorkerOptions,
}

impl Runner {
    /// Runs epochs until no more can arrive. Must be called on a separate thread that has entered a runtime.
    pub fn run(mut self, starts: &Receiver<Arc<Start>>) {
        let mut early = VecDeque::new();
        while let Some(start) = early.pop_front().or_else(|| starts.recv().ok()) {
            if start.stop.load(Ordering::Relaxed) {
                continue;
            }
            let share = Arc::new(start.assignment.share.clone());
            *self.present.entered.lock() = Some(share.epoch);
            self.peers.join(&share.members, Membership::of(&share));
            let ended = self.run_epoch(&share, &start.assignment, &start.stop);
            self.peers.leave();
            self.present.running.send_replace(None);
            *self.present.entered.lock() = None;
            let Err(failure) = ended else {
                start.has_left.store(true, Ordering::Relaxed);
                continue;
            };
            let is_full = matches!(failure, WorkerFailure::DiskFull(_));
            let is_own = is_full || matches!(failure, WorkerFailure::Other(_));
            self.report_failure(&share, failure);
            // Leaves the epoch after the report, because the process may then end at once.
            start.has_left.store(true, Ordering::Relaxed);
            if is_full {
                let Some(meanwhile) = self.wait_for_space(starts) else { return };
                early.extend(meanwhile);
            }
            if is_own {
                self.outbox.report_now(WorkerReport::Well);
            }
        }
    }

    /// Reports the failure of an epoch to the coordinator, in the log and in the metrics.
    fn report_failure(&self, share: &Share, failure: WorkerFailure) {
        counter!(observe::EPOCHS_FAILED).increment(1);
        let (worker, epoch) = (self.worker, share.epoch);
        tracing::warn!(%worker, job = %share.job, %epoch, %failure, "epoch failed on this worker");
        self.outbox.report_now(WorkerReport::Failed { epoch: Some(share.epoch), failure });
    }

    /// Waits until a full disk has free space again. Returns the epochs that arrived in the meantime, or `None` if the
    /// process ends. These epochs are few, because the coordinator knows of the full disk.
    fn wait_for_space(&self, starts: &Receiver<Arc<Start>>) -> Option<Vec<Arc<Start>>> {
        let mut meanwhile = Vec::new();
        while !has_free_space(&self.options.folder) {
            match starts.recv_timeout(FULL_PAUSE) {
                Ok(start) => meanwhile.push(start),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        Some(meanwhile)
    }

    fn run_epoch(
        &mut self,
        share: &Arc<Share>,
        assignment: &Assignment,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), WorkerFailure> {
        let open = self.jobs.open(share, &assignment.run_url, stop)?;
        let me = share.member(self.worker);
        let me = me.ok_or_else(|| {
            WorkerFailure::Other(
                "expected this worker among the members of the epoch, found only others".to_owned(),
            )
        })?;
        let segment = share.segment;
        let (worker, job, epoch) = (self.worker, &share.job, share.epoch);
        tracing::info!(%worker, %job, %epoch, phase = segment.phase.name(), first = %segment.first,
            last = %segment.last, members = share.members.len(), "epoch begins");
        let attempt = Attempt { opening: assignment.opening.0, epoch: share.epoch.0, member: self.worker.0 };
        let leader = RemoteLeader {
            worker,
            share: Arc::clone(share),
            catalog: Arc::clone(open.run.catalog()),
            attempt,
            outbox: Arc::clone(&self.outbox),
            stop: Arc::clone(stop),
            orders: Orders::default(),
        };
        let running = Running::new(leader, me, Arc::clone(&open.worker), &self.options.client);
        self.present.running.send_replace(Some(Arc::clone(&running) as Arc<dyn Epoch>));
        let ended = running.run(self.options.threads);
        self.jobs.keep(assignment.run_url.clone(), open);
        ended
    }
}

/// Returns whether [`FULL_BYTES`] bytes can be written to a folder.
fn has_free_space(folder: &std::path::Path) -> bool {
    Scratch::create(folder).and_then(|mut scratch| scratch.append(&vec![1; FULL_BYTES])).is_ok()
}
