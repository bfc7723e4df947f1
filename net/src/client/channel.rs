//! A channel with errors that report cause and remedy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Status, TimeoutExpired, transport};
use tower::Service;

use crate::reasons::Reasons;
use crate::text::chain;

/// A channel with errors that report cause and remedy. Unlike a server's status, a status made by the channel has
/// a source. It is UNAVAILABLE without a connection and DEADLINE_EXCEEDED after a timeout.
#[derive(Clone, Debug)]
pub struct ExplainedChannel {
    channel: Channel,
    reasons: Reasons,
}

impl ExplainedChannel {
    /// Wraps a channel. Its connections record their failures in `reasons`.
    pub(super) fn new(channel: Channel, reasons: Reasons) -> Self {
        Self { channel, reasons }
    }
}

fn status(reasons: &Reasons, error: transport::Error) -> Status {
    let mut status = if chain(&error).any(|cause| cause.is::<TimeoutExpired>()) {
        Status::deadline_exceeded("no answer within the request's timeout")
    } else {
        Status::unavailable(reasons.of(&error).text)
    };
    status.set_source(Arc::new(error));
    status
}

impl Service<Request<Body>> for ExplainedChannel {
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
