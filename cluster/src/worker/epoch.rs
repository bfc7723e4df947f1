//! One epoch, as it runs on a worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use exact2048_coordinator::cluster::{Progress, Share, WorkerId, WorkerReport, WriteShard, spell_epoch};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};
use exact2048_run::crew::{Crew, CrewError, no_panic};
use exact2048_solution::{Owners, Phase, Run};
use exact2048_storage::{Attempt, ShardWriter};
use exact2048_worker::{BytesList, Worker, WorkerError};
use metrics::counter;
use tokio_util::sync::CancellationToken;

use super::host::{Dispatch, neighbours};
use super::links::{Link, Sender as LinkSender};
use super::membership::Membership;
use super::observe;
use super::outbox::Outbox;
use super::tally::{Arrival, Tally};

/// How often the thread that writes shards looks whether the epoch is over.
const PAUSE: Duration = Duration::from_millis(50);

/// What others may do to an epoch while it runs.
pub trait Epoch: Send + Sync {
    /// Its number.
    fn number(&self) -> u64;

    /// What its members show.
    fn membership(&self) -> Membership;

    /// The index of another worker among the members.
    fn member(&self, worker: WorkerId) -> Option<usize>;

    /// Takes in a block that another member finished.
    ///
    /// # Errors
    ///
    /// What is wrong with it; the epoch ends.
    fn accept(&self, from: usize, block: Block) -> Result<(), BlockError>;

    /// Takes in how far another member is.
    fn frontier_of(&self, from: usize, layer: Layer);

    /// Takes in how far all are, as the coordinator says.
    fn progress(&self, progress: Progress);

    /// Has a shard written.
    fn order(&self, shard: WriteShard);

    /// Whether it has nothing to do before other members have finished something.
    fn is_waiting(&self) -> bool;

    /// Ends it.
    fn stop(&self);

    /// Cancelled when it has ended.
    fn ended(&self) -> CancellationToken;
}

/// A block of another member, as it came.
#[derive(Debug)]
pub struct Block {
    /// Its layer.
    pub layer: Layer,
    /// Its lane.
    pub lane: Lane,
    /// What its sender says is the checksum of its bytes.
    pub checksum: u64,
    /// Its bytes.
    pub payload: BytesList,
}

/// Why a block is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// It cannot be what its sender should have sent: the sender is to blame, or the way.
    #[error("{0}")]
    Bad(String),
    /// This worker failed at it.
    #[error(transparent)]
    Worker(WorkerError),
}

/// Why an epoch failed here.
#[derive(Debug)]
pub enum EpochFailure {
    /// The stream to a peer broke.
    Peer(WorkerId, String),
    /// A peer sent a block that cannot be what it should be.
    BadBlock(WorkerId, String),
    /// A task or a shard failed.
    Crew(CrewError),
}

/// An epoch with its crew.
pub struct Running<V> {
    /// The worker that this is.
    worker: WorkerId,
    share: Arc<Share>,
    owners: Owners,
    crew: Crew<V, Dispatch<V>>,
    stop: Arc<AtomicBool>,
    ended: CancellationToken,
    orders: Mutex<Orders>,
    /// Layers that each member has sent all blocks of, counted in the direction of the pass; of this one all.
    frontiers: Mutex<Vec<u32>>,
    tally: Arc<Tally>,
    /// What a peer did that ends the epoch.
    peer_failed: Arc<Mutex<Option<EpochFailure>>>,
}

struct Orders {
    last: Option<WriteShard>,
    /// None when the epoch is over.
    send: Option<Sender<WriteShard>>,
}

/// What an epoch is made of.
pub struct Parts<V> {
    /// The share of this worker.
    pub share: Arc<Share>,
    /// The index of this worker among the members.
    pub me: usize,
    /// What computes.
    pub worker: Arc<Worker<V>>,
    /// Where reports go.
    pub outbox: Arc<Outbox>,
    /// How peers are reached.
    pub sender: LinkSender,
    /// Becomes true when the epoch is to end.
    pub stop: Arc<AtomicBool>,
}

