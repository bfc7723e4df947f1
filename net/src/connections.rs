//! Accepts client connections within the limit of a server, and encrypts them if configured. Closes a connection if the
//! client does not start its protocol in time, because the transport would wait for the first bytes without a limit.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream as Items;
use tokio_util::either::Either;
use tonic::codegen::Bytes;
use tonic::transport::server::Connected;

use crate::keepalive::KeepAlive;
use crate::limits::ServerLimits;
use crate::log_limiter::LogLimiter;
use crate::protocol::{Protocol, with_body};
use crate::quota::Quota;
use crate::tls::explain;

/// Pause after a failed accept. The usual cause, too many open files, takes time to pass.
const PAUSE: Duration = Duration::from_millis(50);

/// Length of the preface that begins every HTTP/2 connection. A request of HTTP/1.1 is longer.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// First byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// A connection, encrypted or not.
type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

pin_project! {
    /// A connection that returns its permit when it closes. Over HTTP, every refusal has a body.
    pub struct Connection {
        #[pin]
        stream: Stream,
        // The client's address. Every request on the connection has it as an extension.
        peer: SocketAddr,
        protocol: Protocol,
        // Number of missing bytes of the preface, and the timer for these bytes.
        missing: usize,
        hello: Pin<Box<Sleep>>,
        // The unwritten part of a replaced answer.
        left: Bytes,
        log: Arc<Log>,
        _permit: OwnedSemaphorePermit,
    }
}

/// Limiters of log lines about failed connections, because any client can cause such lines.
#[derive(Debug, Default)]
struct Log {
    accepts: LogLimiter,
    handshakes: LogLimiter,
    silent: LogLimiter,
}

/// Returns the accepted connections. Dropping the stream closes the port at once. The TLS handshake, if any, may
/// take as long as `hello_time`. The HTTP/2 preface may take the same time again.
pub(crate) fn incoming(
    listener: TcpListener,
    quota: Quota,
    tls: Option<TlsAcceptor>,
    protocol: Protocol,
    limits: &ServerLimits,
) -> impl Items<Item = io::Result<Connection>> + use<> {
    let (hello, keepalive) = (limits.hello_time, limits.keepalive);
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let log: Arc<Log> = Arc::default();
        let closed = sender.clone();
        let accepting = async {
            loop {
                let accepted = accept(&listener, &quota, keepalive, &log).await;
                // Each handshake runs in a separate task, so a slow client does not delay the others.
                let (tls, log) = (tls.clone(), Arc::clone(&log));
                tokio::spawn(hand_over(accepted, tls, protocol, hello, log, sender.clone()));
            }
        };
        tokio::select! {
            () = accepting => {}
            () = closed.closed() => {}
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

/// Returns the next connection. At the limit, clients wait in the system's queue.
async fn accept(
    listener: &TcpListener,
    quota: &Quota,
    keepalive: KeepAlive,
    log: &Log,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        // Ports that share a quota must not hold permits while they wait for clients.
        drop(quota.take().await);
        match listener.accept().await {
            Ok((stream, peer)) => {
                let permit = quota.take().await;
                // Answers are small, and a client often waits for an answer before its next request. So Nagle's delay
                // would slow each request.
                let _ = stream.set_nodelay(true);
                keepalive.watch(&stream);
                return (stream, peer, permit);
            }
            Err(error) => {
                log.accepts.pass(|left_out| tracing::warn!(%error, left_out, "accept failed"));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Passes a connection on after its handshake, if it has one.
async fn hand_over(
    (stream, address, permit): (TcpStream, SocketAddr, OwnedSemaphorePermit),
    tls: Option<TlsAcceptor>,
    protocol: Protocol,
    hello: Duration,
    log: Arc<Log>,
    to: Sender<io::Result<Connection>>,
) {
    let stream = match tls {
        None => Either::Left(stream),
        Some(tls) => match handshake(tls, stream, address, hello, &log).await {
            Some(stream) => Either::Right(Box::new(stream)),
            None => return,
        },
    };
    let connection = Connection {
        stream,
        peer: address,
        protocol,
        missing: PREFACE,
        hello: Box::pin(tokio::time::sleep(hello)),
        left: Bytes::new(),
        log,
        _permit: permit,
    };
    // The send fails only if the server is stopping.
    let _ = to.send(Ok(connection)).await;
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
    log.handshakes.pass(|left_out| tracing::warn!(%peer, reason, left_out, "TLS handshake failed"));
    None
}

impl Connected for Connection {
    type ConnectInfo = SocketAddr;

    fn connect_info(&self) -> SocketAddr {
        self.peer
    }
}

impl Connection {
    /// Writes the rest of a replaced answer.
    fn poll_left(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        while !this.left.is_empty() {
            let written = ready!(this.stream.as_mut().poll_write(cx, this.left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *this.left = this.left.split_off(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        if *this.missing == 0 {
            return this.stream.poll_read(cx, buf);
        }
        let peer = *this.peer;
        if this.hello.as_mut().poll(cx).is_ready() {
            this.log.silent.pass(|left_out| {
                tracing::info!(%peer, left_out, "connection closed: no request within the timeout");
            });
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        let is_plain = matches!(*this.stream, Either::Left(_));
        std::task::ready!(this.stream.poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if is_plain && *this.missing == PREFACE && read.first() == Some(&TLS_HANDSHAKE) {
            this.log.handshakes.pass(|left_out| {
                tracing::warn!(%peer, left_out,
                    "client speaks TLS and this server does not; use http:// instead of https://");
            });
        }
        *this.missing = this.missing.saturating_sub(read.len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.as_mut().poll_left(cx))?;
        let this = self.project();
        if *this.protocol == Protocol::Http
            && let Some(full) = with_body(bytes)
        {
            *this.left = full;
            return Poll::Ready(Ok(bytes.len()));
        }
        this.stream.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_left(cx))?;
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_left(cx))?;
        self.project().stream.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.protocol {
            Protocol::Grpc => self.project().stream.poll_write_vectored(cx, bytes),
            // An answer must arrive in one piece to be recognised.
            Protocol::Http => {
                let first = bytes.iter().find(|bytes| !bytes.is_empty());
                self.poll_write(cx, first.map_or(&[][..], |bytes| bytes))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.protocol == Protocol::Grpc && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keepalive::tests::is_watched;

    #[tokio::test]
    async fn connections_are_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).await.unwrap();
        let accepted = accept(&listener, &Quota::new(1), KeepAlive::default(), &Log::default()).await;
        assert!(is_watched(&accepted.0));
    }
}
