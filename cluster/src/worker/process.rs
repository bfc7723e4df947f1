//! The pulls of a worker: reports out, work in.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender as Channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::{EpochId, EpochStage, JobId, PROTOCOL_VERSION, Pull, Refusal};
use exact2048_net::client::{ClientOptions, ConnectError, Connected, connect};
use exact2048_net::logs::seconds;
use exact2048_net::serve::{Bound, Capacity};
use exact2048_net::services::Services;
use exact2048_net::shutdown::Stop;
use exact2048_net::status::words_of;
use exact2048_net::text::numbers::SizeUnits;
use exact2048_net::text::{plain_words, with_causes};
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use exact2048_proto::v1::exchange_server::ExchangeServer;
use exact2048_storage::{Peers, StoreSettings};
use exact2048_worker::Tuning;
use metrics::{counter, gauge, histogram};
use tokio::sync::watch;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

use super::copies::Copies;
use super::exchange::{Current, ExchangeService};
use super::identity::Identity;
use super::jobs::Jobs;
use super::links::Sender;
use super::membership::{Joined, Membership};
use super::observe;
use super::outage::Outage;
use super::outbox::Outbox;
use super::peers::PeerCopies;
use super::runner::{Runner, Start};
use crate::wire::{Answer, Assignment, pull_message, refusal_of};

/// How long an answer to a pull may take: the coordinator holds none back for as long.
const DEADLINE: Duration = Duration::from_secs(10);

/// Time between pulls while there is work and nothing urgent to report.
const PACE: Duration = Duration::from_millis(50);

/// Time between attempts to reach a coordinator that cannot be reached.
const RETRY: Duration = Duration::from_millis(500);

/// How many bytes a message from a peer may have.
const MESSAGE_BYTES: usize = 4 << 20;

/// How many bytes of the coordinator's words are passed on.
const MOST_WORDS: usize = 2048;

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The coordinator, and what to show to it and to other workers.
    pub client: ClientOptions,
    /// Where other workers reach this one.
    pub advertise: String,
    /// Threads that compute.
    pub threads: usize,
    /// Memory that it may use, in bytes.
    pub memory_bytes: u64,
    /// How the solver uses that memory, and its other settings.
    pub tuning: Tuning,
    /// How stores are used.
    pub store: StoreSettings,
    /// Folder for the worker's name and for what does not fit in memory.
    pub folder: PathBuf,
}

/// How a worker ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerEnd {
    /// Its work was committed or handed back.
    HandedBack,
    /// The grace period ended first.
    CutOff,
}

/// Why a worker that was turned away ends: it would be turned away again.
#[derive(Debug, thiserror::Error)]
pub enum WorkerRefusal {
    /// Something else answers in the coordinator's place.
    #[error("expected a coordinator at {server}, found another server; check host and port")]
    NoCoordinator {
        /// Where it should be.
        server: String,
    },
    /// The coordinator asks for a token, or for another one.
    #[error("the coordinator refuses this worker: {message}")]
    Unknown {
        /// The coordinator's message.
        message: String,
    },
    /// The coordinator gives no work to workers of this kind.
    #[error("the coordinator refuses this worker: {message}")]
    Refused {
        /// The coordinator's message.
        message: String,
    },
}

