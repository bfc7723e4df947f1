//! Limits of a server.

use std::time::Duration;

use crate::keepalive::KeepAlive;

/// Limits of a server. They bound its memory for any behaviour of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Concurrent connections; more wait until one closes. The limit of open files may lower this number.
    pub connections: usize,
    /// Concurrent requests, streams included; more get RESOURCE_EXHAUSTED. One address gets at most three quarters of
    /// these, and of the connections ([`share`](crate::share)).
    pub requests: usize,
    /// Concurrent requests of one connection; more wait at the client.
    pub streams_per_connection: u32,
    /// Longest accepted message in bytes; longer ones are refused before they are read.
    pub message_bytes: usize,
    /// Timeout of a request that has no deadline or a later one. A stream of answers must begin within it; after that
    /// only the client's deadline applies, as for a stream of requests.
    pub request_time: Duration,
    /// Longest time of a stream without a message.
    pub idle_time: Duration,
    /// Time for the TLS handshake, and as much for the HTTP/2 preface.
    pub hello_time: Duration,
    /// Time for a client to read each message sent to it; after that its connection is closed.
    pub read_time: Duration,
    /// Detection of dead clients.
    pub keepalive: KeepAlive,
    /// Time for running requests when the server stops.
    pub grace: Duration,
}

impl Default for ServerLimits {
    /// Limits for a server whose answers take milliseconds.
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
