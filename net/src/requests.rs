//! Processing common to all requests: tokens, admission, deadlines, shutdown and counts.
//!
//! The limits of tonic and tower end with the head of an answer. A stream of answers would not count as running, and
//! would have no deadline, so this module handles both until the last byte.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use metrics::{Unit, counter, gauge, histogram};
use pin_project_lite::pin_project;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::gate::Gate;
use crate::limits::ServerLimits;
use crate::quota::Quota;
use crate::status;
use crate::text::chain;
use crate::token::CheckToken;

/// Prefix of health checks. They are never refused, because their callers decide whether the server is alive.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Label of unknown methods. With one label per requested path, any client could fill the memory.
const OTHER: &str = "other";

/// Longest time that a client can set for a request.
const LONGEST: Duration = Duration::from_secs(600);

const COUNT: &str = "exact2048_requests_total";
const SECONDS: &str = "exact2048_request_seconds";
const RUNNING: &str = "exact2048_requests_running";

/// Side of a method that sends any number of messages. The other side sends a single message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Neither: the answer is complete within the request's timeout.
    Neither,
    /// The server: the answer begins within the request's timeout.
    Answer,
    /// The client, and maybe the server: the method limits the time of each message.
    Request,
}

/// Registers the descriptions of the metrics. Call it once.
pub(crate) fn describe() {
    metrics::describe_counter!(COUNT, "Requests that ended, by method and gRPC code");
    metrics::describe_histogram!(SECONDS, Unit::Seconds, "Time from a request to its last byte, by method");
    metrics::describe_gauge!(RUNNING, "Requests that have not ended, by method");
}

/// Rules for the requests of a port.
pub(crate) struct Rules {
    /// The methods that are counted by name, by their paths: `/package.Service/Method`.
    pub methods: HashMap<String, Streams>,
    pub gate: Gate,
    /// Token check of all methods, with whether health is exempt; `None` if the router checks the token.
    pub guard: Option<Guard>,
    pub requests: Quota,
    pub limits: ServerLimits,
    /// After this token is cancelled, running requests end as UNAVAILABLE.
    pub stop: CancellationToken,
}

/// Token check of a port for gRPC.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub token: CheckToken,
    /// Whether health checks need no token.
    pub is_health_open: bool,
}

tokio::task_local! {
    static DEADLINE: Option<Instant>;
}

/// The deadline of the request that the current task handles; `None` without one.
pub fn deadline() -> Option<Instant> {
    DEADLINE.try_with(|deadline| *deadline).ok().flatten()
}

/// Checks, admits, ends and counts all requests of a router. No layer may be around this one, because it also counts
/// the refusals of layers.
pub(crate) fn apply_rules(router: Router, rules: Rules) -> Router {
    router.layer(from_fn_with_state(Arc::new(rules), handle))
}

async fn handle(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    let mut running = match rules.admit(&request) {
        Ok(running) => running,
        Err(status) => return rules.gate.protocol.refusal(status),
    };
    let answered = async {
        match rules.gate.refusal(&request) {
            Some(refusal) => refusal,
            None => next.run(request).await,
        }
    };
    let response = tokio::select! {
        biased;
        response = DEADLINE.scope(running.begins, answered) => response,
        status = Arc::clone(&rules).cut(running.begins) => {
            running.end(status.code());
            return rules.gate.protocol.refusal(status);
        }
    };
    if let Some(code) = rules.gate.protocol.code_of(&response) {
        running.end(code);
    }
    let cut = Box::pin(rules.cut(running.ends));
    response.map(|inner| {
        // An error of a service has no body. Its end must come with its head, as clients expect.
        let done = inner.is_end_stream();
        Body::new(Answer { inner, cut, running, done })
    })
}

impl Rules {
    fn admit(&self, request: &Request) -> Result<Running, Status> {
        let path = request.uri().path();
        let (method, streams) = match self.methods.get(path) {
            Some(&streams) => (path.trim_start_matches('/'), streams),
            None => (OTHER, Streams::Neither),
        };
        let begun = Instant::now();
        let after = |time: Duration| begun.checked_add(time);
        let of_client = timeout_of(request.headers()).map(|time| time.min(LONGEST)).and_then(after);
        let chosen = of_client.or_else(|| after(self.limits.request_time));
        let mut running = Running {
            method: Arc::from(method),
            begun,
            begins: if streams == Streams::Request { of_client } else { chosen },
            ends: if streams == Streams::Neither { chosen } else { of_client },
            permit: None,
            ended: false,
        };
        gauge!(RUNNING, "method" => Arc::clone(&running.method)).increment(1.0);
        let is_health = path.starts_with(HEALTH);
        // A caller without the token takes no permit.
        if let Some(guard) = self.guard.as_ref().filter(|guard| !(is_health && guard.is_health_open))
            && let Err(status) = guard.token.check(request.headers(), request.extensions())
        {
            running.end(status.code());
            return Err(status);
        }
        if !is_health {
            running.permit = self.requests.try_take();
            if running.permit.is_none() {
                running.end(Code::ResourceExhausted);
                let most = self.requests.most();
                return Err(status::exhausted(format!(
                    "{most} requests are running, which is the limit; try again later"
                )));
            }
        }
        Ok(running)
    }

