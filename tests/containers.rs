//! Workers in containers. Every worker is process 1, and all share a volume.

use crate::common;

use std::process::{Command, Stdio};

use common::cluster::Cluster;
use common::events;
use common::serving::Server;

/// Makes the program process 1 of a new namespace. The namespace ends with the program.
const CONTAIN: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--"];

/// The temporary files of the workers have different names, so no epoch fails.
#[test]
fn workers_that_are_all_process_1_share_a_volume() {
    let may = Command::new(CONTAIN[0]).args(&CONTAIN[1..]).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|made| made.success()) {
        assert!(std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "no process namespace is to be had");
        eprintln!("skipped: no process namespace is to be had here");
        return;
    }
    let mut cluster = Cluster::new(0);
    let cache = cluster.store().join("cache");
    for _ in 0..4 {
        let url = cluster.coordinator.url.clone();
        let args = ["worker", "--coordinator", &url, "--listen", "127.0.0.1:0", "--threads", "1"];
        let options = ["--memory", "1GiB", "--cache", cache.to_str().unwrap()];
        cluster.workers.push(Server::launch_within(&CONTAIN, &[&args[..], &options].concat()));
    }
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), "d824fa6f0a7d0cde64a79087a89cab66");
    let logs = cluster.logs();
    assert!(!logs.contains(events::EPOCH_FAILED) && !logs.contains(events::EPOCH_FAILED_HERE), "{logs}");
}
