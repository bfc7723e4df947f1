//! Why a connection failed, in words that say what to do.
//!
//! The transport knows only that bytes did not come, or were not HTTP/2. The code that made the connection knows more,
//! and notes it here; a request that fails then says it.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use parking_lot::Mutex;
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Status, TimeoutExpired, transport};
use tower::Service;

use crate::text::{chain, with_causes};

/// Why a connection failed, and what the client lacks, where that is why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// In words.
    pub text: String,
    /// What would have helped; `None` where the client lacks nothing.
    pub lacks: Option<Lack>,
}

/// What a client lacks of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The certificate of the CA that the server's certificate comes from.
    Ca,
    /// A certificate of its own that the server takes, and its key.
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

/// Where it is noted why connections to a server fail.
#[derive(Clone, Debug, Default)]
pub struct Reasons(Arc<Mutex<Option<Reason>>>);

impl Reasons {
    /// Notes why a connection failed.
    pub fn note(&self, reason: Reason) {
        *self.0.lock() = Some(reason);
    }

    /// Forgets the reason, since another connection begins.
    pub fn forget(&self) {
        *self.0.lock() = None;
    }

    /// Why a request ended with an error of the transport: the reason that was noted, or else what the error itself
    /// says.
    pub fn of(&self, error: &(dyn Error + 'static)) -> Reason {
        let noted = self.0.lock().clone();
        noted.unwrap_or_else(|| {
            if chain(error).any(|cause| cause.downcast_ref().is_some_and(hyper::Error::is_timeout)) {
                return "it no longer answers: its host or the network is gone".into();
            }
            with_causes(error).into()
        })
    }
}

/// A channel whose errors say what happened, and what may mend it. A status that the channel makes itself has a source,
/// unlike those of the server: UNAVAILABLE where there was no connection, DEADLINE_EXCEEDED where there was no answer
/// in time.
#[derive(Clone, Debug)]
pub struct WithReasons {
    channel: Channel,
    reasons: Reasons,
}

impl WithReasons {
    /// For a channel whose connections note their ends in `reasons`.
    pub(super) fn new(channel: Channel, reasons: Reasons) -> Self {
        Self { channel, reasons }
    }
}

fn status(reasons: &Reasons, error: transport::Error) -> Status {
    let mut status = if chain(&error).any(|cause| cause.is::<TimeoutExpired>()) {
        Status::deadline_exceeded("no answer in the time that the request was given")
    } else {
        Status::unavailable(reasons.of(&error).text)
    };
    status.set_source(Arc::new(error));
    status
}

impl Service<Request<Body>> for WithReasons {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.channel.poll_ready(cx).map_err(|error| status(&self.reasons, error))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, reasons) = (self.channel.call(request), self.reasons.clone());
        Box::pin(async move { answer.await.map_err(|error| status(&reasons, error)) })
    }
}
