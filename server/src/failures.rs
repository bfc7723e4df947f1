//! What the failures of the oracle are called over gRPC.

use std::borrow::Cow;
use std::ffi::OsStr;

use exact2048_net::status;
use exact2048_solution::{QueryError, ReadError};
use exact2048_storage::{ErrorKind, StorageError};
use tonic::Status;

/// The status of a failed question. What names files of the server goes to its log alone.
pub fn of_query(error: &QueryError) -> Status {
    match error {
        QueryError::Board(error) => status::invalid_argument("board", error),
        QueryError::Unreachable { .. } => Status::not_found(error.to_string()),
        QueryError::NotSolved { .. } => Status::failed_precondition(error.to_string()),
        QueryError::Read(unread) => {
            tracing::error!(error = %chain(unread), "a question failed");
            of_read(unread)
        }
        QueryError::GivenUp => Status::cancelled("the client gave the request up"),
    }
}

/// The status of a task that panicked.
pub fn of_panic(error: &tokio::task::JoinError) -> Status {
    tracing::error!(%error, "a question failed");
    Status::internal("the server failed on this question; its log says how")
}

fn of_read(error: &ReadError) -> Status {
    let mend = "solve on the run makes it again, or resume of its job; this server finds it then";
    match error {
        ReadError::Storage(storage) => match lost_shard(storage) {
            // The name alone: where the run is, is the server's business.
            Some(name) => Status::data_loss(format!("{name} is damaged or missing; {mend}")),
            None if storage.kind() == ErrorKind::Unavailable => {
                status::unavailable("the server cannot read a file of the run at the moment; try again")
            }
            None => Status::data_loss(format!(
                "a file of the run is of no use; the server's log says why; {mend}"
            )),
        },
        ReadError::NotCovered { .. } => Status::failed_precondition(error.to_string()),
        ReadError::Payload(_) | ReadError::ItemMissing(_) => {
            Status::data_loss(format!("a shard of the run is damaged; the server's log says how; {mend}"))
        }
    }
}

/// The name of the file that is lost, if that is what failed.
fn lost_shard(error: &StorageError) -> Option<Cow<'_, str>> {
    error.lost_file()?.file_name().map(OsStr::to_string_lossy)
}

/// An error and what it came from.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_storage::{ItemKey, ShardKind};
    use tonic::Code;

    #[test]
    fn failures_are_told_apart_and_name_no_folder() {
        let file = || std::path::PathBuf::from("/srv/secret/values-4-20.shard");
        let source = std::io::Error::other("the disk is away");
        let away = StorageError::Io { doing: "read", path: file(), source };
        let gone = StorageError::ShardMissing { file: file() };
        let reach = ShardKind::Reach;
        for (error, code) in [
            (ReadError::Storage(away), Code::Unavailable),
            (ReadError::Storage(gone), Code::DataLoss),
            (ReadError::ItemMissing(ItemKey { layer: 8, lane: 0, part: 0 }), Code::DataLoss),
            (ReadError::NotCovered { kind: reach, layer: 8 }, Code::FailedPrecondition),
        ] {
            let is_storage = matches!(error, ReadError::Storage(_));
            let status = of_query(&QueryError::Read(error));
            assert_eq!(status.code(), code);
            assert!(!status.message().contains("secret"));
            let names_the_shard = status.message().contains("values-4-20.shard ");
            assert_eq!(names_the_shard, code == Code::DataLoss && is_storage);
        }
        let unreachable = QueryError::Unreachable { board: "2 0 / 0 0".to_owned(), reason: String::new() };
        assert_eq!(of_query(&unreachable).code(), Code::NotFound);
        assert_eq!(of_query(&unreachable).message(), unreachable.to_string());
    }
}
