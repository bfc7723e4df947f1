//! Tests of registration. Workers are registered from their first pull until they are lost or leave.

use super::*;

/// The first pull of a process registers it. A later process ends an earlier one.
#[test]
fn a_pull_registers_its_process() {
    let (mut cluster, mut workers, now) = cluster(1);
    submit(&mut cluster, now, "job");
    let share = workers[0].pull(&mut cluster, now).share.unwrap();
    let pull = workers[0].message();
    let again = Pull { incarnation: Incarnation(2), epoch: None, ..pull.clone() };
    assert_eq!(cluster.pull(now, &again).unwrap().share, None, "the epoch of the earlier process is over");
    let later = now + ClusterConfig::default().settle;
    let next = cluster.pull(later, &again).unwrap().share.unwrap();
    assert!(next.epoch > share.epoch);
    let old = Refusal::OldIncarnation { worker: pull.worker, expected: Incarnation(2), got: Incarnation(1) };
    assert_eq!(cluster.pull(later, &pull), Err(old));
    // The last pull of a leaving worker does not register the worker.
    let goodbye = Pull { leaving: true, ..Worker::new(100).message() };
    let reply = cluster.pull(now, &goodbye).unwrap();
    assert_eq!((reply.share, reply.hold), (None, Duration::ZERO));
    assert!(!cluster.knows(WorkerId(100)));
}

#[test]
fn leaving_workers_disappear_from_the_status() {
    let (mut cluster, mut workers, now) = cluster(2);
    let goodbye = Pull { leaving: true, ..workers[0].message() };
    let reply = cluster.pull(now, &goodbye).unwrap();
    assert_eq!((reply.share, reply.hold), (None, Duration::ZERO));
    assert!(!cluster.knows(WorkerId(1)) && cluster.knows(WorkerId(2)));
    assert!(cluster.take_events().contains(&Event::WorkerLost { worker: WorkerId(1), leaving: true }));
    // A member stays until its work is committed or withdrawn.
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

/// Many workers that do not start cost one epoch together, not one epoch each.
#[test]
fn all_workers_that_do_not_start_are_left_out_together() {
    let (mut cluster, mut workers, mut now) = cluster(9);
    workers[1..].iter_mut().for_each(|worker| worker.hangs = true);
    submit(&mut cluster, now, "job");
    let until = now + seconds(60.0);
    pull_until(&mut cluster, &mut workers, &mut now, until);
    let share = workers[0].epoch.clone().unwrap();
    assert_eq!(share.members.len(), 1, "only the working worker");
    assert_eq!(cluster.status(now).jobs[0].retries, 1);
}

/// Repeated epochs that end by an expired lease fail a job, unless the coordinator itself was starved.
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
            // The worker has its share and then stops pulling.
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
