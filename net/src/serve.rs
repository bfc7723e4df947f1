//! A server from its start to its last answer.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::middleware::map_response;
use axum::response::Response;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::connections;
use crate::gate::{Allowed, Gate};
use crate::limits::ServerLimits;
use crate::policy::{Exposed, Protection, check_listen};
use crate::protocol::{Protocol, with_headers};
use crate::quota::Quota;
use crate::requests::{Guard, Rules, Streams, apply_rules};
use crate::shutdown::Stop;
use crate::tls::{ServerTls, TlsError, TlsFiles};
use crate::token::{CheckToken, RequiredToken};

/// Time for sending the final statuses of requests that are cut off.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Maximum size of a request's headers, in bytes. The longest token fits into this size.
const HEADER_BYTES: u32 = 16 << 10;

/// Flow-control windows of a stream and of a connection, in received bytes.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Largest accepted frame, in bytes. It is large so that blocks of other workers arrive in few frames.
const FRAME_BYTES: u32 = 512 << 10;

/// Failure of a server, at its start or later.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server would be open to a network without protection.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// Invalid certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Cannot listen on the address.
    #[error("cannot listen on {address}; choose another address, or port 0 for any free port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Unreadable descriptors of the services.
    #[error("cannot read the descriptors of the services: {0}")]
    Descriptors(String),
    /// The transport failed.
    #[error("the server failed")]
    Transport(#[from] tonic::transport::Error),
}

/// Address, access rules and limits of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Address to listen on; port 0 for any free port.
    pub listen: SocketAddr,
    /// Certificates.
    pub tls: TlsFiles,
    /// Token that clients must show.
    pub token: RequiredToken,
    /// Whether health checks over gRPC need no token. Supervisors ask for health without a token.
    pub is_health_open: bool,
    /// Whether to allow an address other than loopback without protection.
    pub insecure: bool,
    /// Hosts and origins allowed in addition to the server's own.
    pub allowed: Allowed,
    /// Limits.
    pub limits: ServerLimits,
}

/// Outcome of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// Every request was answered, and all other work has ended.
    Drained,
    /// The grace period ended first.
    CutOff,
}

/// A server that has bound its address but has no service yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    tls: Option<ServerTls>,
    protocol: Protocol,
    protection: Protection,
    /// The options. If the port was 0, the address has the port that the system chose. The token may be set later.
    pub options: ServerOptions,
    /// The limits of connections and requests. They may be raised later.
    pub capacity: Capacity,
}

/// Limits on the concurrent connections and requests of a server. The limits may grow.
#[derive(Clone, Debug)]
pub struct Capacity {
    connections: Quota,
    requests: Quota,
    /// Maximum number of open files of the process.
    descriptors: usize,
}

/// Number of descriptors reserved for other uses than connections: files of runs and stores, logs, metrics.
const KEPT: usize = 96;

/// Number of connections and of requests that [`Capacity::for_peers`] allows in addition to those of the peers.
const MARGIN: usize = 256;

impl Capacity {
    fn new(limits: &ServerLimits, descriptors: usize) -> Self {
        let connections = connections_within(descriptors, limits.connections);
        if connections < limits.connections {
            let asked = limits.connections;
            tracing::warn!(
                "connections limited to {connections} of {asked}: this process may have only {descriptors} open \
                 files; raise the limit (ulimit -n) or allow fewer connections"
            );
        }
        Self { connections: Quota::new(connections), requests: Quota::new(limits.requests), descriptors }
    }

    /// Raises the limits for `peers` other processes. Each of them uses a connection with a stream, and makes
    /// other requests.
    pub fn for_peers(&self, peers: usize) {
        let most = 2 * peers + MARGIN;
        self.requests.at_least(most);
        let connections = connections_within(self.descriptors, most);
        if connections < peers {
            let limit = self.descriptors;
            tracing::warn!(
                "too few connections for {peers} peers: this process may have only {limit} open files; raise the limit \
                 (ulimit -n)"
            );
        }
        self.connections.at_least(connections);
    }
}

impl Bound {
    /// Checks the options, including certificates and keys, and binds the address. Also raises the process's limit
    /// of open files.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`], [`ServeError::Tls`] or [`ServeError::Listen`].
    pub async fn new(options: ServerOptions) -> Result<Self, ServeError> {
        let tls = options.tls.server()?;
        let capacity = Capacity::new(&options.limits, raise_open_files());
        let bound = Self::bind(tls, Protocol::Grpc, options, capacity).await?;
        for warning in bound.tls.iter().flat_map(|tls| &tls.warnings) {
            tracing::warn!("{warning}");
        }
        Ok(bound)
    }

    /// Binds a second address, for plain HTTP. The new port has the same access rules and shares the limits of
    /// this server.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`] or [`ServeError::Listen`].
    pub async fn bind_http(&self, address: SocketAddr) -> Result<Self, ServeError> {
        let options = ServerOptions { listen: address, ..self.options.clone() };
        let tls = self.tls.as_ref().map(ServerTls::for_http);
        Self::bind(tls, Protocol::Http, options, self.capacity.clone()).await
    }

