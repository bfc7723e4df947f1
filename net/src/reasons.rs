//! Causes of failed connections, with remedies.
//!
//! The transport only sees that bytes are missing or are not HTTP/2. The code that made the connection knows the
//! cause and records it here, so that a failing request can report the cause.

use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::{Status, TimeoutExpired, transport};

use crate::text::{chain, with_causes};

/// Cause of a failed connection, with the missing certificate if the client lacks one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Reason {
    /// Description of the cause for people.
    pub text: String,
    /// The missing file; `None` if the client lacks nothing.
    pub lacks: Option<MissingTls>,
}

/// TLS file that a client lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingTls {
    /// The certificate of the CA that signed the server's certificate.
    Ca,
    /// A client certificate that the server accepts, and its key.
    Certificate,
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self { text, lacks: None }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Shared record of the last connection failure.
#[derive(Clone, Debug, Default)]
pub struct Reasons(Arc<Mutex<Option<Reason>>>);

impl Reasons {
    /// Records a failure.
    pub fn note(&self, reason: Reason) {
        *self.0.lock() = Some(reason);
    }

    /// Clears the record before another connection.
    pub fn forget(&self) {
        *self.0.lock() = None;
    }

    /// Returns why a request ended with a transport error: the recorded reason, or otherwise the error's own
    /// causes.
    pub fn of(&self, error: &(dyn Error + 'static)) -> Reason {
        let noted = self.0.lock().clone();
        noted.unwrap_or_else(|| {
            if chain(error).any(|cause| cause.downcast_ref().is_some_and(hyper::Error::is_timeout)) {
                return "the server no longer answers; check its host and the network".into();
            }
            with_causes(error).into()
        })
    }

    /// Returns the status of a request that ended with a transport error. Unlike a server's status, it has a source. It
    /// is UNAVAILABLE without a connection and DEADLINE_EXCEEDED after a timeout.
    pub fn status(&self, error: transport::Error) -> Status {
        let mut status = if chain(&error).any(|cause| cause.is::<TimeoutExpired>()) {
            Status::deadline_exceeded("no answer within the request's timeout")
        } else {
            Status::unavailable(self.of(&error).text)
        };
        status.set_source(Arc::new(error));
        status
    }
}
