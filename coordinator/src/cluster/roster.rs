//! The registered workers: leases, incarnations, numbers of reports, and health.

use std::collections::BTreeMap;
use std::time::Duration;

use super::holding::LastReply;
use super::ids::{EpochId, Incarnation};
use super::messages::{Pull, Refusal, WorkerId, WorkerReport};

/// Maximum number of doublings of a worker's back-off.
const MOST_DOUBLINGS: u32 = 6;

/// Number of complaints about peers that a worker may make without a commit. Further complaints blame the worker too.
const MOST_COMPLAINTS: u32 = 2;

/// Factor on the back-off of a hanging worker, because every hang costs the other workers up to a minute.
const HANG: u32 = 30;

/// A worker that has registered.
#[derive(Debug)]
pub(super) struct Registered {
    pub incarnation: Incarnation,
    pub threads: u32,
    pub memory_bytes: u64,
    pub address: String,
    pub leaving: bool,
    pub heard: Duration,
    /// Number of the first report that has not arrived.
    pub next_report: u64,
    /// Content of the last answer to the worker.
    pub last_reply: Option<LastReply>,
    /// Reason why the worker cannot work, until it reports that it is well.
    pub unwell: Option<String>,
    /// Time before which the worker gets no work.
    pub not_before: Duration,
    /// Whether a peer could not reach the worker and the worker has not pulled since. Such a worker is probably
    /// dead although its lease is not over.
    doubted: bool,
    /// Epoch in which the worker hung, until it leaves that epoch.
    pub hangs_in: Option<EpochId>,
    /// Number of failures since the worker's last commit.
    failures: u32,
    /// Number of epochs that the worker ended by a complaint about a peer since its last commit.
    complaints: u32,
}

#[derive(Default, Debug)]
pub(super) struct Roster {
    pub workers: BTreeMap<WorkerId, Registered>,
    /// Time of the last registration.
    pub last_joined: Duration,
}

impl Roster {
    /// Records a pull. Returns whether the pull's process is registered.
    pub fn hear(&mut self, pull: &Pull, now: Duration) -> Result<bool, Refusal> {
        let Some(known) = self.workers.get_mut(&pull.worker) else { return Ok(false) };
        if pull.incarnation < known.incarnation {
            return Err(Refusal::OldIncarnation {
                worker: pull.worker,
                expected: known.incarnation,
                got: pull.incarnation,
            });
        }
        if pull.incarnation > known.incarnation {
            return Ok(false);
        }
        known.heard = now;
        known.doubted = false;
        if pull.epoch.is_none() {
            known.hangs_in = None;
        }
        known.leaving |= pull.leaving;
        Ok(true)
    }

    /// Registers a process of a worker. Returns whether it replaces an earlier process.
    pub fn register(&mut self, pull: &Pull, now: Duration) -> bool {
        let worker = Registered {
            incarnation: pull.incarnation,
            threads: pull.threads,
            memory_bytes: pull.memory_bytes,
            address: pull.address.clone(),
            leaving: pull.leaving,
            heard: now,
            next_report: pull.first_report,
            last_reply: None,
            unwell: None,
            not_before: now,
            doubted: false,
            hangs_in: None,
            failures: 0,
            complaints: 0,
        };
        self.last_joined = now;
        self.workers.insert(pull.worker, worker).is_some()
    }

    /// Returns the new reports of a pull. Reports missing before the first one were acknowledged by an earlier
    /// coordinator, or before the worker was lost. The epochs of missing reports are over.
    pub fn new_reports(&mut self, pull: &Pull) -> Vec<WorkerReport> {
        let Some(worker) = self.workers.get_mut(&pull.worker) else { return Vec::new() };
        let skip = worker.next_report.saturating_sub(pull.first_report);
        worker.next_report = worker.next_report.max(pull.first_report + pull.reports.len() as u64);
        pull.reports.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).cloned().collect()
    }

    /// Removes workers that were silent for longer than the lease, and returns whether each was leaving.
    pub fn remove_lost(&mut self, lease: Duration, now: Duration) -> Vec<(WorkerId, bool)> {
        let is_lost = |_: &WorkerId, worker: &mut Registered| now.saturating_sub(worker.heard) > lease;
        self.workers.extract_if(.., is_lost).map(|(id, worker)| (id, worker.leaving)).collect()
    }

    /// Extends all leases by a time in which the coordinator itself hung and received no pulls.
    pub fn excuse(&mut self, silence: Duration) {
        self.workers.values_mut().for_each(|worker| worker.heard += silence);
    }

    /// Suspends a worker for a limited time. The time doubles with each failure.
    pub fn back_off(&mut self, worker: WorkerId, base: Duration, now: Duration) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.not_before = now + base * 2u32.pow(worker.failures.min(MOST_DOUBLINGS));
            worker.failures += 1;
        }
    }

    /// Records that a worker's complaint about a peer ended their epoch. The peer is blamed. The worker is blamed
    /// too if it complains repeatedly without a commit in between.
    pub fn blame(&mut self, peer: WorkerId, by: WorkerId, base: Duration, now: Duration) {
        self.back_off(peer, base, now);
        if let Some(peer) = self.workers.get_mut(&peer) {
            peer.doubted = true;
        }
        let Some(complainer) = self.workers.get_mut(&by) else { return };
        complainer.complaints += 1;
        if complainer.complaints > MOST_COMPLAINTS {
            self.back_off(by, base, now);
        }
    }

    /// Records that a worker blocks an epoch. The worker gets no work for a long time, and none before it has left
    /// this epoch.
    pub fn hangs(&mut self, worker: WorkerId, epoch: EpochId, base: Duration, now: Duration) {
        self.back_off(worker, HANG * base, now);
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.hangs_in = Some(epoch);
        }
    }

    /// Clears the failures of a worker that took part in a commit.
    pub fn forgive(&mut self, worker: WorkerId) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.failures = 0;
            worker.complaints = 0;
        }
    }
}

impl Registered {
    /// Returns whether the worker may get work.
    pub fn is_available(&self, now: Duration) -> bool {
        let is_free = !self.leaving && self.unwell.is_none() && self.hangs_in.is_none();
        is_free && !self.doubted && now >= self.not_before
    }
}
