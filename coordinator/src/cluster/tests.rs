//! Tests of rules about time and blame. A simulation of a whole job would not detect errors in these rules,
//! because the job succeeds either way.

mod blame;
mod presence;
mod short;
mod turns;

use std::sync::Arc;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, Holdings, Phase, Segment};

use super::*;
use crate::pass_cost::PassCost;
use crate::task::Totals;
use crate::workload::Workload;

fn params() -> Params {
    Params::small("2x2")
}

fn submission(name: &str) -> Submission {
    Submission {
        job: JobId(name.to_owned()),
        params: params(),
        disk_limit: None,
        least_memory: Some(Arc::new(LeastMemory::new(vec![(1, 100)]))),
        state: JobState::Queued,
        summary: JobSummary::default(),
        has_run: false,
    }
}

/// Returns the cost of the jobs' passes.
fn cost() -> PassCost {
    PassCost::new(&params(), 1 << 18)
}

/// Returns the contents of an empty run that needs `least_bytes` of memory.
fn empty(least_bytes: u64) -> Opened {
    Opened {
        params: params(),
        holdings: Holdings::default(),
        stored: RunBytes::default(),
        missing_bytes: 0,
        least_memory: Arc::new(LeastMemory::new(vec![(1, least_bytes)])),
        workload: Arc::new(Workload::new(&params())),
        cost: Arc::new(cost()),
    }
}

/// Opens the requested runs, all empty, and returns the remaining claims.
fn open_runs(cluster: &mut Cluster, now: Duration) -> Vec<Claim> {
    let mut claims = Vec::new();
    for errand in cluster.take_errands() {
        match errand {
            Errand::Open { ticket, .. } => cluster.opened(now, ticket, empty(100)),
            Errand::Examine(claim) => claims.push(claim),
            Errand::Look(job) => cluster.store_checked(now, &job, StoreCheck::There),
        }
    }
    claims
}

/// Submits a job, and opens its run at once when its turn starts.
fn submit(cluster: &mut Cluster, now: Duration, name: &str) {
    cluster.submit(now, submission(name)).unwrap();
    open_runs(cluster, now);
}

/// A worker that carries out all orders immediately.
struct Worker {
    id: WorkerId,
    epoch: Option<Arc<Share>>,
    stage: EpochStage,
    /// Whether the worker only pulls, and neither enters nor leaves epochs.
    hangs: bool,
    first_report: u64,
    reports: Vec<WorkerReport>,
}

impl Worker {
    fn new(id: u64) -> Self {
        Self {
            id: WorkerId(id),
            epoch: None,
            stage: EpochStage::Working,
            hangs: false,
            first_report: 0,
            reports: Vec::new(),
        }
    }

    fn message(&mut self) -> Pull {
        Pull {
            version: PROTOCOL_VERSION,
            worker: self.id,
            incarnation: Incarnation(1),
            threads: 1,
            memory_bytes: 1000,
            address: String::new(),
            leaving: false,
            epoch: self.epoch.as_ref().map(|share| share.epoch),
            stage: self.stage,
            first_report: self.first_report,
            reports: std::mem::take(&mut self.reports),
        }
    }

    fn pull(&mut self, cluster: &mut Cluster, now: Duration) -> PullReply {
        let pull = self.message();
        let reply = cluster.pull(now, &pull).unwrap();
        self.first_report = reply.acknowledged;
        if self.hangs {
            return reply;
        }
        if reply.withdrawn.is_some() {
            self.epoch = None;
        }
        if let Some(share) = &reply.share {
            self.epoch = Some(share.clone());
        }
        if let Some(shard) = reply.write {
            self.reports.push(WorkerReport::ShardWritten { shard, record: String::new() });
        }
        reply
    }

    fn finish(&mut self, layers: impl Iterator<Item = u32>) {
        let epoch = self.epoch.as_ref().unwrap().epoch;
        for layer in layers {
            let part = LayerPart {
                layer: Layer(layer),
                totals: Totals { states: 1, afterstates: 1, fingerprint: 1, sealed_bytes: 1 },
                sent: 0,
                received: 0,
            };
            self.reports.push(WorkerReport::LayerDone { epoch, part });
        }
    }

