//! Statuses with google.rpc details.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Time after which refused clients should try again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

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
