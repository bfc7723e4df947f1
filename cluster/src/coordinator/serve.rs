//! The server of a coordinator: its service, health checks and reflection.

use std::sync::Arc;

use anyhow::{Result, bail};
use exact2048_net::limits::ServerLimits;
use exact2048_net::serve::{Bound, ServeError, ServerEnd};
use exact2048_net::services;
use exact2048_net::shutdown::Stop;
use exact2048_proto::v1::coordinator_server::CoordinatorServer;
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

use super::driver::Driver;
use super::page;
use super::service::CoordinatorService;
use super::shell::Shell;

/// Name of the service in health checks. The empty name stands for the whole server.
const SERVICE: &str = "exact2048.v1.Coordinator";

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
    let router = page::router(driver, bound.check_token());
    bound.serve_http(router, &page::paths(), stop).await
}
