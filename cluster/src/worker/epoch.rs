//! One epoch on a worker: a member with links to its peers. The coordinator leads the epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use exact2048_coordinator::cluster::{EpochId, EpochMember, Share, WorkerFailure, WorkerId};
use exact2048_game::Layer;
use exact2048_net::client::ClientOptions;
use exact2048_run::member::{self, BlockError, Leader, Member, PeerBlock, Seat, neighbours};
use exact2048_worker::{BlockEngine, Holding};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::leader::RemoteLeader;
use super::links::PeerLink;
use super::membership::{Joined, Membership};
use crate::wire::Answer;

/// Operations of other threads on a running epoch.
pub trait Epoch: Send + Sync {
    /// Returns the credentials of the members.
    fn membership(&self) -> Membership;

    /// Returns the number of the epoch.
    fn number(&self) -> EpochId {
        self.membership().epoch
    }

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

    /// Follows the progress and the order in an answer of the coordinator, if they are of this epoch.
    fn follow(&self, answer: &Answer);

    /// Returns whether this worker has no work until other members finish some.
    fn is_waiting(&self) -> bool;

    /// Ends the epoch on this worker.
    fn stop(&self);

    /// Returns the token that is cancelled when the epoch has ended on this worker.
    fn ended(&self) -> CancellationToken;
}

/// The epochs that a worker is in, for its threads and its service.
#[derive(Default)]
pub struct Present {
    /// The epoch in which this worker has a share.
    pub joined: Joined,
    /// The epoch that the runner computes. It receives blocks and orders from other threads.
    pub running: watch::Sender<Option<Arc<dyn Epoch>>>,
    /// The epoch that the runner is in. After that, the runner may still have to report why the epoch failed.
    pub entered: Mutex<Option<EpochId>>,
}

/// An epoch that this worker runs as a member.
pub struct Running {
    /// The index of this worker among the members.
    me: usize,
    worker: Arc<dyn BlockEngine>,
    member: Member<RemoteLeader>,
    ended: CancellationToken,
    intake: Intake,
    /// Failure of a peer that ends the epoch.
    peer_failed: Arc<Mutex<Option<WorkerFailure>>>,
}

impl Running {
    /// Sets an epoch up for the member with the index `me`. `client` has the credentials for connections to peers. Must
    /// be called within a runtime.
    pub fn new(
        leader: RemoteLeader,
        me: usize,
        worker: Arc<dyn BlockEngine>,
        client: &ClientOptions,
    ) -> Arc<Self> {
        let (share, stop) = (Arc::clone(&leader.share), Arc::clone(&leader.stop));
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
        let open = |(peer, is_neighbour): (&EpochMember, bool)| {
            let (failed, stop, share) = (Arc::clone(&peer_failed), Arc::clone(&stop), Arc::clone(&share));
            let (worker, id) = (leader.worker, peer.worker);
            let lost = move |reason: String| {
                if fail(&failed, &stop, WorkerFailure::Peer(id)) {
                    tracing::warn!(%worker, job = %share.job, epoch = %share.epoch, peer = %id, reason, "peer lost");
                }
            };
            is_neighbour.then(|| -> Box<dyn member::Link> {
                Box::new(PeerLink::open(&leader, client, peer, ended.clone(), lost))
            })
        };
        let links = share.members.iter().zip(neighbours(&seat)).map(open).collect();
        let member = Member::new(seat, Arc::clone(&worker), links, leader, stop);
        Arc::new(Self { me, worker, member, ended, intake: Intake::default(), peer_failed })
    }

    /// Computes on `threads` threads and writes ordered shards until the epoch is over. Then the engine releases all
    /// data of the epoch.
    ///
    /// # Errors
    ///
    /// The failure of the epoch. An epoch that was stopped from outside has no error.
    pub fn run(&self, threads: usize) -> Result<(), WorkerFailure> {
        let computed = self.member.run(threads);
        self.ended.cancel();
        self.intake.close();
        self.worker.release(Holding::All);
        // Shards that are not ordered yet will never be ordered.
        self.member.leader().holds(0);
        computed.map_err(|error| self.member.leader().failure_of(&error))?;
        self.peer_failed.lock().take().map_or(Ok(()), Err)
    }

    fn share(&self) -> &Share {
        &self.member.leader().share
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

/// Ends an epoch because of a peer's failure. Keeps the first failure, and returns whether this one is the first.
fn fail(failed: &Mutex<Option<WorkerFailure>>, stop: &AtomicBool, failure: WorkerFailure) -> bool {
    let mut failed = failed.lock();
    let is_first = failed.is_none();
    failed.get_or_insert(failure);
    drop(failed);
    stop.store(true, Ordering::Relaxed);
    is_first
}

impl Epoch for Running {
    fn membership(&self) -> Membership {
        Membership::of(self.share())
    }

    fn member(&self, worker: WorkerId) -> Option<usize> {
        self.share().member(worker).filter(|&member| member != self.me)
    }

    fn accept(&self, from: usize, block: PeerBlock) -> Result<(), BlockError> {
        let accepted = self.intake.take(|| self.member.accept(from, block));
        accepted.unwrap_or(Ok(())).inspect_err(|error| {
            if let BlockError::Bad(what) = error {
                let (leader, peer) = (self.member.leader(), self.share().members[from].worker);
                let failure = WorkerFailure::BadBlock { peer, what: what.clone() };
                if fail(&self.peer_failed, &leader.stop, failure) {
                    let (worker, Share { job, epoch, .. }) = (leader.worker, self.share());
                    tracing::warn!(%worker, %job, %epoch, %peer, what, "peer sent an invalid block");
                }
            }
        })
    }

    fn has_spare_memory(&self) -> bool {
        self.worker.has_spare_memory()
    }

    fn frontier_of(&self, from: usize, layer: Layer) {
        self.member.frontier_of(from, layer);
    }

    fn follow(&self, answer: &Answer) {
        if let Some(progress) = answer.progress.filter(|progress| progress.epoch == self.number()) {
            self.member.all_finished(progress.finished_layers);
        }
        if let Some(write) = answer.write.filter(|write| write.epoch == self.number()) {
            self.member.leader().orders.add(write);
        }
    }

    fn is_waiting(&self) -> bool {
        self.member.is_waiting()
    }

    fn stop(&self) {
        let leader = self.member.leader();
        leader.stop.store(true, Ordering::Relaxed);
        leader.orders.end();
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