/// Works until `stop`.
///
/// # Errors
///
/// Failures to start, and refusals that another attempt would meet again.
pub async fn run(bound: Bound, options: WorkerOptions, stop: Stop) -> Result<WorkerEnd> {
    let identity = Identity::take(&options.folder)?;
    let outbox = Arc::new(Outbox::default());
    let current: Arc<Current> = Arc::new(watch::Sender::new(None));
    let joined: Arc<Joined> = Arc::new(watch::Sender::new(None));
    tracing::info!(worker = %identity.id, incarnation = identity.incarnation.0, threads = options.threads,
        address = options.advertise, "worker starts");

    let (taken, left) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (starts, received) = std::sync::mpsc::channel();
    let sender = Sender { worker: identity.id, client: options.client.clone() };
    let peers = Arc::new(PeerCopies::new(sender.clone()));
    let asking = Some(Arc::clone(&peers) as Arc<dyn Peers>);
    let store = StoreSettings { peers: asking, ..options.store.clone() };
    let runner = Runner {
        jobs: Jobs::new(store, options.folder.clone(), options.tuning),
        outbox: Arc::clone(&outbox),
        sender,
        peers,
        threads: options.threads,
        current: Arc::clone(&current),
        taken: Arc::clone(&taken),
        left: Arc::clone(&left),
        scratch: options.folder.clone(),
    };
    let runtime = tokio::runtime::Handle::current();
    let running = std::thread::Builder::new().name("epochs".to_owned()).spawn(move || {
        let _entered = runtime.enter();
        runner.run(&received);
    });
    let running = running.context("cannot start a thread")?;

    // Peers are served until the last pull: they may still need what this worker has.
    let capacity = bound.capacity();
    let served = Stop { begun: stop.over.clone(), over: stop.over.clone() };
    let copies = Copies::new(options.store.clone());
    let admitting = (Arc::clone(&joined), Arc::clone(&current));
    let service = ExchangeService::new(admitting, options.memory_bytes, copies);
    let server = tokio::spawn(serve(bound, service, served));
    let mut process = Process {
        options,
        identity,
        outbox,
        current,
        taken,
        left,
        joined,
        starts,
        capacity,
        epoch: None,
        begun: None,
        last_needed_memory: None,
        outage: Outage::default(),
    };
    let ended = tokio::select! {
        ended = process.pull_until(&stop) => ended,
        () = stop.over.cancelled() => Ok(WorkerEnd::CutOff),
    };
    process.leave_epoch();
    drop(process);
    if matches!(ended, Ok(WorkerEnd::HandedBack)) {
        // The thread ends once its task, or its shard, is done.
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
    let services = Services::new(bound, health_service, exchange, exact2048_proto::DESCRIPTORS)?;
    services.with_guarded_health().serve(stop).await?;
    Ok(())
}

/// The epoch that was begun last.
struct Begun {
    number: EpochId,
    job: JobId,
    stop: Arc<AtomicBool>,
}

struct Process {
    options: WorkerOptions,
    identity: Identity,
    outbox: Arc<Outbox>,
    current: Arc<Current>,
    /// The epoch that the runner has taken up and not left yet; 0 for none.
    taken: Arc<AtomicU64>,
    /// The epoch that the runner has left last.
    left: Arc<AtomicU64>,
    joined: Arc<Joined>,
    starts: Channel<Start>,
    /// How many peers may connect.
    capacity: Capacity,
    epoch: Option<Begun>,
    /// The epoch that was begun last, which may be over: answers name it until the coordinator knows that.
    begun: Option<Membership>,
    /// The memory that the job whose turn it is needs, in bytes, where this worker has less: as the last answer said.
    last_needed_memory: Option<u64>,
    /// Whether the coordinator answers.
    outage: Outage,
}

impl Process {
    /// Pulls until `stop`, and then until nothing is left to hand back.
    async fn pull_until(&mut self, stop: &Stop) -> Result<WorkerEnd> {
        let mut client = None;
        loop {
            let leaving = stop.begun.is_cancelled();
            let connected = match client.take() {
                Some(connected) => Some(connected),
                None => self.connected(&stop.begun).await?,
            };
            let Some(connected) = connected else { return Ok(WorkerEnd::HandedBack) };
            let begun = Instant::now();
            match self.pull_once(connected.clone(), leaving).await {
                Ok(Some(answer)) => {
                    self.take(answer);
                    // The coordinator knows that this worker goes, and has nothing for it.
                    if leaving && self.epoch.is_none() {
                        return Ok(WorkerEnd::HandedBack);
                    }
                    client = Some(connected);
                }
                // Something urgent came up.
                Ok(None) => client = Some(connected),
                Err(status) => {
                    self.refused(&status)?;
                    // The next pull uses another connection, which may not have the fault.
                    if leaving {
                        // No coordinator is available to hand work back to.
                        let is_idle = self.epoch.is_none();
                        return Ok(if is_idle { WorkerEnd::HandedBack } else { WorkerEnd::CutOff });
                    }
                    stop.begun.run_until_cancelled(tokio::time::sleep(RETRY)).await;
                }
            }
            histogram!(observe::PULL_SECONDS).record(begun.elapsed());
            if self.epoch.is_some() {
                let rest = PACE.saturating_sub(begun.elapsed());
                tokio::select! {
                    () = tokio::time::sleep(rest) => {}
                    () = self.outbox.urgent() => {}
                }
            }
        }
    }

    /// A connection to the coordinator, however long it takes; `None` when it is time to stop.
    async fn connected(
        &mut self,
        stop: &tokio_util::sync::CancellationToken,
    ) -> Result<Option<CoordinatorClient<Connected>>> {
        loop {
            match connect(&self.options.client).await {
                Ok(connected) => return Ok(Some(CoordinatorClient::new(connected))),
                Err(error @ ConnectError::Transport { .. }) => {
                    if self.outage.goes_on(Instant::now()) {
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

    /// One pull; given up when there is something to report at once, which then goes with the next.
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
                let answer = Answer::try_from(answer?.into_inner());
                answer.map(Some).map_err(|error| Status::failed_precondition(error.to_string()))
            }
            () = self.outbox.urgent() => Ok(None),
        }
    }

    /// Creates the next pull. It names no epoch before the runner has entered it. Otherwise an epoch that only waits
    /// for the runner, which may hang in the epoch before, would look active.
    fn pull(&self, leaving: bool) -> Pull {
        let (first_report, reports) = self.outbox.pending();
        let epoch = Some(self.taken.load(Ordering::Relaxed)).filter(|&epoch| epoch > 0).map(EpochId);
        Pull {
            version: PROTOCOL_VERSION,
            worker: self.identity.id,
            incarnation: self.identity.incarnation,
            threads: self.options.threads as u32,
            memory_bytes: self.options.memory_bytes,
            address: self.options.advertise.clone(),
            leaving,
            epoch,
            stage: epoch.map_or(EpochStage::Preparing, |epoch| self.stage(epoch)),
            first_report,
            reports,
        }
    }

    /// How far the runner is with the epoch that it has taken up.
    fn stage(&self, epoch: EpochId) -> EpochStage {
        match self.current.borrow().as_ref().filter(|running| running.number() == epoch) {
            None => EpochStage::Preparing,
            Some(running) if running.is_waiting() => EpochStage::Waiting,
            Some(_) => EpochStage::Working,
        }
    }

    /// Does what an answer says.
    fn take(&mut self, answer: Answer) {
        self.answered();
        self.outbox.acknowledged(answer.acknowledged);
        if answer.withdrawn.is_some() && answer.withdrawn == self.epoch.as_ref().map(|epoch| epoch.number) {
            self.leave_epoch();
        }
        let is_new = |assignment: &Assignment| self.begun != Some(Membership::of(&assignment.share));
        if let Some(assignment) = answer.assignment.filter(is_new) {
            self.leave_epoch();
            self.capacity.for_peers(assignment.share.members.len());
            let (number, job) = (assignment.share.epoch, assignment.share.job.clone());
            let membership = Membership::of(&assignment.share);
            self.begun = Some(membership);
            self.joined.send_replace(Some(membership));
            // A coordinator of another store begins with the first number again.
            self.left.store(0, Ordering::Relaxed);
            let stop = Arc::new(AtomicBool::new(false));
            self.epoch = Some(Begun { number, job, stop: Arc::clone(&stop) });
            counter!(observe::EPOCHS).increment(1);
            // If it has no receiver, the process is ending.
            let _ = self.starts.send(Start { assignment, stop });
        }
        // The runner left it after a failure. Pulls no longer name it, so the coordinator does not withdraw it.
        let left = EpochId(self.left.load(Ordering::Relaxed));
        if self.epoch.as_ref().is_some_and(|epoch| epoch.number == left) {
            self.leave_epoch();
        }
        self.too_small(answer.needed_memory);
        gauge!(observe::IN_EPOCH).set(if self.epoch.is_some() { 1.0 } else { 0.0 });
        let running = self.current.borrow().clone();
        let Some(running) = running else { return };
        if let Some(progress) = answer.progress.filter(|progress| progress.epoch == running.number()) {
            running.progress(progress);
        }
        if let Some(write) = answer.write.filter(|write| write.epoch == running.number()) {
            running.order(write);
        }
    }

    /// Logs that this worker has too little memory for the job whose turn it is, unless the last answer said the same.
    fn too_small(&mut self, needed: Option<u64>) {
        let before = std::mem::replace(&mut self.last_needed_memory, needed);
        if let Some(needed) = needed.filter(|_| before != needed) {
            let (worker, threads, has) = (self.identity.id, self.options.threads, self.options.memory_bytes);
            let units = SizeUnits::of(has);
            tracing::warn!(%worker, threads, needed = %units.at_least(needed), limit = %units.at_most(has),
                "too little memory for the current job; start with more memory or fewer threads");
        }
    }

    /// Acts on a pull that was refused, or got no answer. Returns an error where the next pull would meet the same.
    fn refused(&mut self, status: &Status) -> Result<()> {
        let Some(refusal) = refusal_of(status) else { return self.unanswered(status) };
        self.answered();
        match refusal {
            Refusal::Superseded { .. } => {}
            Refusal::Fenced => {
                tracing::warn!(worker = %self.identity.id, reason = status.message(), "pull refused");
                self.leave_epoch();
            }
            Refusal::Version { .. } | Refusal::OldIncarnation { .. } => return Err(refusal.into()),
        }
        Ok(())
    }

    /// Acts on a status that is not one of the coordinator's own refusals.
    fn unanswered(&mut self, status: &Status) -> Result<()> {
        let message = plain_words(words_of(status), MOST_WORDS);
        match status.code() {
            Code::Unimplemented => {
                return Err(
                    WorkerRefusal::NoCoordinator { server: self.options.client.server.clone() }.into()
                );
            }
            Code::Unauthenticated => return Err(WorkerRefusal::Unknown { message }.into()),
            Code::FailedPrecondition | Code::InvalidArgument => {
                return Err(WorkerRefusal::Refused { message }.into());
            }
            code if self.outage.goes_on(Instant::now()) => {
                let worker = self.identity.id;
                tracing::warn!(%worker, ?code, reason = message, "no answer from the coordinator, retrying");
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes that the coordinator answers.
    fn answered(&mut self) {
        if let Some(silence) = self.outage.ends(Instant::now()) {
            let (worker, seconds) = (self.identity.id, seconds(silence));
            tracing::info!(%worker, seconds, "coordinator answers again");
        }
    }

    /// Ends the epoch here at once.
    fn leave_epoch(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            self.joined.send_replace(None);
            epoch.stop.store(true, Ordering::Relaxed);
            if let Some(running) = self.current.borrow().as_ref().filter(|r| r.number() == epoch.number) {
                running.stop();
            }
            tracing::info!(worker = %self.identity.id, job = %epoch.job, epoch = %epoch.number,
                "epoch ends");
        }
    }
}
