//! Where the results of an epoch's crew go: blocks to the peers that need them, layers to the coordinator.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::{LayerPart, Share, WorkerReport};
use exact2048_game::lane::{Step, lanes, layer_range};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params};
use exact2048_run::crew::Host;
use exact2048_solution::{Owners, Phase, Segment};
use exact2048_storage::Frame;
use exact2048_worker::{BytesList, Worker};
use metrics::{counter, gauge};
use rustc_hash::FxHashMap;

use super::links::Link;
use super::observe;
use super::outbox::Outbox;
use super::tally::{LayerSums, Tally};

/// What is finished, on its way.
pub struct Dispatch<V> {
    worker: Arc<Worker<V>>,
    share: Arc<Share>,
    routes: Routes,
    /// The streams to the other members; none to this one.
    links: Vec<Option<Link>>,
    outbox: Arc<Outbox>,
    tally: Arc<Tally>,
    /// Layers that this worker has told its peers it has sent all blocks of.
    frontier: AtomicU32,
    finished: Mutex<Finished>,
}

/// What waits for the coordinator.
#[derive(Default)]
struct Finished {
    /// Packed layers, until they are ordered to be written.
    sealed: BTreeMap<Layer, Vec<Frame>>,
    /// Layers that are done here, and not reported: because that would be too far ahead, or not all blocks of others have
    /// arrived.
    done: VecDeque<LayerPart>,
    /// Layers reported so far.
    reported: u32,
    /// Layers whose shards were ordered so far.
    written: u32,
    /// Layers that all members have finished.
    told: u32,
    /// Layers of which all blocks of the other members have arrived.
    arrived: u32,
}

impl<V: Value> Dispatch<V> {
    /// For the share of the member number `me`.
    pub fn new(
        worker: Arc<Worker<V>>,
        share: Arc<Share>,
        owners: &Owners,
        me: usize,
        links: Vec<Option<Link>>,
        outbox: Arc<Outbox>,
        tally: Arc<Tally>,
    ) -> Self {
        let routes = Routes::new(&share.params, share.segment, owners, me);
        let (frontier, finished) = (AtomicU32::new(0), Mutex::default());
        Self { worker, share, routes, links, outbox, tally, frontier, finished }
    }

    /// Takes in how many layers all members have finished.
    pub fn all_finished(&self, layers: u32) {
        let mut finished = self.lock();
        finished.told = finished.told.max(layers);
        self.report_done(&mut finished);
    }

    /// Takes in of how many layers all blocks of the other members have arrived.
    pub fn all_arrived(&self, layers: u32) {
        let mut finished = self.lock();
        if layers > finished.arrived {
            finished.arrived = layers;
            self.report_done(&mut finished);
        }
    }

    /// Tells the other members how many layers this one has sent all blocks of.
    fn tell(&self, layers: u32) {
        if self.frontier.fetch_max(layers, Ordering::Relaxed) < layers {
            let frontier = self.share.segment.layer(layers);
            self.links.iter().flatten().for_each(|link| link.send_frontier(frontier));
        }
    }

    /// The frames of a range of layers to be written; `None` where they are not the next ones, or not all reported.
    pub fn take_sealed(&self, first: Layer, last: Layer) -> Option<Vec<Frame>> {
        let mut finished = self.lock();
        let end = finished.written + (last.0 - first.0) / 2 + 1;
        if end > finished.reported || self.share.segment.range(finished.written..end).first != first {
            return None;
        }
        finished.written = end;
        let sealed = &mut finished.sealed;
        let mut taken = sealed.split_off(&first);
        let mut above = taken.split_off(&Layer(last.0 + 1));
        sealed.append(&mut above);
        let taken: Vec<Frame> = taken.into_values().flatten().collect();
        gauge!(observe::UNWRITTEN_BYTES).decrement(encoded_bytes(&taken));
        Some(taken)
    }

