//! Refusals as statuses. The details contain the reason and its values, so clients need not parse texts.

use exact2048_coordinator::cluster::{ClusterError, EpochId, Incarnation, Refusal, WorkerId};
use exact2048_net::status::{invalid_argument, reason_of, with_reason};
use tonic::{Code, Status};

use super::WireError;

const PROTOCOL_VERSION: &str = "PROTOCOL_VERSION";
const OLD_INCARNATION: &str = "OLD_INCARNATION";
const SUPERSEDED: &str = "SUPERSEDED";
const FENCED: &str = "FENCED";
const RUN_UNKNOWN: &str = "RUN_UNKNOWN";

/// Returns the status for a job that requires an existing run, if the store does not contain that run.
#[must_use]
pub fn run_unknown_status() -> Status {
    with_reason(Code::NotFound, RUN_UNKNOWN, "the store has no run of this name", [])
}

/// Returns whether a status is a [`run_unknown_status`].
#[must_use]
pub fn is_run_unknown(status: &Status) -> bool {
    reason_of(status).is_some_and(|info| info.reason == RUN_UNKNOWN)
}

/// Returns the status of a refused pull.
#[must_use]
pub fn refusal_status(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::Version { expected, got } => {
            let values = [("expected", expected.to_string()), ("got", got.to_string())];
            with_reason(Code::FailedPrecondition, PROTOCOL_VERSION, refusal.to_string(), values)
        }
        Refusal::OldIncarnation { worker, expected, got } => {
            let values = [
                ("worker", worker.0.to_string()),
                ("expected", expected.0.to_string()),
                ("got", got.0.to_string()),
            ];
            with_reason(Code::Aborted, OLD_INCARNATION, refusal.to_string(), values)
        }
        Refusal::Superseded { epoch } => {
            with_reason(Code::OutOfRange, SUPERSEDED, refusal.to_string(), [("epoch", epoch.0.to_string())])
        }
        Refusal::Fenced => with_reason(Code::Unavailable, FENCED, refusal.to_string(), []),
    }
}

/// Returns the refusal that a status describes; `None` for other statuses, such as network failures.
#[must_use]
pub fn refusal_of(status: &Status) -> Option<Refusal> {
    let info = reason_of(status)?;
    let value = |name: &str| info.metadata.get(name)?.parse::<u64>().ok();
    let version = |name: &str| u32::try_from(value(name)?).ok();
    match info.reason.as_str() {
        PROTOCOL_VERSION => Some(Refusal::Version { expected: version("expected")?, got: version("got")? }),
        OLD_INCARNATION => Some(Refusal::OldIncarnation {
            worker: WorkerId(value("worker")?),
            expected: Incarnation(value("expected")?),
            got: Incarnation(value("got")?),
        }),
        SUPERSEDED => Some(Refusal::Superseded { epoch: EpochId(value("epoch")?) }),
        FENCED => Some(Refusal::Fenced),
        _ => None,
    }
}

/// Returns the status of a request that the cluster refuses.
#[must_use]
pub fn cluster_status(error: &ClusterError) -> Status {
    match error {
        ClusterError::Exists { .. } => with_reason(Code::AlreadyExists, "JOB_EXISTS", error.to_string(), []),
        ClusterError::Unknown(_) => with_reason(Code::NotFound, "JOB_UNKNOWN", error.to_string(), []),
        ClusterError::Full { .. } => {
            with_reason(Code::ResourceExhausted, "TOO_MANY_JOBS", error.to_string(), [])
        }
        ClusterError::State { .. } | ClusterError::Checking(_) => {
            with_reason(Code::FailedPrecondition, "JOB_STATE", error.to_string(), [])
        }
        ClusterError::DoesNotFit { needed_bytes, threads, memory_bytes } => {
            let values = [
                ("needed_bytes", needed_bytes.to_string()),
                ("threads", threads.to_string()),
                ("memory_bytes", memory_bytes.to_string()),
            ];
            with_reason(Code::FailedPrecondition, "DOES_NOT_FIT", error.to_string(), values)
        }
        ClusterError::Fenced => with_reason(Code::Unavailable, FENCED, error.to_string(), []),
    }
}

/// The status of an invalid request.
impl From<WireError> for Status {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Field { ref field, .. } => invalid_argument(field, &error),
            WireError::Version { expected, got } => refusal_status(&Refusal::Version { expected, got }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_coordinator::cluster::JobId;

    #[test]
    fn refusals_survive_as_statuses() {
        let worker = WorkerId(u64::MAX);
        let (expected, got) = (Incarnation(u64::MAX - 1), Incarnation(9));
        for (refusal, code) in [
            (Refusal::Version { expected: 1, got: 2 }, Code::FailedPrecondition),
            (Refusal::OldIncarnation { worker, expected, got }, Code::Aborted),
            (Refusal::Superseded { epoch: EpochId::first_of(7) }, Code::OutOfRange),
            (Refusal::Fenced, Code::Unavailable),
        ] {
            let status = refusal_status(&refusal);
            assert_eq!((status.code(), status.message()), (code, &*refusal.to_string()));
            // The status as the other side receives it.
            let mut headers = tonic::metadata::MetadataMap::new().into_headers();
            status.add_header(&mut headers).unwrap();
            let arrived = Status::from_header_map(&headers).unwrap();
            assert_eq!(refusal_of(&arrived), Some(refusal));
        }
    }

    #[test]
    fn other_statuses_are_not_refusals() {
        for status in [
            Status::unavailable("the server is stopping"),
            Status::out_of_range("too large"),
            cluster_status(&ClusterError::Unknown(JobId("x".to_owned()))),
            with_reason(Code::Aborted, OLD_INCARNATION, "", [("worker", "no number".to_owned())]),
        ] {
            assert_eq!(refusal_of(&status), None, "{status:?}");
        }
        assert_eq!(refusal_of(&cluster_status(&ClusterError::Fenced)), Some(Refusal::Fenced));
    }
}
