//! Events of a cluster, for logs and metrics only.

use std::sync::Arc;

use super::ids::EpochId;
use super::job::JobState;
use super::messages::{Append, Claim, JobId, Share, WorkerFailure, WorkerId};

/// An event for logs and metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A worker has registered.
    WorkerJoined {
        /// The worker.
        worker: WorkerId,
        /// Number of threads that compute.
        threads: u32,
        /// Memory limit of the worker, in bytes.
        memory_bytes: u64,
        /// Address for its peers.
        address: String,
        /// Whether this process replaces an earlier process of a known worker.
        again: bool,
    },
    /// A worker was silent for longer than its lease, or has left as announced.
    WorkerLost {
        /// The worker.
        worker: WorkerId,
        /// Whether the worker had announced that it would leave.
        leaving: bool,
    },
    /// A worker reported a failure.
    WorkerFailed {
        /// The worker.
        worker: WorkerId,
        /// Epoch in which the worker failed; `None` if it was in no epoch.
        epoch: Option<EpochId>,
        /// The failure.
        failure: WorkerFailure,
    },
    /// A worker can work again after a failure.
    WorkerWell {
        /// The worker.
        worker: WorkerId,
    },
    /// An epoch has begun.
    EpochBegan(Arc<Share>),
    /// An epoch is over because its work is done, it has failed, its job has ended, or the rest of its work is
    /// redistributed.
    EpochEnded {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
    },
    /// An epoch has failed, so its uncommitted work must be repeated.
    EpochFailed {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
        /// The cause.
        reason: String,
    },
    /// The finished work of a job does not fit its disk limit, so its epoch is over.
    DiskLimitReached {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
        /// Number of such epochs in a row.
        times: u64,
    },
    /// A worker could not read an intact shard.
    Misread(Claim),
    /// A job was removed from the queue.
    Forgotten {
        /// The job.
        job: JobId,
    },
    /// The progress of a job has changed enough to be recorded in the queue.
    Progress {
        /// The job.
        job: JobId,
    },
    /// An append is in the journal.
    Appended(Append),
    /// The state of a job has changed.
    Job {
        /// The job.
        job: JobId,
        /// New state of the job.
        state: JobState,
    },
}
