//! The pulls of a worker. They send reports and receive work.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::{PROTOCOL_VERSION, Pull, Refusal};
use exact2048_net::client::{ConnectError, Connected, connect};
use exact2048_net::logs::seconds;
use exact2048_net::serve::{Bound, Capacity, ServerEnd};
use exact2048_net::services;
use exact2048_net::shutdown::Stop;
use exact2048_net::status::words_of;
use exact2048_net::text::numbers::SizeUnits;
use exact2048_net::text::{plain_words, with_causes};
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use exact2048_proto::v1::exchange_server::ExchangeServer;
use exact2048_storage::{Peers, StoreSettings};
use metrics::{gauge, histogram};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

use super::assigned::AssignedEpochs;
use super::epoch::Present;
use super::exchange::ExchangeService;
use super::identity::Identity;
use super::jobs::Jobs;
use super::observe;
use super::options::WorkerOptions;
use super::outage::Outage;
use super::outbox::Outbox;
use super::peers::PeerCopies;
use super::runner::Runner;
use crate::wire::{Answer, answer_of, pull_message, refusal_of};

/// Time limit for an answer to a pull. The coordinator delays answers by less than a second.
const DEADLINE: Duration = Duration::from_secs(10);

/// Time between pulls while there is work and nothing urgent to report.
const PACE: Duration = Duration::from_millis(50);

/// Pause between attempts to reach the coordinator.
const RETRY: Duration = Duration::from_millis(500);

/// Maximum size of a message from a peer, in bytes.
const MESSAGE_BYTES: usize = 4 << 20;

/// Maximum number of bytes of a coordinator's message in logs and errors.
const MOST_WORDS: usize = 2048;

/// Refusal that ends a worker, because another attempt would be refused too.
#[derive(Debug, thiserror::Error)]
pub enum WorkerRefusal {
    /// Another server answers at this expected address of the coordinator.
    #[error("expected a coordinator at {0}, found another server; check host and port")]
    NoCoordinator(String),
    /// The coordinator requires a token, or a different one. Contains the coordinator's message.
    #[error("the coordinator refuses this worker: {0}")]
    Unknown(String),
    /// The coordinator rejects the pulls of this worker. Contains the coordinator's message.
    #[error("the coordinator refuses this worker: {0}")]
    Refused(String),
}

/// Runs a worker until `stop`. It has [drained](ServerEnd::Drained) if its work was committed or handed back.
///
/// # Errors
///
/// A failure to start, or a refusal that another attempt would meet again.
pub async fn run(bound: Bound, options: WorkerOptions, stop: Stop) -> Result<ServerEnd> {
    let identity = Identity::take(&options.folder)?;
    let outbox = Arc::new(Outbox::default());
    let present: Arc<Present> = Arc::default();
    tracing::info!(worker = %identity.id, incarnation = identity.incarnation.0, threads = options.threads,
        address = options.advertise, "worker starts");

    let (starts, received) = std::sync::mpsc::channel();
    let peers = Arc::new(PeerCopies::new(identity.id, options.client.clone()));
    let asking = Some(Arc::clone(&peers) as Arc<dyn Peers>);
    let store = StoreSettings { peers: asking, ..options.store.clone() };
    let runner = Runner {
        jobs: Jobs::new(store, options.folder.clone(), options.tuning),
        outbox: Arc::clone(&outbox),
        worker: identity.id,
        peers,
        present: Arc::clone(&present),
        options: options.clone(),
    };
    let runtime = tokio::runtime::Handle::current();
    let running = std::thread::Builder::new().name("epochs".to_owned()).spawn(move || {
        let _entered = runtime.enter();
        runner.run(&received);
    });
    let running = running.context("cannot start a thread")?;

    // This worker serves peers until its last pull, because they may still need its copies of shards.
    let capacity = bound.capacity.clone();
    let served = Stop { begun: stop.over.clone(), over: stop.over.clone() };
    let service = ExchangeService::new(Arc::clone(&present), options.memory_bytes, options.store.clone());
    let server = tokio::spawn(serve(bound, service, served));
    let epochs = AssignedEpochs::new(identity.id, present, starts);
    let (outage, last_needed_memory) = (Outage::default(), None);
    let mut process = Process { options, identity, outbox, epochs, capacity, last_needed_memory, outage };
    let ended = tokio::select! {
        ended = process.pull_until(&stop) => ended,
        () = stop.over.cancelled() => Ok(ServerEnd::CutOff),
    };
    process.epochs.leave();
    drop(process);
    if matches!(ended, Ok(ServerEnd::Drained)) {
        // The thread first finishes its current task or shard.
        let joining = tokio::task::spawn_blocking(move || running.join());
        let _ = stop.over.run_until_cancelled(joining).await;
    }
    stop.over.cancel();
    let served = server.await.context("the server panicked")?;
    let ended = ended?;
    served.map(|()| ended)
}

