//! Simulated workers around a real coordinator.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{
    Append, Cluster, ClusterConfig, EpochId, EpochStage, Errand, Event as ClusterEvent, Incarnation, JobId,
    JobState, JobSummary, LayerPart, LeastMemory, Opened, PROTOCOL_VERSION, Pull, PullReply, RunBytes,
    Secret, Secrets, Share, Submission, Ticket, WorkerId, WorkerReport, WriteShard,
};
use exact2048_coordinator::{PassCost, Stage, Totals, Workload};
use exact2048_solution::{Holdings, Phase};

use crate::job::Job;
use crate::model::Model;

enum Event {
    /// A worker has finished a block.
    Done {
        worker: usize,
        lane: usize,
        /// The finished half of its work.
        stage: Stage,
    },
    /// A block has arrived at workers that need it.
    Arrived {
        lane: usize,
        workers: Vec<usize>,
    },
    /// Steps of a worker's call: the worker calls, the call arrives, and the answer arrives.
    Pull(usize),
    Asked(usize, Pull),
    Answered(usize, PullReply),
    /// A shard is in the store.
    Written(usize, WriteShard),
    /// A record is in the journal.
    Appended(Ticket),
}

#[derive(Default)]
struct Worker {
    share: Option<Arc<Share>>,
    free: u32,
    /// Blocks that may start, by position, stage and lane.
    ready: BinaryHeap<Reverse<(usize, Stage, usize)>>,
    /// Number of blocks left at each position.
    left: Vec<u32>,
    /// Lowest position with blocks left.
    frontier: usize,
    /// Number of layers that every worker has finished, as last reported by the coordinator.
    finished_by_all: usize,
    written: usize,
    /// Lowest position, by lane, at which the block of another worker has not arrived.
    here: Vec<usize>,
    first_report: u64,
    reports: Vec<WorkerReport>,
    link_free: Duration,
    writing: Option<WriteShard>,
}

/// Owners of the current pass, and the progress of each lane.
struct Pass {
    epoch: EpochId,
    phase: Phase,
    owner: Vec<usize>,
    /// Position of each lane's lowest block with an unfinished first stage, and with an unfinished second stage.
    first_stage: Vec<usize>,
    second_stage: Vec<usize>,
    /// Number of needs, in their order, that the block of the unfinished second stage has found present.
    found: Vec<usize>,
    busy: Vec<bool>,
    /// Number of states and of stored bytes in every worker's layers.
    parts: Vec<Vec<(f64, f64)>>,
    started: Duration,
    /// Time of the last finished block.
    computed: Duration,
}

pub struct World<'a> {
    job: &'a Job,
    model: &'a Model,
    now: Duration,
    cluster: Cluster,
    workload: Arc<Workload>,
    workers: Vec<Worker>,
    pass: Option<Pass>,
    events: BTreeMap<(Duration, u64), Event>,
    next_event: u64,
    summary: Summary,
}

/// Results of one simulation.
#[derive(Default)]
pub struct Summary {
    workers: usize,
    ideal_s: f64,
    busiest_s: f64,
    passes: Vec<f64>,
    wall_s: f64,
    store_s: f64,
    work_s: f64,
    pulls: u64,
    pull_s: f64,
    pushes: u64,
    /// Pushed bytes of the upward and of the downward pass.
    pushed_bytes: [f64; 2],
    appends: u64,
    shards: u64,
    stored_bytes: f64,
}

impl<'a> World<'a> {
    pub fn new(job: &'a Job, model: &'a Model, workers: usize) -> Self {
        // The simulation has no attackers.
        let secrets = Secrets::new(|| Secret::new([0; 16]));
        let mut world = Self {
            job,
            model,
            now: Duration::ZERO,
            cluster: Cluster::new(EpochId(1), ClusterConfig::default(), secrets, Duration::ZERO),
            workload: Arc::new(Workload::new(&job.params)),
            workers: (0..workers).map(|_| Worker::default()).collect(),
            pass: None,
            events: BTreeMap::new(),
            next_event: 0,
            summary: Summary { workers, ..Summary::default() },
        };
        for worker in 0..workers {
            // Worker starts are spread over the hold time of answers, as in a cluster that has run for a while.
            world.at(Duration::from_millis(worker as u64 % 100), Event::Pull(worker));
        }
        world
    }

