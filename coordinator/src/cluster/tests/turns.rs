//! Tests of the turns of jobs. A blocked job does not delay other jobs.

use super::*;

/// Lets the only worker of a cluster finish its work, and returns the resulting append.
fn to_append(cluster: &mut Cluster, worker: &mut Worker, now: Duration) -> Append {
    worker.pull(cluster, now);
    worker.finish((4..=params().last_layer().0).step_by(2));
    (0..2).for_each(|_| drop(worker.pull(cluster, now)));
    let appends = cluster.take_appends();
    let [append] = &appends[..] else { panic!("{appends:?}") };
    append.clone()
}

fn states(cluster: &Cluster, now: Duration) -> Vec<(String, &'static str)> {
    cluster.status(now).jobs.iter().map(|job| (job.job.0.clone(), job.state.name())).collect()
}

/// A journal that cannot be written fails its own job after a while, but no other job.
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
        for again in cluster.take_appends() {
            assert_eq!(again, append, "the same append again");
            cluster.append_failed(now, append.ticket(), failure());
        }
        assert!(now < begun + seconds(60.0), "the job fails within a minute");
    }
    assert!(now >= begun + ClusterConfig::default().journal_patience);
    assert_eq!(states(&cluster, now), [("job".to_owned(), "failed"), ("other".to_owned(), "running")]);
    open_runs(&mut cluster, now);
    workers[0].pull(&mut cluster, now);
    assert_eq!(workers[0].epoch.as_ref().map(|share| share.job.0.as_str()), Some("other"));
    assert!(!cluster.holds(&append.job().clone()), "its run is released");
}

/// An unavailable store fails no job, however long the outage lasts. A stuck job can be cancelled.
#[test]
fn an_unavailable_store_fails_no_job_and_a_stuck_job_can_be_cancelled() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    submit(&mut cluster, now, "job");
    let append = to_append(&mut cluster, &mut workers[0], now);
    for _ in 0..200 {
        cluster.append_failed(now, append.ticket(), AppendFailure::Store("no space".to_owned()));
        now += seconds(2.0);
        workers[0].pull(&mut cluster, now);
        assert_eq!(cluster.take_appends(), std::slice::from_ref(&append));
    }
    assert_eq!(states(&cluster, now)[0].1, "running");
    // While the shell makes the append, the cancellation waits for the outcome of the append.
    cluster.cancel(now, append.job()).unwrap();
    assert_eq!(states(&cluster, now)[0].1, "running");
    cluster.append_failed(now, append.ticket(), AppendFailure::Store("no space".to_owned()));
    assert_eq!(states(&cluster, now)[0].1, "cancelled");
    assert!(!cluster.holds(append.job()));

    // While an append waits for a retry, a cancellation takes effect at once.
    let (mut cluster, mut workers, now) = self::cluster(1);
    submit(&mut cluster, now, "job");
    let append = to_append(&mut cluster, &mut workers[0], now);
    cluster.append_failed(now, append.ticket(), AppendFailure::Store("no space".to_owned()));
    cluster.cancel(now, append.job()).unwrap();
    assert_eq!(states(&cluster, now)[0].1, "cancelled");
}

/// A pending append of a done job does not delay the turns of other jobs.
#[test]
fn waiting_appends_do_not_delay_other_jobs() {
    let (mut cluster, mut workers, now) = cluster(1);
    let done = Submission { state: JobState::Done, ..submission("done") };
    let id = done.job.clone();
    cluster.enqueue(now, done).unwrap();
    let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(8));
    let lost = Commit { phase, first, last, layers: Vec::new(), fingerprint: None };
    assert_eq!(cluster.shards_lost(now, &id, &[lost]), Ok(true));
    let appends = cluster.take_appends();
    let [Append::Retract { ticket, .. }] = &appends[..] else { panic!("{appends:?}") };
    cluster.append_failed(now, *ticket, AppendFailure::Store("no space".to_owned()));
    submit(&mut cluster, now, "other");
    workers[0].pull(&mut cluster, now);
    assert_eq!(workers[0].epoch.as_ref().map(|share| share.job.0.as_str()), Some("other"));
}

