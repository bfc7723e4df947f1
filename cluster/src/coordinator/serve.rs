//! The service on a server, with health and reflection.

use std::sync::Arc;

use anyhow::{Result, bail};
use exact2048_net::limits::ServerLimits;
use exact2048_net::serve::{Bound, ServeError, ServerEnd};
use exact2048_net::services::Services;
use exact2048_net::shutdown::Stop;
use exact2048_proto::v1::coordinator_server::CoordinatorServer;
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

use super::driver::Driver;
use super::page;
use super::service::CoordinatorService;
use super::shell::Shell;

/// The name of the service in health checks; the server as a whole has an empty name there.
const SERVICE: &str = "exact2048.v1.Coordinator";

/// Runs a coordinator until `stop`, with its page for browsers if that has an address.
///
/// An append that is under way at `stop` is made first.
///
/// # Errors
///
/// Those of the server, and that another coordinator has taken over.
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
        // A coordinator that is fenced off gets no signal, and its clients have as much time.
        tokio::time::sleep(limits.grace).await;
        over.cancel();
    });
    let appends = shell.run();

    let service = CoordinatorServer::new(CoordinatorService::new(&shell));
    let service = service.max_decoding_message_size(limits.message_bytes);
    let browsers = serve_browsers(for_browsers, Arc::clone(&shell.driver), stop.clone());
    let services = Services::new(bound, health_service, service, exact2048_proto::DESCRIPTORS)?;
    let served = tokio::try_join!(services.with_guarded_health().serve(stop.clone()), browsers);
    // Also where the server failed: then nothing may be begun any more either.
    stop.begun.cancel();
    let appended = tokio::select! {
        ended = appends => ended.is_ok(),
        () = stop.over.cancelled() => false,
    };
    let (of_grpc, of_http) = served?;
    let ended = if of_http == ServerEnd::CutOff { of_http } else { of_grpc };
    if let Some(reason) = shell.fenced() {
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
