//! Tests of a shell's calls outside the protocol: checks, jobs of an earlier coordinator, events, and refused
//! appends.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{
    Append, Cluster, ClusterConfig, ClusterError, EpochId, EpochStage, Errand, Event, Incarnation, JobId,
    JobState, JobSummary, LayerPart, LeastMemory, Opened, PROTOCOL_VERSION, Pull, PullReply, Resumption,
    RunBytes, Secret, Secrets, Submission, WorkerId, WorkerReport,
};
use exact2048_coordinator::{PassCost, Totals, Workload};
use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, LayerCounts, Phase};

/// The first epoch of the first coordinator.
const FIRST_EPOCH: EpochId = EpochId::first_of(1);

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn job(name: &str) -> JobId {
    JobId(name.to_owned())
}

fn submission(name: &str, least_bytes: u64) -> Submission {
    Submission {
        job: job(name),
        params: Params::usual("2x2", "score").until(4).build().unwrap(),
        disk_limit: None,
        least_memory: Some(Arc::new(LeastMemory::new(vec![(1, least_bytes)]))),
        state: JobState::Queued,
        summary: JobSummary::default(),
        has_run: false,
    }
}

/// Opens the run of the current job, with these commits.
fn open(cluster: &mut Cluster, now: u64, commits: Vec<Commit>, committed_bytes: u64) {
    for errand in cluster.take_errands() {
        let Errand::Open { ticket, job, .. } = errand else { panic!("{errand:?}") };
        let Submission { params, least_memory, .. } = submission(&job.0, 1);
        let (least_memory, workload) = (least_memory.unwrap(), Arc::new(Workload::new(&params)));
        let cost = Arc::new(PassCost::new(&params, 1 << 18));
        let holdings = commits.clone().into();
        let stored = RunBytes { committed_bytes, disk: None };
        let opened = Opened { params, holdings, stored, missing_bytes: 0, least_memory, workload, cost };
        cluster.opened(at(now), ticket, opened);
    }
}

fn commit() -> Commit {
    let layers = vec![LayerCounts { layer: Layer(4), states: 2, afterstates: 2 }];
    Commit { phase: Phase::Enumerate, first: Layer(4), last: Layer(4), layers, fingerprint: None }
}

fn secrets() -> Secrets {
    Secrets::new(|| Secret::new([7; 16]))
}

/// Returns a cluster with one worker that has been registered for a while.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(FIRST_EPOCH, ClusterConfig::default(), secrets(), at(0));
    pull(&mut cluster, 0, None, 0, vec![]);
    pull(&mut cluster, 2000, None, 0, vec![]);
    cluster.take_events();
    cluster
}

fn pull(
    cluster: &mut Cluster,
    now: u64,
    epoch: Option<EpochId>,
    first_report: u64,
    reports: Vec<WorkerReport>,
) -> PullReply {
    let pull = Pull {
        version: PROTOCOL_VERSION,
        worker: WorkerId(1),
        incarnation: Incarnation(1),
        threads: 1,
        memory_bytes: 1000,
        address: String::new(),
        leaving: false,
        epoch,
        stage: EpochStage::Working,
        first_report,
        reports,
    };
    cluster.pull(at(now), &pull).unwrap()
}

#[test]
fn new_jobs_must_fit_and_earlier_jobs_need_not() {
    let mut cluster = cluster();
    let (large, now) = (submission("large", (3 << 30) + 1), at(2000));
    let refused = cluster.submit(now, large.clone()).unwrap_err();
    assert!(matches!(refused, ClusterError::DoesNotFit { needed_bytes: 3_221_225_473, .. }));
    assert!(refused.to_string().contains("3.1 GiB"), "the stated memory suffices: {refused}");
    assert_eq!(cluster.check(now, &large.job, large.least_memory.as_deref()), Err(refused));
    cluster.enqueue(now, large.clone()).unwrap();
    let exists = ClusterError::Exists { job: large.job.clone(), state: JobState::Queued };
    assert_eq!(cluster.enqueue(now, large.clone()), Err(exists.clone()));
    assert_eq!(cluster.check(now, &large.job, None), Err(exists));
}

