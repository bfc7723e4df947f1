//! One epoch on a worker: a member with links to its peers. The coordinator leads the epoch.

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
    /// Returns the number of the epoch.
    fn number(&self) -> EpochId;

    /// Returns the credentials of the members.
    fn membership(&self) -> Membership;

    /// Returns the index of another worker among the members.
    fn member(&self, worker: WorkerId) -> Option<usize>;

    /// Accepts a block that another member finished.
    ///
    /// # Errors
    ///
    /// The error in the block; the epoch ends.
    fn accept(&self, from: usize, block: PeerBlock) -> Result<(), BlockError>;

    /// Returns whether there is memory to spare for blocks.
    fn has_spare_memory(&self) -> bool;

    /// Notes that another member has sent all blocks of the layers before this one.
    fn frontier_of(&self, from: usize, layer: Layer);

    /// Notes the progress of all members, which the coordinator reports.
    fn progress(&self, progress: EpochProgress);

    /// Orders this worker to write a shard.
    fn order(&self, shard: WriteShard);

    /// Returns whether this worker has no work until other members finish some.
    fn is_waiting(&self) -> bool;

    /// Ends the epoch on this worker.
    fn stop(&self);

    /// Returns the token that is cancelled when the epoch has ended on this worker.
    fn ended(&self) -> CancellationToken;
}

/// Reason why an epoch failed on this worker.
#[derive(Debug)]
pub enum EpochFailure {
    /// The stream to a peer broke.
    Peer(WorkerId, String),
    /// A peer sent an invalid block.
    BadBlock(WorkerId, String),
    /// A task or a shard failed.
    Crew(CrewError),
}

/// An epoch that this worker runs as a member.
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
    /// The engine that computes blocks.
    pub worker: Arc<dyn BlockEngine>,
    /// The shards of the run.
    pub catalog: Arc<Catalog>,
    /// The attempt in the file names of this worker's shards.
    pub attempt: Attempt,
    /// Reports to the coordinator.
    pub outbox: Arc<Outbox>,
    /// Settings of connections to peers.
    pub sender: Sender,
    /// Becomes true when the epoch must end.
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

    /// Computes on `threads` threads and writes ordered shards until the epoch is over. Then the engine releases all
    /// data of the epoch.
    ///
    /// # Errors
    ///
    /// The failure of the epoch. An epoch that was stopped from outside has no error.
    pub fn run(&self, threads: usize) -> Result<(), EpochFailure> {
        let computed = self.member.run(threads);
        self.ended.cancel();
        self.intake.close();
        self.worker.release(Holding::All);
        // Shards that are not ordered yet will never be ordered.
        self.member.leader().holds(0);
        computed.map_err(EpochFailure::Crew)?;
        match self.peer_failed.lock().take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

/// Accepts blocks of other members until the epoch has ended. The next epoch may use the same engine with other owners
/// of lanes, and a late block could replace a block of that epoch.
#[derive(Debug, Default)]
struct Intake {
    /// Locked for reading while a block is accepted.
    is_closed: RwLock<bool>,
}

impl Intake {
    /// Accepts a block; `None` after the end of the epoch.
    fn take<T>(&self, accept: impl FnOnce() -> T) -> Option<T> {
        // Only `close` takes the write lock. So if the lock is not free, the epoch is ending, and the block is late.
        let is_closed = self.is_closed.try_read()?;
        (!*is_closed).then(accept)
    }

    /// Waits until the blocks under way are accepted, and accepts no more.
    fn close(&self) {
        *self.is_closed.write() = true;
    }
}

/// Ends an epoch because of a peer's failure. Keeps the first failure.
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

    fn has_spare_memory(&self) -> bool {
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
    fn no_block_is_accepted_after_the_end() {
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