/// If another process writes to a job's journal, that job fails and the coordinator continues.
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

/// Workers register in any order. A job that fits none of the first workers waits for other workers. The first
/// workers get other jobs in the meantime.
#[test]
fn a_job_waits_for_a_worker_that_is_large_enough() {
    let mut cluster = Cluster::new(EpochId(1), ClusterConfig::default(), secrets(), Duration::ZERO);
    let mut large = submission("large");
    large.least_memory = Some(Arc::new(LeastMemory::new(vec![(1, 3 << 30)])));
    cluster.submit(Duration::ZERO, large).unwrap();
    let (ticket, ..) = to_open(&mut cluster);
    cluster.opened(Duration::ZERO, ticket, empty(3 << 30));
    submit(&mut cluster, Duration::ZERO, "small");
    let mut worker = Worker::new(1);
    let mut now = seconds(3.0);
    // The large job does not fit the memory of 1000 bytes of these tests' workers.
    assert_eq!(worker.pull(&mut cluster, now).needed_memory, Some(3 << 30), "the worker learns the need");
    now += seconds(3.0);
    pull_until(&mut cluster, std::slice::from_mut(&mut worker), &mut now, seconds(9.0));
    assert_eq!(states(&cluster, now), [("large".to_owned(), "queued"), ("small".to_owned(), "running")]);
    let obstacle = cluster.status(now).jobs[0].obstacle.clone().unwrap();
    assert!(obstacle.contains("3.0 GiB") && obstacle.contains("1000 B"), "{obstacle}");
    assert_eq!(worker.epoch.as_ref().map(|share| share.job.0.as_str()), Some("small"));
}

#[test]
fn a_run_that_is_open_elsewhere_is_retried_later() {
    let (mut cluster, mut workers, mut now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    cluster.submit(now, submission("other")).unwrap();
    let (ticket, job, _) = to_open(&mut cluster);
    assert_eq!(job.0, "job", "one at a time");
    cluster.not_opened(now, ticket, OpenFailure::Later("process 7 has it open".to_owned()));
    assert_eq!(states(&cluster, now), [("job".to_owned(), "queued"), ("other".to_owned(), "running")]);
    let (ticket, job, _) = to_open(&mut cluster);
    assert_eq!(job.0, "other");
    cluster.not_opened(now, ticket, OpenFailure::Never("it is damaged".to_owned()));
    assert_eq!(states(&cluster, now)[1].1, "failed");
    assert_eq!(cluster.take_errands(), []);
    now += ClusterConfig::default().reopen;
    workers[0].pull(&mut cluster, now);
    assert_eq!(to_open(&mut cluster).1.0, "job");
}

/// Tests a run that is still being opened when its job is forgotten and a job with the same name is submitted.
#[test]
fn opened_runs_of_an_earlier_job_of_the_name_are_ignored() {
    let (mut cluster, mut workers, now) = cluster(1);
    cluster.submit(now, submission("job")).unwrap();
    let id = JobId("job".to_owned());
    let (earlier, ..) = to_open(&mut cluster);
    cluster.cancel(now, &id).unwrap();
    cluster.forget(now, &id).unwrap();
    cluster.submit(now, submission("job")).unwrap();
    let (ticket, ..) = to_open(&mut cluster);
    assert_eq!([earlier, ticket].map(|ticket| cluster.is_opening(ticket)), [false, true]);
    cluster.opened(now, earlier, empty(100));
    assert_eq!(workers[0].pull(&mut cluster, now).share, None);
    cluster.not_opened(now, earlier, OpenFailure::Never("it is damaged".to_owned()));
    assert_eq!(states(&cluster, now), [("job".to_owned(), "running")]);
    cluster.opened(now, ticket, empty(100));
    assert!(workers[0].pull(&mut cluster, now).share.is_some());
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
    assert_eq!((cluster.status(now).jobs.len(), cluster.take_changed().contains(&b)), (1, true));
    submit(&mut cluster, now, "b");
}