#[test]
fn commits_of_other_processes_count() {
    let mut cluster = Cluster::new(FIRST_EPOCH, ClusterConfig::default(), secrets(), at(0));
    cluster.submit(at(0), submission("a", 1)).unwrap();
    open(&mut cluster, 0, vec![], 0);
    cluster.cancel(at(0), &job("a")).unwrap();
    assert!(!cluster.holds(&job("a")), "other processes may open its run");
    cluster.resume(at(0), &job("a")).unwrap();
    open(&mut cluster, 0, vec![commit()], 10);
    let status = cluster.status(at(0)).jobs.remove(0);
    assert_eq!((status.state, status.bytes, status.states_done), (JobState::Done, 10, 2));
}

/// The earlier outcome of a job causes no event and is known without opening the job's run.
#[test]
fn jobs_of_an_earlier_coordinator_keep_their_state() {
    let mut cluster = Cluster::new(FIRST_EPOCH, ClusterConfig::default(), secrets(), at(0));
    let summary =
        JobSummary { states_done: 110, done: 1.0, bytes: 7, fingerprint: Some(9), ..JobSummary::default() };
    let failed = JobState::Failed { reason: "worn out".to_owned() };
    for (name, state) in [("a", JobState::Done), ("b", failed.clone()), ("c", JobState::Cancelled)] {
        cluster
            .restore(at(0), Submission { state, summary: summary.clone(), ..submission(name, 1) })
            .unwrap();
    }
    cluster.tick(at(1));
    assert_eq!((cluster.take_events(), cluster.take_errands()), (vec![], vec![]), "no run is opened");
    let jobs = cluster.status(at(1)).jobs;
    let states: Vec<&JobState> = jobs.iter().map(|job| &job.state).collect();
    assert_eq!(states, [&JobState::Done, &failed, &JobState::Cancelled]);
    assert_eq!((jobs[0].states_done, jobs[0].bytes, jobs[0].fingerprint), (110, 7, Some(9)));
    cluster.resume(at(2), &job("b")).unwrap();
    let errands = cluster.take_errands();
    assert!(matches!(&errands[..], [Errand::Open { job, .. }] if job.0 == "b"), "{errands:?}");
}

/// A job's retries, epochs and progress include the work under earlier coordinators.
#[test]
fn the_counts_of_a_job_continue_under_the_next_coordinator() {
    let mut first = cluster();
    first.submit(at(2000), submission("a", 1)).unwrap();
    open(&mut first, 2000, vec![], 0);
    let epoch = first.signal().epoch.unwrap();
    let append = to_commit(&mut first, 2100, epoch, 0);
    first.commit_refused(at(2200), append.ticket(), None, "nonsense".to_owned());
    let is_noted = |events: Vec<Event>| events.contains(&Event::Progress { job: job("a") });
    assert!(is_noted(first.take_events()));
    let noted = first.job_summary(&job("a")).unwrap().clone();
    assert_eq!((noted.epochs, noted.retries, noted.done), (2, 1, 0.0));
    let mut second = cluster();
    let noted = JobSummary { done: 0.5, phase: Some(Phase::Enumerate), ..noted };
    second.restore(at(2000), Submission { summary: noted, ..submission("a", 1) }).unwrap();
    let shown = second.status(at(2000)).jobs.remove(0);
    assert_eq!((shown.epochs, shown.retries, shown.done), (2, 1, 0.5), "before its run is open");
    second.tick(at(2000));
    open(&mut second, 2000, vec![], 0);
    let epoch = second.signal().epoch.unwrap();
    let append = to_commit(&mut second, 2100, epoch, 0);
    second.commit_refused(at(2200), append.ticket(), None, "nonsense".to_owned());
    assert!(is_noted(second.take_events()));
    let shown = second.status(at(2200)).jobs.remove(0);
    assert_eq!((shown.epochs, shown.retries), (4, 2));
}