impl<V: Value> Running<V> {
    /// Sets an epoch up. The receiver gets its orders. Must be called within a runtime.
    pub fn new(parts: Parts<V>) -> (Arc<Self>, Receiver<WriteShard>) {
        let Parts { share, me, worker, outbox, sender, stop } = parts;
        let owners = share.owners();
        let id = sender.worker;
        let ended = CancellationToken::new();
        let peer_failed = Arc::new(Mutex::new(None));
        let neighbours = neighbours(&share, &owners, me);
        let is_alone = !neighbours.contains(&true);
        let open = |(index, peer): (usize, _)| {
            let (failed, stop) = (Arc::clone(&peer_failed), Arc::clone(&stop));
            let told = move |worker, reason| fail(&failed, &stop, EpochFailure::Peer(worker, reason));
            let membership = Membership::of(&share);
            neighbours[index].then(|| Link::open(sender.clone(), peer, membership, ended.clone(), told))
        };
        let links = share.members.iter().enumerate().map(open).collect();
        let tally = Arc::new(Tally::new(id));
        let host = Dispatch::new(
            Arc::clone(&worker),
            Arc::clone(&share),
            &owners,
            me,
            links,
            Arc::clone(&outbox),
            Arc::clone(&tally),
        );
        let segment = share.segment;
        let owns = |lane| owners.owner(lane) == me;
        let crew = Crew::new(worker, (&share.params, segment), owns, host, Arc::clone(&stop));
        if !is_alone {
            crew.with_plan(|plan| plan.slowest_elsewhere(segment.layer(0)));
        }
        let (send, receive) = std::sync::mpsc::channel();
        // Nothing is to be waited for of those that are no neighbours.
        let far = segment.layers();
        let frontiers = neighbours.iter().map(|&is_neighbour| if is_neighbour { 0 } else { far }).collect();
        if is_alone {
            crew.host().all_arrived(segment.layers());
        }
        let (orders, frontiers) =
            (Mutex::new(Orders { last: None, send: Some(send) }), Mutex::new(frontiers));
        let running =
            Self { worker: id, share, owners, crew, stop, ended, orders, frontiers, tally, peer_failed };
        (Arc::new(running), receive)
    }

