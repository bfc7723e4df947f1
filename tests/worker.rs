//! A worker as those see it who start it, watch it, and call it: real processes.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::serving::Server;

/// Metrics of all servers, which are there once there was a request.
const OF_ALL_SERVERS: &str = "exact2048_request";

/// Waits until metrics have a text.
#[track_caller]
fn scrape_until(server: &Server, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let metrics = server.scrape();
        if metrics.contains(wanted) {
            return metrics;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{wanted} is missing from\n{metrics}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The names that are explained, and those that have samples; a histogram by the name of its count.
fn names(metrics: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let helped = metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next());
    let sampled = metrics.lines().filter(|line| line.starts_with("exact2048_"));
    let sampled = sampled.filter_map(|line| line.split(['{', ' ']).next());
    let sampled = sampled.filter(|name| !name.ends_with("_sum") && !name.ends_with("_bucket"));
    let is_own = |name: &&str| !name.starts_with(OF_ALL_SERVERS);
    let sampled = sampled.map(|name| name.strip_suffix("_count").unwrap_or(name));
    (helped.filter(is_own).collect(), sampled.filter(is_own).collect())
}

#[test]
fn metrics_say_what_there_is() {
    let mut cluster = Cluster::new(0);
    cluster.add_worker(&["--metrics-listen", "127.0.0.1:0"]);
    let fresh = scrape_until(&cluster.workers[0], "exact2048_pull_seconds_count");
    let expected = BTreeSet::from([
        "exact2048_cached_shards_total",
        "exact2048_epochs_failed_total",
        "exact2048_epochs_total",
        "exact2048_fetched_bytes_total",
        "exact2048_fetched_shards_total",
        "exact2048_given_bytes_total",
        "exact2048_in_epoch",
        "exact2048_pull_seconds",
        "exact2048_pushed_bytes_total",
        "exact2048_received_bytes_total",
        "exact2048_reports_waiting",
        "exact2048_sending_bytes",
        "exact2048_states_total",
        "exact2048_unwritten_bytes",
        "exact2048_written_bytes_total",
    ]);
    assert_eq!(names(&fresh), (expected.clone(), expected), "{fresh}");
    for line in [
        "exact2048_states_total{phase=\"enumerate\"} 0",
        "exact2048_states_total{phase=\"back up\"} 0",
        "exact2048_fetched_shards_total{from=\"peer\"} 0",
        "exact2048_fetched_shards_total{from=\"store\"} 0",
        "exact2048_epochs_failed_total 0",
    ] {
        assert!(fresh.lines().any(|found| found == line), "{line} is missing from\n{fresh}");
    }

    // What two of them did, and that nothing of it is queued for ever.
    cluster.add_worker(&["--metrics-listen", "127.0.0.1:0"]);
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    let worked = scrape_until(&cluster.workers[0], "exact2048_in_epoch 0");
    for queue in ["exact2048_sending_bytes", "exact2048_unwritten_bytes", "exact2048_reports_waiting"] {
        scrape_until(&cluster.workers[0], &format!("\n{queue} 0\n"));
    }
    for counter in ["exact2048_epochs_total", "exact2048_written_bytes_total", "exact2048_pushed_bytes_total"] {
        assert!(!worked.contains(&format!("\n{counter} 0\n")), "{counter} is 0 in\n{worked}");
    }
    assert!(!worked.contains("exact2048_states_total{phase=\"back up\"} 0"), "{worked}");
}
