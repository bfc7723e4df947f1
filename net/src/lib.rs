//! Common base of all servers and clients of exact2048: access, limits and observability.
//!
//! * [`tls`], [`token`] and [`policy`]: certificates, bearer tokens, and the protection that an address requires.
//! * [`gate`]: the host names and page origins that requests may have.
//! * [`limits`], [`connections`] and [`requests`]: limits, deadlines, and counts.
//! * [`serve`], [`services`] and [`shutdown`]: a server from its start to its last answer.
//! * [`protocol`]: statuses in gRPC and in HTTP; [`pages`]: common parts of servers for browsers.
//! * [`client`] and [`keepalive`]: connecting to a server, and detecting that it is dead.
//! * [`status`], [`logs`] and [`monitoring`]: statuses, logs and metrics.
//!
//! This crate defines no service of the program. Other crates add their services.

pub mod client;
pub mod connections;
pub mod gate;
pub mod keepalive;
pub mod limits;
pub mod log_limiter;
pub mod logs;
pub mod monitoring;
pub mod pages;
pub mod policy;
pub mod protocol;
mod quota;
mod reasons;
pub mod requests;
pub mod serve;
pub mod services;
pub mod shutdown;
pub mod status;
pub mod tls;
pub mod token;

pub use exact2048_text as text;

/// Makes ring the process's provider of cryptography. Call it first. If a second provider is linked, rustls cannot
/// choose and panics on the first connection.
pub fn install_crypto() {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