/// Serves other workers, health and reflection.
async fn serve(bound: Bound, exchange: ExchangeService, stop: Stop) -> Result<()> {
    let (health, health_service) = health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    let exchange = ExchangeServer::new(exchange);
    let exchange = exchange.max_decoding_message_size(MESSAGE_BYTES);
    services::serve(bound, health_service, exchange, exact2048_proto::DESCRIPTORS, stop).await?;
    Ok(())
}

struct Process {
    options: WorkerOptions,
    identity: Identity,
    outbox: Arc<Outbox>,
    epochs: AssignedEpochs,
    /// Limits of connections and requests, which grow with the number of peers.
    capacity: Capacity,
    /// Memory in bytes that the current job needs according to the last answer; `None` if this worker has enough.
    last_needed_memory: Option<u64>,
    /// The current outage of the coordinator, if any.
    outage: Outage,
}

impl Process {
    /// Pulls until `stop`, and then until nothing is left to hand back.
    async fn pull_until(&mut self, stop: &Stop) -> Result<ServerEnd> {
        let mut client = None;
        loop {
            let leaving = stop.begun.is_cancelled();
            let connected = match client.take() {
                Some(connected) => Some(connected),
                None => self.connected(&stop.begun).await?,
            };
            let Some(connected) = connected else { return Ok(ServerEnd::Drained) };
            let begun = Instant::now();
            match self.pull_once(connected.clone(), leaving).await {
                Ok(Some(answer)) => {
                    self.take(answer);
                    // The coordinator knows that this worker is leaving, and has no work for it.
                    if leaving && self.epochs.current().is_none() {
                        return Ok(ServerEnd::Drained);
                    }
                    client = Some(connected);
                }
                // An urgent report has interrupted the pull.
                Ok(None) => client = Some(connected),
                Err(status) => {
                    self.refused(&status)?;
                    // The next pull uses another connection, which may not have the fault.
                    if leaving {
                        // No coordinator is available to hand work back to.
                        let is_idle = self.epochs.current().is_none();
                        return Ok(if is_idle { ServerEnd::Drained } else { ServerEnd::CutOff });
                    }
                    stop.begun.run_until_cancelled(tokio::time::sleep(RETRY)).await;
                }
            }
            histogram!(observe::PULL_SECONDS).record(begun.elapsed());
            if self.epochs.current().is_some() {
                let rest = PACE.saturating_sub(begun.elapsed());
                tokio::select! {
                    () = tokio::time::sleep(rest) => {}
                    () = self.outbox.urgent() => {}
                }
            }
        }
    }

