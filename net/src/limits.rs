//! Limits of a server.

use std::time::Duration;

use crate::keepalive::KeepAlive;

/// Limits of a server. They bound the server's memory for any behaviour of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of concurrent connections. Further connections wait until one closes. The limit of open
    /// files may lower this number.
    pub connections: usize,
    /// Maximum number of concurrent requests, including streams. Further requests get RESOURCE_EXHAUSTED. One
    /// address gets at most three quarters of the requests, and of the connections ([`share`](crate::share)).
    pub requests: usize,
    /// Maximum number of concurrent requests of one connection. Further requests wait at the client.
    pub streams_per_connection: u32,
    /// Maximum size of a message in bytes. Longer messages are refused before they are read.
    pub message_bytes: usize,
    /// Timeout of a request without an earlier deadline. A stream of answers must begin within this time. Later,
    /// only the client's deadline applies, as for a stream of requests.
    pub request_time: Duration,
    /// Longest time of a stream without a message.
    pub idle_time: Duration,
    /// Time for the TLS handshake, and the same time again for the HTTP/2 preface.
    pub hello_time: Duration,
    /// Time for a client to read each message. If the message is still unread after this time, the server closes
    /// the connection.
    pub read_time: Duration,
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
            read_time: Duration::from_secs(30),
            keepalive: KeepAlive::default(),
            grace: Duration::from_secs(25),
        }
    }
}
