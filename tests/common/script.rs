//! A worker that follows a script and computes nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use exact2048_cluster::wire::{Answer, proof_of, pull_message, worker_of};
use exact2048_coordinator::cluster::{EpochStage, Incarnation, PROTOCOL_VERSION, Pull, Secret};
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use exact2048_proto::v1::exchange_server::{Exchange, ExchangeServer};
use exact2048_proto::v1::{
    FetchRequest, FetchResponse, MeetRequest, MeetResponse, PushRequest, PushResponse,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

/// A worker that the test controls.
pub struct Script {
    pub client: CoordinatorClient<Channel>,
    pub secret: Secret,
    pub pull: Pull,
    port: Port,
}

/// The port of a worker. It proves the worker's identity, accepts all data, and discards the data.
#[derive(Clone, Default)]
pub struct Port(Arc<Mutex<Option<(Secret, Incarnation)>>>);

impl Port {
    /// Listens on loopback, and returns the port and its URL.
    pub async fn open() -> (Self, String) {
        let port = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = Server::builder().add_service(ExchangeServer::new(port.clone()));
        tokio::spawn(service.serve_with_incoming(TcpListenerStream::new(listener)));
        (port, url)
    }

    /// From now on, answers as this process of this worker.
    pub fn is_of(&self, secret: Secret, incarnation: Incarnation) {
        *self.0.lock().unwrap() = Some((secret, incarnation));
    }
}

#[tonic::async_trait]
impl Exchange for Port {
    type FetchStream = tokio_stream::Empty<Result<FetchResponse, Status>>;

    async fn meet(&self, request: Request<MeetRequest>) -> Result<Response<MeetResponse>, Status> {
        let known = *self.0.lock().unwrap();
        let (secret, incarnation) = known.ok_or_else(|| Status::unavailable("nobody is here"))?;
        let proof = proof_of(&secret, incarnation, &request.into_inner().challenge).to_vec();
        Ok(Response::new(MeetResponse { proof }))
    }

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
        let secret = Secret::new([number; 16]);
        let (port, address) = Port::open().await;
        let incarnation = Incarnation(1);
        port.is_of(secret, incarnation);
        let pull = Pull {
            version: PROTOCOL_VERSION,
            worker: worker_of(&secret),
            incarnation,
            threads: 2,
            memory_bytes: 8 << 30,
            address,
            leaving: false,
            epoch: None,
            stage: EpochStage::Working,
            first_report: 0,
            reports: Vec::new(),
        };
        let channel = Channel::from_shared(coordinator.to_owned()).unwrap().connect().await.unwrap();
        Self { client: CoordinatorClient::new(channel), secret, pull, port }
    }

    /// Pulls once, and forgets the acknowledged reports.
    pub async fn pull(&mut self) -> Result<Answer, Status> {
        self.port.is_of(self.secret, self.pull.incarnation);
        let answer = self.client.pull(pull_message(&self.pull, &self.secret)).await?.into_inner();
        let answer = Answer::try_from(answer).unwrap();
        let known = (answer.acknowledged - self.pull.first_report) as usize;
        self.pull.reports.drain(..known);
        self.pull.first_report = answer.acknowledged;
        if answer.withdrawn.is_some() {
            self.pull.epoch = None;
        }
        if let Some(assignment) = &answer.assignment {
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
