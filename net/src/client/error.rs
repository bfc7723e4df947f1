//! Failures of connection attempts.

use crate::reasons::Reason;
use crate::tls::TlsError;

/// Failure of a connection attempt.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The text is not the URL of a server.
    #[error(
        "{url:?} is not the URL of a server; write http://HOST:PORT, or https://HOST:PORT for a server with TLS"
    )]
    Url {
        /// The text, without any user name or password.
        url: String,
    },
    /// Certificates for a connection without TLS.
    #[error("expected https:// with certificates, found {url}; write https:// if the server uses TLS")]
    NoTls {
        /// The URL.
        url: String,
    },
    /// The token would be sent unencrypted.
    #[error(
        "refusing to send a token unencrypted to {url}; use https://, or allow it if the network is \
         trusted"
    )]
    PlainToken {
        /// The URL.
        url: String,
    },
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
