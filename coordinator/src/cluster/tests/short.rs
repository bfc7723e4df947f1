//! Tests of jobs with a disk limit that is too small.

use super::*;
use crate::room::MOST_SHORT;

const LIMIT: u64 = 1 << 20;

/// Returns an open, empty run with this much space for shards.
fn with_space(free_bytes: u64) -> Opened {
    let disk = DiskUse { limit_bytes: LIMIT, taken_bytes: LIMIT - free_bytes, peak_bytes: LIMIT, free_bytes };
    Opened { stored: RunBytes { committed_bytes: 0, disk: Some(disk) }, ..empty(100) }
}

/// Answers the request to open a job's run. The request must ask for this multiple of the usual headroom.
fn open(cluster: &mut Cluster, now: Duration, times: u64, opened: Opened) {
    let (ticket, _, asked) = to_open(cluster);
    assert_eq!(asked, times);
    cluster.opened(now, ticket, opened);
}

/// Submits a job with a limit, opens its run with these contents, and returns the job.
fn submit_limited(cluster: &mut Cluster, now: Duration, opened: Opened) -> JobId {
    let submission = Submission { disk_limit: Some(LIMIT), ..submission("job") };
    cluster.submit(now, submission).unwrap();
    open(cluster, now, 1, opened);
    JobId("job".to_owned())
}

/// Lets the only worker finish all layers without space for their range.
fn run_short(cluster: &mut Cluster, worker: &mut Worker, now: Duration) {
    worker.pull(cluster, now);
    worker.finish((4..=params().last_layer().0).step_by(2));
    let reply = worker.pull(cluster, now);
    assert_eq!((reply.write, cluster.take_appends()), (None, vec![]), "no range is written without space");
}

fn failure(cluster: &Cluster, job: &JobId) -> String {
    match cluster.job_state(job) {
        Some(JobState::Failed { reason }) => reason.clone(),
        state => panic!("{state:?}"),
    }
}

/// The coordinator frees more and more space until the job fails. A resumed job starts over.
#[test]
fn a_limit_that_stays_too_small_fails_the_job() {
    let (mut cluster, mut workers, now) = cluster(1);
    let job = submit_limited(&mut cluster, now, with_space(1000));
    for times in 2..=MOST_SHORT + 1 {
        run_short(&mut cluster, &mut workers[0], now);
        open(&mut cluster, now, times, with_space(1000));
    }
    let ran_short = |event: &Event| matches!(event, Event::DiskLimitReached { .. });
    assert_eq!(cluster.take_events().iter().filter(|event| ran_short(event)).count() as u64, MOST_SHORT);
    run_short(&mut cluster, &mut workers[0], now);
    assert_eq!(cluster.take_errands(), []);
    let failure = failure(&cluster, &job);
    assert!(failure.contains("1.0 MiB is too small. Committed work is safe"), "{failure}");
    assert!(failure.contains("under the name job"), "{failure}");
    cluster.resume(now, &job).unwrap();
    // With more space the job continues.
    open(&mut cluster, now, 1, with_space(LIMIT));
    workers[0].pull(&mut cluster, now);
    workers[0].finish((4..=params().last_layer().0).step_by(2));
    assert!(workers[0].pull(&mut cluster, now).write.is_some());
}

/// An estimated shortage fails the job only after an epoch without space.
#[test]
fn the_failure_states_the_missing_bytes() {
    let (mut cluster, mut workers, now) = cluster(1);
    let missing = || Opened { missing_bytes: LIMIT / 2, ..with_space(1000) };
    let job = submit_limited(&mut cluster, now, missing());
    run_short(&mut cluster, &mut workers[0], now);
    open(&mut cluster, now, 2, missing());
    let failure = failure(&cluster, &job);
    assert!(failure.contains("the rest needs at least 1.5 MiB"), "{failure}");
}

/// Space that members of a failed epoch may still fill stays reserved until the run is opened again, after the next
/// epoch.
#[test]
fn space_for_leftovers_of_failed_epochs_is_reserved() {
    let (mut cluster, mut workers, now) = cluster(2);
    let files = 2 * crate::room::BESIDE_FRAMES;
    submit_limited(&mut cluster, now, with_space(files + 100));
    let finish = |cluster: &mut Cluster, workers: &mut [Worker], at: Duration| -> bool {
        let all = || (4..=params().last_layer().0).step_by(2);
        workers.iter_mut().filter(|worker| worker.epoch.is_some()).for_each(|worker| worker.finish(all()));
        let writes = workers.iter_mut().map(|worker| worker.pull(cluster, at).write);
        writes.flatten().count() > 0
    };
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    assert!(finish(&mut cluster, &mut workers, now), "the second worker gets its order");
    workers[0].fail(WorkerFailure::Peer(WorkerId(2)));
    workers[0].pull(&mut cluster, now);
    assert_eq!(cluster.take_errands(), [], "the next epoch begins without reopening");
    let mut at = now;
    pull_until(&mut cluster, &mut workers, &mut at, now + seconds(4.0));
    assert!(!finish(&mut cluster, &mut workers, at), "the leftovers leave no space");
    open(&mut cluster, at, 2, with_space(files + 100));
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, at)));
    assert!(finish(&mut cluster, &mut workers, at), "the leftovers are counted or deleted");
}
