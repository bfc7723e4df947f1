//! Rules that are about time and blame: what a whole simulation would pass over, as it ends well either way.

mod presence;

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
        least_memory: Some(Arc::new(LeastMemory::new(vec![(1, 100)]))),
        state: JobState::Queued,
        summary: Summary::default(),
    }
}

/// What an empty run holds, that needs so much memory.
fn empty(least_bytes: u64) -> Opened {
    Opened {
        commits: Vec::new(),
        committed_bytes: 0,
        least_memory: Arc::new(LeastMemory::new(vec![(1, least_bytes)])),
        workload: Arc::new(Workload::new(&params())),
    }
}

/// Opens the runs that are to be opened, all of them empty, and returns what else there is to find out.
fn open_runs(cluster: &mut Cluster, now: Duration) -> Vec<Claim> {
    let mut claims = Vec::new();
    for errand in cluster.take_errands() {
        match errand {
            Errand::Open { job } => cluster.opened(now, &job, empty(100)),
            Errand::Examine(claim) => claims.push(claim),
        }
    }
    claims
}

/// Hands in a job whose run is opened at once when its turn comes.
fn submit(cluster: &mut Cluster, now: Duration, name: &str) {
    cluster.submit(now, submission(name)).unwrap();
    open_runs(cluster, now);
}

/// A worker that does at once whatever it is told.
struct Worker {
    id: WorkerId,
    epoch: Option<Arc<Share>>,
    stage: EpochStage,
    /// It takes up nothing new and leaves nothing, and goes on pulling.
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
            incarnation: 1,
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
        cluster.admit(now, &pull).unwrap();
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
    submit(&mut cluster, now, "job");
    for worker in &mut workers {
        let share = worker.pull(&mut cluster, now).share.expect("a share without any wait");
        assert_eq!(share.members.len(), 2);
    }
}

