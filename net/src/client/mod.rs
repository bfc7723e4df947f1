//! Connecting to a server.

mod dial;

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::{Endpoint, Uri};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use crate::keepalive::KeepAlive;
use crate::tls::{TlsError, TlsFiles};
use crate::token::Token;
use dial::Dialer;

pub use crate::reasons::{MissingTls, Reason};

/// A connection that adds its token to every request. Its errors report cause and remedy. Unlike a server's status, a
/// status made by the connection has a source.
pub type Connected = BoxCloneSyncService<Request<Body>, Response<Body>, Status>;

/// Failure of a connection attempt.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// This text, without any user name or password, is not the URL of a server.
    #[error(
        "{0:?} is not the URL of a server; write http://HOST:PORT, or https://HOST:PORT for a server with TLS"
    )]
    Url(String),
    /// Certificates for a connection without TLS to this URL.
    #[error("expected https:// with certificates, found {0}; write https:// if the server uses TLS")]
    NoTls(String),
    /// The token would be sent unencrypted to this URL.
    #[error(
        "refusing to send a token unencrypted to {0}; use https://, or allow it if the network is \
         trusted"
    )]
    PlainToken(String),
    /// Invalid certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No server answers at the URL, or it answers with another protocol.
    #[error("cannot connect to {url}: {reason}")]
    Transport {
        /// The URL.
        url: String,
        /// Cause and remedy.
        reason: Reason,
    },
}

/// Address of a server, and the credentials for it.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// URL of the server, `http://` or `https://`.
    pub server: String,
    /// Certificates.
    pub tls: TlsFiles,
    /// Token sent with every request.
    pub token: Option<Token>,
    /// Whether the token may be sent unencrypted to an address other than loopback.
    pub insecure: bool,
}

impl ClientOptions {
    /// Checks the URL, and whether certificates and token fit the URL, without connecting.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], except [`Transport`](ConnectError::Transport).
    pub fn check(&self) -> Result<(), ConnectError> {
        let (_, encrypted) = self.target()?;
        if encrypted {
            self.tls.client()?;
        }
        Ok(())
    }

    /// Returns the server's address, and whether connections to it are encrypted.
    fn target(&self) -> Result<(Uri, bool), ConnectError> {
        let url = || match self.server.rsplit_once('@') {
            // A password may precede the `@`.
            Some((_, host)) => format!("...@{host}"),
            None => self.server.clone(),
        };
        let parsed: Option<Uri> = self.server.parse().ok().filter(|_| is_address(&self.server));
        let uri = parsed.ok_or_else(|| ConnectError::Url(url()))?;
        let encrypted = uri.scheme_str() == Some("https");
        if !encrypted && self.tls != TlsFiles::default() {
            return Err(ConnectError::NoTls(url()));
        }
        if !encrypted && self.token.is_some() && !self.insecure && !is_loopback(&uri) {
            return Err(ConnectError::PlainToken(url()));
        }
        Ok((uri, encrypted))
    }
}

/// Connects to a server.
///
/// # Errors
///
/// [`ConnectError`].
pub async fn connect(options: &ClientOptions) -> Result<Connected, ConnectError> {
    let keepalive = KeepAlive::default();
    let (uri, encrypted) = options.target()?;
    let dialer = Arc::new(Dialer::new(&uri, encrypted, &options.tls, keepalive)?);
    let reasons = dialer.reasons.clone();
    // The dialer encrypts, so the transport gets a URL without TLS. Requests name the server's scheme.
    let plain = Uri::builder().scheme("http").path_and_query("/");
    let plain = uri.authority().and_then(|authority| plain.authority(authority.clone()).build().ok());
    let endpoint = Endpoint::from(plain.unwrap_or_else(|| uri.clone()))
        .origin(uri)
        .http2_keep_alive_interval(keepalive.interval)
        .keep_alive_timeout(keepalive.timeout)
        .keep_alive_while_idle(true);
    let connector = tower::service_fn(move |_: Uri| Arc::clone(&dialer).dial());
    let channel = endpoint.connect_with_connector(connector).await.map_err(|error| {
        ConnectError::Transport { url: options.server.clone(), reason: reasons.of(&error) }
    })?;
    let header = options.token.as_ref().and_then(Token::header);
    let with_token = move |mut request: Request<Body>| {
        request.headers_mut().extend(header.clone().map(|header| (AUTHORIZATION, header)));
        request
    };
    let explained = channel.map_request(with_token).map_err(move |error| reasons.status(error));
    Ok(BoxCloneSyncService::new(explained))
}

/// Returns whether a text is a URL that [`connect`] accepts.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let (Some(authority), Some(host)) = (uri.authority(), uri.host()) else { return false };
    // An authority with a user name does not begin with the host. A port that is not a number is refused.
    let is_host = !host.is_empty()
        && authority.as_str().strip_prefix(host).is_some_and(|port| port.is_empty() || uri.port().is_some());
    let is_bare = uri.path().trim_matches('/').is_empty() && uri.query().is_none();
    matches!(uri.scheme_str(), Some("http" | "https")) && is_host && is_bare
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_servers_are_addresses() {
        for good in ["http://10.0.0.7:2048", "http://node-7", "http://[::1]:2048", "https://[fd00::1]:2048/"]
        {
            assert!(is_address(good), "{good}");
        }
        for wrong in [
            "",
            "x",
            "host:2048",
            "http://host:port",
            "http://host:70000",
            "http://:2048",
            "/path",
            "ftp://host:1",
            "http://host:1/path",
            "http://host:1?query",
            "http://name@host:1",
            "http://host:1 ",
            "http://\x1b[31mEVIL\x1b[0m\n\x1b]0;pwned\x07host:1",
            "http://host\u{202e}:1",
        ] {
            assert!(!is_address(wrong), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn invalid_and_unsafe_urls_are_refused() {
        let token = Token::new("0123456789abcdef", "a test").ok();
        let attempt = async |server: &str, tls: TlsFiles| {
            let options =
                ClientOptions { server: server.to_owned(), tls, token: token.clone(), insecure: false };
            let refused = connect(&options).await.unwrap_err();
            let unchecked = matches!(refused, ConnectError::Transport { .. });
            assert_eq!(options.check().is_ok(), unchecked, "{server}: {refused}");
            refused
        };
        for url in [
            "",
            "localhost",
            "127.0.0.1:1",
            "ftp://localhost",
            "http://localhost/path",
            "http://",
            "http://localhost:99999",
            "http://user:hush@localhost:1",
        ] {
            let refused = attempt(url, TlsFiles::default()).await;
            assert!(matches!(refused, ConnectError::Url { .. }), "{url}");
            assert!(!refused.to_string().contains("hush"), "{refused}");
        }
        let plain = attempt("http://192.0.2.1:1", TlsFiles::default()).await;
        assert!(matches!(plain, ConnectError::PlainToken { .. }));
        let certificates = TlsFiles { ca: Some("x".into()), ..TlsFiles::default() };
        assert!(matches!(attempt("http://localhost:1", certificates).await, ConnectError::NoTls { .. }));
        let unreachable = attempt("http://127.0.0.1:1", TlsFiles::default()).await;
        assert!(matches!(unreachable, ConnectError::Transport { .. }));
        let message = unreachable.to_string();
        assert_eq!(message.matches("refused").count(), 1, "{message}");
    }
}
