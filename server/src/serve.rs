//! The service on a server, with health checks and reflection.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use exact2048_net::limits::ServerLimits;
use exact2048_net::serve::{Bound, ServerEnd};
use exact2048_net::services;
use exact2048_net::shutdown::Stop;
use exact2048_net::text::with_causes;
use exact2048_proto::v1::query_server::QueryServer;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

use crate::runs::Runs;
use crate::served::Served;
use crate::service::QueryService;
use crate::turns::Turns;

/// Interval for rereading a run that is not solved or not fully readable.
const REFRESH: Duration = Duration::from_secs(2);

/// Name of the service in health checks. The empty name stands for the whole server.
const SERVICE: &str = "exact2048.v1.Query";

/// Serves runs until `stop`. `threads` threads work on batches, and slow computations take `turns`.
///
/// The server is healthy while it accepts requests. The service is healthy while, in addition, the first run is
/// solved and all its requested data is readable.
///
/// # Errors
///
/// Errors of the server.
pub async fn serve(
    bound: Bound,
    runs: Runs,
    threads: usize,
    turns: Turns,
    limits: ServerLimits,
    stop: Stop,
) -> Result<ServerEnd> {
    let (health, health_service) = health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    tokio::spawn(watch(Arc::clone(runs.first()), health, stop.clone()));
    for other in runs.iter().skip(1) {
        tokio::spawn(keep_current(Arc::clone(&other.served), stop.clone()));
    }

    let service = QueryService::new(runs, threads, turns, limits.idle_time);
    let query = QueryServer::new(service).max_decoding_message_size(limits.message_bytes);
    Ok(services::serve(bound, health_service, query, exact2048_proto::DESCRIPTORS, stop).await?)
}

/// Rereads a run while it is not solved or not fully readable, until `stop`. Does not set a health status.
async fn keep_current(served: Arc<Served>, stop: Stop) {
    while read_again(&served, &stop).await {}
}

/// Rereads a run after the interval. Returns false if the server stops first.
async fn read_again(served: &Arc<Served>, stop: &Stop) -> bool {
    stop.begun.run_until_cancelled(tokio::time::sleep(REFRESH)).await;
    if stop.begun.is_cancelled() {
        return false;
    }
    let reading = Arc::clone(served);
    match tokio::task::spawn_blocking(move || reading.refresh()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = with_causes(&*error), "rereading the run failed"),
        Err(error) => tracing::error!(%error, "rereading the run failed"),
    }
    true
}

/// Keeps the health status current, and rereads the run while it is not solved or not fully readable.
async fn watch(served: Arc<Served>, health: HealthReporter, stop: Stop) {
    let mut was_healthy = None;
    loop {
        let now = served.now();
        let is_healthy = now.is_healthy();
        if was_healthy != Some(is_healthy) {
            let status = if is_healthy { ServingStatus::Serving } else { ServingStatus::NotServing };
            health.set_service_status(SERVICE, status).await;
            match was_healthy {
                Some(false) => {
                    tracing::info!("run is solved and readable")
                }
                Some(true) => {
                    tracing::warn!("part of the run is unreadable, retrying")
                }
                None => {}
            }
            was_healthy = Some(is_healthy);
        }
        drop(now);
        if !read_again(&served, &stop).await {
            break;
        }
    }
    for service in ["", SERVICE] {
        health.set_service_status(service, ServingStatus::NotServing).await;
    }
}
