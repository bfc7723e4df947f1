//! Clusters with machine failures that only root can cause: broken networks and full disks.
//!
//! Without root, or without `ip`, the tests are skipped, unless `EXACT2048_REQUIRE_ROOT` is set.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::cluster::{Cluster, start_worker};
use common::serving::Server;
use common::{Finished, Place, events, exact2048, least_memory, on_run, text, whole};

/// Fingerprint of every run of 4x2.
const FINGERPRINT: &str = "512d941b138950ab02da28252f0e594a";

fn is_root(test: &str) -> bool {
    let uid = Command::new("id").arg("-u").output().unwrap();
    let able = uid.stdout == b"0\n" && Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_ok();
    assert!(able || std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "{test} needs root and ip");
    if !able {
        eprintln!("{test} is skipped: it needs root and ip");
    }
    able
}

#[track_caller]
fn system(command: &str) {
    let done = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The address of a network card that does not exist.
const NOBODY: &str = "02:00:00:00:00:01";

/// A host on this machine: a network namespace with a wire to the main one.
struct Host {
    name: String,
    wire: String,
    address: String,
}

impl Host {
    /// Creates a host, in place of the host of a killed earlier test with the same addresses.
    fn new(number: u32) -> Self {
        let (name, wire) = (format!("exact2048-{number}"), format!("exact2048v{number}"));
        // Addresses from the range for network tests (RFC 2544).
        let (near, address) = (format!("198.18.{number}.1"), format!("198.18.{number}.2"));
        let host = Self { name: name.clone(), wire: wire.clone(), address: address.clone() };
        system(&format!("{{ ip link del {wire}; ip netns del {name}; }} 2>/dev/null; ip netns add {name}"));
        system(&format!("ip link add {wire} type veth peer name eth0 netns {name}"));
        system(&format!("ip addr add {near}/24 dev {wire} && ip link set {wire} up"));
        system(&format!("ip -n {name} addr add {address}/24 dev eth0 && ip -n {name} link set eth0 up"));
        system(&format!("ip -n {name} link set lo up && ip -n {name} route add default via {near}"));
        host
    }

    /// Starts a worker on the host.
    fn start_worker(&self, coordinator: &str, store: &str, cache: &Path) -> Server {
        let listen = format!("{}:0", self.address);
        let args =
            ["worker", "--coordinator", coordinator, "--listen", &listen, "--insecure", "--threads", "1"];
        let prefix = ["ip", "netns", "exec", &self.name];
        let rest = ["--memory", "1GiB", "--store", store, "--cache", cache.to_str().unwrap()];
        Server::launch_within(&prefix, &[&args[..], &rest].concat())
    }

    /// The address of the other end of the host's wire.
    fn near(&self) -> String {
        self.address.rsplit_once('.').map(|(net, _)| format!("{net}.1")).unwrap()
    }

    /// Loses packets of the host without an error, by sending them to a card that does not exist.
    fn lose_sent_packets(&self) {
        let (name, near) = (&self.name, self.near());
        system(&format!("ip -n {name} neigh replace {near} lladdr {NOBODY} dev eth0 nud permanent"));
    }

    /// Loses packets to the host in the same way.
    fn lose_received_packets(&self) {
        let Self { wire, address, .. } = self;
        system(&format!("ip neigh replace {address} lladdr {NOBODY} dev {wire} nud permanent"));
    }

    fn cut(&self) {
        system(&format!("ip -n {} link set eth0 down", self.name));
    }

    fn heal(&self) {
        let (Self { name, wire, address }, near) = (self, self.near());
        let forget = format!("ip -n {name} neigh del {near} dev eth0; ip neigh del {address} dev {wire}");
        system(&format!(
            "ip -n {name} link set eth0 up && ip -n {name} route replace default via {near}; {forget}; :"
        ));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// Two hosts with a worker each, and a coordinator on this host.
struct Hosts {
    place: Place,
    hosts: [Host; 2],
    coordinator: Server,
    workers: [Server; 2],
}

impl Hosts {
    /// Creates hosts with these numbers.
    fn new(numbers: [u32; 2]) -> Self {
        let place = Place::new();
        let store = format!("file://{}", place.join("store").display());
        std::fs::create_dir(place.join("store")).unwrap();
        let hosts = numbers.map(Host::new);
        system("sysctl -qw net.ipv4.ip_forward=1");
        let coordinator =
            Server::launch(&["coordinator", "--store", &store, "--listen", "0.0.0.0:0", "--insecure"], &[]);
        let port = coordinator.address().port();
        let workers = [0, 1].map(|number| {
            let url = format!("http://{}:{port}", hosts[number].near());
            hosts[number].start_worker(&url, &store, &place.join(&format!("cache-{number}")))
        });
        Self { place, hosts, coordinator, workers }
    }

    fn ask(&self, args: &[&str]) -> Finished {
        let local = format!("http://127.0.0.1:{}", self.coordinator.address().port());
        exact2048([&args[..1], &["--coordinator", &local], &args[1..]].concat())
    }

    fn status(&self, job: &str) -> serde_json::Value {
        self.ask(&["status", job, "--json"]).exits(0).json()
    }

    fn workers_there(&self) -> usize {
        self.ask(&["status", "--json"]).exits(0).stdout.matches("\"worker\":").count()
    }

    #[track_caller]
    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = std::time::Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{what}\n{}", self.coordinator.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a job, and breaks the first host meanwhile. The coordinator counts the host as lost, and the other host ends the
    /// job alone. After the repair, the first host returns.
    fn solve_while(&self, job: &str, happens: impl Fn(&Host)) {
        self.wait_for("both are there", || self.workers_there() == 2);
        self.ask(&["submit", "--board", "4x2", "--name", job]).exits(0);
        self.wait_for("it begins", || whole(&self.status(job)["states"]) > 0);
        happens(&self.hosts[0]);
        assert_ne!(self.status(job)["state"], "done", "that came too late");
        // After the lease of the first worker has ended, the other worker resumes alone.
        self.wait_for("it is noticed", || whole(&self.status(job)["retries"]) > 0);
        self.wait_for("it is lost", || self.workers_there() == 1);
        self.wait_for("it ends", || self.status(job)["state"] == "done");
        self.hosts[0].heal();
        self.wait_for("it is back", || self.workers_there() == 2);
        let run = self.place.join("store").join(job);
        let info = on_run(&run, "info", &["--json"]).exits(0).json();
        assert_eq!(text(&info["fingerprint"]), FINGERPRINT);
        on_run(&run, "verify", &[]).exits(0);
    }

    fn stop(self) {
        self.workers.into_iter().for_each(|worker| drop(worker.stop()));
    }
}

#[test]
fn a_network_that_is_cut_and_healed_does_no_harm() {
    if !is_root("a_network_that_is_cut_and_healed_does_no_harm") {
        return;
    }
    let hosts = Hosts::new([1, 2]);
    hosts.solve_while("cut", Host::cut);
    hosts.stop();
}

#[test]
fn a_network_that_loses_packets_in_silence_does_no_harm() {
    if !is_root("a_network_that_loses_packets_in_silence_does_no_harm") {
        return;
    }
    let hosts = Hosts::new([3, 4]);
    hosts.solve_while("sent", Host::lose_sent_packets);
    hosts.solve_while("received", Host::lose_received_packets);
    hosts.stop();
}

/// A small file system for one test.
struct Disk(PathBuf);

impl Disk {
    fn new(path: &Path, size: &str) -> Self {
        std::fs::create_dir(path).unwrap();
        system(&format!("mount -t tmpfs -o size={size} none {}", path.display()));
        Self(path.to_path_buf())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_worker_reports_a_full_disk_and_the_job_continues() {
    if !is_root("a_worker_reports_a_full_disk_and_the_job_continues") {
        return;
    }
    let place = Place::new();
    let disk = Disk::new(&place.join("full"), "64k");
    let mut cluster = Cluster::new(0);
    // The memory is so small that blocks must go to the disk, and the disk has no space for them.
    let memory = least_memory("--board 3x3 --threads 1");
    let url = cluster.coordinator.url.clone();
    let full = start_worker(&url, &disk.0, &["--memory", &memory]);
    let job = cluster.submit("--board 3x3");
    let status = cluster.wait_until(&job, |status| whole(&status["retries"]) > 0);
    assert_ne!(status["state"], "done");
    // The status shows a failure until the coordinator tries the worker again. The delay grows with each failure.
    let shown = || cluster.client(&["status"]).exits(0).stdout;
    let told = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        shown().contains("full")
    });
    assert!(told, "{}\n{}", shown(), cluster.logs());
    cluster.add_worker(&[]);
    // The other worker resumes the job alone.
    let status = cluster.wait_until(&job, |status| whole(&status["states"]) > 0);
    assert_eq!(whole(&status["worker_count"]), 1, "{status}");
    cluster.wait(&job);
    assert_eq!(cluster.fingerprint(&job), "ce3bed1a26919ab61a86c37f6287d2fb", "{}", full.log());
}

/// One machine reads damaged data from the store, because of its mount or memory. Shards that other machines can read stay
/// unchanged.
#[test]
fn a_worker_that_misreads_shards_takes_nothing_back() {
    if !is_root("a_worker_that_misreads_shards_takes_nothing_back") {
        return;
    }
    let mut cluster = Cluster::new(1);
    let job = cluster.submit("--board 4x2");
    cluster.wait_until(&job, |status| status["phase"] == "back_up");
    cluster.client(&["cancel", &job]).exits(0);
    cluster.wait_until(&job, |status| status["state"] == "cancelled");
    // On the second worker's machine, every shard of states is another file, with a changed byte in the middle.
    let damaged = Place::new();
    let shards = cluster.run(&job).join("shards");
    let mut mounts = String::new();
    for entry in std::fs::read_dir(&shards).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if name.to_str().is_some_and(|name| name.starts_with("reach-")) {
            let copy = damaged.join(name.to_str().unwrap());
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&copy, bytes).unwrap();
            mounts += &format!("mount --bind {} {}\n", copy.display(), path.display());
        }
    }
    assert!(!mounts.is_empty());
    let script = format!("set -e\n{mounts}exec \"$@\"");
    let cache = damaged.join("cache");
    let options = ["--listen", "127.0.0.1:0", "--threads", "1", "--memory", "1GiB"];
    let url = cluster.coordinator.url.clone();
    let worker = ["worker", "--coordinator", &url, "--cache", cache.to_str().unwrap()];
    let prefix = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    cluster.workers.push(Server::launch_within(&prefix, &[&worker[..], &options].concat()));
    // The job resumes after both workers have joined, so both take part.
    let begun = Instant::now();
    while cluster.client(&["status", "--json"]).exits(0).json()["workers"].as_array().unwrap().len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(20));
    }
    cluster.client(&["resume", &job]).exits(0);
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), FINGERPRINT);
    let log = cluster.coordinator.log();
    assert!(log.contains(events::SHARD_UNREADABLE), "{}", cluster.logs());
    assert!(!log.contains(events::SHARD_LOST), "a shard was computed again: {log}");
}