/// A starting coordinator reads the whole queue, so the queue must stay short.
#[test]
fn repeatedly_failing_epochs_leave_few_records() {
    let mut cluster = cluster();
    let before = JobSummary { epochs: 10_000, retries: 9_999, ..JobSummary::default() };
    cluster.restore(at(2000), Submission { summary: before, ..submission("a", 1) }).unwrap();
    cluster.tick(at(2000));
    open(&mut cluster, 2000, vec![], 0);
    cluster.take_events();
    let epoch = cluster.signal().epoch.unwrap();
    let append = to_commit(&mut cluster, 2100, epoch, 0);
    cluster.commit_refused(at(2200), append.ticket(), None, "nonsense".to_owned());
    assert!(!cluster.take_events().contains(&Event::Progress { job: job("a") }));
    assert_eq!(cluster.job_summary(&job("a")).unwrap().retries, 10_000);
}

/// Lets the cluster's worker finish the only layer of a job, and returns its commit.
fn to_commit(cluster: &mut Cluster, now: u64, epoch: EpochId, first_report: u64) -> Append {
    let part = LayerPart {
        layer: Layer(4),
        totals: Totals { states: 2, afterstates: 2, fingerprint: 0, sealed_bytes: 5 },
        sent: 0,
        received: 0,
    };
    let done = WorkerReport::LayerDone { epoch, part };
    let shard = pull(cluster, now, Some(epoch), first_report, vec![done]).write.unwrap();
    let written = WorkerReport::ShardWritten { shard, record: "some words".to_owned() };
    pull(cluster, now, Some(epoch), first_report + 1, vec![written]);
    let mut appends = cluster.take_appends();
    assert_eq!(appends.len(), 1);
    appends.remove(0)
}

#[test]
fn work_that_cannot_be_committed_is_repeated() {
    let mut cluster = cluster();
    cluster.submit(at(2000), submission("a", 1)).unwrap();
    open(&mut cluster, 2000, vec![], 0);
    let first = cluster.signal().epoch.unwrap();
    let append = to_commit(&mut cluster, 2100, first, 0);
    cluster.take_events();
    cluster.commit_refused(at(2200), append.ticket(), None, "nonsense".to_owned());
    let failed = Event::EpochFailed { job: job("a"), epoch: first, reason: "nonsense".to_owned() };
    assert_eq!(cluster.take_events()[0], failed);
    // The shell's answer is repeated.
    cluster.commit_refused(at(2200), append.ticket(), None, "nonsense".to_owned());
    assert_eq!(cluster.take_appends(), []);
    pull(&mut cluster, 4000, Some(first), 2, vec![]);
    let second = cluster.signal().epoch.unwrap();
    assert!(second > first);
    let append = to_commit(&mut cluster, 4100, second, 2);
    cluster.committed(at(4200), append.ticket(), RunBytes { committed_bytes: 10, disk: None });
    let status = cluster.status(at(4200));
    assert_eq!((status.jobs[0].state.name(), status.jobs[0].retries, status.states), ("done", 1, 4));
}

