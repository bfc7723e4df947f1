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
        /// Threads that compute.
        threads: u32,
        /// Memory that it may use, in bytes.
        memory_bytes: u64,
        /// Address for its peers.
        address: String,
        /// Whether it is a later process of a known worker.
        again: bool,
    },
    /// A worker was silent for longer than its lease, or has left as announced.
    WorkerLost {
        /// The worker.
        worker: WorkerId,
        /// Whether it had announced its leave.
        leaving: bool,
    },
    /// A worker reported a failure.
    WorkerFailed {
        /// The worker.
        worker: WorkerId,
        /// The epoch that it has left, if it was in one.
        epoch: Option<EpochId>,
        /// The failure.
        failure: WorkerFailure,
    },
    /// A worker that could not work can work again.
    WorkerWell {
        /// The worker.
        worker: WorkerId,
    },
    /// An epoch has begun.
    EpochBegan(Arc<Share>),
    /// An epoch is over: its work is done, it has failed, its job has ended, or the rest is distributed anew.
    EpochEnded {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
    },
    /// An epoch has failed: its uncommitted work must be repeated.
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
    /// The progress of a job has changed enough to be noted in the queue.
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
        /// Its new state.
        state: JobState,
    },
}
