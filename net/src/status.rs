//! Statuses that say more than their code, as google.rpc details.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Time after which clients that were turned away should try again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// A field that is not what it should be.
pub fn invalid_argument(field: &str, what: impl std::fmt::Display) -> Status {
    let what = what.to_string();
    let details = ErrorDetails::with_bad_request_violation(field, &what);
    Status::with_error_details(Code::InvalidArgument, what, details)
}

/// Something that may work later, or on another server.
pub fn unavailable(what: impl Into<String>) -> Status {
    let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(Code::Unavailable, what, details)
}

/// More than the server takes on at once.
pub fn exhausted(what: impl Into<String>) -> Status {
    let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(Code::ResourceExhausted, what, details)
}

/// The words of a status. Many servers answer a call that they do not know with a code alone, so that without words the
/// meaning of the code has to do.
#[must_use]
pub fn words_of(status: &Status) -> &str {
    match status.message() {
        "" => status.code().description(),
        message => message,
    }
}

/// The field that an INVALID_ARGUMENT names.
pub fn field_of(status: &Status) -> Option<String> {
    let request = status.get_details_bad_request()?;
    request.field_violations.into_iter().next().map(|violation| violation.field)
}