    /// Computes on `threads` threads and writes what is ordered, until the epoch is over. Nothing of it is left in
    /// the worker afterwards.
    ///
    /// # Errors
    ///
    /// Why it failed; otherwise it was stopped.
    pub fn run(
        &self,
        run: &Run,
        attempt: Attempt,
        threads: usize,
        orders: &Receiver<WriteShard>,
        outbox: &Outbox,
    ) -> Result<(), EpochFailure> {
        let computed = self.crew.compute_beside(threads, || {
            while !self.stop.load(Ordering::Relaxed) && !self.crew.has_failed() {
                match orders.recv_timeout(PAUSE) {
                    Ok(shard) => match no_panic(|| self.write(run, attempt, shard)) {
                        Ok(report) => report.into_iter().for_each(|report| outbox.report_now(report)),
                        Err(error) => self.crew.fail(error),
                    },
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            self.crew.wake();
        });
        if let Err(error) = computed {
            self.crew.fail(error);
        }
        self.ended.cancel();
        self.crew.worker().release_all();
        if let Some(error) = self.crew.take_error() {
            return Err(EpochFailure::Crew(error));
        }
        match self.peer_failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Writes a shard to where the run is. An order that was carried out already is none.
    fn write(
        &self,
        run: &Run,
        attempt: Attempt,
        shard: WriteShard,
    ) -> Result<Option<WorkerReport>, CrewError> {
        let WriteShard { first, last, .. } = shard;
        let Some(frames) = self.crew.host().take_sealed(first, last) else { return Ok(None) };
        let catalog = run.catalog();
        let identity = catalog.identity(self.share.segment.phase, first, last);
        let mut writer = ShardWriter::create_as(catalog.files(), identity, attempt)?;
        for frame in frames {
            writer.push(frame)?;
        }
        let record = writer.finish()?;
        counter!(observe::WRITTEN_BYTES).increment(record.bytes);
        let (worker, job, epoch) = (self.worker, &self.share.job, spell_epoch(shard.epoch));
        tracing::info!(%worker, %job, epoch, %first, %last, bytes = record.bytes, "shard written");
        Ok(Some(WorkerReport::ShardWritten { shard, record: serde_json::json!(record).to_string() }))
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn frontiers(&self) -> MutexGuard<'_, Vec<u32>> {
        self.frontiers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes in a block, or says why not.
    fn take_in(&self, from: usize, block: Block) -> Result<(), BlockError> {
        let Block { layer, lane, checksum, payload } = block;
        let bad = |what: String| BlockError::Bad(format!("layer {layer}, lane {lane:?}: {what}"));
        let (is_elsewhere, is_awaited) =
            self.crew.with_plan(|plan| (plan.is_elsewhere(layer, lane), plan.awaits(layer, lane)));
        if !is_elsewhere || self.owners.owner(lane) != from {
            return Err(bad("that worker has no such block in this epoch".to_owned()));
        }
        let found = payload.checksum();
        if found != checksum {
            return Err(bad(format!("its bytes have checksum {found:016x}, expected {checksum:016x}")));
        }
        match self.tally.take(layer, lane, checksum) {
            Arrival::New => {}
            Arrival::Again => return Ok(()),
            Arrival::Other => return Err(bad("another one came before, with other contents".to_owned())),
        }
        if !is_awaited {
            return Ok(());
        }
        let taken = match self.share.segment.phase {
            Phase::Enumerate => self.crew.worker().accept_states(layer, lane, payload),
            Phase::BackUp => self.crew.worker().accept_after_values(layer, lane, payload),
        };
        taken.map_err(|error| match error {
            WorkerError::Payload(error) => BlockError::Bad(error.to_string()),
            error => BlockError::Worker(error),
        })?;
        self.crew.with_plan(|plan| plan.finished_elsewhere(layer, lane));
        Ok(())
    }
}

/// Ends an epoch because of what a peer did, unless it has failed already.
fn fail(failed: &Mutex<Option<EpochFailure>>, stop: &AtomicBool, failure: EpochFailure) {
    failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(failure);
    stop.store(true, Ordering::Relaxed);
}

impl<V: Value> Epoch for Running<V> {
    fn number(&self) -> u64 {
        self.share.epoch
    }

    fn membership(&self) -> Membership {
        Membership::of(&self.share)
    }

    fn member(&self, worker: WorkerId) -> Option<usize> {
        self.share.member(worker).filter(|_| worker != self.worker)
    }

    fn accept(&self, from: usize, block: Block) -> Result<(), BlockError> {
        self.take_in(from, block).inspect_err(|error| {
            if let BlockError::Bad(what) = error {
                let peer = self.share.members[from].worker;
                fail(&self.peer_failed, &self.stop, EpochFailure::BadBlock(peer, what.clone()));
            }
        })
    }

    fn frontier_of(&self, from: usize, layer: Layer) {
        let segment = self.share.segment;
        let slowest = {
            let mut frontiers = self.frontiers();
            frontiers[from] = segment.position(layer);
            frontiers.iter().copied().min().unwrap_or_default()
        };
        self.crew.with_plan(|plan| plan.slowest_elsewhere(segment.layer(slowest)));
        self.crew.host().all_arrived(slowest);
    }

    fn progress(&self, progress: Progress) {
        self.crew.host().all_finished(progress.finished_layers);
    }

    fn order(&self, shard: WriteShard) {
        let mut orders = self.orders();
        // It is repeated until the report has arrived.
        if orders.last.replace(shard) != Some(shard)
            && let Some(send) = &orders.send
        {
            // Where nobody takes it the epoch is over.
            let _ = send.send(shard);
        }
    }

    fn is_waiting(&self) -> bool {
        self.crew.is_idle()
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // Who waits for orders need not wait for longer.
        self.orders().send = None;
        self.crew.wake();
    }

    fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}
