//! What every server and client of exact2048 shares: who may connect, how much they may ask, and how it is seen.
//!
//! * [`tls`], [`token`] and [`policy`]: certificates, bearer tokens, and what an address needs of them.
//! * [`gate`]: by which names requests may call a server, and pages of which origins may ask it.
//! * [`limits`], [`share`], [`connections`] and [`requests`]: how much is taken on at once and of whom, deadlines, and
//!   what is counted.
//! * [`serve`], [`services`] and [`shutdown`]: a server from its start to its last answer.
//! * [`protocol`]: what statuses are in gRPC and in HTTP; [`pages`]: what servers for browsers share.
//! * [`client`] and [`keepalive`]: connecting to one, and noticing that it is gone.
//! * [`status`], [`logs`] and [`monitoring`]: statuses, logs and metrics.
//!
//! Nothing here knows a service: these are joined by the crates that have one.

mod accept;
pub mod client;
pub mod connections;
pub mod descriptors;
pub mod gate;
pub mod keepalive;
pub mod limits;
pub mod logs;
pub mod monitoring;
pub mod pages;
pub mod policy;
pub mod protocol;
pub mod rarely;
mod readers;
mod refusals;
pub mod requests;
pub mod serve;
pub mod services;
pub mod share;
pub mod shutdown;
pub mod status;
mod stream;
pub mod tls;
pub mod token;

pub use exact2048_text as text;

/// Makes ring the process's provider of cryptography. Call it first: with a second provider linked, rustls
/// cannot choose by itself and would panic on the first connection.
pub fn install_crypto() {
    // An error says that one is installed already, which is as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
