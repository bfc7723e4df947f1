//! Common parts of servers for browsers: embedded files, JSON answers, and token checks.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use tonic::Status;

use crate::protocol::http_refusal;
use crate::token::CheckToken;

/// An embedded file of a page. The end of its path gives its content type; without an end, it is the page itself.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// URL path of the file.
    pub path: &'static str,
    /// Contents of the file.
    pub text: &'static str,
}

impl Asset {
    fn content_type(self) -> &'static str {
        match self.path.rsplit_once('.') {
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }
}

/// Files shared by all pages: code that sends requests with the token and detects an unreachable server, helpers
/// for elements, and the icon. A page must have the elements `away` and `token-dialog`. The dialog must contain
/// `token-wrong` and `token`.
pub const SHARED: [Asset; 3] = [
    Asset { path: "/api.js", text: include_str!("../page/api.js") },
    Asset { path: "/dom.js", text: include_str!("../page/dom.js") },
    Asset { path: "/icon.svg", text: include_str!("../page/icon.svg") },
];

/// Returns a router that serves files by their paths. Browsers must revalidate the files each time, because
/// another version of the program may have other files.
pub fn files<S: Clone + Send + Sync + 'static>(assets: impl IntoIterator<Item = Asset>) -> Router<S> {
    let file = |asset: Asset| {
        let headers = [(CONTENT_TYPE, asset.content_type()), (CACHE_CONTROL, "no-cache")];
        move || async move { (headers, asset.text) }
    };
    let with = |router: Router<S>, asset: Asset| router.route(asset.path, get(file(asset)));
    assets.into_iter().fold(Router::new(), with).method_not_allowed_fallback(no_such_method)
}

/// Requires the token for all answers, if the server has one.
pub fn require_token<S: Clone + Send + Sync + 'static>(answers: Router<S>, token: CheckToken) -> Router<S> {
    answers.method_not_allowed_fallback(no_such_method).layer(from_fn_with_state(token, check_token))
}

async fn check_token(
    State(token): State<CheckToken>,
    request: Request,
    next: Next,
) -> Result<Response, RequestFailure> {
    token.check(request.headers(), request.extensions())?;
    Ok(next.run(request).await)
}

/// A JSON answer.
#[derive(Clone, Copy, Debug)]
pub struct JsonReply<T>(pub T);

impl<T: Serialize> IntoResponse for JsonReply<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(text) => {
                ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], text).into_response()
            }
            Err(error) => RequestFailure(Status::internal(error.to_string())).into_response(),
        }
    }
}

/// A failed request.
#[derive(Debug)]
pub struct RequestFailure(Status);

impl From<Status> for RequestFailure {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl IntoResponse for RequestFailure {
    fn into_response(self) -> Response {
        http_refusal(&self.0).map(Body::from)
    }
}

/// Answers a request for a known path with an unsupported method.
pub(crate) async fn no_such_method() -> RequestFailure {
    Status::unimplemented("expected the method GET").into()
}