    /// Waits until a request must end early, and returns its status.
    async fn cut(self: Arc<Self>, deadline: Option<Instant>) -> Status {
        let deadline = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = deadline => Status::deadline_exceeded("the deadline passed before the answer was complete"),
            () = self.stop.cancelled() => {
                status::unavailable("the server is stopping; try again, or try another server")
            }
        }
    }
}

/// A running request.
struct Running {
    method: Arc<str>,
    begun: Instant,
    /// Deadlines for the start and the end of its answer.
    begins: Option<Instant>,
    ends: Option<Instant>,
    permit: Option<OwnedSemaphorePermit>,
    ended: bool,
}

impl Running {
    fn end(&mut self, code: Code) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let (method, seconds) = (&self.method, self.begun.elapsed().as_secs_f64());
        gauge!(RUNNING, "method" => Arc::clone(method)).decrement(1.0);
        counter!(COUNT, "method" => Arc::clone(method), "code" => format!("{code:?}")).increment(1);
        histogram!(SECONDS, "method" => Arc::clone(method)).record(seconds);
        let seconds = crate::logs::seconds(self.begun.elapsed());
        tracing::debug!(method = &**method, code = ?code, seconds, "request");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The client disconnected before the end.
        self.end(Code::Cancelled);
    }
}

pin_project! {
    /// The body of an answer. It ends with its own status, or with the status of the deadline or shutdown that
    /// cuts it off.
    struct Answer<C> {
        #[pin]
        inner: Body,
        cut: Pin<Box<C>>,
        running: Running,
        done: bool,
    }
}

impl<C: Future<Output = Status>> HttpBody for Answer<C> {
    type Data = <Body as HttpBody>::Data;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, axum::Error>>> {
        let this = self.project();
        if *this.done {
            return Poll::Ready(None);
        }
        if let Poll::Ready(status) = this.cut.as_mut().poll(cx) {
            *this.done = true;
            this.running.end(status.code());
            let mut trailers = HeaderMap::new();
            status.add_header(&mut trailers).map_err(axum::Error::new)?;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let frame = std::task::ready!(this.inner.poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                    this.running.end(status.code());
                }
            }
            Some(Err(error)) => {
                let status = chain(error).find_map(|cause| cause.downcast_ref::<Status>());
                this.running.end(status.map_or(Code::Unknown, Status::code));
            }
            None => {
                *this.done = true;
                this.running.end(Code::Unknown);
            }
        }
        Poll::Ready(frame)
    }

    /// Returns true only after the end was polled. Otherwise the server would drop the answer, and so count the
    /// request, before the client has accepted the last frame.
    fn is_end_stream(&self) -> bool {
        self.done
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Parses a request's timeout: up to eight digits and a unit, as defined by gRPC over HTTP/2.
fn timeout_of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.len() > 8 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Allowed;
    use crate::policy::Protection;
    use crate::protocol::Protocol;

    #[test]
    fn timeouts_parse_as_grpc_defines_them() {
        let timeout = |text: &str| {
            timeout_of(&HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-timeout"),
                text.parse().unwrap(),
            )]))
        };
        assert_eq!(timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for text in ["", "m", "1", "-1S", "1.5S", "999999999S", "1s", "1é"] {
            assert_eq!(timeout(text), None, "{text}");
        }
    }

    /// If the last frame already signaled the end, a server would drop the answer before the client accepts this
    /// frame.
    #[tokio::test]
    async fn an_answer_ends_only_after_its_end_was_polled() {
        let mut answer = answer_of(Router::new().fallback(async || "all of it")).await;
        for is_over in [false, true] {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut answer).poll_frame(cx)).await;
            assert_eq!((frame.is_none(), answer.is_end_stream()), (is_over, is_over));
        }
    }

    /// Clients of other languages expect the end of an error with its head.
    #[tokio::test]
    async fn an_answer_without_a_body_ends_with_its_head() {
        assert!(answer_of(Router::new().fallback(async || Body::empty())).await.is_end_stream());
    }

    async fn answer_of(router: Router) -> Body {
        let open = Protection { tls: false, mutual_tls: false, token: false };
        let rules = Rules {
            methods: HashMap::new(),
            gate: Gate::new(Protocol::Http, ([192, 0, 2, 1], 1).into(), open, Allowed::default()),
            guard: None,
            requests: Quota::new(1),
            limits: ServerLimits::default(),
            stop: CancellationToken::new(),
        };
        let answered = tower::ServiceExt::oneshot(apply_rules(router, rules), Request::new(Body::empty()));
        answered.await.unwrap().into_body()
    }
}
