//! How much a server takes on at once.

use std::time::Duration;

use crate::keepalive::KeepAlive;

/// Bounds of a server. Whatever clients send, memory stays within what these allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at once; more wait until one is closed. Lowered where the limit of open files asks for it.
    pub connections: usize,
    /// Requests at once, streams included; more get RESOURCE_EXHAUSTED. Of these as of connections one address gets
    /// three quarters at most ([`share`](crate::share)).
    pub requests: usize,
    /// Requests at once of one connection; more wait at the client.
    pub streams_per_connection: u32,
    /// Bytes of a message received; longer ones are refused before they are read.
    pub message_bytes: usize,
    /// Time for a request without a deadline of its own, or with a later one. A stream of answers must begin within it,
    /// and is bound by its client's deadline alone from then on, as a stream of requests is.
    pub request_time: Duration,
    /// Time that a stream may be without a message.
    pub idle_time: Duration,
    /// Time for a client to say what it wants: for the handshake of TLS, and as much for the preface of HTTP/2.
    pub hello_time: Duration,
    /// Time for a client to take on what it was sent, message by message; then its connection is closed.
    pub read_time: Duration,
    /// When clients that say nothing are taken for gone.
    pub keepalive: KeepAlive,
    /// Time for what is running when the server stops.
    pub grace: Duration,
}

impl Default for ServerLimits {
    /// For a server whose answers take milliseconds.
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
