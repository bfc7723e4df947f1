//! Snapshots of a cluster for display, shared by all viewers.
//!
//! All viewers get the same [`ClusterSnapshot`] for 200 ms, unless a request, a recheck or a change of a job's state
//! makes the snapshot stale. A new snapshot converts only jobs that have changed, so thousands of ended jobs cost
//! little.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{JobId, JobStatus, WorkerStatus};
use exact2048_proto::v1;
use parking_lot::Mutex;

use super::known::Known;
use crate::wire::{job_message, worker_message};

/// Time after which a snapshot is replaced by a new one.
pub const FRESH: Duration = Duration::from_millis(200);

/// Snapshot of a cluster's activity.
#[derive(Clone, Debug, Default)]
pub struct ClusterSnapshot {
    /// The jobs with their places. Jobs with lower places have their turn first.
    pub jobs: BTreeMap<JobId, (u64, Arc<v1::Job>)>,
    /// Workers in order of their ids.
    pub workers: Arc<Vec<v1::Worker>>,
    /// Number of changes of jobs.
    pub jobs_version: u64,
    /// Number of changes of workers. Their times of silence and of backoff do not count.
    pub workers_version: u64,
    /// Time of the snapshot; `None` for the empty one at the start.
    taken: Option<Instant>,
}

/// Holder of the last snapshot.
#[derive(Default)]
pub(super) struct Board {
    last: Mutex<Arc<ClusterSnapshot>>,
    /// Whether a decision was made after the last snapshot.
    is_stale: AtomicBool,
}

impl Board {
    /// Requires a new snapshot for the next caller.
    pub fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Returns the last snapshot, or the one that follows it. Concurrent callers get the same snapshot.
    pub fn current(&self, next: impl FnOnce(&ClusterSnapshot) -> ClusterSnapshot) -> Arc<ClusterSnapshot> {
        let mut last = self.last.lock();
        if self.is_stale.swap(false, Ordering::AcqRel) || !last.is_fresh() {
            *last = Arc::new(next(&last));
        }
        Arc::clone(&last)
    }
}

/// A job that may have changed; `None` if it no longer exists.
pub(super) type ChangedJob = (JobId, Option<(JobStatus, Known)>);

impl ClusterSnapshot {
    /// Returns whether the snapshot may still be shown, if the coordinator made no decision since.
    pub fn is_fresh(&self) -> bool {
        self.taken.is_some_and(|taken| taken.elapsed() < FRESH)
    }

    /// Returns one job.
    pub fn job(&self, job: &JobId) -> Option<&Arc<v1::Job>> {
        self.jobs.get(job).map(|(_, message)| message)
    }

    /// Returns all jobs in order of their turns.
    pub fn in_turn(&self) -> Vec<v1::Job> {
        let mut jobs: Vec<_> = self.jobs.values().collect();
        jobs.sort_by_key(|(place, _)| *place);
        jobs.into_iter().map(|(_, message)| v1::Job::clone(message)).collect()
    }

    /// Returns the next snapshot, with changes of jobs and all workers.
    pub(super) fn with(&self, changed: Vec<ChangedJob>, workers: &[WorkerStatus]) -> Self {
        let mut next = self.clone();
        for (job, found) in changed {
            let before = self.jobs.get(&job);
            let Some((status, known)) = found else {
                next.jobs_version += u64::from(next.jobs.remove(&job).is_some());
                continue;
            };
            let message = job_message(&status, &known.params, &known.url);
            if before.is_some_and(|(place, before)| *place == status.place && **before == message) {
                continue;
            }
            next.jobs.insert(job, (status.place, Arc::new(message)));
            next.jobs_version += 1;
        }
        let workers: Vec<v1::Worker> = workers.iter().map(worker_message).collect();
        let same = workers.len() == self.workers.len()
            && workers.iter().zip(self.workers.iter()).all(|(now, before)| still(now) == still(before));
        next.workers_version += u64::from(!same);
        next.workers = Arc::new(workers);
        next.taken = Some(Instant::now());
        next
    }
}

/// Returns a worker without its times of silence and of backoff.
fn still(worker: &v1::Worker) -> v1::Worker {
    v1::Worker { silent_seconds: 0.0, backoff_seconds: 0.0, ..worker.clone() }
}

#[cfg(test)]
mod tests {
    use exact2048_coordinator::cluster::ClusterConfig;
    use exact2048_storage::Location;
    use tokio_util::sync::CancellationToken;

    use super::super::shell::Shell;

    use super::*;

    /// Hundreds of viewers cost as much as one.
    #[test]
    fn all_viewers_share_a_snapshot_until_a_decision() {
        let place = tempfile::tempdir().unwrap();
        let (store, stop) = (Location::from(place.path()), CancellationToken::new());
        let shell = Shell::open(store, ClusterConfig::default(), stop).unwrap();
        let look = || shell.driver.snapshot();
        // On a busy machine, more than 200 ms may pass between two looks, but not in all of the pairs.
        assert!((0..100).any(|_| Arc::ptr_eq(&look(), &look())));
        for _ in 0..10 {
            let before = look();
            shell.driver.board.mark_stale();
            assert!(!Arc::ptr_eq(&before, &look()));
        }
    }
}