#[test]
fn workers_that_start_together_are_waited_for() {
    let mut cluster = Cluster::new(1, Config::default(), secrets(), Duration::ZERO);
    submit(&mut cluster, Duration::ZERO, "job");
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
    submit(&mut cluster, now, "job");
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
    submit(&mut cluster, now, "job");
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
    submit(&mut cluster, now, "job");
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
    submit(&mut cluster, now, "job");
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
    submit(&mut cluster, now, "job");
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

/// A rack that loses its power ends an epoch for each worker that is found dead, at once, and that is one failure of the job.
#[test]
fn workers_that_die_together_are_one_failure() {
    let (mut cluster, mut workers, now) = cluster(9);
    submit(&mut cluster, now, "job");
    for worker in &mut workers[..8] {
        assert!(worker.pull(&mut cluster, now).share.is_some());
        worker.fail(Failure::Other("its peer is gone".to_owned()));
        worker.pull(&mut cluster, now);
    }
    let job = &cluster.status(now).jobs[0];
    assert_eq!((job.retries, &job.state), (8, &JobState::Running));
}

#[test]
fn the_epoch_of_a_lost_worker_is_over_after_its_lease() {
    let (mut cluster, mut workers, now) = cluster(2);
    submit(&mut cluster, now, "job");
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
    submit(&mut cluster, now, "job");
    workers[0].pull(&mut cluster, now);
    let epoch = workers[0].epoch.clone().unwrap().epoch;
    cluster.cancel(now, &JobId("job".to_owned())).unwrap();
    let reply = workers[0].pull(&mut cluster, now);
    assert_eq!((reply.withdrawn, reply.share), (Some(epoch), None));
}

#[test]
fn an_epoch_of_a_later_coordinator_is_left_alone() {
    let (mut later, mut workers, now) = cluster(1);
    submit(&mut later, now, "job");
    submit(&mut later, now, "second job");
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
    submit(&mut cluster, now, "job");
    workers[0].pull(&mut cluster, now);
    workers[0].finish((4..=params().last_layer().0).step_by(2));
    (0..2).for_each(|_| drop(workers[0].pull(&mut cluster, now)));
    let first = cluster.take_actions();
    let [Action::Commit { ticket, .. }] = first.as_slice() else { panic!("{first:?}") };
    cluster.tick(now + seconds(2.0));
    assert_eq!(cluster.take_actions(), [], "not before it has failed");
    cluster.append_failed(now + seconds(2.0), *ticket, AppendFailure::Store("away".to_owned()));
    assert_eq!(cluster.take_actions(), [], "not at once");
    cluster.tick(now + seconds(3.0));
    assert_eq!(cluster.take_actions(), first);
    cluster.fence(now + seconds(3.0));
    assert_eq!(cluster.submit(now + seconds(3.0), submission("other")), Err(ClusterError::Fenced));
}

#[test]
fn the_time_left_is_told_in_both_passes() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    submit(&mut cluster, now, "job");
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
    for layer in (4..=50).step_by(2) {
        now += seconds(1.0);
        worker.finish([layer].into_iter());
        let up = job(now, worker);
        let done = entries.entries(Layer(4), Layer(layer + 2)) / whole;
        assert!((up.done - done).abs() < 1e-9, "{} of the entries, not {done}", up.done);
        // The way down takes twice as long as all of the way up.
        let Some(eta) = up.eta else {
            assert!(layer <= entries.tables_end().0, "nothing is told of the time at layer {layer}");
            continue;
        };
        let left = (1.0 - done + 2.0) / (1.0 - done);
        let found = eta.job.as_secs_f64() / eta.pass.as_secs_f64();
        assert!((found - left).abs() < 1e-6, "the job takes {found} times what the pass takes, not {left}");
    }
    worker.finish((52..=last).step_by(2));
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

/// Pulls of all workers until a time, twice a second.
fn pull_until(cluster: &mut Cluster, workers: &mut [Worker], now: &mut Duration, until: Duration) {
    while *now < until {
        *now += seconds(0.5);
        workers.iter_mut().for_each(|worker| drop(worker.pull(cluster, *now)));
        open_runs(cluster, *now);
    }
}

/// A member that pulls and does nothing is found within a minute, whatever it hangs in, and the others go on (A M12).
#[test]
fn who_hangs_is_to_blame_and_left_out_until_it_is_free() {
    let last = params().last_layer().0;
    // It never takes up its share; it takes it up and computes for ever; it does not write.
    for case in 0..3 {
        let (mut cluster, mut workers, mut now) = cluster(3);
        let begun = now;
        workers[2].hangs = case == 0;
        submit(&mut cluster, now, "job");
        pull_until(&mut cluster, &mut workers, &mut now, begun + seconds(1.0));
        let first = workers[0].epoch.clone().unwrap();
        assert_eq!(first.members.len(), 3, "case {case}");
        for worker in &mut workers[..2] {
            // They are done with what they have, and wait for the third.
            worker.finish(if case == 2 { (4..=last).step_by(2) } else { (4..=10).step_by(2) });
            worker.stage = EpochStage::Waiting;
        }
        if case == 2 {
            workers[2].finish((4..=last).step_by(2));
            workers[2].stage = EpochStage::Waiting;
            workers[2].pull(&mut cluster, now);
        }
        workers[2].hangs = true;
        pull_until(&mut cluster, &mut workers, &mut now, begun + seconds(60.0));
        let second = workers[0].epoch.clone().unwrap();
        assert!(second.epoch > first.epoch, "case {case}: the epoch has failed");
        assert_eq!(second.members.len(), 2, "case {case}: without the third");
        let job = cluster.job_status(&JobId("job".to_owned()), now).unwrap();
        assert_eq!((job.retries, job.state), (1, JobState::Running), "case {case}");
        // However long it is: it gets no work before it has left what it hangs in.
        workers.iter_mut().for_each(|worker| worker.stage = EpochStage::Working);
        let hangs_in_it = workers[2].epoch.is_some();
        let status = cluster.status(now + seconds(200.0)).workers.remove(2);
        let is_left_out = matches!(status.activity, Activity::Unwell(_));
        assert_eq!(is_left_out, hangs_in_it, "case {case}: {:?}", status.activity);
    }
}

/// A step that takes long on a slow machine is no hang for ever: each failure allows for twice the time.
#[test]
fn slow_members_get_more_time_each_time() {
    let (mut cluster, mut workers, mut now) = cluster(2);
    submit(&mut cluster, now, "job");
    let mut lasted = Vec::new();
    for _ in 0..3 {
        let begun = now;
        while cluster.status(now).jobs[0].retries == lasted.len() as u64 {
            now += seconds(0.5);
            workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
        }
        lasted.push((now - begun).as_secs());
        workers.iter_mut().for_each(|worker| worker.epoch = None);
        let until = now + seconds(5.0);
        pull_until(&mut cluster, &mut workers, &mut now, until);
    }
    assert!(lasted[0] < 50 && lasted[1] > 60 && lasted[2] > 130, "{lasted:?}");
}

/// The epoch of a job that a worker's claim of a lost shard ended.
fn claimed(cluster: &mut Cluster, worker: &mut Worker, now: Duration) -> Claim {
    worker.pull(cluster, now);
    let (job, file) = (JobId("job".to_owned()), "reach-1.shard".to_owned());
    worker.fail(Failure::ShardLost { job, file, phase: Phase::Enumerate, first: Layer(4), last: Layer(8) });
    worker.pull(cluster, now);
    let claims = open_runs(cluster, now);
    let [claim] = &claims[..] else { panic!("{claims:?}") };
    claim.clone()
}

/// A cluster whose job has committed a range.
fn with_commit(workers: u64) -> (Cluster, Vec<Worker>, Duration) {
    let (mut cluster, workers, now) = cluster(workers);
    cluster.submit(now, submission("job")).unwrap();
    let [Errand::Open { job }] = &cluster.take_errands()[..] else { panic!("its run is opened") };
    let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(8));
    let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint: None };
    cluster.opened(now, job, Opened { commits: vec![commit], ..empty(100) });
    (cluster, workers, now)
}

