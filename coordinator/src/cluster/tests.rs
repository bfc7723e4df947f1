//! Rules that are about time and blame: what a whole simulation would pass over, as it ends well either way.

use std::sync::Arc;

use exact2048_game::{Objective, Params, Precision, Spawn4};

use super::*;
use crate::progress::Segment;
use crate::workload::Workload;

fn params() -> Params {
    let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
    Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap()
}

fn submission(name: &str) -> Submission {
    Submission {
        job: JobId(name.to_owned()),
        params: params(),
        commits: Vec::new(),
        committed_bytes: 0,
        least_memory: LeastMemory::new(vec![(1, 100)]),
    }
}

/// A worker that does at once whatever it is told.
struct Worker {
    id: WorkerId,
    epoch: Option<Arc<Share>>,
    first_report: u64,
    reports: Vec<WorkerReport>,
}

impl Worker {
    fn new(id: u64) -> Self {
        Self { id: WorkerId(id), epoch: None, first_report: 0, reports: Vec::new() }
    }

    fn pull(&mut self, cluster: &mut Cluster, now: Duration) -> PullReply {
        let pull = Pull {
            version: PROTOCOL_VERSION,
            worker: self.id,
            incarnation: 1,
            threads: 1,
            memory_bytes: 1000,
            address: String::new(),
            leaving: false,
            epoch: self.epoch.as_ref().map(|share| share.epoch),
            stage: EpochStage::Working,
            first_report: self.first_report,
            reports: std::mem::take(&mut self.reports),
        };
        let reply = cluster.pull(now, &pull).unwrap();
        self.first_report = reply.acknowledged;
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
                states: 1,
                afterstates: 1,
                fingerprint: 1,
                sealed_bytes: 1,
                sent: 0,
                received: 0,
            };
            self.reports.push(WorkerReport::LayerDone { epoch, part });
        }
    }

    fn fail(&mut self, failure: Failure) {
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

/// A cluster with workers that have long been there.
fn cluster(workers: u64) -> (Cluster, Vec<Worker>, Duration) {
    let mut cluster = Cluster::new(1, Config::default(), secrets(), Duration::ZERO);
    let mut workers: Vec<Worker> = (1..=workers).map(Worker::new).collect();
    let now = seconds(3.0);
    for worker in &mut workers {
        worker.pull(&mut cluster, seconds(1.0));
        worker.pull(&mut cluster, now);
    }
    (cluster, workers, now)
}

#[test]
fn workers_that_are_there_begin_at_once() {
    let (mut cluster, mut workers, now) = cluster(2);
    cluster.submit(now, submission("job")).unwrap();
    for worker in &mut workers {
        let share = worker.pull(&mut cluster, now).share.expect("a share without any wait");
        assert_eq!(share.members.len(), 2);
    }
}

#[test]
fn workers_that_start_together_are_waited_for() {
    let mut cluster = Cluster::new(1, Config::default(), secrets(), Duration::ZERO);
    cluster.submit(Duration::ZERO, submission("job")).unwrap();
    let (mut first, mut second) = (Worker::new(1), Worker::new(2));
    assert_eq!(first.pull(&mut cluster, seconds(1.0)).share, None);
    assert_eq!(second.pull(&mut cluster, seconds(1.5)).share, None);
    assert_eq!(first.pull(&mut cluster, seconds(2.0)).share, None);
    let share = first.pull(&mut cluster, seconds(2.6)).share.unwrap();
    assert_eq!(share.members.len(), 2);
}

/// Nobody waits for a tick between the passes, not even for a worker that has only just come.
#[test]
fn the_way_down_begins_with_the_last_commit_of_the_way_up() {
    let (mut cluster, mut workers, now) = cluster(2);
    cluster.submit(now, submission("job")).unwrap();
    for worker in &mut workers {
        worker.pull(&mut cluster, now);
        worker.finish((4..=params().last_layer().0).step_by(2));
        worker.pull(&mut cluster, now);
    }
    // The first pulled before the second was done: now it hears of its order too, and both carry it out.
    workers[0].pull(&mut cluster, now);
    workers[0].pull(&mut cluster, now);
    workers[1].pull(&mut cluster, now);
    let mut late = Worker::new(3);
    assert_eq!(late.pull(&mut cluster, now).share, None);
    let actions = cluster.take_actions();
    let [Action::Commit { ticket, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    cluster.committed(now, *ticket, 0);
    for worker in &mut workers {
        let reply = worker.pull(&mut cluster, now);
        let share = reply.share.expect("the next share in the first reply after the commit");
        let all = Segment { phase: Phase::BackUp, first: Layer(4), last: params().last_layer() };
        assert_eq!((share.segment, share.members.len()), (all, 3));
    }
}

#[test]
fn who_reaches_nobody_is_left_out_before_the_job_fails() {
    let (mut cluster, mut workers, mut now) = cluster(8);
    cluster.submit(now, submission("job")).unwrap();
    for _ in 0..4 {
        workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
        let Some(share) = workers[0].epoch.clone() else { break };
        let victim = share.members.iter().rev().find(|member| member.worker != WorkerId(1)).unwrap();
        workers[0].fail(Failure::Peer(victim.worker));
        workers[0].pull(&mut cluster, now);
        now += seconds(0.01);
    }
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    assert_eq!(workers[0].epoch, None, "the complainer is out");
    assert!(workers[1].epoch.is_some(), "and others work");
}

#[test]
fn one_death_is_blamed_once() {
    let (mut cluster, mut workers, now) = cluster(8);
    cluster.submit(now, submission("job")).unwrap();
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    workers[..7].iter_mut().for_each(|worker| {
        worker.fail(Failure::Peer(WorkerId(8)));
        worker.pull(&mut cluster, now);
    });
    let later = now + Config::default().backoff;
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, later)));
    let status = cluster.status(later);
    assert_eq!(status.workers[7].activity, Activity::Waiting, "one back-off, and that is over");
}

