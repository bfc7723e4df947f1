//! The coordinator's process: the pure code of `exact2048_coordinator::cluster` between a store, a clock and a network.
//!
//! | Module | Purpose |
//! |---|---|
//! | `queue` | the journal of jobs; its owner is the coordinator of the store |
//! | `queue_records` | the records of this journal, and the jobs that follow from them |
//! | `owned` | a journal that this process owns; a repeated append adds one record |
//! | `job_run`, `records` | the journal of a job's run, and the records for this journal |
//! | [`Shell`] (`shell`) | opens a store and runs the parts below |
//! | `driver` | calls the pure code with the time; passes on its orders, and its news to waiting calls |
//! | `known` | the shell's data about jobs |
//! | `carry_out` | executes the orders of the pure code |
//! | `ledger` | access to the queue for all parts; writes ends and progress of jobs to the queue |
//! | `requests` | requests of clients |
//! | `recheck` | rereads the shards of a finished job |
//! | `statuses` | failures as statuses |
//! | `service`, [`serve`](serve()) | the calls over gRPC, on a server; the page for browsers |
//! | `board` | snapshots of jobs and workers, shared by all viewers |
//! | `estimates` | estimates for jobs, computed once for equal parameters |
//! | `observe` | logs and metrics |

mod board;
mod carry_out;
mod driver;
mod estimates;
mod job_run;
mod known;
mod ledger;
mod observe;
mod owned;
mod queue;
mod queue_records;
mod recheck;
mod records;
mod requests;
mod serve;
mod service;
mod shell;
mod statuses;

use exact2048_net::text::chain;
use exact2048_solution::RunError;
use exact2048_storage::StorageError;
use rustix::io::Errno;

pub use observe::describe;
pub use queue::QueueError;
pub use serve::serve;
pub use shell::Shell;

/// Reason why a record was not appended to a journal.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another process owns the store, so this process must end.
    #[error("{0}")]
    Fenced(String),
    /// Another process has written to the journal of a job, or has removed records from it.
    #[error("{0}")]
    Foreign(String),
    /// Any other failure. The journal may contain the record or not.
    #[error(transparent)]
    Failed(#[from] RunError),
}

impl From<StorageError> for AppendError {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns whether an error shows that this process or the machine has reached its limit of open files.
fn is_out_of_files(error: &RunError) -> bool {
    let mut systems = chain(error).filter_map(|error| error.downcast_ref::<std::io::Error>()?.raw_os_error());
    systems.any(|code| [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).contains(&code))
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use exact2048_coordinator::cluster::TroubleKind;
    use tonic::Code;

    use super::*;

    /// No job is to blame for this failure. So the job waits, and a client that submits a job receives the reason.
    #[test]
    fn too_many_open_files_are_reported() {
        let place = || std::path::Path::new("run/lock").into();
        let error = |source| RunError::from(StorageError::Io { doing: "open", place: place(), source });
        for (source, is_so) in [
            (Error::from(Errno::MFILE), true),
            (Error::from(Errno::NFILE), true),
            (Error::from(ErrorKind::NotFound), false),
        ] {
            assert_eq!(is_out_of_files(&error(source)), is_so);
        }
        let error = error(Error::from(Errno::MFILE));
        assert_eq!(carry_out::trouble_kind(&error), TroubleKind::Full);
        let status = statuses::of_run(&error);
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("ulimit -n"), "{status}");
    }
}
