//! Statuses with google.rpc details.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, ErrorInfo, StatusExt};

/// Time after which refused clients should try again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Domain of every `google.rpc.ErrorInfo`.
const DOMAIN: &str = "exact2048";

/// Reason of a status with an estimate, and the key of the estimate.
const TOO_SLOW: &str = "TOO_SLOW";
const SECONDS: &str = "seconds";

/// Returns INVALID_ARGUMENT for a field.
pub fn invalid_argument(field: &str, what: impl std::fmt::Display) -> Status {
    let what = what.to_string();
    let details = ErrorDetails::with_bad_request_violation(field, &what);
    Status::with_error_details(Code::InvalidArgument, what, details)
}

/// Returns UNAVAILABLE for a failure that may pass, or that may not occur on another server.
pub fn unavailable(what: impl Into<String>) -> Status {
    let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(Code::Unavailable, what, details)
}

/// Returns RESOURCE_EXHAUSTED for work beyond the server's limits.
pub fn exhausted(what: impl Into<String>) -> Status {
    let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(Code::ResourceExhausted, what, details)
}

/// Returns DEADLINE_EXCEEDED for an answer that would take `seconds` seconds, which is longer than the client waits.
pub fn too_slow(what: impl Into<String>, seconds: u64) -> Status {
    with_reason(Code::DeadlineExceeded, TOO_SLOW, what, [(SECONDS, seconds.to_string())])
}

/// Returns a status with a reason for programs, and with the values of the reason.
pub fn with_reason<const N: usize>(
    code: Code,
    reason: &str,
    what: impl Into<String>,
    values: [(&str, String); N],
) -> Status {
    let values = HashMap::from(values.map(|(name, value)| (name.to_owned(), value)));
    Status::with_error_details(code, what, ErrorDetails::with_error_info(reason, DOMAIN, values))
}

/// Returns the reason and the values that [`with_reason`] has added to a status.
pub fn reason_of(status: &Status) -> Option<ErrorInfo> {
    status.get_details_error_info().filter(|info| info.domain == DOMAIN)
}

/// Returns the estimated time in seconds of an answer, from the status of [`too_slow`].
pub fn seconds_of(status: &Status) -> Option<u64> {
    let info = reason_of(status).filter(|info| info.reason == TOO_SLOW)?;
    info.metadata.get(SECONDS)?.parse().ok()
}

/// Returns the message of a status, or the meaning of its code if the message is empty. Many servers answer
/// unknown calls without a message.
#[must_use]
pub fn words_of(status: &Status) -> &str {
    match status.message() {
        "" => status.code().description(),
        message => message,
    }
}

/// Returns the field named by an INVALID_ARGUMENT.
pub fn field_of(status: &Status) -> Option<String> {
    let request = status.get_details_bad_request()?;
    request.field_violations.into_iter().next().map(|violation| violation.field)
}
