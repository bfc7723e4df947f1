//! Reasons why a member stops early.

use exact2048_solution::{Blame, RunError};
use exact2048_storage::{ErrorKind, StorageError};
use exact2048_worker::WorkerError;

/// Reason why a crew stopped before its plan was done.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// A task failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A shard could not be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The journal could not be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The threads could not be started.
    #[error("cannot start {threads} compute threads: {error}; choose fewer")]
    Threads {
        /// Number of requested threads.
        threads: usize,
        /// The system's error.
        error: rayon::ThreadPoolBuildError,
    },
    /// A task panicked, and the panic was printed.
    #[error("a task panicked and printed a message. This is a bug in the program; committed data is safe")]
    Panicked,
}

impl CrewError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Worker(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            Self::Run(error) => error.kind(),
            Self::Threads { .. } => ErrorKind::Refused,
            Self::Panicked => ErrorKind::Internal,
        }
    }

    /// The shard or item to compute again, if the error comes from one.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Worker(error) => error.blames(),
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            Self::Run(error) => error.blames(),
            Self::Threads { .. } | Self::Panicked => None,
        }
    }
}
