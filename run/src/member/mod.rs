//! A member of an epoch: it computes the blocks of its lanes, exchanges blocks with the other members, and writes the
//! shards that its leader orders.
//!
//! A process that solves a run alone is the only member of its epoch: it owns all lanes, has no links, and leads
//! itself. A worker of a cluster has links to other workers, and the coordinator leads it. Both use the code of this
//! module, and each implements [`Link`] and [`Leader`] differently.

mod crew;
mod dispatch;
mod error;
mod leader;
mod routes;
mod seat;
mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use exact2048_game::{Lane, Layer};
use exact2048_solution::{Phase, Segment, WrittenShards};
use exact2048_storage::{Frame, ShardKind};
use exact2048_worker::{BlockEngine, BytesList, WorkerError};
use parking_lot::Mutex;

use crew::{Crew, no_panic};
use dispatch::Dispatch;
pub use error::CrewError;
pub use leader::{Leader, Link, Next};
pub use routes::neighbours;
pub use seat::Seat;
use tally::Arrival;

/// A block received from another member.
#[derive(Debug)]
pub struct PeerBlock {
    /// The layer of the block.
    pub layer: Layer,
    /// The lane of the block.
    pub lane: Lane,
    /// The checksum of the bytes, according to the sender.
    pub checksum: u64,
    /// The bytes of the block.
    pub payload: BytesList,
}

/// Reason why a block is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The block is not the one that the sender should have sent. The fault is in the sender or the connection.
    #[error("{0}")]
    Bad(String),
    /// This member failed to accept the block.
    #[error(transparent)]
    Worker(WorkerError),
}

/// A member of an epoch, with its crew.
pub struct Member<L> {
    seat: Arc<Seat>,
    crew: Crew<L>,
    stop: Arc<AtomicBool>,
    /// The number of layers of which each member has sent all blocks, in the direction of the pass. For members that
    /// are not neighbours, it is the number of all layers.
    frontiers: Mutex<Vec<u32>>,
}

impl<L: Leader> Member<L> {
    /// Creates a member. `links` has the links to the [`neighbours`] by their index. The caller sets `stop` so that no
    /// more tasks begin.
    pub fn new(
        seat: Seat,
        worker: Arc<dyn BlockEngine>,
        links: Vec<Option<Box<dyn Link>>>,
        leader: L,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let far = seat.segment.layers();
        let neighbours = neighbours(&seat);
        worker.join(&seat.owners, seat.me);
        let seat = Arc::new(seat);
        let dispatch = Dispatch::new(Arc::clone(&worker), Arc::clone(&seat), links, leader);
        let crew = Crew::new(worker, &seat, dispatch, Arc::clone(&stop));
        if neighbours.contains(&true) {
            crew.with_plan(|plan| plan.slowest_elsewhere(seat.segment.layer(0)));
        } else {
            crew.dispatch().all_arrived(far);
        }
        // The member does not wait for members that are not neighbours.
        let frontiers = neighbours.iter().map(|&is_neighbour| if is_neighbour { 0 } else { far });
        let frontiers = Mutex::new(frontiers.collect());
        Self { seat, crew, stop, frontiers }
    }

    /// Computes on `threads` threads, and writes the ordered ranges, until the leader ends the epoch. Afterwards the
    /// caller must release the data that the worker still holds.
    ///
    /// # Errors
    ///
    /// The first failure of a task or a shard.
    pub fn run(&self, threads: usize) -> Result<(), CrewError> {
        self.crew.compute_during(threads, || self.write_ranges())?;
        self.crew.take_error().map_or(Ok(()), Err)
    }

    /// Writes ranges in the order of the pass. It stops after a failure, so that the committed ranges are a prefix of
    /// the segment.
    fn write_ranges(&self) {
        while !self.crew.has_failed() {
            // `stop` is read first, so that a task that began before the request to stop is still awaited.
            let is_over = self.stop.load(Ordering::Relaxed) && self.crew.is_idle();
            match self.leader().next_range(is_over) {
                Next::Write(range) => {
                    if let Err(error) = no_panic(|| self.write(range)) {
                        self.crew.fail(error);
                    }
                    self.crew.wake();
                }
                Next::Wait => {}
                Next::End => break,
            }
        }
        self.crew.wake();
    }

