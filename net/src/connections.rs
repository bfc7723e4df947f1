//! Connections of clients: accepted, encrypted where that is asked for, and closed when they do not say in time
//! what they want.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Sender;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_stream::Stream as Items;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::accept::Accept;
use crate::rarely::Rarely;
use crate::share::Permit;
use crate::stream::Stream;
use crate::tls::explain;

/// The bytes that every connection of HTTP/2 begins with. A request of HTTP/1.1 has more.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// The first byte of TLS: a message of the type handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// Who is at the other end of a connection; every request on it has this among its extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// Closes the connection, whatever is under way on it.
    pub close: CancellationToken,
}

pin_project! {
    /// A connection that makes room for another when it is closed.
    pub struct Connection {
        #[pin]
        stream: Stream,
        peer: Peer,
        closed: Pin<Box<WaitForCancellationFutureOwned>>,
        // Bytes of the preface that have not come, and until when they may.
        missing: usize,
        hello: Pin<Box<Sleep>>,
        log: Arc<Log>,
        _room: Permit,
    }
}

/// Lines about connections that came to nothing: anybody can bring them about.
#[derive(Debug, Default)]
struct Log {
    handshakes: Rarely,
    silent: Rarely,
}

/// The connections that are accepted, until the stream is dropped: then the port is given back at once. A client has
/// `hello` to say what it wants: for the handshake, where there is one, and for the preface of HTTP/2.
pub fn incoming(
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
        let (stream, address, room) = accept.next().await;
        let log = Arc::clone(&log);
        let Some(tls) = tls.clone() else {
            let connection = Connection::new(Stream::Plain(stream), address, room, hello, log);
            if to.send(Ok(connection)).await.is_err() {
                return;
            }
            continue;
        };
        let to = to.clone();
        // Beside the others: one that dawdles must not make them wait.
        tokio::spawn(async move {
            if let Some(stream) = handshake(tls, stream, address, hello, &log).await {
                // Where nobody takes it the server is stopping.
                let _ = to.send(Ok(Connection::new(stream, address, room, hello, log))).await;
            }
        });
    }
}

/// Begins TLS, or says in the log why that failed.
async fn handshake(
    tls: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    within: Duration,
    log: &Log,
) -> Option<Stream> {
    let reason = match tokio::time::timeout(within, tls.accept(stream)).await {
        Ok(Ok(stream)) => return Some(Stream::Tls(Box::new(stream.into()))),
        Ok(Err(error)) => match explain::tls_error(&error) {
            Some(error) => explain::to_server(error),
            None => {
                // A client that only looks whether the port is open goes away without a word.
                tracing::debug!(%peer, %error, "a connection ended before TLS had begun");
                return None;
            }
        },
        Err(_) => format!("it took more than {} s", within.as_secs_f64()),
    };
    if let Some(left_out) = log.handshakes.may(Instant::now()) {
        tracing::warn!(%peer, left_out, "a TLS handshake failed: {reason}");
    }
    None
}

impl Connection {
    fn new(stream: Stream, address: SocketAddr, room: Permit, hello: Duration, log: Arc<Log>) -> Self {
        let peer = Peer { address, close: CancellationToken::new() };
        let closed = Box::pin(peer.close.clone().cancelled_owned());
        let hello = Box::pin(tokio::time::sleep(hello));
        Self { stream, peer, closed, missing: PREFACE, hello, log, _room: room }
    }

    /// An error where the connection has to end.
    fn ended(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<io::Error> {
        self.project().closed.as_mut().poll(cx).is_ready().then(|| io::ErrorKind::ConnectionAborted.into())
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(error) = self.as_mut().ended(cx) {
            return Poll::Ready(Err(error));
        }
        let this = self.project();
        if *this.missing == 0 {
            return this.stream.poll_read(cx, buf);
        }
        let peer = this.peer.address;
        if this.hello.as_mut().poll(cx).is_ready() {
            if let Some(left_out) = this.log.silent.may(Instant::now()) {
                tracing::info!(%peer, left_out, "closed a connection that did not say what it wants");
            }
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        let is_plain = matches!(*this.stream, Stream::Plain(_));
        std::task::ready!(this.stream.poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if is_plain
            && *this.missing == PREFACE
            && read.first() == Some(&TLS_HANDSHAKE)
            && let Some(left_out) = this.log.handshakes.may(Instant::now())
        {
            tracing::warn!(%peer, left_out,
                "a client speaks TLS, and this server does not: was https:// given instead of http://?");
        }
        *this.missing = this.missing.saturating_sub(read.len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.as_mut().ended(cx) {
            Some(error) => Poll::Ready(Err(error)),
            None => self.project().stream.poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.as_mut().ended(cx) {
            Some(error) => Poll::Ready(Err(error)),
            None => self.project().stream.poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.as_mut().ended(cx) {
            Some(error) => Poll::Ready(Err(error)),
            None => self.project().stream.poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
