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
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::accept::Accept;
use crate::gate::{Allowed, Gate};
use crate::keepalive::KeepAlive;
use crate::pages::{RequestFailure, no_such_method};
use crate::policy::Protection;
use crate::protocol::Protocol;
use crate::quota::Quota;
use crate::refusals::Refusals;
use crate::requests;

/// Upper bounds of the latency histogram, in seconds: 50 µs to 10 s.
const BUCKETS: [f64; 16] =
    [5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 10.0];

/// Interval at which samples are sorted into buckets. Before that, samples are stored one by one.
const UPKEEP: Duration = Duration::from_secs(5);

/// Maximum number of concurrent connections. Each serves one scrape.
const CONNECTIONS: usize = 16;

/// Maximum time of a scrape, from the connection to the last byte of the answer.
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
    let failed = |source| MonitoringError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
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
    let open = Protection { tls: false, mutual_tls: false, token: false };
    let app = Gate::new(Protocol::Http, address, open, allowed).guard(app);
    let accept = Accept::new(listener, Quota::new(CONNECTIONS), KeepAlive::default());
    tokio::spawn(async move { stop.run_until_cancelled(serve(accept, app)).await });
    Ok(address)
}

/// Answers one request per connection. Clients use at most [`CONNECTIONS`] descriptors, each for at most
/// [`SCRAPE`]. So scrapes cannot disturb the services.
async fn serve(accept: Accept, app: Router) {
    loop {
        let (stream, _, permit) = accept.next().await;
        let app = TowerToHyperService::new(app.clone());
        let stream = Refusals::new(stream, Protocol::Http);
        tokio::spawn(async move {
            let connection =
                http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), app);
            // A connection that fails or times out is closed without a log line.
            let _ = tokio::time::timeout(SCRAPE, connection).await;
            drop(permit);
        });
    }
}

async fn keep_up(recorder: PrometheusHandle, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(UPKEEP)).await.is_some() {
        recorder.run_upkeep();
    }
}
