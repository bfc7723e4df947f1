//! Limits of a server.

use std::time::Duration;

use crate::keepalive::KeepAlive;

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of concurrent connections. Further connections wait until one closes. The limit of open
    /// files may lower this number.
    pub connections: usize,
    /// Maximum number of concurrent requests, including streams. Further requests get RESOURCE_EXHAUSTED.
    pub requests: usize,
    /// Maximum number of concurrent requests of one connection. Further requests wait at the client.
    pub streams_per_connection: u32,
    /// Maximum size of a message in bytes. Longer messages are refused before they are read.
    pub message_bytes: usize,
    /// Timeout of a request whose client sets none. A stream of answers must begin within this time. Later, only the
    /// client's deadline applies, as for a stream of requests. A client may set up to ten minutes.
    pub request_time: Duration,
    /// Longest time of a stream without a message.
    pub idle_time: Duration,
    /// Time for the TLS handshake, and the same time again for the HTTP/2 preface.
    pub hello_time: Duration,
    /// Time after which a connection takes no further request; running requests get the same time again to end. So
    /// a client that does not read its answers is disconnected. `None`: no limit.
    pub connection_time: Option<Duration>,
    /// Detection of dead clients.
    pub keepalive: KeepAlive,
    /// Time for running requests when the server stops.
    pub grace: Duration,
}

impl Default for ServerLimits {
    /// Returns limits for a server that answers within milliseconds.
    fn default() -> Self {
        Self {
            connections: 1024,
            requests: 256,
            streams_per_connection: 64,
            message_bytes: 4 << 20,
            request_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(60),
            hello_time: Duration::from_secs(10),
            connection_time: Some(Duration::from_secs(60 * 60)),
            keepalive: KeepAlive::default(),
            grace: Duration::from_secs(25),
        }
    }
}

impl ServerLimits {
    /// Returns limits for a server of a cluster. Its callers are known and call all the time.
    #[must_use]
    pub fn of_cluster() -> Self {
        Self { connections: 8192, requests: 4096, connection_time: None, ..Self::default() }
    }
}
