//! Refusals of clients' requests.

use super::job::{JobState, advice};
use super::memory::too_small;
use super::messages::JobId;

/// Refusal of a request to a cluster.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClusterError {
    /// The job was submitted before.
    #[error("job {job} already exists and is {}; {}, or choose another name", state.name(), advice(state))]
    Exists {
        /// The job.
        job: JobId,
        /// State of the job.
        state: JobState,
    },
    /// The queue is full.
    #[error("the queue is full with {most} jobs; forget some that have ended")]
    Full {
        /// Maximum number of jobs.
        most: usize,
    },
    /// The shards of the job are being reread.
    #[error("the shards of job {0} are being reread; wait until this check ends, then forget the job")]
    Checking(JobId),
    /// The job does not exist.
    #[error("job {0} does not exist")]
    Unknown(JobId),
    /// The job's state does not allow the request.
    #[error("job {job} is {} and cannot be {wanted}", state.name())]
    State {
        /// The job.
        job: JobId,
        /// State of the job.
        state: JobState,
        /// The requested change.
        wanted: &'static str,
    },
    /// No worker has enough memory for the job.
    #[error("the job fits no worker: {}", too_small(*needed_bytes, *threads, *memory_bytes))]
    DoesNotFit {
        /// Least memory of a worker with `threads` threads, in bytes.
        needed_bytes: u64,
        /// Number of threads of the closest worker.
        threads: u32,
        /// Memory of that worker, in bytes.
        memory_bytes: u64,
    },
    /// Another coordinator owns the store.
    #[error("another coordinator owns the store; ask that one")]
    Fenced,
}

impl ClusterError {
    /// Returns the refusal of a request that does not fit the job's state. `wanted` is the requested change.
    pub(super) fn wrong_state(job: &JobId, state: &JobState, wanted: &'static str) -> Self {
        Self::State { job: job.clone(), state: state.clone(), wanted }
    }
}

/// Way to resume a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resumption {
    /// The job is done, so its shards are reread.
    Reread,
    /// The job is being cancelled and continues instead.
    Continue,
    /// The job has stopped and returns to the queue.
    Requeue,
}
