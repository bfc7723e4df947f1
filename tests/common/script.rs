//! A worker that follows a script and computes nothing.

use std::time::{Duration, Instant};

use exact2048_cluster::wire::{Answer, pull_message, worker_of};
use exact2048_coordinator::cluster::{EpochStage, PROTOCOL_VERSION, Pull, Secret};
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use tonic::Status;
use tonic::transport::Channel;

/// A worker that does as it is told here.
pub struct Script {
    pub client: CoordinatorClient<Channel>,
    pub secret: Secret,
    pub pull: Pull,
}

impl Script {
    /// Workers of different numbers are different ones.
    pub async fn new(coordinator: &str, number: u8) -> Self {
        let secret = Secret::new([number; 16]);
        let pull = Pull {
            version: PROTOCOL_VERSION,
            worker: worker_of(&secret),
            incarnation: 1,
            threads: 2,
            memory_bytes: 8 << 30,
            address: format!("http://192.0.2.1:{number}"),
            leaving: false,
            epoch: None,
            stage: EpochStage::Working,
            first_report: 0,
            reports: Vec::new(),
        };
        let channel = Channel::from_shared(coordinator.to_owned()).unwrap().connect().await.unwrap();
        Self { client: CoordinatorClient::new(channel), secret, pull }
    }

    /// Pulls once, and forgets what is acknowledged.
    pub async fn pull(&mut self) -> Result<Answer, Status> {
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

    /// Pulls until an answer is as wanted.
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
