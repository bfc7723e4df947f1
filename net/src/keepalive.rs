//! Detection of dead peers, after a loss of power or in a network that drops packets.
//!
//! Both sides of every connection send pings, because a network may fail in one direction only.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// Times after which a silent connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence after which a side sends an HTTP/2 ping.
    pub interval: Duration,
    /// Time for the answer to a ping.
    pub timeout: Duration,
}

impl Default for KeepAlive {
    /// Sets interval and timeout to a worker's lease each, so a dead connection closes within 10 s.
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), timeout: Duration::from_secs(5) }
    }
}

impl KeepAlive {
    /// Enables TCP keepalive for the times before the first and after the last ping. TCP keepalive is slower than
    /// the pings, so the pings report a failure that both detect.
    pub fn watch(self, stream: &TcpStream) {
        let longest = (2 * (self.interval + self.timeout)).max(Duration::from_secs(2));
        let socket = SockRef::from(stream);
        // On failure, the pings still detect a dead peer.
        let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(longest / 2));
        #[cfg(target_os = "linux")]
        let _ = socket.set_tcp_user_timeout(Some(longest));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns whether TCP keepalive is on.
    pub(crate) fn is_watched(stream: &TcpStream) -> bool {
        let socket = SockRef::from(stream);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.keepalive().unwrap(), socket.tcp_user_timeout().unwrap().is_some());
        socket.keepalive().unwrap()
    }

    #[tokio::test]
    async fn tcp_keepalive_is_slower_than_pings() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(!is_watched(&stream));
        let keepalive = KeepAlive::default();
        keepalive.watch(&stream);
        assert!(is_watched(&stream));
        #[cfg(target_os = "linux")]
        {
            let timeout = SockRef::from(&stream).tcp_user_timeout().unwrap().unwrap();
            assert!(timeout > keepalive.interval + keepalive.timeout && timeout <= Duration::from_secs(20));
        }
    }
}
