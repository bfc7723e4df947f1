//! gRPC statuses for failures of the oracle.

use exact2048_net::log_limiter::LogLimiter;
use exact2048_net::status;
use exact2048_net::text::with_causes;
use exact2048_solution::{Blame, QueryError, ReadError};
use exact2048_storage::ErrorKind;
use tonic::Status;

/// Limiter of log lines about failed requests, because any client may repeatedly request unreadable states.
static LINES: LogLimiter = LogLimiter::new();

/// Returns the status of a failed request. Errors that name files of the server are only logged, not returned.
pub fn of_query(error: &QueryError) -> Status {
    match error {
        QueryError::Board(error) => status::invalid_argument("board", error),
        QueryError::Unreachable { .. } => Status::not_found(error.to_string()),
        QueryError::MissingValues(_) | QueryError::NoBestMoves | QueryError::ReachRemoved(_) => {
            Status::failed_precondition(error.to_string())
        }
        QueryError::Read(unread) => {
            LINES.pass(|left_out| {
                tracing::error!(error = with_causes(unread), left_out, "request failed");
            });
            of_read(unread)
        }
        QueryError::TooLarge(_) => Status::resource_exhausted(error.to_string()),
        QueryError::TooSlow(estimate) => status::too_slow(error.to_string(), estimate.time.as_secs() + 1),
        QueryError::GivenUp => Status::cancelled("the client cancelled the request"),
    }
}

/// Returns the status of a task that panicked.
pub fn of_panic(error: &tokio::task::JoinError) -> Status {
    LINES.pass(|left_out| tracing::error!(%error, left_out, "request failed"));
    Status::internal("the server failed on this request; see its log")
}

fn of_read(error: &ReadError) -> Status {
    let remedy = "resume the run to recompute it, and this server will find it";
    match (error.kind(), error.blames()) {
        // The status contains only the file's name, because the run's location must not leave the server.
        (_, Some(Blame::Shard(shard))) => {
            Status::data_loss(format!("{shard} is damaged or missing; {remedy}"))
        }
        (ErrorKind::Unavailable, _) => {
            status::unavailable("the server cannot read a file of the run; try again")
        }
        (ErrorKind::NotComputed, _) => Status::failed_precondition(error.to_string()),
        _ => Status::data_loss(format!("a file of the run is unusable (see the server's log); {remedy}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_solution::ItemKind;
    use exact2048_storage::{ItemKey, RunId, ShardIdentity, ShardKind, ShardReader, StorageError};
    use tonic::Code;

    #[test]
    fn failures_have_distinct_codes_and_name_no_folder() {
        let file = std::path::Path::new("/no/such/secret/values-4-20.shard");
        let source = std::io::Error::other("the disk is away");
        let away = StorageError::Io { doing: "read", place: file.into(), source };
        let (run, kind) = (RunId::random(), ShardKind::Values);
        let identity =
            ShardIdentity { run, kind, rows: 2, cols: 2, first_layer: 4, last_layer: 20, rule_hash: 0 };
        let gone = ShardReader::open(file, &identity).unwrap_err();
        let reach = ShardKind::Reach;
        for (error, code) in [
            (ReadError::Storage(away), Code::Unavailable),
            (ReadError::Storage(gone), Code::DataLoss),
            (
                ReadError::ItemMissing {
                    kind: ItemKind::Values,
                    part: ItemKey { layer: 8, lane: 0, part: 0 },
                },
                Code::DataLoss,
            ),
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
