//! Options shared by all servers and by all clients.

use std::error::Error as _;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use exact2048_cluster::coordinator::QueueError;
use exact2048_cluster::worker::WorkerRefusal;
use exact2048_net::client::{ClientOptions, ConnectError, MissingTls};
use exact2048_net::gate::Allowed;
use exact2048_net::limits::ServerLimits;
use exact2048_net::logs::{LogError, LogFormat};
use exact2048_net::monitoring::{self, MonitoringError, Refresh};
use exact2048_net::serve::{ServeError, ServerOptions};
use exact2048_net::shutdown::Stop;
use exact2048_net::status::words_of;
use exact2048_net::tls::{TlsError, TlsFiles};
use exact2048_net::token::{RequiredToken, Token, TokenError};
use exact2048_storage::ErrorKind;
use tokio::runtime::Runtime;
use tonic::{Code, Status};

use crate::Failure;

/// Environment variable of the token. No option takes the token itself, because other users can read command lines.
const TOKEN_VARIABLE: &str = "EXACT2048_TOKEN";

/// Remedy for a missing or wrong token.
const TOKEN: &str = "give a file with its token by --token-file, or set EXACT2048_TOKEN to the token";

/// The same for a coordinator, which keeps its token in its store.
const CLUSTER_TOKEN: &str =
    "give its token by --token-file, such as STORE/coordinator/token, or set EXACT2048_TOKEN to the token";

/// The same for a worker.
const WORKER_TOKEN: &str =
    "give the coordinator's store by --store, or its token by --token-file or EXACT2048_TOKEN";

/// Parses an address to listen on.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected a numeric address and a port, for example 127.0.0.1:8048 or [::1]:8048".to_owned()
    })
}

/// Parses the name of a host without a port.
fn host(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_name) {
        return Err(format!("expected a host name without scheme and port, found {text:?}"));
    }
    Ok(text.to_owned())
}

/// Options of a server.
#[derive(clap::Args, Debug)]
pub struct ServerArgs {
    /// Listen on this address; port 0 takes any free port [default: 127.0.0.1, and port 2048 for serve, 2049 for
    /// coordinator, any for worker]
    #[arg(long, value_name = "ADDR", value_parser = crate::network::listen_address)]
    listen: Option<SocketAddr>,
    /// Encrypt connections with this server certificate and its intermediate certificates, PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Read the private key of the certificate from this file, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Require client certificates from this CA, PEM
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Require the token in this file from callers; a worker also sends it [default: the token in EXACT2048_TOKEN, if set;
    /// else, in a cluster without client certificates, the token in the store]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Listen beyond loopback without encryption and, for serve, without authentication of clients; in trusted networks
    /// only
    #[arg(long)]
    insecure: bool,
    /// Serve Prometheus metrics at http://ADDR/metrics, unencrypted and without a token
    #[arg(long, value_name = "ADDR", value_parser = crate::network::listen_address)]
    metrics_listen: Option<SocketAddr>,
    /// Also accept this host name in HTTP requests, if the server listens on loopback without a token; can be repeated
    /// [always accepted: localhost and the addresses of loopback]
    #[arg(long, value_name = "NAME", value_parser = host)]
    allow_host: Vec<String>,
    /// Limit concurrent connections; others wait [default: 1024, in a cluster 8192]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: Option<u32>,
    /// Limit concurrent requests, including streams; others are refused [default: 256, in a cluster 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_requests: Option<u32>,
    /// Give running requests this many seconds to end after SIGTERM or SIGINT
    #[arg(long, value_name = "SECONDS", default_value_t = ServerLimits::default().grace.as_secs() as u32)]
    grace: u32,
    /// Choose the format of log lines on stderr
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = ["human", "json"])]
    log_format: String,
    /// Set the log level: error, warn, info, debug or trace, or levels by crate (net=debug,...)
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
}

/// Time for blocking reads to finish after a server has ended.
const LAST_READS: Duration = Duration::from_secs(1);

/// Runs a server to its end. Abandons unfinished reads, because an unresponsive store can block them for minutes.
pub fn run_to_end<T>(runtime: Runtime, server: impl Future<Output = T>) -> T {
    let end = runtime.block_on(server);
    runtime.shutdown_timeout(LAST_READS);
    end
}

impl ServerArgs {
    /// The options of a server that listens on `port` by default.
    pub fn options(&self, port: u16) -> Result<ServerOptions> {
        let options = self.options_with(port, ServerLimits::default(), self.token()?.into());
        Ok(ServerOptions { is_health_open: true, ..options })
    }

