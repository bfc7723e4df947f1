//! One epoch, as it runs on a worker: a member with links to its peers, led by the coordinator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use exact2048_coordinator::cluster::{EpochId, EpochProgress, Share, WorkerId, WriteShard};
use exact2048_game::Layer;
use exact2048_run::member::{self, BlockError, CrewError, Leader, Member, PeerBlock, Seat, neighbours};
use exact2048_solution::Catalog;
use exact2048_storage::Attempt;
use exact2048_worker::{BlockEngine, Holding};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use super::leader::{Orders, RemoteLeader};
use super::links::{LinkLifetime, PeerLink, Sender};
use super::membership::Membership;
use super::outbox::Outbox;

/// Operations of other threads on a running epoch.
pub trait Epoch: Send + Sync {
    /// Its number.
    fn number(&self) -> EpochId;

    /// Returns the credentials of its members.
    fn membership(&self) -> Membership;

    /// The index of another worker among the members.
    fn member(&self, worker: WorkerId) -> Option<usize>;

    /// Accepts a block that another member finished.
    ///
    /// # Errors
    ///
    /// The error in the block; the epoch ends.
    fn accept(&self, from: usize, block: PeerBlock) -> Result<(), BlockError>;

    /// Whether there is memory to spare for blocks.
    fn has_room_to_spare(&self) -> bool;

    /// Notes that another member has sent all blocks of the layers before this one.
    fn frontier_of(&self, from: usize, layer: Layer);

    /// Notes how far all are, as the coordinator says.
    fn progress(&self, progress: EpochProgress);

    /// Has a shard written.
    fn order(&self, shard: WriteShard);

    /// Whether it has nothing to do before other members have finished something.
    fn is_waiting(&self) -> bool;

    /// Ends it.
    fn stop(&self);

    /// Cancelled when it has ended.
    fn ended(&self) -> CancellationToken;
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

/// An epoch with its member.
pub struct Running {
    share: Arc<Share>,
    /// The index of this worker among the members.
    me: usize,
    worker: Arc<dyn BlockEngine>,
    member: Member<RemoteLeader>,
    stop: Arc<AtomicBool>,
    ended: CancellationToken,
    intake: Intake,
    /// Failure of a peer that ends the epoch.
    peer_failed: Arc<Mutex<Option<EpochFailure>>>,
}

/// Parts of an epoch.
pub struct EpochParts {
    /// The share of this worker.
    pub share: Arc<Share>,
    /// The index of this worker among the members.
    pub me: usize,
    /// The part that computes.
    pub worker: Arc<dyn BlockEngine>,
    /// The shards of the run.
    pub catalog: Arc<Catalog>,
    /// Name of this worker's shards.
    pub attempt: Attempt,
    /// Where reports go.
    pub outbox: Arc<Outbox>,
    /// How peers are reached.
    pub sender: Sender,
    /// Becomes true when the epoch is to end.
    pub stop: Arc<AtomicBool>,
}

impl Running {
    /// Sets an epoch up. Must be called within a runtime.
    pub fn new(parts: EpochParts) -> Arc<Self> {
        let EpochParts { share, me, worker, catalog, attempt, outbox, sender, stop } = parts;
        let seat = Seat {
            params: share.params.clone(),
            segment: share.segment,
            members: share.members.iter().map(|member| member.worker).collect(),
            owners: share.owners(),
            me,
            window_layers: share.window_layers,
        };
        let ended = CancellationToken::new();
        let peer_failed = Arc::new(Mutex::new(None));
        let open = |(peer, is_neighbour): (_, bool)| {
            let until = LinkLifetime { ended: ended.clone(), stop: Arc::clone(&stop) };
            let (failed, stop) = (Arc::clone(&peer_failed), Arc::clone(&stop));
            let told = move |worker, reason| fail(&failed, &stop, EpochFailure::Peer(worker, reason));
            let open = || PeerLink::open(sender.clone(), peer, Membership::of(&share), until, told);
            is_neighbour.then(|| Box::new(open()) as Box<dyn member::Link>)
        };
        let links = share.members.iter().zip(neighbours(&seat)).map(open).collect();
        let leader = RemoteLeader {
            worker: sender.worker,
            share: Arc::clone(&share),
            catalog,
            attempt,
            outbox,
            stop: Arc::clone(&stop),
            orders: Orders::default(),
        };
        let member = Member::new(seat, Arc::clone(&worker), links, leader, Arc::clone(&stop));
        Arc::new(Self { share, me, worker, member, stop, ended, intake: Intake::default(), peer_failed })
    }

