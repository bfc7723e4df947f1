//! Accepting connections within the limit of a server.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;

use crate::keepalive::KeepAlive;
use crate::log_limiter::LogLimiter;
use crate::quota::Quota;

/// Pause after a failed accept. The usual cause, too many open files, takes time to pass.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener with a connection limit. The transport counts no connections, so this type does.
#[derive(Debug)]
pub(crate) struct Accept {
    listener: TcpListener,
    quota: Quota,
    keepalive: KeepAlive,
    failures: LogLimiter,
}

impl Accept {
    /// Accepts connections while the quota has permits.
    pub fn new(listener: TcpListener, quota: Quota, keepalive: KeepAlive) -> Self {
        Self { listener, quota, keepalive, failures: LogLimiter::default() }
    }

    /// Returns the next connection. At the limit, clients wait in the system's queue.
    pub async fn next(&self) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        loop {
            // Ports that share a quota must not hold permits while they wait for clients.
            drop(self.quota.take().await);
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let permit = self.quota.take().await;
                    // Answers are small, and a client often waits for an answer before its next request. So
                    // Nagle's delay would slow each request.
                    let _ = stream.set_nodelay(true);
                    self.keepalive.watch(&stream);
                    return (stream, peer, permit);
                }
                Err(error) => self.failed(&error).await,
            }
        }
    }

    async fn failed(&self, error: &io::Error) {
        if let Some(left_out) = self.failures.permit(Instant::now()) {
            tracing::warn!(%error, left_out, "accept failed");
        }
        tokio::time::sleep(PAUSE).await;
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
        let accept = Accept::new(listener, Quota::new(1), KeepAlive::default());
        let _client = TcpStream::connect(address).await.unwrap();
        let (stream, ..) = accept.next().await;
        assert!(is_watched(&stream));
    }
}
