//! The workers that are there: leases, incarnations, numbers of reports, and health.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ids::{EpochId, Incarnation};
use super::messages::{Pull, Refusal, WorkerId, WorkerReport};

/// Failures of a worker double its back-off up to this many times.
const MOST_DOUBLINGS: u32 = 6;

/// A worker that cannot reach peers in more epochs than this, with no commit between them, is itself to blame.
const MOST_COMPLAINTS: u32 = 2;

/// A worker that hangs is left out for this many times as long as one that fails: every hang costs the others a minute.
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
    /// Number of the next report that has not arrived.
    pub next_report: u64,
    /// Why it cannot work, until it says that it is well.
    pub unwell: Option<String>,
    /// Gets no work before this time.
    pub not_before: Duration,
    /// A peer could not reach it, and it was not heard since: most likely it is gone, which its lease says only later.
    doubted: bool,
    /// The epoch in which it hung and which it has not left yet: what it does there may never end.
    pub hangs_in: Option<EpochId>,
    /// Failures since its last commit.
    failures: u32,
    /// Epochs that it has ended since its last commit because it could not reach a peer.
    complaints: u32,
}

#[derive(Default, Debug)]
pub(super) struct Roster {
    pub workers: BTreeMap<WorkerId, Registered>,
    /// When a worker last registered.
    pub last_joined: Duration,
}

impl Roster {
    /// Notes that a worker was heard. Returns whether the process that its pull is from is registered.
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

    /// Registers a process of a worker. Returns whether an earlier process of it was registered, and so is gone.
    pub fn register(&mut self, pull: &Pull, now: Duration) -> bool {
        let worker = Registered {
            incarnation: pull.incarnation,
            threads: pull.threads,
            memory_bytes: pull.memory_bytes,
            address: pull.address.clone(),
            leaving: pull.leaving,
            heard: now,
            next_report: pull.first_report,
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

    /// The reports of a pull that have not arrived before. Those that are missing before the first were acknowledged by
    /// an earlier coordinator, or before the worker was lost: they are of epochs that are over.
    pub fn new_reports(&mut self, pull: &Pull) -> Vec<WorkerReport> {
        let Some(worker) = self.workers.get_mut(&pull.worker) else { return Vec::new() };
        let skip = worker.next_report.saturating_sub(pull.first_report);
        worker.next_report = worker.next_report.max(pull.first_report + pull.reports.len() as u64);
        pull.reports.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).cloned().collect()
    }

    /// Removes workers that were not heard for longer than the lease; says of each whether it wanted to go.
    pub fn remove_lost(&mut self, lease: Duration, now: Duration) -> Vec<(WorkerId, bool)> {
        let is_lost = |_: &WorkerId, worker: &mut Registered| now.saturating_sub(worker.heard) > lease;
        self.workers.extract_if(.., is_lost).map(|(id, worker)| (id, worker.leaving)).collect()
    }

    /// Excuses all workers for a time in which the coordinator itself hung, so that nobody could be heard.
    pub fn excuse(&mut self, silence: Duration) {
        self.workers.values_mut().for_each(|worker| worker.heard += silence);
    }

    /// Gives a worker no work for a while; for longer with each failure.
    pub fn back_off(&mut self, worker: WorkerId, base: Duration, now: Duration) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.not_before = now + base * 2u32.pow(worker.failures.min(MOST_DOUBLINGS));
            worker.failures += 1;
        }
    }

    /// Notes that a worker could not reach a peer, which ends their epoch. The peer is to blame; and so is the worker
    /// if it complains again and again while nothing is committed.
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

    /// Notes that a worker holds up an epoch: it gets no work for long, and none before it has left this epoch.
    pub fn hangs(&mut self, worker: WorkerId, epoch: EpochId, base: Duration, now: Duration) {
        self.back_off(worker, HANG * base, now);
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.hangs_in = Some(epoch);
        }
    }

    /// The worker took part in a commit: its earlier failures do not count any more.
    pub fn forgive(&mut self, worker: WorkerId) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.failures = 0;
            worker.complaints = 0;
        }
    }
}

impl Registered {
    /// Whether it may be given work.
    pub fn is_available(&self, now: Duration) -> bool {
        let is_free = !self.leaving && self.unwell.is_none() && self.hangs_in.is_none();
        is_free && !self.doubted && now >= self.not_before
    }
}
