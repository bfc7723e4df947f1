//! Accepting connections, no more than a number at once.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Pause after a failed accept: the usual reason, too many open files, does not go away at once.
const PAUSE: Duration = Duration::from_millis(50);

pin_project! {
    /// A connection that makes room for another when it is closed.
    pub struct Connection {
        #[pin]
        stream: TcpStream,
        _room: OwnedSemaphorePermit,
    }
}

/// The connections of a listener. While as many are open as may be, further clients wait in the system's queue.
///
/// # Errors
///
/// The listener's, on being asked for its address.
pub fn accept(
    listener: TcpListener,
    most: usize,
) -> io::Result<(SocketAddr, impl Stream<Item = io::Result<Connection>>)> {
    let address = listener.local_addr()?;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = hand_over(listener, most, &sender) => {}
            // The server has stopped: the port is given back at once.
            () = sender.closed() => {}
        }
    });
    Ok((address, tokio_stream::wrappers::ReceiverStream::new(receiver)))
}

async fn hand_over(listener: TcpListener, most: usize, to: &Sender<io::Result<Connection>>) {
    let room = Arc::new(Semaphore::new(most));
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are small and asked for one after another: none may wait for another.
                let _ = stream.set_nodelay(true);
                if to.send(Ok(Connection { stream, _room: permit })).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_read(cx, buf)
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