    fn options_with(&self, port: u16, limits: ServerLimits, token: RequiredToken) -> ServerOptions {
        let limits = ServerLimits {
            connections: self.max_connections.map_or(limits.connections, |most| most as usize),
            requests: self.max_requests.map_or(limits.requests, |most| most as usize),
            grace: self.grace(),
            ..limits
        };
        let listen = self.listen.unwrap_or((Ipv4Addr::LOCALHOST, port).into());
        let (tls, allowed) = (self.tls(), self.allowed());
        let (is_health_open, insecure) = (false, self.insecure);
        ServerOptions { listen, tls, token, is_health_open, insecure, limits, allowed }
    }

    fn tls(&self) -> TlsFiles {
        TlsFiles { cert: self.tls_cert.clone(), key: self.tls_key.clone(), ca: self.tls_ca.clone() }
    }

    /// The token of the options or the environment, if any.
    pub fn token(&self) -> Result<Option<Token>> {
        token(self.token_file.as_ref())
    }

    /// Whether clients must show a certificate. A cluster then needs no token.
    pub fn asks_for_certificates(&self) -> bool {
        self.tls_ca.is_some()
    }

    /// Time for running requests when the server stops.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace.into())
    }

    fn allowed(&self) -> Allowed {
        Allowed { hosts: self.allow_host.clone(), origins: Vec::new() }
    }

    /// Prints the address of the metrics, if given, and serves the metrics there until `stop`.
    pub async fn serve_metrics(&self, refresh: Refresh, stop: &Stop) -> Result<()> {
        let Some(address) = self.metrics_listen else { return Ok(()) };
        let address = monitoring::start(address, self.allowed(), refresh, stop.over.clone()).await?;
        writeln!(io::stdout(), "metrics on http://{address}/metrics")?;
        Ok(())
    }

    /// The options of a server in a cluster, with its higher limits. It authenticates its clients in every case: without
    /// client certificates, a missing token is to be set later.
    pub fn cluster_options(&self, port: u16, token: Option<Token>) -> ServerOptions {
        let token = match token {
            None if !self.asks_for_certificates() => RequiredToken::Later,
            token => token.into(),
        };
        self.options_with(port, ServerLimits::of_cluster(), token)
    }

    /// The options for calls to another server of the cluster, with this server's certificate and token.
    pub fn client(&self, server: &str, token: Option<Token>) -> ClientOptions {
        ClientOptions { server: server.to_owned(), tls: self.tls(), token, insecure: self.insecure }
    }

    /// Starts logging with the options.
    pub fn start_logs(&self) -> Result<()> {
        let format = if self.log_format == "json" { LogFormat::Json } else { LogFormat::Human };
        Ok(exact2048_net::logs::start(format, &self.log)?)
    }
}

/// Options of a client.
#[derive(clap::Args, Debug)]
pub struct ClientArgs {
    /// Require a server certificate from this CA, PEM [default: the CAs that the system trusts]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Present this certificate to the server, PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Read the private key of the certificate from this file, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Send the token in this file to the server [default: the token in EXACT2048_TOKEN, if set]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Send the token even over an unencrypted connection, in trusted networks only
    #[arg(long)]
    insecure: bool,
}

impl ClientArgs {
    /// The options for a connection to this server.
    pub fn options(&self, server: &str) -> Result<ClientOptions> {
        let tls =
            TlsFiles { cert: self.tls_cert.clone(), key: self.tls_key.clone(), ca: self.tls_ca.clone() };
        let token = token(self.token_file.as_ref())?;
        Ok(ClientOptions { server: server.to_owned(), tls, token, insecure: self.insecure })
    }

    /// Refuses these options if the command has no `--server`.
    pub fn refuse(&self) -> Result<(), Failure> {
        let files = [&self.tls_ca, &self.tls_cert, &self.tls_key, &self.token_file];
        if files.into_iter().any(Option::is_some) || self.insecure {
            let message =
                "--tls-ca, --tls-cert, --tls-key, --token-file and --insecure require --server".to_owned();
            return Err(Failure::usage(message));
        }
        Ok(())
    }
}

/// Name of a coordinator in messages.
pub const COORDINATOR: &str = "coordinator";

/// Largest number of printed bytes of a server's message.
pub const MOST_WORDS: usize = 4096;

/// The message of a server, safe to print on a terminal.
pub fn words(status: &Status) -> String {
    exact2048_net::text::plain_words(words_of(status), MOST_WORDS)
}

