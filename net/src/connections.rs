//! Accepts client connections and encrypts them if configured. Closes a connection if the client does not start
//! its protocol in time, because the transport would wait for the first bytes without a limit.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream as Items;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use crate::accept::Accept;
use crate::log_limiter::LogLimiter;
use crate::tls::explain;

/// Length of the preface that begins every HTTP/2 connection. A request of HTTP/1.1 is longer.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// First byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The client of a connection. Every request on the connection has it as an extension.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
}

/// A connection, encrypted or not.
type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

pin_project! {
    /// A connection that returns its permit when it closes.
    pub struct Connection {
        #[pin]
        stream: Stream,
        peer: Peer,
        // Number of missing bytes of the preface, and the timer for these bytes.
        missing: usize,
        hello: Pin<Box<Sleep>>,
        log: Arc<Log>,
        _permit: OwnedSemaphorePermit,
    }
}

/// Limiters of log lines about failed connections, because any client can cause such lines.
#[derive(Debug, Default)]
struct Log {
    handshakes: LogLimiter,
    silent: LogLimiter,
}

/// Returns the accepted connections. Dropping the stream closes the port at once. The TLS handshake, if any, may
/// take as long as `hello`. The HTTP/2 preface may take the same time again.
pub(crate) fn incoming(
    accept: Accept,
    tls: Option<TlsAcceptor>,
    hello: Duration,
) -> impl Items<Item = io::Result<Connection>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = hand_over(accept, tls, hello, &sender) => {}
            () = sender.closed() => {}
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

async fn hand_over(
    accept: Accept,
    tls: Option<TlsAcceptor>,
    hello: Duration,
    to: &Sender<io::Result<Connection>>,
) {
    let log: Arc<Log> = Arc::default();
    loop {
        let (stream, address, permit) = accept.next().await;
        let log = Arc::clone(&log);
        let connected = move |stream, log| Connection {
            stream,
            peer: Peer { address },
            missing: PREFACE,
            hello: Box::pin(tokio::time::sleep(hello)),
            log,
            _permit: permit,
        };
        let Some(tls) = tls.clone() else {
            if to.send(Ok(connected(Either::Left(stream), log))).await.is_err() {
                return;
            }
            continue;
        };
        let to = to.clone();
        // Each handshake runs in a separate task, so a slow client does not delay the others.
        tokio::spawn(async move {
            if let Some(stream) = handshake(tls, stream, address, hello, &log).await {
                // The send fails only if the server is stopping.
                let _ = to.send(Ok(connected(Either::Right(Box::new(stream)), log))).await;
            }
        });
    }
}

/// Performs the TLS handshake, or logs why it failed.
async fn handshake(
    tls: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    within: Duration,
    log: &Log,
) -> Option<TlsStream<TcpStream>> {
    let reason = match tokio::time::timeout(within, tls.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => match explain::tls_error(&error) {
            Some(error) => explain::to_server(error),
            None => {
                // A port scan may also close the connection before any byte of TLS.
                tracing::debug!(%peer, %error, "connection ended before the TLS handshake");
                return None;
            }
        },
        Err(_) => format!("timeout after {} s", within.as_secs_f64()),
    };
    if let Some(left_out) = log.handshakes.permit(Instant::now()) {
        tracing::warn!(%peer, reason, left_out, "TLS handshake failed");
    }
    None
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        if *this.missing == 0 {
            return this.stream.poll_read(cx, buf);
        }
        let peer = this.peer.address;
        if this.hello.as_mut().poll(cx).is_ready() {
            if let Some(left_out) = this.log.silent.permit(Instant::now()) {
                tracing::info!(%peer, left_out, "connection closed: no request within the timeout");
            }
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        let is_plain = matches!(*this.stream, Either::Left(_));
        std::task::ready!(this.stream.poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if is_plain
            && *this.missing == PREFACE
            && read.first() == Some(&TLS_HANDSHAKE)
            && let Some(left_out) = this.log.handshakes.permit(Instant::now())
        {
            tracing::warn!(%peer, left_out,
                "client speaks TLS and this server does not; use http:// instead of https://");
        }
        *this.missing = this.missing.saturating_sub(read.len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
