//! Connections to the servers of a cluster, with the token of the cluster.

use exact2048_cluster::token::announced;
use exact2048_net::client::{ClientOptions, connect};
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::Token;

pub use exact2048_net::client::Connected;

/// The token of a running coordinator of this user.
#[track_caller]
pub fn token_of(coordinator: &str) -> Token {
    announced(coordinator).unwrap_or_else(|| panic!("no token of {coordinator} is announced"))
}

/// Connects to a server with a token, or with none.
pub async fn connect_with(server: &str, token: Option<Token>) -> Connected {
    let options =
        ClientOptions { server: server.to_owned(), tls: TlsFiles::default(), token, insecure: false };
    connect(&options).await.unwrap()
}

/// Connects to a coordinator.
pub async fn connect_to(coordinator: &str) -> Connected {
    connect_with(coordinator, Some(token_of(coordinator))).await
}
