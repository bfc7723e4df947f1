//! The error of a task.

use exact2048_solution::{Blame, PayloadError, QueryError, ReadError};
use exact2048_storage::{ErrorKind, StorageError};

/// Reason why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A published item cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A scratch file cannot be written or read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A block from another worker does not parse.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

impl From<WorkerError> for ReadError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Read(error) => error,
            WorkerError::Storage(error) => error.into(),
            WorkerError::Payload(error) => error.into(),
        }
    }
}

impl From<WorkerError> for QueryError {
    fn from(error: WorkerError) -> Self {
        Self::Read(error.into())
    }
}

impl WorkerError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            // The sender is to blame, and no file.
            Self::Payload(_) => ErrorKind::Internal,
        }
    }

    /// The shard or item to make again, if the error comes from one.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Read(error) => error.blames(),
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            Self::Payload(_) => None,
        }
    }
}
