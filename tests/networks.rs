//! Silent networks: connections that stay open and deliver nothing.

use crate::common;

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::cluster::{Cluster, start_worker};
use common::serving::Server;
use common::wire::{Silence, Wire};
use common::{Place, command, text, whole};

const SILENCES: [Silence; 3] = [Silence::BothWays, Silence::ToServer, Silence::ToClient];

/// Timeout that ends tests that hang. The expected events take about 10 s.
const PATIENCE: Duration = Duration::from_secs(90);

#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Runs a test with every kind of silence, all at once because the tests mostly wait.
fn with_each(test: impl Fn(Silence) + Sync) {
    std::thread::scope(|scope| {
        for silence in SILENCES {
            let test = &test;
            scope.spawn(move || test(silence));
        }
    });
}

#[test]
fn a_worker_that_hears_no_more_of_its_coordinator_is_back_within_seconds() {
    with_each(|silence| {
        let (cluster, place) = (Cluster::new(0), Place::new());
        let wire = Wire::start(cluster.coordinator.address());
        let store = cluster.store();
        let options = ["--store", store.to_str().unwrap()];
        let worker = start_worker(&wire.url(), &place.join("cache"), &options);
        let job = cluster.submit("--board 2x2");
        cluster.wait(&job);
        let before = wire.connections();
        wire.silence(silence);
        wait_for(&format!("another connection after {silence:?}: {}", worker.log()), || {
            wire.connections() > before
        });
        let job = cluster.submit("--board 3x2");
        cluster.wait(&job);
        worker.stop();
    });
}

/// A client's command that runs during the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the command has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watching_clients_see_the_end_of_a_job() {
    with_each(|silence| {
        let mut cluster = Cluster::new(0);
        let wire = Wire::start(cluster.coordinator.address());
        let job = cluster.submit("--board 2x2");
        let mut watch = command(["status", "--coordinator", &wire.url(), &job, "--watch", "--json"]);
        watch.args(["--token-file", &cluster.token_file()]);
        let child = watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut watch = Running(child);
        // The first line shows that the client is connected and waits.
        let mut lines = std::io::BufReader::new(watch.0.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        assert!(line.contains("\"job\":\"2x2\""), "{line}");
        wire.silence(silence);
        cluster.add_worker(&[]);
        cluster.wait(&job);
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = watch.0.try_wait().unwrap() {
                break status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "it still waits after {silence:?}");
            std::thread::sleep(Duration::from_millis(30));
        };
        assert_eq!(code, Some(0), "{silence:?}");
    });
}

#[test]
fn workers_that_no_longer_hear_each_other_do_not_stop_a_job() {
    let (cluster, place) = (Cluster::new(0), Place::new());
    let workers: Vec<(Server, Wire)> = (0..2)
        .map(|number| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let advertised = listener.local_addr().unwrap().to_string();
            let cache = place.join(&format!("cache-{number}"));
            let worker = start_worker(&cluster.coordinator.url, &cache, &["--advertise", &advertised]);
            let wire = Wire::start_with(listener, worker.address());
            (worker, wire)
        })
        .collect();
    wait_for("both are there", || {
        cluster.client(&["status", "--json"]).exits(0).stdout.matches("\"worker\":").count() == 2
    });
    let job = cluster.submit("--board 4x2");
    cluster.wait_until(&job, |status| whole(&status["states"]) > 0);
    // Blocks to the servers are lost, and no sender notices.
    workers.iter().for_each(|(_, wire)| wire.silence(Silence::ToServer));
    assert_ne!(text(&cluster.status(&job)["state"]), "done", "the silence came too late");
    let done = cluster.wait(&job);
    assert!(whole(&done["retries"]) > 0, "{done}");
    assert_eq!(cluster.fingerprint(&job), "512d941b138950ab02da28252f0e594a");
}
