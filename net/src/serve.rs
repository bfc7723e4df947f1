//! A server from its start to its last answer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::middleware::map_response;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_stream::StreamExt;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::accept::Accept;
use crate::gate::{Allowed, Gate};
use crate::limits::ServerLimits;
use crate::pages::with_headers;
use crate::policy::{Exposed, Protection, check_listen};
use crate::protocol::Protocol;
use crate::refusals::Refusals;
use crate::requests::{Method, RequestsLayer, Room, Streams};
use crate::share::PermitPool;
use crate::shutdown::Stop;
use crate::tls::{ServerTls, TlsError, TlsFiles};
use crate::token::{CheckToken, Token};
use crate::{connections, descriptors};

/// Time for the last words of requests that are cut off.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Bytes of a request's headers; a token of the longest kind fits.
const HEADER_BYTES: u32 = 16 << 10;

/// Bytes under way to us on a stream and on a connection before the sender waits.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Bytes that a peer may send in one piece: blocks of other workers come in few of them.
const FRAME_BYTES: u32 = 512 << 10;

/// Why a server cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would be open to a network.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// Certificates or keys.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}; choose another address, with port 0 for any that is free")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The descriptors of the services.
    #[error("the descriptors of the services cannot be read: {0}")]
    Descriptors(String),
    /// The transport failed.
    #[error("the server failed")]
    Transport(#[from] tonic::transport::Error),
}

/// What decides who may connect and how much they may ask.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Certificates.
    pub tls: TlsFiles,
    /// The token that clients must show.
    pub token: Option<Token>,
    /// Whether to listen off loopback without protection.
    pub insecure: bool,
    /// Hosts and origins beyond the server's own.
    pub allowed: Allowed,
    /// How much is taken on at once.
    pub limits: ServerLimits,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// Every request had its answer.
    Drained,
    /// The time of grace was over before.
    CutOff,
}

/// A server that has its address and no service yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
    protocol: Protocol,
    options: ServerOptions,
    capacity: Capacity,
}

/// How many connections and requests a server takes on at once, which may grow.
#[derive(Clone, Debug)]
pub struct Capacity {
    connections: PermitPool,
    requests: Room,
    /// Files that the process may have open.
    descriptors: usize,
}

/// Connections and requests that [`Capacity::for_peers`] makes room for beside those of the peers.
const MARGIN: usize = 256;

impl Capacity {
    fn new(limits: &ServerLimits, descriptors: usize) -> Self {
        let connections = descriptors::connections_within(descriptors, limits.connections);
        if connections < limits.connections {
            let asked = limits.connections;
            tracing::warn!(
                "only {connections} connections of {asked} are taken at once: this process may have {descriptors} files \
                 open. Raise the limit (ulimit -n) or take fewer connections"
            );
        }
        Self { connections: PermitPool::new(connections), requests: Room::new(limits.requests), descriptors }
    }

    /// Makes room for `peers` other processes. Each has a stream for as long as they work together, with a connection
    /// for it, and makes other requests besides.
    pub fn for_peers(&self, peers: usize) {
        // Twice what they need: they may all be at one address, which gets three quarters.
        let most = 2 * peers + MARGIN;
        self.requests.any.at_least(most);
        let connections = descriptors::connections_within(self.descriptors, most);
        if connections < peers {
            let limit = self.descriptors;
            tracing::warn!(
                "{peers} others work with this process, which may have only {limit} files open: raise the limit \
                 (ulimit -n)"
            );
        }
        self.connections.at_least(connections);
    }
}

impl Bound {
    /// Checks the options, certificates and keys among them, and takes the address. Raises the limit of open files of
    /// the process.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`], [`ServeError::Tls`] or [`ServeError::Listen`].
    pub async fn new(options: ServerOptions) -> Result<Self, ServeError> {
        let tls = options.tls.server()?;
        let protection = protection(tls.as_ref(), &options);
        check_listen(options.listen, protection, options.insecure)?;
        for warning in tls.iter().flat_map(|tls| &tls.warnings) {
            tracing::warn!("{warning}");
        }
        let capacity = Capacity::new(&options.limits, descriptors::raise());
        let (listener, address) = listen(options.listen).await?;
        tracing::info!(%address, %protection, "listening");
        Ok(Self { listener, address, tls, protocol: Protocol::Grpc, options, capacity })
    }

