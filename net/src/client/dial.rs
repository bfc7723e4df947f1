//! Makes connections over TCP, with TLS if the URL requires it, and records why a connection fails.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;
use tonic::transport::Uri;
use tower::Service;

use super::ConnectError;
use crate::keepalive::KeepAlive;
use crate::reasons::{Reason, Reasons};
use crate::tls::{TlsFiles, explain};

/// Timeout of a TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a handshake with a server that accepts the connection but stays silent.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a TLS server's first bytes. Servers of exact2048 send these bytes at once. Other servers may wait
/// for the client.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(1);

/// First byte of a TLS alert. A server sends an alert if a connection fails.
const TLS_ALERT: u8 = 0x15;

/// A connection, encrypted or not.
type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Makes connections to one server.
pub struct Dialer {
    uri: Uri,
    http: HttpConnector,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    files: TlsFiles,
    keepalive: KeepAlive,
    /// The record of connection failures.
    pub reasons: Reasons,
}

impl Dialer {
    /// Creates the dialer after a check of certificates and host name. Does not connect.
    pub fn new(
        uri: &Uri,
        encrypted: bool,
        files: &TlsFiles,
        keepalive: KeepAlive,
    ) -> Result<Self, ConnectError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let tls = if encrypted {
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let name = ServerName::try_from(host).map_err(|_| ConnectError::Url(uri.to_string()))?;
            Some((TlsConnector::from(files.client()?), name))
        } else {
            None
        };
        let (uri, files) = (uri.clone(), files.clone());
        Ok(Self { uri, http, tls, files, keepalive, reasons: Reasons::default() })
    }

    pub async fn dial(self: Arc<Self>) -> Result<TokioIo<Dialed>, Reason> {
        self.reasons.forget();
        let stream = self.stream().await.inspect_err(|reason| self.reasons.note(reason.clone()))?;
        Ok(TokioIo::new(Dialed { stream, heard: false, dialer: self }))
    }

    async fn stream(&self) -> Result<Stream, Reason> {
        let stream = self.connected().await?;
        self.keepalive.watch(&stream);
        let Some((connector, name)) = &self.tls else { return Ok(Either::Left(stream)) };
        let handshake = timeout(HANDSHAKE_TIMEOUT, connector.connect(name.clone(), stream)).await;
        let Ok(handshake) = handshake else {
            let seconds = HANDSHAKE_TIMEOUT.as_secs();
            return Err(format!("no TLS handshake within {seconds} s; check that the server uses TLS").into());
        };
        let stream = handshake.map_err(|error| {
            self.explained(&error, || {
                format!(
                    "the connection ended before the TLS handshake: {error}; check that the server uses TLS"
                )
            })
        })?;
        Ok(Either::Right(Box::new(self.first_bytes(stream).await?)))
    }

    async fn connected(&self) -> Result<TcpStream, Reason> {
        // A service must be ready before each call, and this service always is.
        let mut http = self.http.clone();
        match timeout(CONNECT_TIMEOUT, http.call(self.uri.clone())).await {
            Ok(Ok(stream)) => Ok(stream.into_inner()),
            Ok(Err(error)) => {
                let cause = crate::text::last_cause(&error);
                Err(format!("{cause}; check host and port, and that a server runs there").into())
            }
            Err(_) => {
                let seconds = CONNECT_TIMEOUT.as_secs();
                Err(format!("no answer within {seconds} s; check the host and the network").into())
            }
        }
    }

    /// Waits for the first bytes of a server with TLS, and leaves them in the stream. In TLS 1.3 a server checks the
    /// client's certificate after the client has finished its handshake. If the server refuses the certificate, an
    /// alert arrives instead of these bytes.
    async fn first_bytes(&self, mut stream: TlsStream<TcpStream>) -> Result<TlsStream<TcpStream>, Reason> {
        match timeout(FIRST_BYTES_TIMEOUT, stream.fill_buf()).await {
            Ok(Err(error)) => Err(self.explained(&error, || {
                format!(
                    "the server closed the connection after the TLS handshake: {error}; see the server's log"
                )
            })),
            Ok(Ok([])) => {
                Err("the server closed the connection after the TLS handshake; see the server's log".into())
            }
            Ok(Ok(_)) | Err(_) => Ok(stream),
        }
    }

    /// Explains why a connection ended: by the TLS error, if there is one.
    fn explained(&self, error: &io::Error, otherwise: impl FnOnce() -> String) -> Reason {
        explain::tls_error(error).map_or_else(|| otherwise().into(), |error| self.files.explain(error))
    }
}

pin_project! {
    /// A connection that records why it ends.
    pub struct Dialed {
        #[pin]
        stream: Stream,
        // Whether the server has sent any bytes.
        heard: bool,
        dialer: Arc<Dialer>,
    }
}

/// Returns the problem if a plain server's first bytes are not HTTP/2.
fn is_no_http2(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [TLS_ALERT, 3, ..] => Some("the server speaks TLS; write https:// instead of http://"),
        [b'H', b'T', b'T', b'P', ..] => {
            Some("expected a gRPC server, found one that speaks HTTP/1; check the port")
        }
        [] => Some(CLOSED_AT_ONCE),
        _ => None,
    }
}

/// Possible reasons for a connection that closed before any byte arrived. TLS is one reason, because the
/// connection may close before the server's alert arrives.
const CLOSED_AT_ONCE: &str =
    "the server closed the connection at once; if it uses TLS, write https:// instead of http://";

impl Dialed {
    /// Records a failed write to a plain server that has sent no byte.
    fn note_write(self: Pin<&mut Self>, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Err(_))) && !self.heard && matches!(self.stream, Either::Left(_)) {
            self.dialer.reasons.note(CLOSED_AT_ONCE.into());
        }
    }
}

impl AsyncRead for Dialed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buf.filled().len();
        let is_plain = matches!(*this.stream, Either::Left(_));
        let read = std::task::ready!(this.stream.poll_read(cx, buf));
        let first = !std::mem::replace(this.heard, true);
        match &read {
            Err(error) => {
                if let Some(error) = explain::tls_error(error) {
                    this.dialer.reasons.note(this.dialer.files.explain(error));
                } else if is_plain && first {
                    this.dialer.reasons.note(CLOSED_AT_ONCE.into());
                }
            }
            Ok(()) if first && is_plain => {
                if let Some(reason) = is_no_http2(&buf.filled()[before..]) {
                    this.dialer.reasons.note(reason.into());
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, reason)));
                }
            }
            Ok(()) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.as_mut().project().stream.poll_write(cx, bytes);
        self.note_write(&written);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().project().stream.poll_write_vectored(cx, bytes);
        self.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keepalive::tests::is_watched;

    #[tokio::test]
    async fn connections_are_watched() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let dialer = Dialer::new(&uri, false, &TlsFiles::default(), KeepAlive::default()).unwrap();
        let Either::Left(stream) = dialer.stream().await.unwrap() else { panic!("unexpected TLS") };
        assert!(is_watched(&stream));
    }
}