    /// Runs the job to its end.
    pub fn run(mut self) -> Summary {
        let submission = Submission {
            has_run: false,
            job: JobId("job".to_owned()),
            params: self.job.params.clone(),
            disk_limit: None,
            least_memory: None,
            state: JobState::Queued,
            summary: JobSummary::default(),
        };
        self.cluster.submit(self.now, submission).expect("the first job");
        let [Errand::Open { ticket, .. }] = self.cluster.take_errands()[..] else {
            panic!("expected an errand to open the run")
        };
        let opened = Opened {
            params: self.job.params.clone(),
            holdings: Holdings::default(),
            stored: RunBytes::default(),
            missing_bytes: 0,
            least_memory: Arc::new(LeastMemory::new(Vec::new())),
            workload: Arc::clone(&self.workload),
            cost: Arc::new(PassCost::new(&self.job.params, 1 << 18)),
        };
        self.cluster.opened(self.now, ticket, opened);
        while self.summary.passes.len() < 2 {
            let Some(((time, _), event)) = self.events.pop_first() else { break };
            self.now = time;
            self.happen(event);
        }
        self.summary.wall_s = self.summary.passes.iter().sum();
        let threads = f64::from(self.model.threads) * self.workers.len() as f64;
        self.summary.ideal_s = self.summary.work_s / threads;
        self.summary
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.next_event += 1;
        self.events.insert((time, self.next_event), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Done { worker, lane, stage } => self.done(worker, lane, stage),
            Event::Arrived { lane, workers } => {
                workers.iter().for_each(|&worker| self.workers[worker].here[lane] += 1);
                self.wake_dependents(lane, |owner| workers.contains(&owner));
                workers.iter().for_each(|&worker| self.start_blocks(worker));
            }
            Event::Pull(worker) => {
                let pull = self.pull(worker);
                self.at(self.now + self.model.latency(), Event::Asked(worker, pull));
            }
            Event::Asked(worker, pull) => {
                self.summary.pulls += 1;
                let clock = Instant::now();
                let reply = self.cluster.pull(self.now, &pull).expect("a pull of this version");
                self.summary.pull_s += clock.elapsed().as_secs_f64();
                self.act();
                self.at(self.now + self.model.latency(), Event::Answered(worker, reply));
            }
            Event::Answered(worker, reply) => self.hear(worker, reply),
            Event::Written(worker, shard) => {
                self.workers[worker].writing = None;
                self.workers[worker]
                    .reports
                    .push(WorkerReport::ShardWritten { shard, record: String::new() });
            }
            Event::Appended(ticket) => {
                self.cluster.committed(self.now, ticket, RunBytes::default());
                self.act();
            }
        }
    }

    fn act(&mut self) {
        for event in self.cluster.take_events() {
            if let ClusterEvent::EpochFailed { reason, .. } = event {
                panic!("an epoch failed at {:?}: {reason}", self.now);
            }
        }
        for append in self.cluster.take_appends() {
            self.summary.appends += 1;
            self.at(self.now + self.model.store_request(0.0), Event::Appended(append.ticket()));
            if let Append::Commit { commit, .. } = append {
                let done = match commit.phase {
                    Phase::Enumerate => commit.last == self.job.params.last_layer(),
                    Phase::BackUp => commit.first.0 == 4,
                };
                if let Some(pass) = self.pass.as_ref().filter(|_| done) {
                    self.summary.passes.push((self.now - pass.started).as_secs_f64());
                    self.summary.store_s += (self.now - pass.computed).as_secs_f64();
                }
            }
        }
    }

