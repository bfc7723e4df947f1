//! The server of a coordinator: its service, health checks and reflection. Also its read-only page for browsers, which
//! shows the same data as `exact2048 status`, also as JSON.

use std::sync::Arc;

use anyhow::{Result, bail};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use exact2048_net::limits::ServerLimits;
use exact2048_net::pages::{Asset, JsonReply, RequestFailure, SHARED, files, require_token};
use exact2048_net::serve::{Bound, ServeError, ServerEnd};
use exact2048_net::services;
use exact2048_net::shutdown::Stop;
use exact2048_net::token::CheckToken;
use exact2048_proto::v1::ListResponse;
use exact2048_proto::v1::coordinator_server::CoordinatorServer;
use tonic::Status;
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

use super::driver::Driver;
use super::service::CoordinatorService;
use super::shell::Shell;
use crate::client::Shown;
use crate::view::StatusView;

/// Name of the service in health checks. The empty name stands for the whole server.
const SERVICE: &str = "exact2048.v1.Coordinator";

/// The files that only this page has.
const FILES: [Asset; 4] = [
    Asset { path: "/", text: include_str!("../../page/index.html") },
    Asset { path: "/style.css", text: include_str!("../../page/style.css") },
    Asset { path: "/status.js", text: include_str!("../../page/status.js") },
    Asset { path: "/numbers.js", text: include_str!("../../page/numbers.js") },
];

/// The path at which the page asks for the status.
const STATUS: &str = "/api/v1/status";

/// Runs a coordinator until `stop`. Serves its page to browsers if `for_browsers` gives an address.
///
/// Before it returns, the coordinator finishes the append under way, within the grace period.
///
/// # Errors
///
/// An error of the server, or a takeover of the store by another coordinator.
pub async fn serve(
    bound: Bound,
    for_browsers: Option<Bound>,
    shell: Arc<Shell>,
    limits: ServerLimits,
    stop: Stop,
) -> Result<ServerEnd> {
    let (health, health_service) = health_reporter();
    for service in ["", SERVICE] {
        health.set_service_status(service, ServingStatus::Serving).await;
    }
    let Stop { begun, over } = stop.clone();
    tokio::spawn(async move {
        begun.cancelled().await;
        for service in ["", SERVICE] {
            health.set_service_status(service, ServingStatus::NotServing).await;
        }
        // A coordinator that another one has fenced off receives no signal. So this task ends the grace period.
        tokio::time::sleep(limits.grace).await;
        over.cancel();
    });
    let appends = shell.run();

    let service = CoordinatorServer::new(CoordinatorService(Arc::clone(&shell)));
    let service = service.max_decoding_message_size(limits.message_bytes);
    let browsers = serve_browsers(for_browsers, Arc::clone(&shell.driver), stop.clone());
    let calls = services::serve(bound, health_service, service, exact2048_proto::DESCRIPTORS, stop.clone());
    let served = tokio::try_join!(calls, browsers);
    // If the server failed, the other parts must begin no more work either.
    stop.begun.cancel();
    let appended = tokio::select! {
        ended = appends => ended.is_ok(),
        () = stop.over.cancelled() => false,
    };
    let (of_grpc, of_http) = served?;
    let ended = if of_http == ServerEnd::CutOff { of_http } else { of_grpc };
    if let Some(reason) = shell.driver.fenced.get() {
        bail!("another coordinator owns the store: {reason}");
    }
    Ok(if appended { ended } else { ServerEnd::CutOff })
}

/// Serves the page, if it has an address.
async fn serve_browsers(
    bound: Option<Bound>,
    driver: Arc<Driver>,
    stop: Stop,
) -> Result<ServerEnd, ServeError> {
    let Some(bound) = bound else { return Ok(ServerEnd::Drained) };
    let router = router(driver, bound.check_token());
    bound.serve_http(router, &paths(), stop).await
}

/// Returns all paths. The metrics count requests by path.
fn paths() -> Vec<&'static str> {
    FILES.into_iter().chain(SHARED).map(|asset| asset.path).chain([STATUS]).collect()
}

/// Serves the files of the page to all clients, because a browser needs the page to ask for the token. Every other
/// answer requires the token.
fn router(driver: Arc<Driver>, token: CheckToken) -> Router {
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