/// One worker that misreads has nothing computed again: the coordinator looks first (A M12).
#[test]
fn a_shard_that_one_worker_cannot_read_is_looked_at() {
    let (mut cluster, mut workers, now) = with_commit(2);
    let claim = claimed(&mut cluster, &mut workers[0], now);
    assert_eq!(workers[1].pull(&mut cluster, now).share, None, "nothing begins before that is known");
    cluster.examined(now, &claim, Examined::Sound);
    assert_eq!(cluster.take_actions(), [], "nothing is retracted");
    let share = workers[1].pull(&mut cluster, now).share.unwrap();
    assert_eq!(share.members.len(), 1, "the one that misreads is left out");
    assert_eq!(share.segment.first, Layer(10), "and what is committed stays");

    let (mut cluster, mut workers, now) = with_commit(2);
    let claim = claimed(&mut cluster, &mut workers[0], now);
    cluster.examined(now, &claim, Examined::Lost);
    let actions = cluster.take_actions();
    let [Action::Retract { ticket, .. }] = &actions[..] else { panic!("{actions:?}") };
    cluster.committed(now, *ticket, 0);
    let share = workers[1].pull(&mut cluster, now).share.unwrap();
    assert_eq!((share.members.len(), share.segment.first), (2, Layer(4)), "nobody is to blame");
}