    fn fail(&mut self, failure: WorkerFailure) {
        let epoch = self.epoch.take().map(|share| share.epoch);
        self.reports.push(WorkerReport::Failed { epoch, failure });
    }
}

fn secrets() -> Secrets {
    Secrets::new(|| Secret::new([7; 16]))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Returns a cluster with workers that registered long ago.
fn cluster(workers: u64) -> (Cluster, Vec<Worker>, Duration) {
    let mut cluster = Cluster::new(EpochId(1), ClusterConfig::default(), secrets(), Duration::ZERO);
    let mut workers: Vec<Worker> = (1..=workers).map(Worker::new).collect();
    let now = seconds(3.0);
    for worker in &mut workers {
        worker.pull(&mut cluster, seconds(1.0));
        worker.pull(&mut cluster, now);
    }
    (cluster, workers, now)
}

#[test]
fn registered_workers_begin_at_once() {
    let (mut cluster, mut workers, now) = cluster(2);
    submit(&mut cluster, now, "job");
    for worker in &mut workers {
        let share = worker.pull(&mut cluster, now).share.expect("a share without any wait");
        assert_eq!(share.members.len(), 2);
    }
}

/// Expects a single errand to open a run. Returns its ticket, the job, and the multiple of the usual headroom.
fn to_open(cluster: &mut Cluster) -> (OpenTicket, JobId, u64) {
    match &cluster.take_errands()[..] {
        [Errand::Open { ticket, job, times, .. }] => (*ticket, job.clone(), *times),
        errands => panic!("{errands:?}"),
    }
}

/// Parameters that do not affect results may differ from the submitted parameters.
#[test]
fn workers_get_the_parameters_of_an_existing_run() {
    let (mut cluster, mut workers, now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    let found = params().to_builder().large(params().split().large() + 1).build().unwrap();
    let (ticket, ..) = to_open(&mut cluster);
    cluster.opened(now, ticket, Opened { params: found.clone(), ..empty(100) });
    let share = workers[0].pull(&mut cluster, now).share.unwrap();
    assert_eq!(share.params, found);
}

#[test]
fn workers_that_start_together_share_an_epoch() {
    let mut cluster = Cluster::new(EpochId(1), ClusterConfig::default(), secrets(), Duration::ZERO);
    submit(&mut cluster, Duration::ZERO, "job");
    let (mut first, mut second) = (Worker::new(1), Worker::new(2));
    assert_eq!(first.pull(&mut cluster, seconds(1.0)).share, None);
    assert_eq!(second.pull(&mut cluster, seconds(1.5)).share, None);
    assert_eq!(first.pull(&mut cluster, seconds(2.0)).share, None);
    let share = first.pull(&mut cluster, seconds(2.6)).share.unwrap();
    assert_eq!(share.members.len(), 2);
}

/// The second pass begins without waiting for a tick, even if a worker has just joined.
#[test]
fn the_downward_pass_begins_with_the_last_commit_of_the_upward_pass() {
    let (mut cluster, mut workers, now) = cluster(2);
    submit(&mut cluster, now, "job");
    for worker in &mut workers {
        worker.pull(&mut cluster, now);
        worker.finish((4..=params().last_layer().0).step_by(2));
        worker.pull(&mut cluster, now);
    }
    // The first worker pulled before the second was done. So the first worker gets its order only now, and both
    // carry it out.
    workers[0].pull(&mut cluster, now);
    workers[0].pull(&mut cluster, now);
    workers[1].pull(&mut cluster, now);
    let mut late = Worker::new(3);
    assert_eq!(late.pull(&mut cluster, now).share, None);
    let appends = cluster.take_appends();
    let [Append::Commit { ticket, .. }] = appends.as_slice() else { panic!("{appends:?}") };
    cluster.committed(now, *ticket, RunBytes::default());
    for worker in &mut workers {
        let reply = worker.pull(&mut cluster, now);
        let share = reply.share.expect("the next share in the first reply after the commit");
        let all = Segment { phase: Phase::BackUp, first: Layer(4), last: params().last_layer() };
        assert_eq!((share.segment, share.members.len()), (all, 3));
    }
}

#[test]
fn the_epoch_of_a_lost_worker_is_over_after_its_lease() {
    let (mut cluster, mut workers, now) = cluster(2);
    submit(&mut cluster, now, "job");
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    let first = workers[0].epoch.clone().unwrap();
    let lease = ClusterConfig::default().lease;
    for part in 1..=4 {
        assert_eq!(workers[0].pull(&mut cluster, now + lease * part / 4).withdrawn, None);
    }
    let reply = workers[0].pull(&mut cluster, now + lease + seconds(0.1));
    assert_eq!(reply.withdrawn, Some(first.epoch));
    assert_eq!(reply.share.map(|share| share.members.len()), Some(1), "the other worker continues alone");
}

#[test]
fn a_cancelled_epoch_is_withdrawn() {
    let (mut cluster, mut workers, now) = cluster(1);
    submit(&mut cluster, now, "job");
    workers[0].pull(&mut cluster, now);
    let epoch = workers[0].epoch.clone().unwrap().epoch;
    cluster.cancel(now, &JobId("job".to_owned())).unwrap();
    let reply = workers[0].pull(&mut cluster, now);
    assert_eq!((reply.withdrawn, reply.share), (Some(epoch), None));
}

/// Work finished before a cancellation is committed first, even if it lies beyond the range being written.
#[test]
fn work_finished_before_a_cancel_is_committed() {
    let (mut cluster, mut workers, now) = cluster(1);
    submit(&mut cluster, now, "job");
    let worker = &mut workers[0];
    worker.pull(&mut cluster, now);
    let epoch = worker.epoch.clone().unwrap().epoch;
    worker.finish((4..=8).step_by(2));
    let now = now + ClusterConfig::default().commit_interval;
    let first = worker.pull(&mut cluster, now).write.expect("it is time for a commit");
    assert_eq!((first.first, first.last), (Layer(4), Layer(8)));
    worker.finish((10..=20).step_by(2));
    // This worker's report of the ordered shard is delayed.
    let held_back = worker.reports.remove(0);
    worker.pull(&mut cluster, now);
    cluster.cancel(now, &JobId("job".to_owned())).unwrap();
    worker.finish((22..=24).step_by(2));
    worker.reports.push(held_back);
    let mut committed = Vec::new();
    for _ in 0..10 {
        let reply = worker.pull(&mut cluster, now);
        for append in cluster.take_appends() {
            if let Append::Commit { ticket, commit, .. } = append {
                committed.push((commit.first, commit.last));
                cluster.committed(now, ticket, RunBytes::default());
            }
        }
        if reply.withdrawn == Some(epoch) {
            break;
        }
    }
    assert_eq!(worker.epoch, None, "the epoch is over after the last commit");
    assert_eq!(committed[0], (Layer(4), Layer(8)));
    let last = committed.last().unwrap().1;
    assert!(last >= Layer(20), "{committed:?}");
}

#[test]
fn epochs_of_a_later_coordinator_are_not_withdrawn() {
    let (mut later, mut workers, now) = cluster(1);
    submit(&mut later, now, "job");
    submit(&mut later, now, "second job");
    workers[0].pull(&mut later, now);
    let mut earlier = Cluster::new(EpochId(0), ClusterConfig::default(), secrets(), now);
    let epoch = workers[0].epoch.clone().unwrap().epoch;
    let pull = Pull {
        version: PROTOCOL_VERSION,
        worker: WorkerId(1),
        incarnation: Incarnation(1),
        threads: 1,
        memory_bytes: 1000,
        address: String::new(),
        leaving: false,
        epoch: Some(epoch),
        stage: EpochStage::Working,
        first_report: 0,
        reports: Vec::new(),
    };
    assert_eq!(earlier.pull(now, &pull), Err(Refusal::Superseded { epoch }));
    let other = Pull { version: PROTOCOL_VERSION + 1, epoch: None, ..pull };
    let version = Refusal::Version { expected: PROTOCOL_VERSION, got: PROTOCOL_VERSION + 1 };
    assert_eq!(earlier.pull(now, &other), Err(version));
}

#[test]
fn appends_are_requested_one_at_a_time_and_repeated_unchanged() {
    let (mut cluster, mut workers, now) = cluster(1);
    submit(&mut cluster, now, "job");
    workers[0].pull(&mut cluster, now);
    workers[0].finish((4..=params().last_layer().0).step_by(2));
    (0..2).for_each(|_| drop(workers[0].pull(&mut cluster, now)));
    let first = cluster.take_appends();
    let [Append::Commit { ticket, .. }] = first.as_slice() else { panic!("{first:?}") };
    cluster.tick(now + seconds(2.0));
    assert_eq!(cluster.take_appends(), [], "not before it has failed");
    cluster.append_failed(now + seconds(2.0), *ticket, AppendFailure::Store("away".to_owned()));
    assert_eq!(cluster.take_appends(), [], "not at once");
    cluster.tick(now + seconds(3.0));
    assert_eq!(cluster.take_appends(), first);
    cluster.fence(now + seconds(3.0));
    assert_eq!(cluster.submit(now + seconds(3.0), submission("other")), Err(ClusterError::Fenced));
}

#[test]
fn the_remaining_time_is_estimated_in_both_passes() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    submit(&mut cluster, now, "job");
    let worker = &mut workers[0];
    let mut job = |now, worker: &mut Worker| {
        worker.pull(&mut cluster, now);
        let status = cluster.status(now).jobs.remove(0);
        if let [Append::Commit { ticket, .. }] = cluster.take_appends().as_slice() {
            cluster.committed(now, *ticket, RunBytes::default());
        }
        status
    };
    let begun = job(now, worker);
    assert_eq!((begun.done, begun.eta), (0.0, None), "the speed is unknown");
    let last = params().last_layer().0;
    let cost = cost();
    let [whole, later] = [Phase::Enumerate, Phase::BackUp].map(|phase| cost.of_pass(phase));
    for layer in (4..=50).step_by(2) {
        now += seconds(1.0);
        worker.finish([layer].into_iter());
        let up = job(now, worker);
        let done = cost.of_layers(Phase::Enumerate, Layer(4), Layer(layer + 2)) / whole;
        assert!((up.done - done).abs() < 1e-9, "{} of the work, not {done}", up.done);
        let Some(eta) = up.eta else {
            assert!(done * whole < 0.02 * (whole + later), "no estimate at layer {layer}");
            continue;
        };
        let left = (1.0 - done + later / whole) / (1.0 - done);
        let found = eta.job.as_secs_f64() / eta.pass.as_secs_f64();
        assert!((found - left).abs() < 1e-6, "the job takes {found} times what the pass takes, not {left}");
    }
    worker.finish((52..=last).step_by(2));
    (0..4).for_each(|_| drop(job(now, worker)));
    // In this test every layer has one state.
    worker.finish((4..=last).rev().step_by(2).take(20));
    now += seconds(1.0);
    let down = job(now, worker);
    assert_eq!((down.phase, down.states_done, down.states_total), (Some(Phase::BackUp), 20, Some(29)));
    let done = 1.0 - cost.of_layers(Phase::BackUp, Layer(4), Layer(last - 38)) / later;
    assert!((down.done - done).abs() < 1e-9, "{} of the work, not {done}", down.done);
    let eta = down.eta.unwrap();
    assert_eq!(eta.pass, eta.job);
    assert!(eta.pass > Duration::ZERO, "{eta:?}");
}

/// Lets all workers pull twice a second until this time.
fn pull_until(cluster: &mut Cluster, workers: &mut [Worker], now: &mut Duration, until: Duration) {
    while *now < until {
        *now += seconds(0.5);
        workers.iter_mut().for_each(|worker| drop(worker.pull(cluster, *now)));
        open_runs(cluster, *now);
    }
}
