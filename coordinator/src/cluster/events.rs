//! What happened in a cluster, for logs and metrics. Nothing follows from it.

use std::sync::Arc;

use super::ids::EpochId;
use super::job::JobState;
use super::messages::{Append, Claim, JobId, Share, WorkerFailure, WorkerId};

/// Something that people may want to know.
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
        /// Where its peers reach it.
        address: String,
        /// Whether it is a later process of a worker that was there.
        again: bool,
    },
    /// A worker is not there any more: it was not heard for longer than its lease, or has left as it said.
    WorkerLost {
        /// The worker.
        worker: WorkerId,
        /// Whether it had said that it would go.
        leaving: bool,
    },
    /// Something went wrong at a worker.
    WorkerFailed {
        /// The worker.
        worker: WorkerId,
        /// The epoch that it has left, if it was in one.
        epoch: Option<EpochId>,
        /// What.
        failure: WorkerFailure,
    },
    /// A worker that could not work can work again.
    WorkerWell {
        /// The worker.
        worker: WorkerId,
    },
    /// Work was given out.
    EpochBegan(Arc<Share>),
    /// An epoch is over: its work is done, it has failed, its job has ended, or what is left is shared out anew.
    EpochEnded {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
    },
    /// An epoch has failed: what it had not committed has to be done again.
    EpochFailed {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
        /// Why.
        reason: String,
    },
    /// What is finished of a job does not fit the limit of its disk: its epoch is over.
    RanShort {
        /// The job.
        job: JobId,
        /// The epoch's number.
        epoch: EpochId,
        /// How often in a row that was so.
        times: u64,
    },
    /// A worker could not read a shard that is whole.
    Misread(Claim),
    /// A job is not in the queue any more.
    Forgotten {
        /// The job.
        job: JobId,
    },
    /// The progress of a job has changed by so much that the queue should keep it.
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
        /// What it is now.
        state: JobState,
    },
}