/// A worker that misreads again and again, and is the only one, fails the job with the true reason.
#[test]
fn a_job_whose_only_worker_misreads_fails() {
    let (mut cluster, mut workers, mut now) = with_commit(1);
    // The second failure is within a lease of the first.
    for _ in 0..6 {
        let claim = claimed(&mut cluster, &mut workers[0], now);
        cluster.examined(now, &claim, Examined::Sound);
        // Until it gets work again, or nobody does any more.
        for _ in 0..20 {
            now += seconds(3.0);
            workers[0].pull(&mut cluster, now);
            if workers[0].epoch.is_some() {
                break;
            }
        }
    }
    let state = cluster.job_state(&JobId("job".to_owned())).cloned();
    assert!(
        matches!(&state, Some(JobState::Failed { reason }) if reason.contains("which is whole")),
        "{state:?}"
    );
}

/// Leads the only worker of a cluster to an append.
fn to_append(cluster: &mut Cluster, worker: &mut Worker, now: Duration) -> Action {
    worker.pull(cluster, now);
    worker.finish((4..=params().last_layer().0).step_by(2));
    (0..2).for_each(|_| drop(worker.pull(cluster, now)));
    let actions = cluster.take_actions();
    let [append] = &actions[..] else { panic!("{actions:?}") };
    append.clone()
}

fn states(cluster: &Cluster, now: Duration) -> Vec<(String, &'static str)> {
    cluster.status(now).jobs.iter().map(|job| (job.job.0.clone(), job.state.name())).collect()
}

/// A journal that cannot be written fails its job after a while, and no other (A M2).
#[test]
fn a_job_whose_journal_cannot_be_written_fails_alone() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    submit(&mut cluster, now, "job");
    submit(&mut cluster, now, "other");
    let append = to_append(&mut cluster, &mut workers[0], now);
    let failure = || AppendFailure::Journal("permission denied".to_owned());
    let begun = now;
    cluster.append_failed(now, append.ticket(), failure());
    while states(&cluster, now)[0].1 == "running" {
        let obstacle = cluster.status(now).jobs[0].obstacle.clone().unwrap();
        assert!(obstacle.contains("permission denied"), "{obstacle}");
        now += seconds(1.5);
        workers[0].pull(&mut cluster, now);
        for again in cluster.take_actions() {
            assert_eq!(again, append, "the same again");
            cluster.append_failed(now, append.ticket(), failure());
        }
        assert!(now < begun + seconds(60.0), "bounded");
    }
    assert!(now >= begun + Config::default().journal_patience);
    assert_eq!(states(&cluster, now), [("job".to_owned(), "failed"), ("other".to_owned(), "running")]);
    open_runs(&mut cluster, now);
    workers[0].pull(&mut cluster, now);
    assert_eq!(workers[0].epoch.as_ref().map(|share| share.job.0.as_str()), Some("other"));
    assert!(!cluster.holds(&append.job().clone()), "its run is let go of");
}

/// A store that takes nothing at all fails no job, for as long as it lasts; and a job that is stuck can be cancelled.
#[test]
fn a_store_that_is_away_fails_no_job_and_a_stuck_one_can_be_cancelled() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    submit(&mut cluster, now, "job");
    let append = to_append(&mut cluster, &mut workers[0], now);
    for _ in 0..200 {
        cluster.append_failed(now, append.ticket(), AppendFailure::Store("no space".to_owned()));
        now += seconds(2.0);
        workers[0].pull(&mut cluster, now);
        assert_eq!(cluster.take_actions(), std::slice::from_ref(&append));
    }
    assert_eq!(states(&cluster, now)[0].1, "running");
    // While the append is asked for nobody knows whether it is made.
    cluster.cancel(now, append.job()).unwrap();
    assert_eq!(states(&cluster, now)[0].1, "running");
    cluster.append_failed(now, append.ticket(), AppendFailure::Store("no space".to_owned()));
    assert_eq!(states(&cluster, now)[0].1, "cancelled");
    assert!(!cluster.holds(append.job()));
}

