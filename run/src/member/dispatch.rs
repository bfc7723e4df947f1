//! Distributes the results of a member's crew: blocks to the members that need them, and layers to the leader.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::LayerPart;
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{Phase, Segment};
use exact2048_storage::Frame;
use exact2048_worker::{BlockEngine, WorkerError};
use parking_lot::Mutex;

use super::leader::{Leader, Link};
use super::routes::Routes;
use super::seat::Seat;
use super::tally::{LayerSums, Tally};

/// Distributes finished blocks and layers.
pub struct Dispatch<L> {
    worker: Arc<dyn BlockEngine>,
    seat: Arc<Seat>,
    routes: Routes,
    /// The links to the other members, by their index; `None` for members that are not neighbours, and for this member.
    links: Vec<Option<Box<dyn Link>>>,
    leader: L,
    tally: Tally,
    /// The number of layers of which this member has sent all blocks, as last sent to the other members.
    frontier: AtomicU32,
    finished: Mutex<Finished>,
}

/// Results that wait for the leader.
#[derive(Default)]
struct Finished {
    /// Packed layers whose shards were not ordered yet.
    sealed: BTreeMap<Layer, Vec<Frame>>,
    /// The unrounded values of packed layers that may be in a checkpoint.
    checkpoints: BTreeMap<Layer, Vec<Frame>>,
    /// The bytes of the packed layers.
    sealed_bytes: u64,
    /// Layers that this member has finished, but not reported. It reports a layer only within `window_layers` layers
    /// after `told`, and only after all blocks of other members have arrived.
    done: VecDeque<LayerPart>,
    /// The number of layers reported so far.
    reported: u32,
    /// The number of layers whose shards were ordered so far.
    written: u32,
    /// The number of layers that all members have finished, as the leader reported it.
    told: u32,
    /// The number of layers of which all blocks of the other members have arrived.
    arrived: u32,
}

impl<L: Leader> Dispatch<L> {
    /// The dispatch of a member.
    pub fn new(
        worker: Arc<dyn BlockEngine>,
        seat: Arc<Seat>,
        links: Vec<Option<Box<dyn Link>>>,
        leader: L,
    ) -> Self {
        let (routes, tally) = (Routes::new(&seat), Tally::new(seat.members[seat.me]));
        let (frontier, finished) = (AtomicU32::new(0), Mutex::default());
        Self { worker, seat, routes, links, leader, tally, frontier, finished }
    }

    /// The leader of the epoch.
    pub fn leader(&self) -> &L {
        &self.leader
    }

    /// Sums of the blocks that were sent to other members and received from them.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Records the number of layers that all members have finished.
    pub fn all_finished(&self, layers: u32) {
        let mut finished = self.finished.lock();
        finished.told = finished.told.max(layers);
        self.report_done(&mut finished);
    }

    /// Records the number of layers of which all blocks of the other members have arrived.
    pub fn all_arrived(&self, layers: u32) {
        let mut finished = self.finished.lock();
        if layers > finished.arrived {
            finished.arrived = layers;
            self.report_done(&mut finished);
        }
    }

    /// Sends the other members the number of layers of which this member has sent all blocks.
    fn tell(&self, layers: u32) {
        if self.frontier.fetch_max(layers, Ordering::Relaxed) < layers {
            let frontier = self.seat.segment.layer(layers);
            self.links.iter().flatten().for_each(|link| link.send_frontier(frontier));
        }
    }

    /// Whether a checkpoint may hold the values of a layer.
    pub fn is_in_checkpoint(&self, layer: Layer) -> bool {
        self.seat.params.contents().is_in_checkpoint(layer)
    }

    /// Returns the frames of a range of layers to be written, and those of its checkpoint, if it has one.
    ///
    /// Returns `None` if the range is not the next one, or not all of its layers are reported.
    pub fn take_sealed(&self, range: Segment) -> Option<(Vec<Frame>, Option<Vec<Frame>>)> {
        let mut finished = self.finished.lock();
        let end = finished.written + range.layers();
        if end > finished.reported || self.seat.segment.range(finished.written..end) != range {
            return None;
        }
        finished.written = end;
        let mut taken = finished.sealed.split_off(&range.first);
        let mut above = taken.split_off(&Layer(range.last.0 + 1));
        finished.sealed.append(&mut above);
        let taken: Vec<Frame> = taken.into_values().flatten().collect();
        // The layers are sealed downward, so the range holds all of those from its first layer on.
        let mut unrounded = finished.checkpoints.split_off(&range.first);
        finished.sealed_bytes -= encoded_bytes(&taken);
        finished.sealed_bytes -= unrounded.values().map(|frames| encoded_bytes(frames)).sum::<u64>();
        self.leader.holds(finished.sealed_bytes);
        let checkpoint = checkpoint_of(&self.seat.params, range).map(|layers| {
            layers.into_iter().filter_map(|layer| unrounded.remove(&layer)).flatten().collect()
        });
        Some((taken, checkpoint))
    }