    fn pull(&mut self, worker: usize) -> Pull {
        let state = &self.workers[worker];
        Pull {
            version: PROTOCOL_VERSION,
            worker: WorkerId(worker as u64),
            incarnation: Incarnation(1),
            threads: self.model.threads,
            memory_bytes: 64 << 30,
            address: format!("https://worker-{worker}.cluster.example.org:7001"),
            leaving: false,
            epoch: state.share.as_ref().map(|share| share.epoch),
            stage: EpochStage::Working,
            first_report: state.first_report,
            reports: state.reports.clone(),
        }
    }

    fn hear(&mut self, worker: usize, reply: PullReply) {
        let state = &mut self.workers[worker];
        let acknowledged = (reply.acknowledged - state.first_report) as usize;
        state.reports.drain(..acknowledged);
        state.first_report = reply.acknowledged;
        self.at(self.now + reply.hold, Event::Pull(worker));
        let state = &mut self.workers[worker];
        if reply.withdrawn.is_some() {
            state.share = None;
        }
        if let Some(progress) = reply.progress {
            state.finished_by_all = progress.finished_layers as usize;
        }
        if let Some(shard) = reply.write.filter(|_| state.writing.is_none()) {
            self.write(worker, shard);
        }
        if let Some(share) = reply.share {
            self.begin(worker, share);
        }
        self.start_blocks(worker);
    }

    fn write(&mut self, worker: usize, shard: WriteShard) {
        let Some(pass) = &self.pass else { return };
        let layers = ((shard.last.0 - shard.first.0) / 2 + 1) as usize;
        let state = &mut self.workers[worker];
        let first = self.job.turned(
            pass.phase,
            match pass.phase {
                Phase::Enumerate => (shard.first.0 as usize - 4) / 2,
                Phase::BackUp => (shard.last.0 as usize - 4) / 2,
            },
        );
        if first != state.written {
            return;
        }
        let bytes: f64 = pass.parts[worker][first..first + layers].iter().map(|part| part.1).sum();
        state.written += layers;
        state.writing = Some(shard);
        self.summary.shards += 1;
        self.summary.stored_bytes += bytes;
        self.at(self.now + self.model.store_request(bytes), Event::Written(worker, shard));
    }

    fn begin(&mut self, worker: usize, share: Arc<Share>) {
        if self.pass.as_ref().is_none_or(|pass| pass.epoch != share.epoch) {
            self.begin_pass(&share);
        }
        let state = &mut self.workers[worker];
        state.share = Some(share);
        state.free = self.model.slots();
        state.finished_by_all = 0;
        state.written = 0;
        for lane in 0..self.job.lanes.len() {
            if self.pass.as_ref().is_some_and(|pass| pass.owner[lane] == worker) {
                self.queue_if_ready(lane);
            }
        }
        self.report_layers(worker);
    }

    fn begin_pass(&mut self, share: &Share) {
        let (job, phase, owners) = (self.job, share.segment.phase, share.owners());
        let owner: Vec<usize> = job.lanes.iter().map(|blocks| owners.owner(blocks.lane)).collect();
        let lanes = job.lanes.len();
        let next: Vec<usize> = (0..lanes).map(|lane| job.positions(phase, lane).start).collect();
        for state in &mut self.workers {
            state.left = vec![0; job.layers];
            state.frontier = 0;
            state.here.clone_from(&next);
        }
        let mut parts = vec![vec![(0.0, 0.0); job.layers]; self.workers.len()];
        let mut work = vec![0.0; self.workers.len()];
        for lane in 0..lanes {
            let owner = owner[lane];
            for position in job.positions(phase, lane) {
                let states = job.block(phase, lane, position);
                let is_kept = job.params.contents().kept().keeps(job.layer(phase, position));
                let stored = self.model.stored_bytes(phase, is_kept, states);
                let part: &mut (f64, f64) = &mut parts[owner][position];
                *part = (part.0 + states, part.1 + stored);
                work[owner] += self.model.work(phase, states);
                self.workers[owner].left[position] += 1;
            }
        }
        self.summary.busiest_s += work.iter().copied().fold(0.0, f64::max) / f64::from(self.model.threads);
        self.summary.work_s += work.iter().sum::<f64>();
        let busy = vec![false; lanes];
        let started = self.now;
        self.pass = Some(Pass {
            epoch: share.epoch,
            phase,
            owner,
            first_stage: next.clone(),
            second_stage: next,
            found: vec![0; lanes],
            busy,
            parts,
            started,
            computed: started,
        });
    }

