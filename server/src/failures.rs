//! What the failures of the oracle are called over gRPC.

use exact2048_net::status;
use exact2048_run::QueryError;
use exact2048_storage::ErrorKind;
use exact2048_worker::WorkerError;
use tonic::Status;

/// The status of a failed question. What names files of the server goes to its log alone.
pub fn of_query(error: &QueryError) -> Status {
    match error {
        QueryError::Board(error) => status::invalid_argument("board", error),
        QueryError::Unreachable { .. } => Status::not_found(error.to_string()),
        QueryError::NotSolved { .. } => Status::failed_precondition(error.to_string()),
        QueryError::Worker(worker) => {
            tracing::error!(error = %chain(worker), "a question failed");
            of_worker(worker)
        }
    }
}

/// The status of a task that panicked.
pub fn of_panic(error: &tokio::task::JoinError) -> Status {
    tracing::error!(%error, "a question failed");
    Status::internal("the server failed on this question; its log says how")
}

fn of_worker(error: &WorkerError) -> Status {
    match error {
        WorkerError::Storage(error) if error.kind() == ErrorKind::Unavailable => {
            status::unavailable("the server cannot read a file of the run at the moment; try again")
        }
        WorkerError::NotCovered { .. } => Status::failed_precondition(error.to_string()),
        WorkerError::Storage(_) | WorkerError::Payload(_) | WorkerError::ItemMissing(_) => Status::data_loss(
            "a file of the run is damaged or missing; the server's log says which, and solve mends it",
        ),
    }
}

/// An error and what it came from.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_storage::{ItemKey, ShardKind, StorageError};
    use tonic::Code;

    #[test]
    fn failures_are_told_apart_and_name_no_file() {
        let io = StorageError::Io {
            doing: "read",
            path: "/srv/secret".into(),
            source: std::io::Error::other("the disk is away"),
        };
        let reach = ShardKind::Reach;
        for (error, code) in [
            (WorkerError::Storage(io), Code::Unavailable),
            (WorkerError::Storage(StorageError::ShardMissing { file: "/srv/secret".into() }), Code::DataLoss),
            (WorkerError::ItemMissing(ItemKey { layer: 8, lane: 0, part: 0 }), Code::DataLoss),
            (WorkerError::NotCovered { kind: reach, layer: 8 }, Code::FailedPrecondition),
        ] {
            let status = of_query(&QueryError::Worker(error));
            assert_eq!(status.code(), code);
            assert!(!status.message().contains("secret"));
        }
        let unreachable = QueryError::Unreachable { board: "2 0 / 0 0".to_owned(), reason: String::new() };
        assert_eq!(of_query(&unreachable).code(), Code::NotFound);
        assert_eq!(of_query(&unreachable).message(), unreachable.to_string());
    }
}