    /// Computes on `threads` threads and writes what is ordered, until the epoch is over. Nothing of it is left in
    /// the worker afterwards.
    ///
    /// # Errors
    ///
    /// Why it failed; otherwise it was stopped.
    pub fn run(&self, threads: usize) -> Result<(), EpochFailure> {
        let computed = self.member.run(threads);
        self.ended.cancel();
        self.intake.close();
        self.worker.release(Holding::All);
        // Unordered data will never be ordered.
        self.member.leader().holds(0);
        computed.map_err(EpochFailure::Crew)?;
        match self.peer_failed.lock().take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

/// Lets blocks of other members in until the epoch has ended. The next epoch, in which lanes may have other owners, has
/// the same worker: a block that came late would take the place of one of that epoch.
#[derive(Debug, Default)]
struct Intake {
    /// Locked for reading while a block is accepted.
    is_closed: RwLock<bool>,
}

impl Intake {
    /// Takes a block in; `None` where no more are.
    fn take<T>(&self, accept: impl FnOnce() -> T) -> Option<T> {
        // If the lock is contended, the epoch is closing: only closing takes the write lock. So the block is late.
        let is_closed = self.is_closed.try_read()?;
        (!*is_closed).then(accept)
    }

    /// Waits for blocks that are being accepted, and accepts no more.
    fn close(&self) {
        *self.is_closed.write() = true;
    }
}

/// Ends an epoch because of what a peer did, unless it has failed already.
fn fail(failed: &Mutex<Option<EpochFailure>>, stop: &AtomicBool, failure: EpochFailure) {
    failed.lock().get_or_insert(failure);
    stop.store(true, Ordering::Relaxed);
}

impl Epoch for Running {
    fn number(&self) -> EpochId {
        self.share.epoch
    }

    fn membership(&self) -> Membership {
        Membership::of(&self.share)
    }

    fn member(&self, worker: WorkerId) -> Option<usize> {
        self.share.member(worker).filter(|&member| member != self.me)
    }

    fn accept(&self, from: usize, block: PeerBlock) -> Result<(), BlockError> {
        let accepted = self.intake.take(|| self.member.accept(from, block));
        accepted.unwrap_or(Ok(())).inspect_err(|error| {
            if let BlockError::Bad(what) = error {
                let peer = self.share.members[from].worker;
                fail(&self.peer_failed, &self.stop, EpochFailure::BadBlock(peer, what.clone()));
            }
        })
    }

    fn has_room_to_spare(&self) -> bool {
        self.worker.has_spare_memory()
    }

    fn frontier_of(&self, from: usize, layer: Layer) {
        self.member.frontier_of(from, layer);
    }

    fn progress(&self, progress: EpochProgress) {
        self.member.all_finished(progress.finished_layers);
    }

    fn order(&self, shard: WriteShard) {
        self.member.leader().orders.add(shard);
    }

    fn is_waiting(&self) -> bool {
        self.member.is_waiting()
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.member.leader().orders.end();
        self.member.wake();
    }

    fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_block_is_taken_in_after_the_end() {
        let intake = Intake::default();
        let ((begun, begins), (end, ends), is_closed) = (channel(), channel::<()>(), &AtomicBool::new(false));
        let taking = &intake;
        std::thread::scope(|threads| {
            threads.spawn(move || {
                let taken = taking.take(|| {
                    begun.send(()).unwrap();
                    ends.recv().unwrap();
                    assert!(
                        !is_closed.load(Ordering::SeqCst),
                        "the epoch was closed while it accepted a block"
                    );
                });
                assert!(taken.is_some());
            });
            begins.recv().unwrap();
            threads.spawn(move || {
                taking.close();
                is_closed.store(true, Ordering::SeqCst);
            });
            while intake.take(|| ()).is_some() {
                std::thread::sleep(Duration::from_millis(1));
            }
            end.send(()).unwrap();
        });
        assert!(intake.take(|| ()).is_none());
    }
}
