//! Taking connections: no more than there is room for, and none of an address that has its share.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};

use crate::keepalive::KeepAlive;
use crate::rarely::Rarely;
use crate::share::{Permit, PermitPool};

/// Pause after a failed accept: the usual reason, too many open files, does not go away at once.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener with room for a number of connections.
#[derive(Debug)]
pub struct Accept {
    listener: TcpListener,
    pool: PermitPool,
    keepalive: KeepAlive,
    failures: Rarely,
    turned_away: Rarely,
}

impl Accept {
    /// Takes connections as long as the pool has permits.
    pub fn new(listener: TcpListener, pool: PermitPool, keepalive: KeepAlive) -> Self {
        let (failures, turned_away) = Default::default();
        Self { listener, pool, keepalive, failures, turned_away }
    }

    /// The next connection. While there is no room, clients wait in the system's queue; one whose address has its share
    /// is turned away, so that it does not make the others wait.
    pub async fn next(&self) -> (TcpStream, SocketAddr, Permit) {
        loop {
            self.pool.vacancy().await;
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Another port may have taken the last permit meanwhile.
                    let Some(permit) = self.pool.take_when_vacant(peer.ip()).await else {
                        if let Some(left_out) = self.turned_away.may(Instant::now()) {
                            tracing::warn!(%peer, left_out, "closed a connection: this address has its share of them");
                        }
                        continue;
                    };
                    // Answers are small and asked for one after another: none may wait for another.
                    let _ = stream.set_nodelay(true);
                    self.keepalive.watch(&stream);
                    return (stream, peer, permit);
                }
                Err(error) => self.failed(&error).await,
            }
        }
    }

    async fn failed(&self, error: &io::Error) {
        if let Some(left_out) = self.failures.may(Instant::now()) {
            tracing::warn!(%error, left_out, "cannot accept a connection");
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
