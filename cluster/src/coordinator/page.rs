//! The coordinator's read-only page for browsers. It shows the same data as `exact2048 status`, also as JSON.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use exact2048_net::pages::{Asset, JsonReply, RequestFailure, SHARED, files, require_token};
use exact2048_net::token::CheckToken;
use exact2048_proto::v1::ListResponse;
use tonic::Status;

use super::driver::Driver;
use crate::client::Shown;
use crate::view::StatusView;

/// The files that only this page has.
const FILES: [Asset; 4] = [
    Asset { path: "/", text: include_str!("../../page/index.html") },
    Asset { path: "/style.css", text: include_str!("../../page/style.css") },
    Asset { path: "/status.js", text: include_str!("../../page/status.js") },
    Asset { path: "/numbers.js", text: include_str!("../../page/numbers.js") },
];

/// The path at which the page asks for the status.
const STATUS: &str = "/api/v1/status";

/// Returns all paths. The metrics count requests by path.
pub fn paths() -> Vec<&'static str> {
    FILES.into_iter().chain(SHARED).map(|asset| asset.path).chain([STATUS]).collect()
}

/// Serves the files of the page to all clients, because a browser needs the page to ask for the token. Every other
/// answer requires the token.
pub(super) fn router(driver: Arc<Driver>, token: CheckToken) -> Router {
    let answers = require_token(Router::new().route(STATUS, get(status)).fallback(no_such_path), token);
    answers.merge(files(FILES.into_iter().chain(SHARED))).with_state(driver)
}

async fn status(State(driver): State<Arc<Driver>>) -> JsonReply<StatusView> {
    let all = driver.snapshot();
    let mut told = ListResponse { jobs: all.in_turn(), workers: all.workers.to_vec() };
    told.make_plain();
    JsonReply(StatusView::all(&told.jobs, &told.workers))
}

async fn no_such_path() -> RequestFailure {
    Status::not_found(format!("expected the path / (the page) or {STATUS} (its data)")).into()
}
