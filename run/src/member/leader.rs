//! Links to other members, and the leader of an epoch, as a member sees them.

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::LayerPart;
use exact2048_game::{Lane, Layer};
use exact2048_solution::{Segment, WrittenShards};
use exact2048_storage::{ShardKind, ShardWriter};
use exact2048_worker::BytesList;

use super::error::CrewError;

/// The connection to another member. Messages arrive in order; if one is lost, the epoch ends.
pub trait Link: Send + Sync {
    /// Sends a block whose first stage is done. Waits while too much data is in transit.
    fn send(&self, layer: Layer, lane: Lane, checksum: u64, payload: BytesList);

    /// Reports that this member has sent all blocks of the layers before this one. Must not wait, because the plan is
    /// locked.
    fn send_frontier(&self, layer: Layer);
}

/// The leader of an epoch. Receives reports of finished work, and orders shards to be written.
pub trait Leader: Send + Sync {
    /// Whether another task may start. If not, finished data must be written first.
    fn may_start(&self) -> bool {
        true
    }

    /// Reports the totals of a task. `frontier` is the first layer, in the direction of the pass, with an unfinished
    /// block of this member.
    fn progressed(&self, totals: &Totals, frontier: Layer);

    /// Reports the bytes of packed layers whose shards were not ordered yet.
    fn holds(&self, _bytes: u64) {}

    /// Reports the member's finished part of the next layer. Must be fast, because the plan is locked.
    fn layer_done(&self, part: LayerPart);

    /// Returns the range to write next. Waits for a while if there is none. `is_over` is true if the member will not
    /// finish any more layers.
    fn next_range(&self, is_over: bool) -> Next;

    /// Starts a shard of a kind for the member's part of a range.
    ///
    /// # Errors
    ///
    /// An error of the storage.
    fn create_shard(&self, kind: ShardKind, range: Segment) -> Result<ShardWriter, CrewError>;

    /// Reports that the shards of a range are in the store.
    ///
    /// # Errors
    ///
    /// If the range cannot be committed.
    fn written(&self, range: Segment, shards: WrittenShards) -> Result<(), CrewError>;
}

/// The next action of a member, in addition to computing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Write the member's shard of a range.
    Write(Segment),
    /// Ask again, because no range is ready.
    Wait,
    /// Stop, because the epoch is over.
    End,
}
