//! The registered workers: leases, incarnations, numbers of reports, and health.

use std::collections::BTreeMap;
use std::time::Duration;

use super::errors::ClusterError;
use super::health::Health;
use super::holding::LastReply;
use super::ids::Incarnation;
use super::job::Job;
use super::memory::LeastMemory;
use super::messages::{Pull, Refusal, WorkerId, WorkerReport};

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
    pub health: Health,
}

#[derive(Debug)]
pub(super) struct Roster {
    pub workers: BTreeMap<WorkerId, Registered>,
    /// Time of the last registration.
    last_joined: Duration,
    /// Time without work for a worker after its first failure.
    backoff: Duration,
}

impl Roster {
    pub fn new(backoff: Duration) -> Self {
        Self { workers: BTreeMap::new(), last_joined: Duration::ZERO, backoff }
    }

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
        known.health.pulled(pull.epoch);
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
            health: Health::new(self.backoff, now),
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

    /// Removes a worker. Returns whether it was registered.
    pub fn remove(&mut self, worker: WorkerId) -> bool {
        self.workers.remove(&worker).is_some()
    }

    /// Returns the time of the last registration; `None` without workers.
    pub fn last_joined(&self) -> Option<Duration> {
        (!self.workers.is_empty()).then_some(self.last_joined)
    }

    /// Returns the health of a worker, if it is registered.
    pub fn health(&mut self, worker: WorkerId) -> Option<&mut Health> {
        self.workers.get_mut(&worker).map(|worker| &mut worker.health)
    }

    /// Suspends a worker for a limited time.
    pub fn back_off(&mut self, worker: WorkerId, now: Duration) {
        if let Some(health) = self.health(worker) {
            health.back_off(now);
        }
    }

    /// Records that a worker's complaint about a peer ended their epoch.
    pub fn blame(&mut self, peer: WorkerId, by: WorkerId, now: Duration) {
        if let Some(health) = self.health(peer) {
            health.blame(now);
        }
        if let Some(health) = self.health(by) {
            health.note_complaint(now);
        }
    }

    /// Returns whether a worker is leaving.
    pub fn is_leaving(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|worker| worker.leaving)
    }

    /// Returns the workers that may get work and have enough memory for a job.
    pub fn available(&self, job: &Job, now: Duration) -> impl Iterator<Item = (WorkerId, &Registered)> {
        let is_available = move |worker: &Registered| {
            !worker.leaving && worker.health.is_good(now) && job.fits(worker.threads, worker.memory_bytes)
        };
        self.workers.iter().filter(move |(_, worker)| is_available(worker)).map(|(&id, worker)| (id, worker))
    }

    /// Returns an error if a job fits none of the workers. A job fits if no worker is registered.
    pub fn check_memory(&self, least: &LeastMemory) -> Result<(), ClusterError> {
        let missing = |worker: &Registered| least.bytes(worker.threads).saturating_sub(worker.memory_bytes);
        let nearest = self.workers.values().min_by_key(|worker| missing(worker));
        match nearest.filter(|worker| missing(worker) > 0) {
            Some(nearest) => Err(ClusterError::DoesNotFit {
                needed_bytes: least.bytes(nearest.threads),
                threads: nearest.threads,
                memory_bytes: nearest.memory_bytes,
            }),
            None => Ok(()),
        }
    }
}
