//! Blame for failed epochs, and the duration of its effect.

use super::*;

#[test]
fn workers_without_reachable_peers_are_left_out_before_the_job_fails() {
    let (mut cluster, mut workers, mut now) = cluster(8);
    submit(&mut cluster, now, "job");
    for _ in 0..4 {
        workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
        let Some(share) = workers[0].epoch.clone() else { break };
        let victim = share.members.iter().rev().find(|member| member.worker != WorkerId(1)).unwrap();
        workers[0].fail(WorkerFailure::Peer(victim.worker));
        workers[0].pull(&mut cluster, now);
        now += seconds(0.01);
    }
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    assert_eq!(workers[0].epoch, None, "the complaining worker is left out");
    assert!(workers[1].epoch.is_some(), "the other workers work");
}

#[test]
fn one_death_is_blamed_once() {
    let (mut cluster, mut workers, now) = cluster(8);
    submit(&mut cluster, now, "job");
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, now)));
    workers[..7].iter_mut().for_each(|worker| {
        worker.fail(WorkerFailure::Peer(WorkerId(8)));
        worker.pull(&mut cluster, now);
    });
    let later = now + ClusterConfig::default().backoff;
    workers.iter_mut().for_each(|worker| drop(worker.pull(&mut cluster, later)));
    let status = cluster.status(later);
    assert_eq!(status.workers[7].activity, Activity::Waiting, "its single back-off is over");
}

/// A dead worker with an unexpired lease must not be in the next epochs, because each epoch would fail.
#[test]
fn unreachable_workers_are_left_out_until_they_pull() {
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
        open_runs(cluster, now);
    };
    fail(&mut workers[0], WorkerFailure::Peer(WorkerId(2)), &mut cluster, now);
    assert_eq!(members(&workers[0]), Some(vec![1]), "the other worker continues alone");
    fail(&mut workers[0], WorkerFailure::Other("any".to_owned()), &mut cluster, now);
    let later = now + 2 * ClusterConfig::default().backoff;
    assert!(later < now + ClusterConfig::default().lease, "its lease is not over");
    workers[0].pull(&mut cluster, later);
    assert_eq!(members(&workers[0]), Some(vec![1]), "its back-off is over, but it has not pulled");
    workers[1].pull(&mut cluster, later);
    fail(&mut workers[0], WorkerFailure::Other("any".to_owned()), &mut cluster, later);
    workers[1].pull(&mut cluster, later);
    assert!(members(&workers[1]).is_some_and(|members| members.contains(&2)), "it has pulled");
}

/// Workers that are killed more often than commits are due must still make progress. So commits are more frequent
/// for some time.
#[test]
fn commits_are_more_frequent_after_failures() {
    let (mut cluster, mut workers, mut now) = cluster(2);
    submit(&mut cluster, now, "job");
    for worker in &mut workers {
        assert!(worker.pull(&mut cluster, now).share.is_some());
        worker.fail(WorkerFailure::Other("a kill".to_owned()));
        worker.pull(&mut cluster, now);
        open_runs(&mut cluster, now);
        worker.reports.push(WorkerReport::Well);
    }
    now += seconds(3.0);
    // The first worker that reports its recovery begins alone.
    let worker = &mut workers[0];
    assert_eq!(worker.pull(&mut cluster, now).share.map(|share| share.members.len()), Some(1));
    let interval = ClusterConfig::default().commit_interval;
    // Finishes layers, and expects the order to write these layers after this time and not before.
    let mut written_after = |now: &mut Duration, worker: &mut Worker, layers: [u32; 2], wait: Duration| {
        worker.finish(layers.into_iter());
        worker.pull(&mut cluster, *now);
        let early = worker.pull(&mut cluster, *now + wait - seconds(0.1)).write;
        *now += wait;
        let due = worker.pull(&mut cluster, *now).write.map(|shard| shard.last);
        assert_eq!((early, due), (None, Some(Layer(layers[1]))));
        worker.pull(&mut cluster, *now);
        let appends = cluster.take_appends();
        let [Append::Commit { ticket, .. }] = appends.as_slice() else { panic!("{appends:?}") };
        cluster.committed(*now, *ticket, RunBytes::default());
    };
    written_after(&mut now, worker, [4, 6], interval / 4);
    written_after(&mut now, worker, [8, 10], interval / 4);
    written_after(&mut now, worker, [12, 14], interval / 4);
    // From this commit on, the epoch has lasted at least as long as the normal time between commits.
    written_after(&mut now, worker, [16, 18], interval / 4);
    written_after(&mut now, worker, [20, 22], interval / 2);
    written_after(&mut now, worker, [24, 26], interval);
}

/// If a rack loses power, each dead worker ends an epoch. These ends are close together, so they count as one
/// failure of the job.
#[test]
fn workers_that_die_together_are_one_failure() {
    let (mut cluster, mut workers, now) = cluster(9);
    submit(&mut cluster, now, "job");
    for worker in &mut workers[..8] {
        assert!(worker.pull(&mut cluster, now).share.is_some());
        worker.fail(WorkerFailure::Other("its peer is dead".to_owned()));
        worker.pull(&mut cluster, now);
        open_runs(&mut cluster, now);
    }
    let job = &cluster.status(now).jobs[0];
    assert_eq!((job.retries, &job.state), (8, &JobState::Running));
}

