//! Failures of runs and tasks as statuses.

use exact2048_coordinator::cluster::JobId;
use exact2048_net::status::{unavailable, with_reason};
use exact2048_net::text::with_causes;
use exact2048_solution::RunError;
use exact2048_storage::ErrorKind;
use tonic::{Code, Status};

use super::is_out_of_files;

/// Returns the status for a failure of a run. Logs failures of the store and of reading the run.
pub(super) fn of_run(error: &RunError) -> Status {
    let what = with_causes(error);
    if let RunError::OtherJob { field, found, wanted, .. }
    | RunError::StoredOtherwise { field, found, wanted, .. } = error
    {
        let why = match error {
            RunError::StoredOtherwise { .. } => " (stored data is never converted)",
            _ => "",
        };
        let what = format!(
            "the store holds another run of this name: expected {field} {wanted}, found {found}{why}; choose \
             another name"
        );
        return with_reason(Code::FailedPrecondition, "OTHER_RUN", what, []);
    }
    match error.kind() {
        _ if is_out_of_files(error) => {
            tracing::warn!(error = what, "limit of open files reached");
            let what = "the coordinator has reached its limit of open files; try again later, or start it with a \
                        higher limit (ulimit -n)";
            with_reason(Code::ResourceExhausted, "TOO_MANY_FILES", what, [])
        }
        ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::OverLimit | ErrorKind::NotFound => {
            tracing::warn!(error = what, "store failed");
            unavailable(what)
        }
        ErrorKind::Occupied => with_reason(Code::FailedPrecondition, "NO_RUN", what, []),
        ErrorKind::Busy | ErrorKind::Fenced => Status::failed_precondition(what),
        ErrorKind::DataLoss | ErrorKind::NewerVersion | ErrorKind::Refused | ErrorKind::UnsafeCache => {
            tracing::warn!(error = what, "cannot read a run");
            with_reason(Code::FailedPrecondition, "UNREADABLE_RUN", what, [])
        }
        _ => {
            tracing::error!(error = what, "cannot read a run");
            Status::internal(what)
        }
    }
}

/// Returns the status for a request whose task panicked. Logs the panic.
pub(super) fn of_panic(error: &tokio::task::JoinError) -> Status {
    tracing::error!(%error, "request failed");
    Status::internal("the coordinator failed on this request; see its log")
}

/// Returns the status for a call that the end of the coordinator ends.
pub(super) fn stopping() -> Status {
    unavailable("the coordinator is stopping; try again after its restart")
}

/// Returns the message that the run of a job is not in the store.
pub(super) fn gone(job: &JobId) -> String {
    format!(
        "expected the run of job {job} in the store, found none; restore it, then resume the job; or forget the job, \
         then submit it again"
    )
}
