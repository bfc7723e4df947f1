//! Accepting connections within the limits for the server and for each address.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};

use crate::keepalive::KeepAlive;
use crate::log_limiter::LogLimiter;
use crate::share::{Permit, PermitPool};

/// Pause after a failed accept. The usual cause, too many open files, takes time to pass.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener with a connection limit.
#[derive(Debug)]
pub struct Accept {
    listener: TcpListener,
    pool: PermitPool,
    keepalive: KeepAlive,
    failures: LogLimiter,
    turned_away: LogLimiter,
}

impl Accept {
    /// Accepts connections while the pool has permits.
    pub fn new(listener: TcpListener, pool: PermitPool, keepalive: KeepAlive) -> Self {
        let (failures, turned_away) = Default::default();
        Self { listener, pool, keepalive, failures, turned_away }
    }

    /// Returns the next connection. At the limit, clients wait in the system's queue. If the address of a client
    /// has reached its share, the client is disconnected, because its wait would block all others.
    pub async fn next(&self) -> (TcpStream, SocketAddr, Permit) {
        loop {
            self.pool.vacancy().await;
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Another port may have taken the last permit in the meantime.
                    let Some(permit) = self.pool.take_when_vacant(peer.ip()).await else {
                        if let Some(left_out) = self.turned_away.permit(Instant::now()) {
                            tracing::warn!(%peer, left_out, "connection closed: too many from this address");
                        }
                        continue;
                    };
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
        let accept = Accept::new(listener, PermitPool::new(1), KeepAlive::default());
        let _client = TcpStream::connect(address).await.unwrap();
        let (stream, ..) = accept.next().await;
        assert!(is_watched(&stream));
    }
}