    async fn bind(
        tls: Option<ServerTls>,
        protocol: Protocol,
        mut options: ServerOptions,
        capacity: Capacity,
    ) -> Result<Self, ServeError> {
        let address = options.listen;
        let protection = Protection {
            tls: tls.is_some(),
            mutual_tls: tls.as_ref().is_some_and(|tls| tls.mutual),
            token: options.token.is_required(),
        };
        check_listen(address, protection, options.insecure)?;
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        options.listen = listener.local_addr().map_err(failed)?;
        let for_http = if protocol == Protocol::Http { " for HTTP" } else { "" };
        tracing::info!(address = %options.listen, %protection, "listening{for_http}");
        Ok(Self { listener, tls, protocol, protection, options, capacity })
    }

    /// Binds an address for metrics, without TLS and token. The port has separate limits.
    pub(crate) async fn for_metrics(
        address: SocketAddr,
        allowed: Allowed,
        limits: ServerLimits,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let (tls, token) = (TlsFiles::default(), RequiredToken::None);
        let listen = listener.local_addr()?;
        let (is_health_open, insecure) = (false, true);
        let options = ServerOptions { listen, tls, token, is_health_open, insecure, allowed, limits };
        let (connections, requests) = (Quota::new(limits.connections), Quota::new(limits.requests));
        let capacity = Capacity { connections, requests, descriptors: usize::MAX };
        let protection = Protection { tls: false, mutual_tls: false, token: false };
        Ok(Self { listener, tls: None, protocol: Protocol::Http, protection, options, capacity })
    }

    /// Returns the server's URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.options.listen)
    }

    /// Returns `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the check of the token.
    #[must_use]
    pub fn check_token(&self) -> CheckToken {
        CheckToken::new(self.options.token.clone())
    }

    /// Serves pages and JSON answers until `stop`, then waits for running requests. Requests for `paths` are counted
    /// by name. The router must check the token itself ([`Bound::check_token`]), because pages are public.
    ///
    /// # Errors
    ///
    /// [`ServeError::Transport`].
    pub async fn serve_http(
        self,
        router: axum::Router,
        paths: &[&str],
        stop: Stop,
    ) -> Result<ServerEnd, ServeError> {
        let method = |path: &&str| ((*path).to_owned(), Streams::Neither);
        let router = router.layer(map_response(async |response: Response| with_headers(response)));
        self.serve(Routes::from(router), paths.iter().map(method).collect(), None, stop).await
    }

    /// Serves until `stop`, then waits for running requests. `methods` are counted by name. `guard` checks the token.
    ///
    /// # Errors
    ///
    /// [`ServeError::Transport`].
    pub(crate) async fn serve(
        self,
        routes: Routes,
        methods: HashMap<String, Streams>,
        guard: Option<Guard>,
        stop: Stop,
    ) -> Result<ServerEnd, ServeError> {
        let ServerOptions { listen, limits, ref allowed, .. } = self.options;
        let gate = Gate::new(self.protocol, listen, self.protection, allowed.clone());
        let Capacity { connections, requests, .. } = self.capacity;
        let rules = Rules { methods, gate, guard, requests, limits, stop: stop.over.clone() };
        let mut server = transport(&limits, self.protocol);
        let tls = self.tls.map(|tls| TlsAcceptor::from(tls.config));
        let incoming = connections::incoming(self.listener, connections, tls, self.protocol, &limits);
        let serving = server
            .add_routes(Routes::from(apply_rules(routes.into_axum_router(), rules)))
            .serve_with_incoming_shutdown(incoming, stop.begun.clone().cancelled_owned());
        let over = async {
            stop.over.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            served = serving => served.map(|()| if stop.over.is_cancelled() { ServerEnd::CutOff } else { ServerEnd::Drained })
                .map_err(ServeError::from),
            () = over => Ok(ServerEnd::CutOff),
        }
    }
}

/// Raises the limit of open files to the system's maximum and returns the new limit. For the sake of old programs,
/// most systems start a process with a limit of 1,024 but allow hundreds of thousands.
fn raise_open_files() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Some systems report an unlimited maximum but refuse to set it.
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::debug!(%error, "limit of open files not raised");
        }
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Returns the number of connections allowed, given the `wanted` number and the `limit` of open files.
fn connections_within(limit: usize, wanted: usize) -> usize {
    // Each connection takes one descriptor. If the limit is below twice [`KEPT`], connections get half of it.
    wanted.min(limit.saturating_sub(KEPT).max(limit / 2)).max(1)
}

/// Returns the transport of a server, with the limits that the transport enforces.
fn transport(limits: &ServerLimits, protocol: Protocol) -> Server {
    let server = Server::builder()
        .accept_http1(protocol == Protocol::Http)
        .max_concurrent_streams(limits.streams_per_connection)
        .http2_max_header_list_size(HEADER_BYTES)
        .http2_keepalive_interval(Some(limits.keepalive.interval))
        .http2_keepalive_timeout(Some(limits.keepalive.timeout))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_BYTES);
    match limits.connection_time {
        Some(time) => server.max_connection_age(time).max_connection_age_grace(time),
        None => server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        for (limit, wanted, connections) in [
            (usize::MAX, 1024, 1024),
            (2048, 1024, 1024),
            (1024, 1024, 928),
            (200, 1024, 104),
            (64, 1024, 32),
            (1, 1024, 1),
            (1024, 64, 64),
        ] {
            assert_eq!(connections_within(limit, wanted), connections, "{limit} {wanted}");
        }
    }
}