#[test]
fn a_full_store_fails_its_job_until_there_is_room() {
    if !is_root("a_full_store_fails_its_job_until_there_is_room") {
        return;
    }
    let cluster = Cluster::new(2);
    // The disk has space for the states of 4x2, but not for their values.
    let disk = Disk::new(&cluster.run("4x2"), "2m");
    let job = cluster.submit("--board 4x2");
    cluster.client(&["status", &job, "--watch"]).exits(1);
    let failed = cluster.client(&["status", &job, "--json"]).exits(0).json();
    let reason = text(&failed["failure"]);
    assert!(reason.contains("values-"), "{reason}");
    assert!(whole(&failed["bytes"]) > 0, "{failed}");
    let shown = cluster.client(&["status", &job]).exits(0).stdout;
    assert!(shown.contains("exact2048 resume 4x2"), "{shown}");
    on_run(&disk.0, "verify", &["--partial"]).exits(0);
    system(&format!("mount -o remount,size=64m {}", disk.0.display()));
    cluster.client(&["resume", &job]).exits(0);
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), FINGERPRINT);
}

#[test]
fn a_job_waits_until_its_journal_can_be_written() {
    if !is_root("a_job_waits_until_its_journal_can_be_written") {
        return;
    }
    let cluster = Cluster::new(1);
    // The disk has space for the queue but for no further page, so neither for the job's journal nor for a shard.
    let journal = cluster.run("3x2").join("journal");
    std::fs::create_dir(cluster.run("3x2")).unwrap();
    let disk = Disk::new(&journal, "8k");
    let job = cluster.submit("--board 3x2");
    let stuck = cluster.wait_until(&job, |status| !text(&status["trouble"]).is_empty());
    assert_eq!(stuck["state"], "running", "{stuck}");
    assert!(text(&stuck["trouble"]).contains("journal"), "{stuck}");
    assert!(stuck["eta_seconds"].is_null() && stuck["job_eta_seconds"].is_null(), "{stuck}");
    let shown = cluster.client(&["status", &job]).exits(0).stdout;
    assert!(shown.contains(text(&stuck["trouble"]).split(':').next().unwrap()), "{shown}");
    system(&format!("mount -o remount,size=16m {}", disk.0.display()));
    let done = cluster.wait(&job);
    assert_eq!(text(&done["trouble"]), "");
    cluster.verified_fingerprint(&job);
}
