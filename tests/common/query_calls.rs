//! Calls of the query service, and a server that answers them.

use std::sync::OnceLock;

use exact2048_proto::v1::board::Spelling;
use exact2048_proto::v1::query_client::QueryClient;
use exact2048_proto::v1::{self, BatchGetValuesRequest, GetValueRequest};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::Solved;
use super::serving::Server;

/// A 3x2 run that all tests read.
pub fn run() -> &'static Solved {
    static RUN: OnceLock<Solved> = OnceLock::new();
    RUN.get_or_init(|| Solved::new("--board 3x2"))
}

/// A server of the run of [`run`].
pub fn serve(options: &[&str]) -> Server {
    Server::start(&run().run(), options)
}

/// A connection to a server.
pub async fn channel(server: &Server) -> Channel {
    Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap()
}

/// A client of the server's query service. It accepts large answers.
pub async fn client(server: &Server) -> QueryClient<Channel> {
    QueryClient::new(channel(server).await).max_decoding_message_size(64 << 20)
}

/// Asks for a board as text.
pub fn text(board: &str) -> GetValueRequest {
    GetValueRequest {
        board: Some(v1::Board { spelling: Some(Spelling::Text(board.to_owned())) }),
        with_values: false,
    }
}

/// Asks for a packed board.
pub fn packed(board: u64) -> GetValueRequest {
    GetValueRequest { board: Some(v1::Board { spelling: Some(Spelling::Packed(board)) }), with_values: false }
}

/// Asks for the values of packed boards.
pub fn values_of(boards: Vec<u64>) -> BatchGetValuesRequest {
    BatchGetValuesRequest { boards, with_moves: false, with_values: false }
}

/// The health of a service, or of the whole server if the name is empty.
pub async fn health(server: &Server, service: &str) -> ServingStatus {
    let mut client = HealthClient::new(channel(server).await);
    client.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner().status()
}
