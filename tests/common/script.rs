//! A worker that follows a script and computes nothing.

use std::time::{Duration, Instant};

use exact2048_cluster::wire::{Answer, answer_of, pull_message};
use exact2048_coordinator::cluster::{EpochStage, Incarnation, PROTOCOL_VERSION, Pull, WorkerId};
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use exact2048_proto::v1::exchange_server::{Exchange, ExchangeServer};
use exact2048_proto::v1::{FetchRequest, FetchResponse, PushRequest, PushResponse};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use super::access::{Connected, connect_to};

/// A worker that the test controls.
pub struct Script {
    pub client: CoordinatorClient<Connected>,
    pub pull: Pull,
}

/// The port of a worker. It accepts all data, and discards the data.
struct Port;

/// Opens such a port on loopback, and returns its URL.
pub async fn open_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = Server::builder().add_service(ExchangeServer::new(Port));
    tokio::spawn(service.serve_with_incoming(TcpListenerStream::new(listener)));
    url
}

#[tonic::async_trait]
impl Exchange for Port {
    type FetchStream = tokio_stream::Empty<Result<FetchResponse, Status>>;

    async fn fetch(&self, _: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        Err(Status::not_found("no copy"))
    }

    async fn push(&self, request: Request<Streaming<PushRequest>>) -> Result<Response<PushResponse>, Status> {
        let mut messages = request.into_inner();
        while messages.message().await?.is_some() {}
        Ok(Response::new(PushResponse { blocks: 0 }))
    }
}

impl Script {
    /// Creates a worker. Different numbers give different workers.
    pub async fn new(coordinator: &str, number: u8) -> Self {
        let pull = Pull {
            version: PROTOCOL_VERSION,
            worker: WorkerId(number.into()),
            incarnation: Incarnation(1),
            threads: 2,
            memory_bytes: 8 << 30,
            address: open_port().await,
            leaving: false,
            epoch: None,
            stage: EpochStage::Working,
            first_report: 0,
            reports: Vec::new(),
        };
        Self { client: CoordinatorClient::new(connect_to(coordinator).await), pull }
    }

    /// Pulls once, and forgets the acknowledged reports.
    pub async fn pull(&mut self) -> Result<Answer, Status> {
        let answer = self.client.pull(pull_message(&self.pull)).await?.into_inner();
        let answer = answer_of(answer).unwrap();
        let known = (answer.acknowledged - self.pull.first_report) as usize;
        self.pull.reports.drain(..known);
        self.pull.first_report = answer.acknowledged;
        if answer.withdrawn.is_some() {
            self.pull.epoch = None;
        }
        if let Some(assignment) = &answer.share {
            self.pull.epoch = Some(assignment.share.epoch);
        }
        Ok(answer)
    }

    /// Pulls until an answer meets a condition.
    #[track_caller]
    pub fn until(&mut self, wanted: impl Fn(&Answer) -> bool) -> impl Future<Output = Answer> {
        let begun = Instant::now();
        async move {
            loop {
                let answer = self.pull().await.unwrap();
                if wanted(&answer) {
                    return answer;
                }
                assert!(begun.elapsed() < Duration::from_secs(20), "waited too long: {answer:?}");
            }
        }
    }
}
