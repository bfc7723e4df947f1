//! Finding out that the other side of a connection is gone where nothing says so: a host that lost its power, a
//! network that drops what it is given.
//!
//! Both sides of every connection ask, since a network may fail one way only.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// How soon a silent connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence after which the other side is asked whether it is still there, by a ping of HTTP/2.
    pub interval: Duration,
    /// Time for its answer.
    pub timeout: Duration,
}

impl Default for KeepAlive {
    /// Interval and timeout are each as long as the lease of a worker: a dead connection is closed within 10 s.
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), timeout: Duration::from_secs(5) }
    }
}

impl KeepAlive {
    /// Has the system look after a connection too, for what happens before pings can be sent and after the last one.
    /// It is slower than pings are, so that it is these that say what happened.
    pub fn watch(self, stream: &TcpStream) {
        let longest = (2 * (self.interval + self.timeout)).max(Duration::from_secs(2));
        let socket = SockRef::from(stream);
        // Without it pings still find out.
        let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(longest / 2));
        #[cfg(target_os = "linux")]
        let _ = socket.set_tcp_user_timeout(Some(longest));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Whether the system looks after a connection.
    pub(crate) fn is_watched(stream: &TcpStream) -> bool {
        let socket = SockRef::from(stream);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.keepalive().unwrap(), socket.tcp_user_timeout().unwrap().is_some());
        socket.keepalive().unwrap()
    }

    #[tokio::test]
    async fn the_system_gives_a_connection_up_after_pings_do() {
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
