//! Members of an epoch, real processes: many of them, and one that is paused.

use crate::common;

use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::serving::Server;
use common::{Place, Solved, events, whole};

/// A cluster after all workers have joined.
fn with_workers(count: usize, options: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(0);
    (0..count).for_each(|_| cluster.add_worker(options));
    wait_for(&cluster, count);
    cluster
}

fn wait_for(cluster: &Cluster, count: usize) {
    let begun = Instant::now();
    loop {
        let all = cluster.client(&["status", "--json"]).exits(0).json();
        if all["workers"].as_array().unwrap().len() == count {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{count} workers: {}", cluster.logs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The value of a counter of a process.
fn counted(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap()
}

/// Each worker sends blocks to the workers that need them. No block is lost or duplicated, so the run equals the run of one
/// process.
#[test]
fn twelve_workers_push_blocks_to_each_other() {
    let cluster = with_workers(12, &["--metrics-listen", "127.0.0.1:0"]);
    for board in ["3x2", "2x3", "4x2"] {
        let options = format!("--board {board}");
        let job = cluster.submit(&options);
        let done = cluster.wait(&job);
        assert_eq!(whole(&done["retries"]), 0, "{board}: {done}\n{}", cluster.logs());
        assert_eq!(cluster.verified_fingerprint(&job), Solved::new(&options).fingerprint(), "{board}");
    }
    let log = cluster.coordinator.log();
    assert!(log.contains("workers=12"), "all were in one epoch: {log}");
    let metrics: Vec<String> = cluster.workers.iter().map(|worker| worker.scrape()).collect();
    let sum = |name| metrics.iter().map(|metrics| counted(metrics, name)).sum::<f64>();
    let (pushed, received) = (sum("exact2048_pushed_bytes_total"), sum("exact2048_received_bytes_total"));
    assert_eq!(pushed, received);
    let senders =
        metrics.iter().filter(|metrics| counted(metrics, "exact2048_pushed_bytes_total") > 0.0).count();
    assert!(senders >= 6, "{senders} of 12 have sent blocks");
}

/// Other workers report a worker with a wrong address. It gets no work for a while, so a job ends without it.
#[test]
fn a_worker_with_a_wrong_address_does_not_stop_a_job() {
    let mut cluster = Cluster::new(0);
    let coordinator = cluster.coordinator.address().to_string();
    for address in ["127.0.0.1:9", &*coordinator] {
        cluster.add_worker(&["--advertise", address]);
    }
    cluster.add_worker(&[]);
    wait_for(&cluster, 3);
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), "d824fa6f0a7d0cde64a79087a89cab66");
    assert!(cluster.coordinator.log().contains("cannot reach worker"), "{}", cluster.logs());
}

/// Both workers start on an idle machine, and each alone would use most of its memory.
#[test]
fn workers_without_a_limit_share_the_memory_of_the_machine() {
    let cluster = Cluster::new(0);
    let place = Place::new();
    let cache = place.join("cache");
    let args =
        ["worker", "--coordinator", &cluster.coordinator.url, "--listen", "127.0.0.1:0", "--threads", "1"];
    let args = [&args[..], &["--cache", cache.to_str().unwrap()]].concat();
    let workers = [(), ()].map(|()| Server::launch(&args, &[]));
    wait_for(&cluster, 2);
    let all = cluster.client(&["status", "--json"]).exits(0).json();
    let claimed: u64 =
        all["workers"].as_array().unwrap().iter().map(|worker| whole(&worker["memory_bytes"])).sum();
    assert!(claimed <= exact2048_run::machine::memory_bytes(), "{all}");
    drop(workers);
}

/// A process stops in the middle of an epoch, without a message and with open connections. A swapping machine or a paused
/// container has the same effect.
#[test]
fn a_member_that_stands_still_is_left_out_and_comes_back() {
    let mut cluster = with_workers(3, &[]);
    let job = cluster.submit("--board 4x2");
    cluster.wait_until(&job, |status| whole(&status["states"]) > 0);
    let still = &cluster.workers[0];
    still.signal("STOP");
    assert_ne!(cluster.status(&job)["state"], "done", "that came too late");
    let begun = Instant::now();
    cluster.wait_until(&job, |status| whole(&status["retries"]) > 0);
    assert!(begun.elapsed() < Duration::from_secs(60), "noticed after {:?}", begun.elapsed());
    cluster.wait(&job);
    let expected = Solved::new("--board 4x2").fingerprint().to_owned();
    assert_eq!(cluster.verified_fingerprint(&job), expected);

    // The worker is in the middle of an epoch that is over for all other workers.
    cluster.workers[0].signal("CONT");
    wait_for(&cluster, 3);
    let again = cluster.submit("--board 4x2 --name again");
    let done = cluster.wait(&again);
    assert_eq!(whole(&done["retries"]), 0, "{done}\n{}", cluster.logs());
    assert_eq!(cluster.verified_fingerprint(&again), expected);
    assert_eq!(cluster.verified_fingerprint(&job), expected, "what was done before is as it was");
    let lines = cluster.coordinator.log();
    assert!(
        lines
            .lines()
            .filter(|line| line.contains(events::EPOCH_BEGAN))
            .any(|line| { line.contains("again") && line.contains("workers=3") }),
        "it takes part: {lines}"
    );
    assert!(cluster.workers[0].runs());
}