    /// Connects to the coordinator, and retries while it is unreachable; `None` after `stop`.
    async fn connected(
        &mut self,
        stop: &tokio_util::sync::CancellationToken,
    ) -> Result<Option<CoordinatorClient<Connected>>> {
        loop {
            match connect(&self.options.client).await {
                Ok(connected) => return Ok(Some(CoordinatorClient::new(connected))),
                Err(error @ ConnectError::Transport { .. }) => {
                    if self.outage.note_silence(Instant::now()) {
                        let worker = self.identity.id;
                        tracing::warn!(%worker, error = with_causes(&error), "no coordinator, retrying");
                    }
                    if stop.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends one pull. Returns `None` if an urgent report interrupts the pull; the next pull sends this report.
    async fn pull_once(
        &self,
        mut client: CoordinatorClient<Connected>,
        leaving: bool,
    ) -> Result<Option<Answer>, Status> {
        let mut request = tonic::Request::new(pull_message(&self.pull(leaving)));
        request.set_timeout(DEADLINE);
        tokio::select! {
            biased;
            answer = client.pull(request) => {
                let answer = answer_of(answer?.into_inner());
                answer.map(Some).map_err(|error| Status::failed_precondition(error.to_string()))
            }
            () = self.outbox.urgent() => Ok(None),
        }
    }

    /// Creates the next pull.
    fn pull(&self, leaving: bool) -> Pull {
        let (first_report, reports) = self.outbox.pending();
        let (epoch, stage) = self.epochs.named();
        Pull {
            version: PROTOCOL_VERSION,
            worker: self.identity.id,
            incarnation: self.identity.incarnation,
            threads: self.options.threads as u32,
            memory_bytes: self.options.memory_bytes,
            address: self.options.advertise.clone(),
            leaving,
            epoch,
            stage,
            first_report,
            reports,
        }
    }

    /// Follows an answer.
    fn take(&mut self, mut answer: Answer) {
        self.answered();
        self.outbox.acknowledged(answer.acknowledged);
        self.epochs.withdraw(answer.withdrawn);
        if let Some(assignment) = answer.share.take_if(|assignment| self.epochs.is_new(assignment)) {
            self.capacity.for_peers(assignment.share.members.len());
            self.epochs.begin(assignment);
        }
        self.epochs.leave_if_failed();
        self.too_small(answer.needed_memory);
        gauge!(observe::IN_EPOCH).set(if self.epochs.current().is_some() { 1.0 } else { 0.0 });
        self.epochs.pass_on(&answer);
    }

    /// Logs that this worker has too little memory for the current job, unless the last answer named the same need.
    fn too_small(&mut self, needed: Option<u64>) {
        let before = std::mem::replace(&mut self.last_needed_memory, needed);
        if let Some(needed) = needed.filter(|_| before != needed) {
            let (worker, threads, has) = (self.identity.id, self.options.threads, self.options.memory_bytes);
            let units = SizeUnits::of(has);
            tracing::warn!(%worker, threads, needed = %units.at_least(needed), limit = %units.at_most(has),
                "too little memory for the current job; start with more memory or fewer threads");
        }
    }

    /// Handles a pull that was refused or not answered. Returns an error if the next pull would fail too.
    fn refused(&mut self, status: &Status) -> Result<()> {
        let Some(refusal) = refusal_of(status) else { return self.unanswered(status) };
        self.answered();
        match refusal {
            Refusal::Superseded { .. } => {}
            Refusal::Fenced => {
                tracing::warn!(worker = %self.identity.id, reason = status.message(), "pull refused");
                self.epochs.leave();
            }
            Refusal::Version { .. } | Refusal::OldIncarnation { .. } => return Err(refusal.into()),
        }
        Ok(())
    }

    /// Handles a status that is not a [`Refusal`].
    fn unanswered(&mut self, status: &Status) -> Result<()> {
        let message = plain_words(words_of(status), MOST_WORDS);
        match status.code() {
            Code::Unimplemented => {
                return Err(WorkerRefusal::NoCoordinator(self.options.client.server.clone()).into());
            }
            Code::Unauthenticated => return Err(WorkerRefusal::Unknown(message).into()),
            Code::FailedPrecondition | Code::InvalidArgument => {
                return Err(WorkerRefusal::Refused(message).into());
            }
            code if self.outage.note_silence(Instant::now()) => {
                let worker = self.identity.id;
                tracing::warn!(%worker, ?code, reason = message, "no answer from the coordinator, retrying");
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes that the coordinator answers.
    fn answered(&mut self) {
        if let Some(silence) = self.outage.note_answer(Instant::now()) {
            let (worker, seconds) = (self.identity.id, seconds(silence));
            tracing::info!(%worker, seconds, "coordinator answers again");
        }
    }
}