/// The error for a status without a dedicated exit code. It names the server and a remedy.
pub fn refusal(server: &str, status: &Status) -> anyhow::Error {
    let message = words(status);
    match status.code() {
        Code::Unimplemented => {
            anyhow!("expected a {server} at this address, found another server; check the host and the port")
        }
        // The client parsed an HTTP/1 answer as an HTTP/2 message.
        Code::Internal if message.contains("invalid compression flag") => anyhow!(
            "expected a {server} at this address, found another server, perhaps the page for browsers; check the port"
        ),
        code @ Code::Unauthenticated => {
            let remedy = if server == COORDINATOR { CLUSTER_TOKEN } else { TOKEN };
            anyhow!("the {server} returned {code:?}: {message} ({remedy})")
        }
        // A status with a source is a failure of the connection, not an answer of the server.
        _ if status.source().is_some() => anyhow!("cannot reach the {server}: {message}"),
        code => anyhow!("the {server} returned {code:?}: {message}"),
    }
}

/// The options that remedy an error of a server or a client, if any.
pub fn remedy(error: &anyhow::Error) -> Option<&'static str> {
    let of_tls = |error: &TlsError| match error {
        TlsError::Half { .. } | TlsError::Pair { .. } => Some("--tls-cert FILE and --tls-key FILE"),
        TlsError::CaAlone => Some("--tls-cert FILE and --tls-key FILE, in addition to --tls-ca FILE"),
        _ => None,
    };
    match error.downcast_ref::<ServeError>() {
        Some(ServeError::Exposed(_)) => {
            return Some(
                "--tls-cert and --tls-key, with --token-file or --tls-ca; --listen 127.0.0.1:PORT; or --insecure",
            );
        }
        Some(ServeError::Tls(error)) => return of_tls(error),
        Some(ServeError::Listen { .. }) => return Some("--listen ADDR"),
        _ => {}
    }
    match error.downcast_ref::<ConnectError>() {
        Some(ConnectError::PlainToken { .. }) => return Some("--insecure"),
        Some(ConnectError::Tls(error)) => return of_tls(error),
        Some(ConnectError::Transport { reason, .. }) => {
            return reason.lacks.map(|lack| match lack {
                MissingTls::Ca => "--tls-ca FILE",
                MissingTls::Certificate => "--tls-cert FILE and --tls-key FILE",
            });
        }
        _ => {}
    }
    if let Some(MonitoringError::Listen { .. }) = error.downcast_ref() {
        return Some("--metrics-listen ADDR");
    }
    match error.downcast_ref::<QueueError>() {
        Some(QueueError::Owned { .. } | QueueError::NotAQueue { .. } | QueueError::IsARun { .. }) => {
            return Some("--store DIR|URL");
        }
        Some(error) if error.kind() == ErrorKind::UnsafeCache => return Some("--cache DIR"),
        _ => {}
    }
    match error.downcast_ref::<WorkerRefusal>() {
        Some(WorkerRefusal::Unknown { .. }) => Some(WORKER_TOKEN),
        _ => None,
    }
}

fn token(file: Option<&PathBuf>) -> Result<Option<Token>> {
    if let Some(path) = file {
        return Ok(Some(Token::read(path)?));
    }
    match std::env::var(TOKEN_VARIABLE) {
        Ok(text) => Ok(Some(Token::new(&text, TOKEN_VARIABLE)?)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(TokenError::Unusable {
            origin: TOKEN_VARIABLE.to_owned(),
            found: "text that is not UTF-8".to_owned(),
        }
        .into()),
    }
}

/// Whether an error means conflicting options, an unusable token or URL, or a location with other contents.
pub fn is_usage(error: &anyhow::Error) -> bool {
    let of_tls = |error: &TlsError| matches!(error, TlsError::Half { .. } | TlsError::CaAlone);
    let serve = match error.downcast_ref::<ServeError>() {
        Some(ServeError::Exposed(_)) => true,
        Some(ServeError::Tls(error)) => of_tls(error),
        _ => false,
    };
    let connect = match error.downcast_ref::<ConnectError>() {
        Some(ConnectError::Tls(error)) => of_tls(error),
        Some(ConnectError::Transport { .. }) | None => false,
        Some(_) => true,
    };
    // The given location has other contents.
    let queue = matches!(
        error.downcast_ref::<QueueError>(),
        Some(QueueError::NotAQueue { .. } | QueueError::IsARun { .. })
    );
    serve
        || connect
        || queue
        || matches!(error.downcast_ref::<TokenError>(), Some(TokenError::Unusable { .. }))
        || matches!(error.downcast_ref::<LogError>(), Some(LogError::Filter { .. }))
}