/// One that is dead and has a lease left must not be in the next epochs: each would fail for its sake.
#[test]
fn who_was_not_reached_is_left_out_until_it_is_heard() {
    let (mut cluster, mut workers, now) = cluster(2);
    cluster.submit(now, submission("job")).unwrap();
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    let members = |worker: &Worker| {
        let share = worker.epoch.as_ref();
        share.map(|share| share.members.iter().map(|member| member.worker.0).collect::<Vec<_>>())
    };
    let fail = |worker: &mut Worker, failure, cluster: &mut Cluster, now| {
        worker.fail(failure);
        worker.reports.push(WorkerReport::Well);
        worker.pull(cluster, now);
    };
    fail(&mut workers[0], Failure::Peer(WorkerId(2)), &mut cluster, now);
    assert_eq!(members(&workers[0]), Some(vec![1]), "the other goes on alone");
    fail(&mut workers[0], Failure::Other("any".to_owned()), &mut cluster, now);
    let later = now + 2 * Config::default().backoff;
    assert!(later < now + Config::default().lease, "it still counts as alive");
    workers[0].pull(&mut cluster, later);
    assert_eq!(members(&workers[0]), Some(vec![1]), "back-off is over, but it was not heard");
    workers[1].pull(&mut cluster, later);
    fail(&mut workers[0], Failure::Other("any".to_owned()), &mut cluster, later);
    workers[1].pull(&mut cluster, later);
    assert!(members(&workers[1]).is_some_and(|members| members.contains(&2)), "it was heard");
}

/// Workers that are killed more often than commits are due still get somewhere, and keep at it.
#[test]
fn after_failures_commits_come_sooner() {
    let (mut cluster, mut workers, mut now) = cluster(2);
    cluster.submit(now, submission("job")).unwrap();
    for worker in &mut workers {
        assert!(worker.pull(&mut cluster, now).share.is_some());
        worker.fail(Failure::Other("a kill".to_owned()));
        worker.pull(&mut cluster, now);
        worker.reports.push(WorkerReport::Well);
    }
    now += seconds(3.0);
    // The first to say that it is well begins alone.
    let worker = &mut workers[0];
    assert_eq!(worker.pull(&mut cluster, now).share.map(|share| share.members.len()), Some(1));
    let interval = Config::default().commit_interval;
    // Finishes layers, and is ordered to write them after so much time and not before.
    let mut written_after = |now: &mut Duration, worker: &mut Worker, layers: [u32; 2], wait: Duration| {
        worker.finish(layers.into_iter());
        worker.pull(&mut cluster, *now);
        let early = worker.pull(&mut cluster, *now + wait - seconds(0.1)).write;
        *now += wait;
        let due = worker.pull(&mut cluster, *now).write.map(|shard| shard.last);
        assert_eq!((early, due), (None, Some(Layer(layers[1]))));
        worker.pull(&mut cluster, *now);
        let actions = cluster.take_actions();
        let [Action::Commit { ticket, .. }] = actions.as_slice() else { panic!("{actions:?}") };
        cluster.committed(*now, *ticket, 0);
    };
    written_after(&mut now, worker, [4, 6], interval / 4);
    written_after(&mut now, worker, [8, 10], interval / 4);
    written_after(&mut now, worker, [12, 14], interval / 4);
    // From here on the epoch has lasted for as long as commits are apart where nothing fails.
    written_after(&mut now, worker, [16, 18], interval / 4);
    written_after(&mut now, worker, [20, 22], interval / 2);
    written_after(&mut now, worker, [24, 26], interval);
}