    fn report_done(&self, finished: &mut Finished) {
        let layers = self.share.segment.layers();
        let most = finished.told.saturating_add(self.share.window_layers).min(finished.arrived);
        while finished.reported < most
            && let Some(part) = finished.done.pop_front()
        {
            finished.reported += 1;
            let LayerSums { sent, received } = self.tally.close(part.layer);
            let part = LayerPart { sent, received, ..part };
            let report = WorkerReport::LayerDone { epoch: self.share.epoch, part };
            if finished.reported == layers {
                self.outbox.report_now(report);
            } else {
                self.outbox.report(report);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Finished> {
        self.finished.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        // The epoch is over: what was not ordered never will be.
        let left: f64 = self.sealed.values().map(|frames| encoded_bytes(frames)).sum();
        gauge!(observe::UNWRITTEN_BYTES).decrement(left);
    }
}

/// Bytes that frames take in a shard, as metrics have it.
fn encoded_bytes(frames: &[Frame]) -> f64 {
    frames.iter().map(Frame::encoded_bytes).sum::<usize>() as f64
}

impl<V: Value> Host for Dispatch<V> {
    fn first_stage_done(&self, layer: Layer, lane: Lane) {
        let mut made: Option<(u64, BytesList)> = None;
        for member in self.routes.of(layer, lane) {
            let Some(link) = &self.links[member] else { continue };
            let (checksum, payload) = made.get_or_insert_with(|| {
                let payload = match self.share.segment.phase {
                    Phase::Enumerate => self.worker.states_payload(layer, lane),
                    Phase::BackUp => self.worker.after_values_payload(layer, lane),
                };
                (payload.checksum(), payload)
            });
            self.tally.send(layer, lane, self.share.members[member].worker, *checksum);
            link.send(layer, lane, *checksum, payload.clone());
        }
    }

    fn layer_sealed(&self, layer: Layer, frames: Vec<Frame>) {
        gauge!(observe::UNWRITTEN_BYTES).increment(encoded_bytes(&frames));
        self.lock().sealed.insert(layer, frames);
    }

    fn progressed(&self, totals: &Totals, frontier: Layer) {
        if totals.states > 0 {
            counter!(observe::STATES, "phase" => self.share.segment.phase.name()).increment(totals.states);
        }
        self.tell(self.share.segment.position(frontier));
    }

    fn layer_done(&self, layer: Layer, totals: Totals) {
        let segment = self.share.segment;
        if segment.position(layer) + 1 == segment.layers() {
            // The plan names no layer after its last one.
            self.tell(segment.layers());
        }
        // What was sent and received is known when it is reported.
        let part = LayerPart { layer, totals, sent: 0, received: 0 };
        let mut finished = self.lock();
        finished.done.push_back(part);
        self.report_done(&mut finished);
    }
}

/// Calls `call` with each lane, a lane that is built on it, and the layers of that one.
fn for_each_use(params: &Params, segment: Segment, mut call: impl FnMut(Lane, Lane, (Layer, Layer))) {
    let all = lanes(params);
    let alive: FxHashMap<Lane, (Layer, Layer)> =
        all.iter().map(|&lane| (lane, layer_range(params, lane))).collect();
    let steps = Step::all(params);
    for &lane in &all {
        for &step in &steps {
            let built_on_it = match segment.phase {
                Phase::Enumerate => lane.after(step, params.large),
                Phase::BackUp => lane.before(step, params.large),
            };
            if let Some((other, &layers)) = built_on_it.and_then(|other| Some((other, alive.get(&other)?))) {
                call(lane, other, layers);
            }
        }
    }
}

/// Which members of a share have blocks for the member number `me`, or need blocks of it. It has a connection to these
/// and no others: a thousand members would have a million.
pub fn neighbours(share: &Share, owners: &Owners, me: usize) -> Vec<bool> {
    let mut neighbours = vec![false; share.members.len()];
    for_each_use(&share.params, share.segment, |lane, other, _| {
        let (from, to) = (owners.owner(lane), owners.owner(other));
        if from == me || to == me {
            (neighbours[from], neighbours[to]) = (true, true);
        }
    });
    neighbours[me] = false;
    neighbours
}

/// Which members need the blocks of a lane.
struct Routes {
    /// For each lane, the members that have lanes built on it, with the layers of those lanes.
    to: FxHashMap<Lane, Vec<(usize, Layer, Layer)>>,
}

impl Routes {
    fn new(params: &Params, segment: Segment, owners: &Owners, me: usize) -> Self {
        let mut to: FxHashMap<Lane, Vec<(usize, Layer, Layer)>> = FxHashMap::default();
        for_each_use(params, segment, |lane, other, (first, last)| {
            let (from, owner) = (owners.owner(lane), owners.owner(other));
            if from == me && owner != me {
                to.entry(lane).or_default().push((owner, first, last));
            }
        });
        Self { to }
    }

    /// The members that need a block, each once.
    fn of(&self, layer: Layer, lane: Lane) -> Vec<usize> {
        let routes = self.to.get(&lane).map(Vec::as_slice).unwrap_or_default();
        let needs = |&&(_, first, last): &&(usize, Layer, Layer)| (first..=last).contains(&layer);
        let mut members: Vec<usize> = routes.iter().filter(needs).map(|&(member, ..)| member).collect();
        members.sort_unstable();
        members.dedup();
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_coordinator::cluster::{JobId, Member, Secret, WorkerId};
    use exact2048_game::{Objective, Precision, Spawn4};

    fn share(board: &str, members: u64) -> Share {
        let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let segment = Segment { phase: Phase::BackUp, first: Layer(4), last: params.last_layer() };
        let member = |id| Member { worker: WorkerId(id), threads: 1, address: String::new() };
        Share {
            job: JobId("job".to_owned()),
            params,
            epoch: 1,
            segment,
            members: (0..members).map(member).collect(),
            window_layers: 4,
            secret: Secret::new([0; 16]),
        }
    }

    #[test]
    fn members_are_neighbours_of_each_other_and_of_few_where_there_are_many() {
        for (board, members) in [("3x2", 4), ("4x3", 1000)] {
            let share = share(board, members);
            let owners = share.owners();
            let of = |me: usize| neighbours(&share, &owners, me);
            let mine = of(0);
            assert!(!mine[0]);
            for (other, _) in mine.iter().enumerate().filter(|(_, is_neighbour)| **is_neighbour) {
                assert!(of(other)[0], "{other} has no way to the first of {members}");
            }
            let links = mine.iter().filter(|is_neighbour| **is_neighbour).count();
            assert!(links > 0 && links <= 60, "{links} of {members}");
            // Whoever gets a block is a neighbour.
            let routes = Routes::new(&share.params, share.segment, &owners, 0);
            assert!(routes.to.values().flatten().all(|&(to, ..)| mine[to]));
        }
    }
}
