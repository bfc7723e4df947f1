//! Where the results of an epoch's crew go: blocks to the peers that need them, layers to the coordinator.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use exact2048_coordinator::cluster::{LayerPart, Owners, Share, WorkerReport};
use exact2048_coordinator::{Action, Phase, Report, Segment};
use exact2048_game::lane::{Step, lanes, layer_range};
use exact2048_game::{Lane, Layer, Params};
use exact2048_run::crew::Host;
use exact2048_storage::Frame;
use exact2048_worker::{BytesList, Value, Worker};
use metrics::{counter, gauge};
use rustc_hash::FxHashMap;

use super::links::Link;
use super::observe;
use super::outbox::Outbox;

/// What is finished, on its way.
pub struct Dispatch<V> {
    worker: Arc<Worker<V>>,
    share: Arc<Share>,
    routes: Routes,
    /// The streams to the other members; none to this one.
    links: Vec<Option<Link>>,
    outbox: Arc<Outbox>,
    /// The layer that this worker has told its peers it is at.
    frontier: AtomicU64,
    finished: Mutex<Finished>,
}

/// What waits for the coordinator.
#[derive(Default)]
struct Finished {
    /// Packed layers, until they are ordered to be written.
    sealed: BTreeMap<Layer, Vec<Frame>>,
    /// Layers that are done, and not reported because that would be too far ahead.
    done: VecDeque<LayerPart>,
    /// Layers reported so far.
    reported: u32,
    /// Layers that all members have finished.
    told: u32,
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
    ) -> Self {
        let routes = Routes::new(&share.params, share.segment, owners, me);
        let (frontier, finished) = (AtomicU64::new(u64::MAX), Mutex::default());
        Self { worker, share, routes, links, outbox, frontier, finished }
    }

    /// Takes in how many layers all members have finished.
    pub fn all_finished(&self, layers: u32) {
        let mut finished = self.lock();
        finished.told = finished.told.max(layers);
        self.report_done(&mut finished);
    }

    /// The frames of packed layers, which then are whoever asks'.
    pub fn take_sealed(&self, first: Layer, last: Layer) -> Vec<Frame> {
        let sealed = &mut self.lock().sealed;
        let mut taken = sealed.split_off(&first);
        let mut above = taken.split_off(&Layer(last.0 + 1));
        sealed.append(&mut above);
        let taken: Vec<Frame> = taken.into_values().flatten().collect();
        gauge!(observe::UNWRITTEN_BYTES).decrement(encoded_bytes(&taken));
        taken
    }

    fn report_done(&self, finished: &mut Finished) {
        let layers = (self.share.segment.last.0 - self.share.segment.first.0) / 2 + 1;
        while finished.reported < finished.told.saturating_add(self.share.window_layers)
            && let Some(part) = finished.done.pop_front()
        {
            finished.reported += 1;
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
        let mut payload: Option<BytesList> = None;
        for member in self.routes.of(layer, lane) {
            let Some(link) = &self.links[member] else { continue };
            let payload = payload.get_or_insert_with(|| match self.share.segment.phase {
                Phase::Enumerate => self.worker.states_payload(layer, lane),
                Phase::BackUp => self.worker.after_values_payload(layer, lane),
            });
            link.send(layer, lane, payload.clone());
        }
    }

    fn layer_sealed(&self, layer: Layer, frames: Vec<Frame>) {
        gauge!(observe::UNWRITTEN_BYTES).increment(encoded_bytes(&frames));
        self.lock().sealed.insert(layer, frames);
    }

    fn progressed(&self, report: &Report, frontier: Layer) {
        if report.states > 0 {
            counter!(observe::STATES, "phase" => self.share.segment.phase.name()).increment(report.states);
        }
        if self.frontier.swap(frontier.0.into(), Ordering::Relaxed) != u64::from(frontier.0) {
            self.links.iter().flatten().for_each(|link| link.send_frontier(frontier));
        }
    }

    fn act(&self, action: Action) {
        let Action::LayerDone { layer, report } = action else { return };
        let Report { states, afterstates, fingerprint, sealed_bytes } = report;
        let mut finished = self.lock();
        finished.done.push_back(LayerPart { layer, states, afterstates, fingerprint, sealed_bytes });
        self.report_done(&mut finished);
    }
}

/// Which members need the blocks of a lane.
struct Routes {
    /// For each lane, the members that have lanes built on it, with the layers of those lanes.
    to: FxHashMap<Lane, Vec<(usize, Layer, Layer)>>,
}

impl Routes {
    fn new(params: &Params, segment: Segment, owners: &Owners, me: usize) -> Self {
        let all = lanes(params);
        let alive: FxHashMap<Lane, (Layer, Layer)> =
            all.iter().map(|&lane| (lane, layer_range(params, lane))).collect();
        let steps = Step::all(params);
        let mut to: FxHashMap<Lane, Vec<(usize, Layer, Layer)>> = FxHashMap::default();
        for &lane in all.iter().filter(|&&lane| owners.owner(lane) == me) {
            for &step in &steps {
                let built_on_it = match segment.phase {
                    Phase::Enumerate => lane.after(step, params.large),
                    Phase::BackUp => lane.before(step, params.large),
                };
                let Some((other, &(first, last))) =
                    built_on_it.and_then(|other| Some((other, alive.get(&other)?)))
                else {
                    continue;
                };
                let owner = owners.owner(other);
                if owner != me {
                    to.entry(lane).or_default().push((owner, first, last));
                }
            }
        }
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