    fn queue_if_ready(&mut self, lane: usize) {
        let Some(pass) = &mut self.pass else { return };
        let (worker, position) = (pass.owner[lane], pass.second_stage[lane]);
        if pass.busy[lane] || self.workers[worker].share.is_none() {
            return;
        }
        if !self.job.positions(pass.phase, lane).contains(&position) {
            return;
        }
        let stage = if pass.first_stage[lane] == position { Stage::First } else { Stage::Second };
        if stage == Stage::Second {
            let (needs, _) = self.job.needs(pass.phase, lane);
            let is_here = |&other: &usize| {
                let own = pass.owner[other] == worker;
                let next = if own { pass.first_stage[other] } else { self.workers[worker].here[other] };
                next > position || !self.job.positions(pass.phase, other).contains(&position)
            };
            pass.found[lane] += needs[pass.found[lane]..].iter().take_while(|need| is_here(need)).count();
            if pass.found[lane] < needs.len() {
                return;
            }
        }
        pass.busy[lane] = true;
        self.workers[worker].ready.push(Reverse((position, stage, lane)));
    }

    /// Queues the blocks of these owners that waited for the lane alone.
    fn wake_dependents(&mut self, lane: usize, is_owner: impl Fn(usize) -> bool) {
        let job = self.job;
        let Some(phase) = self.pass.as_ref().map(|pass| pass.phase) else { return };
        for &other in job.needs(phase, lane).1 {
            let Some(pass) = &self.pass else { return };
            let missing = job.needs(phase, other).0.get(pass.found[other]);
            if missing == Some(&lane) && is_owner(pass.owner[other]) {
                self.queue_if_ready(other);
            }
        }
    }

    fn start_blocks(&mut self, worker: usize) {
        let (Some(pass), Some(share)) = (&self.pass, &self.workers[worker].share) else { return };
        let (phase, window) = (pass.phase, share.window_layers as usize);
        loop {
            let state = &mut self.workers[worker];
            let Some(&Reverse((position, stage, lane))) = state.ready.peek().filter(|_| state.free > 0)
            else {
                return;
            };
            let furthest =
                (state.frontier + self.model.run_ahead as usize).min(state.finished_by_all + window - 1);
            if position > furthest {
                return;
            }
            state.ready.pop();
            state.free -= 1;
            // Each stage takes about half of the time.
            let time = self.model.block(phase, self.job.block(phase, lane, position)) / 2;
            self.at(self.now + time, Event::Done { worker, lane, stage });
        }
    }

    fn done(&mut self, worker: usize, lane: usize, stage: Stage) {
        let Some(pass) = &mut self.pass else { return };
        let position = pass.second_stage[lane];
        pass.computed = self.now;
        pass.busy[lane] = false;
        self.workers[worker].free += 1;
        match stage {
            Stage::First => {
                pass.first_stage[lane] += 1;
                self.push(worker, lane, position);
                self.wake_dependents(lane, |owner| owner == worker);
            }
            Stage::Second => {
                pass.second_stage[lane] += 1;
                pass.found[lane] = 0;
                self.workers[worker].left[position] -= 1;
                self.report_layers(worker);
            }
        }
        self.queue_if_ready(lane);
        self.start_blocks(worker);
    }

