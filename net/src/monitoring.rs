//! Prometheus metrics on a separate address.
//!
//! The port of the services is unsuitable for metrics. A scrape should need no certificate or token, must work
//! while limits are reached, and belongs on an internal address. The metrics contain counts and times, but no
//! boards.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::gate::Allowed;
use crate::limits::ServerLimits;
use crate::pages::{RequestFailure, no_such_method};
use crate::requests;
use crate::serve::Bound;
use crate::shutdown::Stop;

/// Upper bounds of the latency histogram, in seconds: 50 µs to 10 s.
const BUCKETS: [f64; 16] =
    [5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 10.0];

/// Interval at which samples are sorted into buckets. Before that, samples are stored one by one.
const UPKEEP: Duration = Duration::from_secs(5);

/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 16;

/// Maximum time of a scrape, and the time after which a connection takes no further scrape. With the limit of
/// connections, scrapes cannot disturb the services.
const SCRAPE: Duration = Duration::from_secs(5);

/// Refreshes the metrics that are computed at each scrape instead of counted at each event.
pub type Refresh = Arc<dyn Fn() + Send + Sync>;

/// Failure to serve metrics.
#[derive(Debug, thiserror::Error)]
pub enum MonitoringError {
    /// The recorder cannot be installed.
    #[error("cannot record metrics")]
    Recorder(#[from] BuildError),
    /// Cannot listen on the address.
    #[error("cannot listen on {address} for metrics; choose another address")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Starts recording, and serves `http://address/metrics` to `allowed` hosts until `stop`. Call it before the first
/// event is counted. Returns the address, with the port that the system chose if 0 was given.
///
/// # Errors
///
/// [`MonitoringError`].
pub async fn start(
    address: SocketAddr,
    allowed: Allowed,
    refresh: Refresh,
    stop: CancellationToken,
) -> Result<SocketAddr, MonitoringError> {
    let limits = ServerLimits {
        connections: CONNECTIONS,
        request_time: SCRAPE,
        hello_time: SCRAPE,
        connection_time: Some(SCRAPE),
        ..ServerLimits::default()
    };
    let bound = Bound::for_metrics(address, allowed, limits).await;
    let bound = bound.map_err(|source| MonitoringError::Listen { address, source })?;
    let address = bound.options.listen;
    if !address.ip().to_canonical().is_loopback() {
        tracing::warn!(%address, "metrics are unencrypted and open to anyone");
    }
    let recorder = PrometheusBuilder::new().set_buckets(&BUCKETS)?.install_recorder()?;
    requests::describe();
    tokio::spawn(keep_up(recorder.clone(), stop.clone()));
    let scrape = move || {
        refresh();
        let text = recorder.render();
        async { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    let app = Router::new()
        .route("/metrics", get(scrape))
        .method_not_allowed_fallback(no_such_method)
        .fallback(async || RequestFailure::from(Status::not_found("expected the path /metrics")));
    let stop = Stop { begun: stop.clone(), over: stop };
    tokio::spawn(bound.serve_http(app, &["/metrics"], stop));
    Ok(address)
}

async fn keep_up(recorder: PrometheusHandle, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(UPKEEP)).await.is_some() {
        recorder.run_upkeep();
    }
}
