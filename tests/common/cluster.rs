//! A cluster of real processes on one machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::serving::Server;
use super::{Finished, Place, exact2048, on_run, text};

/// Longest time of a job in a test. It only ends tests that hang.
const PATIENCE: Duration = Duration::from_secs(180);

/// A coordinator with its store, and workers.
pub struct Cluster {
    place: Place,
    pub coordinator: Server,
    pub workers: Vec<Server>,
}

impl Cluster {
    /// Starts a coordinator on an empty directory, and this number of workers with one thread each.
    #[track_caller]
    pub fn new(workers: usize) -> Self {
        let place = Place::new();
        std::fs::create_dir(place.join("store")).unwrap();
        let coordinator = start_coordinator(&place.join("store"), "127.0.0.1:0");
        let mut cluster = Self { place, coordinator, workers: Vec::new() };
        (0..workers).for_each(|_| cluster.add_worker(&[]));
        cluster
    }

    /// The directory of the store.
    pub fn store(&self) -> PathBuf {
        self.place.join("store")
    }

    /// The file with the token of the cluster.
    pub fn token_file(&self) -> String {
        self.store().join("coordinator/token").to_str().unwrap().to_owned()
    }

    /// The directory of a job's run.
    pub fn run(&self, job: &str) -> PathBuf {
        self.store().join(job)
    }

    #[track_caller]
    pub fn add_worker(&mut self, options: &[&str]) {
        let cache = self.place.join("cache");
        self.workers.push(start_worker(&self.coordinator.url, &cache, options));
    }

    /// Kills a worker as `kill -9` does.
    pub fn kill_worker(&mut self, number: usize) {
        drop(self.workers.remove(number));
    }

    /// Kills the coordinator, and restarts it at the same address.
    #[track_caller]
    pub fn restart_coordinator(&mut self) {
        self.restart_coordinator_failing("");
    }

    /// Stops the coordinator cleanly, and restarts it at the same address.
    #[track_caller]
    pub fn stop_and_restart_coordinator(&mut self) {
        self.coordinator.signal("TERM");
        let begun = Instant::now();
        while self.coordinator.runs() {
            assert!(begun.elapsed() < PATIENCE, "{}", self.logs());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.restart_coordinator();
    }

    /// Does the same as [`Self::restart_coordinator`], with fail points.
    #[track_caller]
    pub fn restart_coordinator_failing(&mut self, failpoints: &str) {
        let (address, store) = (self.coordinator.address().to_string(), self.store());
        self.coordinator.kill();
        self.coordinator = Server::launch(
            &["coordinator", "--store", store.to_str().unwrap(), "--listen", &address],
            &[("FAILPOINTS", failpoints)],
        );
    }

    /// Runs a client's command.
    pub fn client(&self, args: &[&str]) -> Finished {
        exact2048([&args[..1], &["--coordinator", &self.coordinator.url], &args[1..]].concat())
    }

    /// Submits a job, and returns its name.
    #[track_caller]
    pub fn submit(&self, options: &str) -> String {
        let args: Vec<&str> = ["submit"].into_iter().chain(options.split_whitespace()).collect();
        self.client(&args).exits(0).stdout.trim().to_owned()
    }

    /// The status of a job.
    #[track_caller]
    pub fn status(&self, job: &str) -> Value {
        self.client(&["status", job, "--json"]).exits(0).json()
    }

    /// Waits until the status of a job meets a condition.
    #[track_caller]
    pub fn wait_until(&self, job: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.client(&["status", job, "--json"]);
            if answer.code == Some(0) {
                let status = answer.json();
                assert_ne!(text(&status["state"]), "failed", "{status}\n{}", self.logs());
                if is_so(&status) {
                    return status;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "waited too long for {job}: {answer:?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until a job is done.
    #[track_caller]
    pub fn wait(&self, job: &str) -> Value {
        self.wait_until(job, |status| status["state"] == "done" && status["checking"] == false)
    }

    /// The fingerprint of a finished job, after a verification of the whole run.
    #[track_caller]
    pub fn verified_fingerprint(&self, job: &str) -> String {
        on_run(&self.run(job), "verify", &[]).exits(0);
        self.fingerprint(job)
    }

    /// The fingerprint of a finished job.
    #[track_caller]
    pub fn fingerprint(&self, job: &str) -> String {
        let info = on_run(&self.run(job), "info", &["--json"]).exits(0).json();
        text(&info["fingerprint"]).to_owned()
    }

    /// The logs of all processes.
    pub fn logs(&self) -> String {
        let workers = self.workers.iter().enumerate().map(|(i, w)| format!("worker {i}:\n{}", w.log()));
        format!("coordinator:\n{}\n{}", self.coordinator.log(), workers.collect::<String>())
    }
}

#[track_caller]
pub fn start_coordinator(store: &Path, listen: &str) -> Server {
    let store = format!("file://{}", store.display());
    Server::launch(&["coordinator", "--store", &store, "--listen", listen], &[])
}

/// Waits until a job is done, with the command for users.
#[track_caller]
pub fn watch(coordinator: &str, job: &str) -> Finished {
    exact2048(["status", "--coordinator", coordinator, job, "--watch"]).exits(0)
}

#[track_caller]
pub fn start_worker(coordinator: &str, cache: &Path, options: &[&str]) -> Server {
    let cache = cache.to_str().unwrap();
    let mut args = vec!["worker", "--coordinator", coordinator, "--listen", "127.0.0.1:0", "--cache", cache];
    args.extend(["--threads", "1"]);
    if !options.contains(&"--memory") {
        args.extend(["--memory", "1GiB"]);
    }
    Server::launch(&[&args, options].concat(), &[])
}