/// Another process that writes to a job's journal fails that job, and the coordinator goes on (A M3).
#[test]
fn a_foreign_writer_fails_one_job() {
    let (mut cluster, mut workers, now) = cluster(1);
    submit(&mut cluster, now, "job");
    submit(&mut cluster, now, "other");
    let append = to_append(&mut cluster, &mut workers[0], now);
    cluster.append_failed(now, append.ticket(), AppendFailure::Foreign("another process".to_owned()));
    let failed = JobState::Failed { reason: "another process".to_owned() };
    assert_eq!(cluster.job_state(append.job()), Some(&failed));
    assert_eq!(states(&cluster, now)[1], ("other".to_owned(), "running"));
}

/// Workers come in any order: a job that fits none of the first waits for others, and does not keep them (C3).
#[test]
fn a_job_waits_for_a_worker_that_is_large_enough() {
    let mut cluster = Cluster::new(1, Config::default(), secrets(), Duration::ZERO);
    let mut large = submission("large");
    large.least_memory = Some(Arc::new(LeastMemory::new(vec![(1, 3 << 30)])));
    cluster.submit(Duration::ZERO, large).unwrap();
    let [Errand::Open { job }] = &cluster.take_errands()[..] else { panic!("there are no workers yet") };
    cluster.opened(Duration::ZERO, job, empty(3 << 30));
    submit(&mut cluster, Duration::ZERO, "small");
    let mut worker = Worker::new(1);
    let mut now = seconds(3.0);
    // It fits the memory of 1000 bytes that workers of these tests have.
    assert_eq!(worker.pull(&mut cluster, now).needed_memory, Some(3 << 30), "the worker is told");
    now += seconds(3.0);
    pull_until(&mut cluster, std::slice::from_mut(&mut worker), &mut now, seconds(9.0));
    assert_eq!(states(&cluster, now), [("large".to_owned(), "queued"), ("small".to_owned(), "running")]);
    let obstacle = cluster.status(now).jobs[0].obstacle.clone().unwrap();
    assert!(obstacle.contains("3.0 GiB") && obstacle.contains("0.9 KiB"), "{obstacle}");
    assert_eq!(worker.epoch.as_ref().map(|share| share.job.0.as_str()), Some("small"));
}

#[test]
fn a_run_that_others_have_open_is_tried_again_later() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    cluster.submit(now, submission("other")).unwrap();
    let id = JobId("job".to_owned());
    assert_eq!(cluster.take_errands(), [Errand::Open { job: id.clone() }], "one at a time");
    cluster.not_opened(now, &id, NotOpened::Later("process 7 has it".to_owned()));
    assert_eq!(states(&cluster, now), [("job".to_owned(), "queued"), ("other".to_owned(), "running")]);
    let other = JobId("other".to_owned());
    assert_eq!(cluster.take_errands(), [Errand::Open { job: other.clone() }]);
    cluster.not_opened(now, &other, NotOpened::Never("it is damaged".to_owned()));
    assert_eq!(states(&cluster, now)[1].1, "failed");
    assert_eq!(cluster.take_errands(), []);
    now += Config::default().reopen;
    workers[0].pull(&mut cluster, now);
    assert_eq!(cluster.take_errands(), [Errand::Open { job: id }]);
}

#[test]
fn jobs_that_have_ended_can_be_forgotten() {
    let (mut cluster, _, now) = cluster(0);
    submit(&mut cluster, now, "a");
    submit(&mut cluster, now, "b");
    let [a, b] = ["a", "b"].map(|name| JobId(name.to_owned()));
    assert!(cluster.forget(now, &a).is_err() && cluster.forget(now, &b).is_err(), "they have not ended");
    cluster.cancel(now, &b).unwrap();
    cluster.take_changed();
    cluster.forget(now, &b).unwrap();
    assert_eq!(cluster.forget(now, &b), Err(ClusterError::Unknown(b.clone())));
    assert_eq!((cluster.jobs_len(), cluster.take_changed().contains(&b)), (1, true));
    submit(&mut cluster, now, "b");
}