    /// Takes an address for plain HTTP beside this one. All that decides who may connect and how much they may ask is the
    /// same, and what is taken on at once is counted together.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`] or [`ServeError::Listen`].
    pub async fn http_beside(&self, address: SocketAddr) -> Result<Self, ServeError> {
        let options = ServerOptions { listen: address, ..self.options.clone() };
        let protection = protection(self.tls.as_ref(), &options);
        check_listen(address, protection, options.insecure)?;
        let (listener, address) = listen(address).await?;
        tracing::info!(%address, %protection, "listening for HTTP");
        let tls = self.tls.as_ref().map(ServerTls::for_http);
        let capacity = self.capacity.clone();
        Ok(Self { listener, address, tls, protocol: Protocol::Http, options, capacity })
    }

    /// The URL that clients give.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.address)
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Whether clients have to show a token or a certificate, so that no stranger gets an answer.
    #[must_use]
    pub fn knows_clients(&self) -> bool {
        self.options.token.is_some() || self.tls.as_ref().is_some_and(|tls| tls.mutual)
    }

    /// The address, with the port that the system chose where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How much is taken on at once.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.capacity.clone()
    }

    /// The check of the token, for every service but health: programs that start and stop servers ask for that.
    #[must_use]
    pub fn check_token(&self) -> CheckToken {
        CheckToken::new(self.options.token.clone())
    }

    /// Serves pages and answers in JSON until `stop`, and until what is running then has ended. Requests for `paths` are
    /// counted by name. The router asks for the token itself ([`Bound::check_token`]), since pages are for anyone.
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
        let method =
            |path: &&str| Method { path: (*path).to_owned(), streams: Streams::Neither, reserved: false };
        let router = router.layer(map_response(async |response: Response| with_headers(response)));
        self.serve(Routes::from(router), paths.iter().map(method).collect(), stop).await
    }

    /// Serves until `stop`, and until what is running then has ended. `methods` are those counted by name.
    ///
    /// # Errors
    ///
    /// [`ServeError::Transport`].
    pub(crate) async fn serve(
        self,
        routes: Routes,
        methods: Vec<Method>,
        stop: Stop,
    ) -> Result<ServerEnd, ServeError> {
        let ServerOptions { limits, ref allowed, .. } = self.options;
        let protection = protection(self.tls.as_ref(), &self.options);
        let gate = Gate::new(self.protocol, self.address, protection, allowed.clone());
        let server = Server::builder()
            .accept_http1(self.protocol == Protocol::Http)
            .max_concurrent_streams(limits.streams_per_connection)
            .http2_max_header_list_size(HEADER_BYTES)
            .http2_keepalive_interval(Some(limits.keepalive.interval))
            .http2_keepalive_timeout(Some(limits.keepalive.timeout))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME_BYTES);
        let Capacity { connections, requests, .. } = self.capacity;
        let requests = RequestsLayer::new(methods, self.protocol, limits, requests, stop.over.clone());
        let mut server = server.layer(requests);
        let accept = Accept::new(self.listener, connections, limits.keepalive);
        let tls = self.tls.map(|tls| TlsAcceptor::from(tls.config));
        let protocol = self.protocol;
        let incoming = connections::incoming(accept, tls, limits.hello_time)
            .map(move |connection| connection.map(|connection| Refusals::new(connection, protocol)));
        let serving = server
            .add_routes(Routes::from(gate.guard(routes.into_axum_router())))
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

fn protection(tls: Option<&ServerTls>, options: &ServerOptions) -> Protection {
    Protection {
        tls: tls.is_some(),
        mutual_tls: tls.is_some_and(|tls| tls.mutual),
        token: options.token.is_some(),
    }
}

/// Takes an address.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