    /// Writes the shard of a range, and its checkpoint if values are rounded. A repeated order has no effect.
    fn write(&self, range: Segment) -> Result<(), CrewError> {
        let Some((frames, checkpoint)) = self.crew.dispatch().take_sealed(range) else { return Ok(()) };
        let write = |kind: ShardKind, frames: Vec<Frame>| {
            let mut writer = self.leader().create_shard(kind, range)?;
            for frame in frames {
                writer.push(frame)?;
            }
            Ok::<_, CrewError>(writer.finish()?)
        };
        let shard = write(range.phase.shard_kind(), frames)?;
        let checkpoint = checkpoint.map(|frames| write(ShardKind::Checkpoint, frames)).transpose()?;
        self.leader().written(range, WrittenShards { shard, checkpoint })
    }

    /// Accepts a block of the member with this index. The same block may arrive again.
    ///
    /// # Errors
    ///
    /// If the block is not acceptable, or this member failed to accept it.
    pub fn accept(&self, from: usize, block: PeerBlock) -> Result<(), BlockError> {
        let PeerBlock { layer, lane, checksum, payload } = block;
        let bad = |what: String| BlockError::Bad(format!("layer {layer}, lane {lane:?}: {what}"));
        let (is_elsewhere, is_awaited) =
            self.crew.with_plan(|plan| (plan.is_elsewhere(layer, lane), plan.awaits(layer, lane)));
        if !is_elsewhere || self.seat.owners.owner(lane) != from {
            return Err(bad("expected a block of the sender in this epoch, found another".to_owned()));
        }
        let found = payload.checksum();
        if found != checksum {
            return Err(bad(format!("expected checksum {checksum:016x}, found {found:016x}")));
        }
        match self.crew.dispatch().tally().take(layer, lane, checksum) {
            Arrival::New => {}
            Arrival::Again => return Ok(()),
            Arrival::Other => {
                return Err(bad("expected the contents of the earlier block, found others".to_owned()));
            }
        }
        if !is_awaited {
            return Ok(());
        }
        let taken = match self.seat.segment.phase {
            Phase::Enumerate => self.crew.worker().accept_states(layer, lane, payload),
            Phase::BackUp => self.crew.worker().accept_after_values(layer, lane, payload),
        };
        taken.map_err(|error| {
            self.crew.dispatch().tally().forget(layer, lane);
            match error {
                WorkerError::Payload(error) => BlockError::Bad(error.to_string()),
                error => BlockError::Worker(error),
            }
        })?;
        self.crew.with_plan(|plan| plan.finished_elsewhere(layer, lane));
        Ok(())
    }

    /// Records that the member with this index has sent all blocks of the layers before `layer`.
    pub fn frontier_of(&self, from: usize, layer: Layer) {
        let segment = self.seat.segment;
        let slowest = {
            let mut frontiers = self.frontiers.lock();
            frontiers[from] = segment.position(layer);
            frontiers.iter().copied().min().unwrap_or_default()
        };
        self.crew.with_plan(|plan| plan.slowest_elsewhere(segment.layer(slowest)));
        self.crew.dispatch().all_arrived(slowest);
    }

    /// Records the number of layers that all members have finished, as the leader reported it.
    pub fn all_finished(&self, layers: u32) {
        self.crew.dispatch().all_finished(layers);
    }

    /// The leader of the epoch.
    pub fn leader(&self) -> &L {
        self.crew.dispatch().leader()
    }

    /// Whether no task runs, because the member waits for other members or has finished.
    pub fn is_waiting(&self) -> bool {
        self.crew.is_idle()
    }

    /// Wakes the threads. Called when the result of [`Leader::may_start`] may have changed, or after `stop` was set.
    pub fn wake(&self) {
        self.crew.wake();
    }
}
