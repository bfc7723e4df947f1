//! Who is there: those that were reached, until they are lost or have said that they go.

use super::*;

fn strangers(pull: &Pull) -> Result<PullReply, Refusal> {
    Err(Refusal::Stranger { worker: pull.worker })
}

/// If made-up workers got work, each would cost an epoch.
#[test]
fn who_was_not_reached_gets_no_work_and_changes_nothing() {
    let (mut cluster, mut workers, now) = cluster(1);
    submit(&mut cluster, now, "job");
    for number in 100..1600 {
        let mut made_up = Worker::new(number);
        made_up.fail(WorkerFailure::Other("nobody".to_owned()));
        let pull = made_up.message();
        assert_eq!(cluster.pull(now, &pull), strangers(&pull));
    }
    let share = workers[0].pull(&mut cluster, now).share.expect("it waits for none of them");
    assert_eq!(share.members.len(), 1);
    let status = cluster.status(now);
    assert_eq!((status.workers.len(), status.jobs[0].retries), (1, 0));
    // Also where they say that they go.
    let goodbye = Pull { leaving: true, ..Worker::new(100).message() };
    assert_eq!(
        cluster.pull(now, &goodbye).map(|reply| (reply.share, reply.hold)),
        Ok((None, Duration::ZERO))
    );
    assert!(!cluster.knows(WorkerId(100)));
}

/// Each process of a worker has to be reached: a later one is another, and so is one that was lost.
#[test]
fn each_process_is_reached_once() {
    let (mut cluster, mut workers, now) = cluster(1);
    let pull = workers[0].message();
    assert!(cluster.pull(now, &pull).is_ok());
    let again = Pull { incarnation: Incarnation(2), ..pull.clone() };
    assert_eq!(cluster.pull(now, &again), strangers(&again));
    assert!(cluster.pull(now, &pull).is_ok(), "whoever says so does not end the earlier one");
    cluster.admit(now, &again).unwrap();
    let old = Refusal::OldIncarnation { worker: pull.worker, expected: Incarnation(2), got: Incarnation(1) };
    assert_eq!(cluster.pull(now, &pull), Err(old.clone()));
    assert_eq!(cluster.admit(now, &pull), Err(old));
    let later = now + 2 * ClusterConfig::default().lease;
    (1..=8).for_each(|part| cluster.tick(now + (later - now) * part / 8));
    assert_eq!(cluster.pull(later, &again), strangers(&again));
}

#[test]
fn who_says_goodbye_is_not_shown_any_more() {
    let (mut cluster, mut workers, now) = cluster(2);
    let goodbye = Pull { leaving: true, ..workers[0].message() };
    let reply = cluster.pull(now, &goodbye).unwrap();
    assert_eq!((reply.share, reply.hold), (None, Duration::ZERO));
    assert!(!cluster.knows(WorkerId(1)) && cluster.knows(WorkerId(2)));
    assert!(cluster.take_events().contains(&Event::WorkerLost { worker: WorkerId(1), leaving: true }));
    // A member stays until its work is committed or over.
    submit(&mut cluster, now, "job");
    let share = workers[1].pull(&mut cluster, now).share.unwrap();
    let goodbye = Pull { leaving: true, ..workers[1].message() };
    assert_eq!(cluster.pull(now, &goodbye).unwrap().withdrawn, None);
    assert!(cluster.knows(WorkerId(2)));
    cluster.cancel(now, &JobId("job".to_owned())).unwrap();
    let reply = cluster.pull(now, &goodbye).unwrap();
    assert_eq!(reply.withdrawn, Some(share.epoch));
    assert!(!cluster.knows(WorkerId(2)));
}

/// A crowd that does not come to work costs one epoch, not one each.
#[test]
fn all_that_do_not_come_to_work_are_left_out_at_once() {
    let (mut cluster, mut workers, mut now) = cluster(9);
    workers[1..].iter_mut().for_each(|worker| worker.hangs = true);
    submit(&mut cluster, now, "job");
    let until = now + seconds(60.0);
    pull_until(&mut cluster, &mut workers, &mut now, until);
    let share = workers[0].epoch.clone().unwrap();
    assert_eq!(share.members.len(), 1, "the one that works");
    assert_eq!(cluster.status(now).jobs[0].retries, 1);
}

/// Epochs that end by leases fail a job, but not while the coordinator itself has too little time (finding B8).
#[test]
fn leases_that_end_while_the_coordinator_is_starved_do_not_count() {
    let (lease, job) = (ClusterConfig::default().lease, JobId("job".to_owned()));
    for (calls_in_lease, fails) in [(5, true), (3, false)] {
        let (mut cluster, mut workers, mut now) = cluster(1);
        submit(&mut cluster, now, "job");
        for _ in 0..6 {
            for _ in 0..2 * calls_in_lease {
                now += lease / calls_in_lease;
                workers[0].pull(&mut cluster, now);
                open_runs(&mut cluster, now);
            }
            // It has its share, and is not heard any more.
            assert!(fails || workers[0].epoch.is_some());
            for _ in 0..2 * calls_in_lease {
                now += lease / calls_in_lease;
                cluster.tick(now);
            }
            assert!(!cluster.knows(WorkerId(1)));
        }
        assert!(cluster.status(now).jobs[0].retries >= 5);
        let has_failed = matches!(cluster.job_state(&job), Some(JobState::Failed { .. }));
        assert_eq!(has_failed, fails, "{calls_in_lease} calls in a lease");
    }
}