/// A member that pulls without progress is detected within a minute, in any stage, and the others continue.
#[test]
fn hanging_workers_are_left_out_until_they_leave_their_epoch() {
    let last = params().last_layer().0;
    // Case 0: the third worker never enters the epoch. Case 1: it enters and computes forever. Case 2: it does
    // not write.
    for case in 0..3 {
        let (mut cluster, mut workers, mut now) = cluster(3);
        let begun = now;
        workers[2].hangs = case == 0;
        submit(&mut cluster, now, "job");
        pull_until(&mut cluster, &mut workers, &mut now, begun + seconds(1.0));
        let first = workers[0].epoch.clone().unwrap();
        assert_eq!(first.members.len(), 3, "case {case}");
        for worker in &mut workers[..2] {
            // The first two workers have finished their work and wait for the third.
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
        // A hanging worker gets no work before it has left its epoch, even if it takes long to leave.
        workers.iter_mut().for_each(|worker| worker.stage = EpochStage::Working);
        let hangs_in_it = workers[2].epoch.is_some();
        if !hangs_in_it {
            // A worker that failed without hanging would have work again by now.
            let activity = cluster.status(now).workers.remove(2).activity;
            assert!(matches!(activity, Activity::BackingOff(_)), "case {case}: {activity:?}");
        }
        let status = cluster.status(now + seconds(200.0)).workers.remove(2);
        let is_left_out = matches!(status.activity, Activity::Unwell(_));
        assert_eq!(is_left_out, hangs_in_it, "case {case}: {:?}", status.activity);
    }
}

/// If no member can write its shard, the store is at fault, so no member is blamed.
#[test]
fn no_member_is_blamed_for_a_store_that_accepts_no_shard() {
    let (mut cluster, mut workers, mut now) = cluster(2);
    submit(&mut cluster, now, "job");
    for worker in &mut workers {
        worker.pull(&mut cluster, now);
        worker.finish((4..=params().last_layer().0).step_by(2));
        worker.stage = EpochStage::Waiting;
        worker.hangs = true;
        worker.pull(&mut cluster, now);
    }
    assert!(workers.iter_mut().all(|worker| worker.pull(&mut cluster, now).write.is_some()));
    let until = now + seconds(300.0);
    pull_until(&mut cluster, &mut workers, &mut now, until);
    assert_eq!(cluster.status(now).jobs[0].retries, 0);
    // Once one member has written its shard, the other is at fault.
    workers[0].hangs = false;
    let until = now + seconds(60.0);
    pull_until(&mut cluster, &mut workers, &mut now, until);
    assert_eq!(cluster.status(now).jobs[0].retries, 1);
}

/// A slow step on a slow machine must not always count as a hang. So each failure doubles the members' time.
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
            open_runs(&mut cluster, now);
        }
        lasted.push((now - begun).as_secs());
        workers.iter_mut().for_each(|worker| worker.epoch = None);
        let until = now + seconds(5.0);
        pull_until(&mut cluster, &mut workers, &mut now, until);
    }
    assert!(lasted[0] < 50 && lasted[1] > 60 && lasted[2] > 130, "{lasted:?}");
}

/// Lets a worker report a lost shard, so that its epoch ends. Returns the claim for the coordinator to check.
fn claimed(cluster: &mut Cluster, worker: &mut Worker, now: Duration) -> Claim {
    worker.pull(cluster, now);
    let (job, file) = (JobId("job".to_owned()), "reach-1.shard".to_owned());
    worker.fail(WorkerFailure::ShardLost { job, file });
    worker.pull(cluster, now);
    let claims = open_runs(cluster, now);
    let [claim] = &claims[..] else { panic!("{claims:?}") };
    claim.clone()
}

fn commit() -> Commit {
    let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(8));
    Commit { phase, first, last, layers: Vec::new(), fingerprint: None }
}

/// Returns a cluster with a job that has committed a range.
fn with_commit(workers: u64) -> (Cluster, Vec<Worker>, Duration) {
    let (mut cluster, workers, now) = cluster(workers);
    cluster.submit(now, submission("job")).unwrap();
    let (ticket, ..) = to_open(&mut cluster);
    cluster.opened(now, ticket, Opened { holdings: vec![commit()].into(), ..empty(100) });
    (cluster, workers, now)
}

/// A worker that misreads an intact shard causes no recomputation, because the coordinator reads the shard too.
#[test]
fn the_coordinator_reads_a_shard_that_a_worker_cannot_read() {
    let (mut cluster, mut workers, now) = with_commit(2);
    let claim = claimed(&mut cluster, &mut workers[0], now);
    assert_eq!(workers[1].pull(&mut cluster, now).share, None, "no epoch begins before the result");
    cluster.examined(now, &claim, Examined::Sound);
    assert_eq!(cluster.take_appends(), [], "nothing is retracted");
    let share = workers[1].pull(&mut cluster, now).share.unwrap();
    assert_eq!(share.members.len(), 1, "the misreading worker is left out");
    assert_eq!(share.segment.first, Layer(10), "committed work stays");

    let (mut cluster, mut workers, now) = with_commit(2);
    let claim = claimed(&mut cluster, &mut workers[0], now);
    cluster.examined(now, &claim, Examined::Lost(commit()));
    let appends = cluster.take_appends();
    let [Append::Retract { ticket, .. }] = &appends[..] else { panic!("{appends:?}") };
    cluster.committed(now, *ticket, RunBytes::default());
    let share = workers[1].pull(&mut cluster, now).share.unwrap();
    assert_eq!((share.members.len(), share.segment.first), (2, Layer(4)), "no worker is blamed");
}

/// If the only worker misreads repeatedly, the job fails with the true reason.
#[test]
fn a_job_whose_only_worker_misreads_fails() {
    let (mut cluster, mut workers, mut now) = with_commit(1);
    // The second failure occurs within a lease of the first, so it does not count.
    for _ in 0..6 {
        let claim = claimed(&mut cluster, &mut workers[0], now);
        cluster.examined(now, &claim, Examined::Sound);
        // Waits until the worker gets work again or the job has failed.
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
        matches!(&state, Some(JobState::Failed { reason }) if reason.contains("cannot read the intact shard")),
        "{state:?}"
    );
}