    fn report_done(&self, finished: &mut Finished) {
        let most = finished.told.saturating_add(self.seat.window_layers).min(finished.arrived);
        while finished.reported < most
            && let Some(part) = finished.done.pop_front()
        {
            finished.reported += 1;
            let LayerSums { sent, received } = self.tally.close(part.layer);
            self.leader.layer_done(LayerPart { sent, received, ..part });
        }
    }

    /// Whether another task may start. If not, finished data must be written first.
    pub fn may_start(&self) -> bool {
        self.leader.may_start()
    }

    /// Sends the result of a block's first stage to the members that need it.
    ///
    /// These are states in the upward pass, and values of afterstates in the downward pass. The caller must call this
    /// function before it marks the task as complete in the plan.
    ///
    /// # Errors
    ///
    /// If the needs of a member cannot be computed.
    pub fn first_stage_done(&self, layer: Layer, lane: Lane) -> Result<(), WorkerError> {
        let members = self.routes.of(layer, lane);
        if members.is_empty() {
            return Ok(());
        }
        let payloads = match self.seat.segment.phase {
            // All members get the same payload.
            Phase::Enumerate => vec![self.worker.states_payload(layer, lane); members.len()],
            Phase::BackUp => self.worker.after_values_payloads(layer, lane, &members)?,
        };
        for (member, payload) in members.into_iter().zip(payloads) {
            let Some(Some(link)) = self.links.get(member) else { continue };
            let checksum = payload.checksum();
            self.tally.send(layer, lane, self.seat.members[member], checksum);
            link.send(layer, lane, checksum, payload);
        }
        Ok(())
    }

    /// Takes the frames of a packed layer, and those of its unrounded values. The caller must call this function before it
    /// marks the task as complete.
    pub fn layer_sealed(&self, layer: Layer, frames: Vec<Frame>, checkpoint: Vec<Frame>) {
        let mut finished = self.finished.lock();
        finished.sealed_bytes += encoded_bytes(&frames) + encoded_bytes(&checkpoint);
        finished.sealed.insert(layer, frames);
        if !checkpoint.is_empty() {
            finished.checkpoints.insert(layer, checkpoint);
        }
        self.leader.holds(finished.sealed_bytes);
    }

    /// Reports the totals of a finished task; `frontier` is the layer that the plan has reached.
    pub fn progressed(&self, totals: &Totals, frontier: Layer) {
        self.leader.progressed(totals, frontier);
        self.tell(self.seat.segment.position(frontier));
    }

    /// Records that this member has finished its blocks of a layer, and has packed them if they are stored.
    ///
    /// The caller reports layers in order, with the plan locked, so this function must be fast.
    pub fn layer_done(&self, layer: Layer, totals: Totals) {
        let segment = self.seat.segment;
        if segment.position(layer) + 1 == segment.layers() {
            // The frontier of a finished plan is its last layer, so `progressed` never sends the end of the segment.
            self.tell(segment.layers());
        }
        // The sums of sent and received blocks are filled in when the layer is reported.
        let part = LayerPart { layer, totals, sent: 0, received: 0 };
        let mut finished = self.finished.lock();
        finished.done.push_back(part);
        self.report_done(&mut finished);
    }
}

/// The layers whose unrounded values are committed with a range; `None` if no solve resumes from them.
fn checkpoint_of(params: &Params, range: Segment) -> Option<[Layer; 2]> {
    let has_one = range.phase == Phase::BackUp && params.contents().has_checkpoint(range.first);
    has_one.then(|| [range.first, range.first.up(1)])
}

/// Bytes that frames occupy in a shard.
fn encoded_bytes(frames: &[Frame]) -> u64 {
    frames.iter().map(Frame::encoded_bytes).sum::<usize>() as u64
}