    /// Sends a block to the owners of lanes that need it.
    fn push(&mut self, worker: usize, lane: usize, position: usize) {
        let (job, Some(pass)) = (self.job, &self.pass) else { return };
        let phase = pass.phase;
        let (_, needed_by) = job.needs(phase, lane);
        // A worker that needs any block of the lane receives an event for every position. So `here` can count events.
        let mut pushed: BTreeMap<usize, Option<f64>> = BTreeMap::new();
        for &other in needed_by {
            let owner = pass.owner[other];
            if owner == worker {
                continue;
            }
            let bytes = pushed.entry(owner).or_default();
            if !job.positions(phase, other).contains(&position) {
                continue;
            }
            let pair = (job.lanes[other].lane, job.lanes[lane].lane);
            *bytes = Some(match phase {
                Phase::Enumerate => self.model.pushed_states(job.block(phase, lane, position)),
                Phase::BackUp => {
                    let states = job.block(phase, other, position);
                    bytes.unwrap_or_default() + self.model.pushed_values(pair, job.params.split(), states)
                }
            });
        }
        // Transfers that end nearly together share an event, which is at most a tenth of the latency late.
        let most = self.model.latency() / 10;
        let (mut workers, mut since, mut last) = (Vec::new(), self.now, self.now);
        for (target, bytes) in pushed {
            let state = &mut self.workers[worker];
            state.link_free = state.link_free.max(self.now);
            if let Some(bytes) = bytes {
                state.link_free += self.model.transfer(bytes);
                self.summary.pushes += 1;
                self.summary.pushed_bytes[self.summary.passes.len().min(1)] += bytes;
            }
            let ended = state.link_free;
            if workers.is_empty() {
                since = ended;
            } else if ended > since + most {
                let workers = std::mem::take(&mut workers);
                self.at(last + self.model.latency(), Event::Arrived { lane, workers });
                since = ended;
            }
            workers.push(target);
            last = ended;
        }
        if !workers.is_empty() {
            self.at(last + self.model.latency(), Event::Arrived { lane, workers });
        }
    }

    fn report_layers(&mut self, worker: usize) {
        let workers = self.workers.len() as u64;
        let (Some(pass), state) = (&self.pass, &mut self.workers[worker]) else { return };
        while state.left.get(state.frontier) == Some(&0) {
            let (_, bytes) = pass.parts[worker][state.frontier];
            let layer = self.job.layer(pass.phase, state.frontier);
            // The coordinator refuses more states than entries, so every worker reports the same share of these.
            let states = self.workload.entries(layer, layer.up(1)) as u64 / workers;
            let part = LayerPart {
                layer,
                totals: Totals { states, afterstates: states, fingerprint: 1, sealed_bytes: bytes as u64 },
                sent: 0,
                received: 0,
            };
            state.reports.push(WorkerReport::LayerDone { epoch: pass.epoch, part });
            state.frontier += 1;
        }
    }
}

impl Summary {
    pub const HEAD: &str = "| Workers | Time | Storing alone | All threads always busy | Busiest owner always busy \
                            | Threads busy | Pulls per second | Time per pull | Pushes | Pushed up | Pushed down | Shards | Appends \
                            | Stored | Memory |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

    /// Number of busy threads, on average.
    pub fn busy_threads(&self) -> f64 {
        self.work_s / self.wall_s
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "| {} | {} | {} | {} | {} | {:.1} | {:.0} | {:.1} µs | {:.2e} | {:.2} TB | {:.2} TB | {} | {} | {:.2} TB | {} MiB |",
            self.workers,
            time(self.wall_s),
            time(self.store_s),
            time(self.ideal_s),
            time(self.busiest_s),
            self.busy_threads(),
            self.pulls as f64 / self.wall_s,
            1e6 * self.pull_s / self.pulls as f64,
            self.pushes as f64,
            self.pushed_bytes[0] * 1e-12,
            self.pushed_bytes[1] * 1e-12,
            self.shards,
            self.appends,
            self.stored_bytes * 1e-12,
            most_memory_kib() / 1024,
        )
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        0.0..100.0 => format!("{seconds:.1} s"),
        100.0..6000.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.2} h", seconds / 3600.0),
    }
}

/// Returns the peak resident set of this process, in KiB.
fn most_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
