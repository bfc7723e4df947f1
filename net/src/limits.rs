//! How much a server takes on at once.

use std::time::Duration;

use crate::keepalive::KeepAlive;

/// Bounds of a server. Whatever clients send, memory stays within what these allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; more wait until one is closed.
    pub connections: usize,
    /// Requests at once, streams included; more are told RESOURCE_EXHAUSTED.
    pub requests: usize,
    /// Requests at once of one connection; more wait at the client.
    pub streams_per_connection: u32,
    /// Bytes of a message received; longer ones are refused before they are read.
    pub message_bytes: usize,
    /// Time for a request without a deadline of its own, or with a later one. Streams of messages are not bound
    /// by it but by their client's deadline.
    pub request_time: Duration,
    /// Time that a stream may be without a message.
    pub idle_time: Duration,
    /// When clients that say nothing are taken for gone.
    pub keepalive: KeepAlive,
    /// Time for what is running when the server is told to stop.
    pub grace: Duration,
}

impl Default for Limits {
    /// For a server whose answers take milliseconds.
    fn default() -> Self {
        Self {
            connections: 1024,
            requests: 256,
            streams_per_connection: 64,
            message_bytes: 4 << 20,
            request_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(300),
            keepalive: KeepAlive::default(),
            grace: Duration::from_secs(25),
        }
    }
}