#[test]
fn events_report_the_course_of_a_job() {
    let mut cluster = Cluster::new(FIRST_EPOCH, ClusterConfig::default(), secrets(), at(0));
    pull(&mut cluster, 0, None, 0, vec![]);
    assert!(matches!(cluster.take_events()[..], [Event::WorkerJoined { again: false, .. }]));
    cluster.submit(at(2000), submission("a", 1)).unwrap();
    open(&mut cluster, 2000, vec![], 0);
    let events = cluster.take_events();
    let [
        Event::Job { state: JobState::Queued, .. },
        Event::Job { state: JobState::Running, .. },
        Event::EpochBegan(share),
        Event::Progress { .. },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    let epoch = share.epoch;
    let append = to_commit(&mut cluster, 2100, epoch, 0);
    cluster.committed(at(2200), append.ticket(), RunBytes { committed_bytes: 10, disk: None });
    let expected = [
        Event::Appended(append),
        Event::EpochEnded { job: job("a"), epoch },
        Event::Job { job: job("a"), state: JobState::Done },
    ];
    assert_eq!(cluster.take_events(), expected);
    cluster.tick(at(5000));
    cluster.tick(at(7000));
    cluster.tick(at(9000));
    cluster.tick(at(11_000));
    assert_eq!(cluster.take_events(), [Event::WorkerLost { worker: WorkerId(1), leaving: false }]);
}

#[test]
fn the_signal_changes_with_news_for_workers() {
    let mut cluster = cluster();
    let idle = cluster.signal();
    assert_eq!(idle.epoch, None);
    cluster.submit(at(2000), submission("a", 1)).unwrap();
    open(&mut cluster, 2000, vec![], 0);
    let began = cluster.signal();
    assert_eq!((began.epoch, began.write), (Some(FIRST_EPOCH), None));
    let part = LayerPart {
        layer: Layer(4),
        totals: Totals { states: 2, afterstates: 2, fingerprint: 0, sealed_bytes: 5 },
        sent: 0,
        received: 0,
    };
    pull(&mut cluster, 2100, began.epoch, 0, vec![WorkerReport::LayerDone { epoch: FIRST_EPOCH, part }]);
    let ordered = cluster.signal();
    assert!(ordered.write.is_some() && ordered.progress != began.progress);
    cluster.fence(at(2100));
    assert!(cluster.signal().fenced && cluster.signal().epoch.is_none());
}

#[test]
fn a_full_queue_refuses_new_jobs_and_keeps_its_jobs() {
    let config = ClusterConfig { max_jobs: 2, ..ClusterConfig::default() };
    let mut cluster = Cluster::new(FIRST_EPOCH, config, secrets(), at(0));
    for name in ["a", "b"] {
        cluster.submit(at(0), submission(name, 1)).unwrap();
    }
    assert_eq!(cluster.submit(at(0), submission("c", 1)), Err(ClusterError::Full { most: 2 }));
    // An earlier coordinator may have accepted more jobs.
    cluster.restore(at(0), submission("c", 1)).unwrap();
    cluster.cancel(at(0), &job("a")).unwrap();
    cluster.forget(at(0), &job("a")).unwrap();
    cluster.cancel(at(0), &job("b")).unwrap();
    cluster.forget(at(0), &job("b")).unwrap();
    cluster.submit(at(0), submission("d", 1)).unwrap();
}

#[test]
fn a_job_is_not_forgotten_while_its_shards_are_reread() {
    let mut cluster = Cluster::new(FIRST_EPOCH, ClusterConfig::default(), secrets(), at(0));
    let done = Submission { state: JobState::Done, ..submission("a", 1) };
    cluster.restore(at(0), done).unwrap();
    assert_eq!(cluster.resumption(&job("a")), Ok(Resumption::Reread));
    assert_eq!(cluster.begin_check(&job("a")), Ok(true));
    assert_eq!(cluster.begin_check(&job("a")), Ok(false));
    assert_eq!(cluster.forget(at(0), &job("a")), Err(ClusterError::Checking(job("a"))));
    assert!(cluster.status(at(0)).jobs[0].checking);
    cluster.end_check(&job("a"), Some("gone".to_owned()));
    let status = cluster.status(at(0)).jobs.remove(0);
    assert_eq!(
        (status.checking, status.obstacle.as_deref()),
        (false, Some("cannot reread its shards: gone"))
    );
    cluster.forget(at(0), &job("a")).unwrap();
}