#[test]
fn the_epoch_of_a_lost_worker_is_over_after_its_lease() {
    let (mut cluster, mut workers, now) = cluster(2);
    cluster.submit(now, submission("job")).unwrap();
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    let first = workers[0].epoch.clone().unwrap();
    let lease = Config::default().lease;
    for part in 1..=4 {
        assert_eq!(workers[0].pull(&mut cluster, now + lease * part / 4).withdrawn, None);
    }
    let reply = workers[0].pull(&mut cluster, now + lease + seconds(0.1));
    assert_eq!(reply.withdrawn, Some(first.epoch));
    assert_eq!(reply.share.map(|share| share.members.len()), Some(1), "and the other goes on alone");
}

#[test]
fn a_cancelled_epoch_is_withdrawn() {
    let (mut cluster, mut workers, now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    workers[0].pull(&mut cluster, now);
    let epoch = workers[0].epoch.clone().unwrap().epoch;
    cluster.cancel(now, &JobId("job".to_owned())).unwrap();
    let reply = workers[0].pull(&mut cluster, now);
    assert_eq!((reply.withdrawn, reply.share), (Some(epoch), None));
}

#[test]
fn an_epoch_of_a_later_coordinator_is_left_alone() {
    let (mut later, mut workers, now) = cluster(1);
    later.submit(now, submission("job")).unwrap();
    later.submit(now, submission("second job")).unwrap();
    workers[0].pull(&mut later, now);
    let mut earlier = Cluster::new(0, Config::default(), secrets(), now);
    let epoch = workers[0].epoch.clone().unwrap().epoch;
    let pull = Pull {
        version: PROTOCOL_VERSION,
        worker: WorkerId(1),
        incarnation: 1,
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
fn one_append_is_asked_for_at_a_time_and_repeated_as_it_was() {
    let (mut cluster, mut workers, now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    workers[0].pull(&mut cluster, now);
    workers[0].finish((4..=params().last_layer().0).step_by(2));
    (0..2).for_each(|_| drop(workers[0].pull(&mut cluster, now)));
    let first = cluster.take_actions();
    let [Action::Commit { ticket, .. }] = first.as_slice() else { panic!("{first:?}") };
    cluster.tick(now + seconds(2.0));
    assert_eq!(cluster.take_actions(), [], "not before it has failed");
    cluster.commit_failed(now + seconds(2.0), *ticket, false);
    assert_eq!(cluster.take_actions(), [], "not at once");
    cluster.tick(now + seconds(3.0));
    assert_eq!(cluster.take_actions(), first);
    cluster.commit_failed(now + seconds(3.0), *ticket, true);
    assert_eq!(cluster.submit(now + seconds(3.0), submission("other")), Err(ClusterError::Fenced));
}

#[test]
fn the_time_left_is_told_in_both_passes() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    let worker = &mut workers[0];
    let mut job = |now, worker: &mut Worker| {
        worker.pull(&mut cluster, now);
        let status = cluster.status(now).jobs.remove(0);
        if let [Action::Commit { ticket, .. }] = cluster.take_actions().as_slice() {
            cluster.committed(now, *ticket, 0);
        }
        status
    };
    let begun = job(now, worker);
    assert_eq!((begun.done, begun.eta), (0.0, None), "nothing is known of its speed");
    let last = params().last_layer().0;
    let entries = Workload::new(&params());
    let whole = entries.whole();
    for layer in (4..=30).step_by(2) {
        now += seconds(1.0);
        worker.finish([layer].into_iter());
        let up = job(now, worker);
        let done = entries.entries(Layer(4), Layer(layer + 2)) / whole;
        assert!((up.done - done).abs() < 1e-9, "{} of the entries, not {done}", up.done);
        let eta = up.eta.unwrap();
        // The way down takes twice as long as all of the way up.
        let left = (1.0 - done + 2.0) / (1.0 - done);
        let found = eta.job.as_secs_f64() / eta.pass.as_secs_f64();
        assert!((found - left).abs() < 1e-6, "the job takes {found} times what the pass takes, not {left}");
    }
    worker.finish((32..=last).step_by(2));
    (0..4).for_each(|_| drop(job(now, worker)));
    // As many states as layers, in this test.
    worker.finish((4..=last).rev().step_by(2).take(20));
    now += seconds(1.0);
    let down = job(now, worker);
    assert_eq!((down.phase, down.states_done, down.states_total), (Some(Phase::BackUp), 20, Some(29)));
    assert!((down.done - 20.0 / 29.0).abs() < 1e-9, "{}", down.done);
    let eta = down.eta.unwrap();
    assert_eq!(eta.pass, eta.job);
    assert!((eta.pass.as_secs_f64() - 9.0 / down.states_per_second).abs() < 1e-6, "{eta:?}");
}
