//! Connecting to a server.

use std::time::Duration;

use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::keepalive::KeepAlive;
use crate::tls::{TlsError, TlsFiles};
use crate::token::{ShowToken, Token};

/// Time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that shows its token with every request.
pub type Connected = InterceptedService<Channel, ShowToken>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is none.
    #[error(
        "{url:?} is not the URL of a server; write http://HOST:PORT, or https://HOST:PORT for a server with TLS"
    )]
    Url {
        /// As given.
        url: String,
    },
    /// Certificates for a connection without TLS.
    #[error("certificates were given, but {url} is not encrypted; write https:// if the server has TLS")]
    NoTls {
        /// The URL.
        url: String,
    },
    /// The token would be readable on the way.
    #[error(
        "refusing to send a token to {url}, which is not encrypted; use https://, or give --insecure if the network is \
         trusted"
    )]
    PlainToken {
        /// The URL.
        url: String,
    },
    /// Certificates or keys.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Nobody answers there, or not as expected.
    #[error("cannot connect to {url}; check that a server is running there, and whether it has TLS")]
    Transport {
        /// The URL.
        url: String,
        /// Why.
        source: tonic::transport::Error,
    },
}

/// Where a server is and how to be let in.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// URL of the server, `http://` or `https://`.
    pub server: String,
    /// Certificates.
    pub tls: TlsFiles,
    /// The token to show.
    pub token: Option<Token>,
    /// Whether the token may be sent unencrypted off loopback.
    pub insecure: bool,
}

/// Connects to a server.
///
/// # Errors
///
/// [`ConnectError`].
pub async fn connect(options: &ClientOptions) -> Result<Connected, ConnectError> {
    connect_with(options, KeepAlive::default()).await
}

/// The same, with times of one's own for noticing that the server is gone.
///
/// # Errors
///
/// [`ConnectError`].
pub async fn connect_with(options: &ClientOptions, keepalive: KeepAlive) -> Result<Connected, ConnectError> {
    let url = options.server.clone();
    let parsed: Option<Uri> = url.parse().ok();
    let uri = parsed.filter(|uri| uri.host().is_some() && uri.path().trim_matches('/').is_empty());
    let uri = uri.ok_or_else(|| ConnectError::Url { url: url.clone() })?;
    let encrypted = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(ConnectError::Url { url }),
    };
    if !encrypted && options.tls.any() {
        return Err(ConnectError::NoTls { url });
    }
    if !encrypted && options.token.is_some() && !options.insecure && !is_loopback(&uri) {
        return Err(ConnectError::PlainToken { url });
    }
    let failed = |source| ConnectError::Transport { url: url.clone(), source };
    let mut endpoint = Endpoint::from(uri)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(keepalive.interval)
        .keep_alive_timeout(keepalive.timeout)
        .keep_alive_while_idle(true);
    if encrypted {
        endpoint = endpoint.tls_config(options.tls.client()?).map_err(failed)?;
    }
    let channel = endpoint.connect().await.map_err(failed)?;
    Ok(InterceptedService::new(channel, ShowToken::new(options.token.as_ref())))
}

/// Whether a text says where a server is: `HOST:PORT`, or a URL as [`connect`] takes it.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let is_host = uri.host().is_some_and(|host| !host.is_empty())
        && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    let is_bare = uri.path().trim_matches('/').is_empty() && uri.query().is_none();
    match uri.scheme_str() {
        None => is_host && is_bare && uri.port_u16().is_some(),
        Some("http" | "https") => is_host && is_bare,
        Some(_) => false,
    }
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_texts() {
        for good in ["10.0.0.7:2048", "node-7:2048", "[::1]:2048", "http://node:1", "https://[fd00::1]:2048/"]
        {
            assert!(is_address(good), "{good}");
        }
        for wrong in [
            "",
            "x",
            "host:",
            "host:port",
            "host:70000",
            ":2048",
            "/path",
            "ftp://host:1",
            "http://host:1/path",
            "http://host:1?query",
            "http://name@host:1",
            "host:1 ",
            "\x1b[31mEVIL\x1b[0m\n\x1b]0;pwned\x07host:1",
            "host\u{202e}:1",
        ] {
            assert!(!is_address(wrong), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_url_or_not_safe_is_refused() {
        let token = Token::new("0123456789abcdef", "a test").ok();
        let attempt = async |server: &str, tls: TlsFiles| {
            let options =
                ClientOptions { server: server.to_owned(), tls, token: token.clone(), insecure: false };
            connect(&options).await.unwrap_err()
        };
        for url in ["", "localhost", "127.0.0.1:1", "ftp://localhost", "http://localhost/path", "http://"] {
            assert!(matches!(attempt(url, TlsFiles::default()).await, ConnectError::Url { .. }), "{url}");
        }
        let plain = attempt("http://192.0.2.1:1", TlsFiles::default()).await;
        assert!(matches!(plain, ConnectError::PlainToken { .. }));
        let certificates = TlsFiles { ca: Some("x".into()), ..TlsFiles::default() };
        assert!(matches!(attempt("http://localhost:1", certificates).await, ConnectError::NoTls { .. }));
        let nobody = attempt("http://127.0.0.1:1", TlsFiles::default()).await;
        assert!(matches!(nobody, ConnectError::Transport { .. }));
    }
}
