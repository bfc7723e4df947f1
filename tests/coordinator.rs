//! The coordinator from the view of clients and operators: real processes, no workers.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::cluster::{start_coordinator, start_worker};
use common::serving::Server;
use common::snapshots::assert_section;
use common::{
    Finished, Place, command, content_of, exact2048, files, format_run, format_run_unfinished, on_run, solve,
    text, try_solve,
};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// A coordinator with a new store.
struct Coordinator {
    place: Place,
    server: Server,
}

impl Coordinator {
    #[track_caller]
    fn new() -> Self {
        let place = Place::new();
        let server = start_coordinator(&place.join("store"), "127.0.0.1:0");
        Self { place, server }
    }

    fn store(&self) -> PathBuf {
        self.place.join("store")
    }

    fn ask(&self, args: &[&str]) -> Finished {
        ask(&self.server, args)
    }

    /// Names and states of all jobs, in the order of the queue.
    #[track_caller]
    fn jobs(&self) -> Vec<(String, String)> {
        let status = self.ask(&["status", "--json"]).exits(0).json();
        let job = |job: &Value| (text(&job["job"]).to_owned(), text(&job["state"]).to_owned());
        status["jobs"].as_array().unwrap().iter().map(job).collect()
    }

    /// Waits until the list of jobs equals `wanted`.
    #[track_caller]
    fn wait_for(&self, wanted: &[(&str, &str)]) {
        wait_until(|| if self.jobs() == pairs(wanted) { None } else { Some(format!("{:?}", self.jobs())) });
    }

    /// Waits until the coordinator has opened the run of a job, has its lock, and has recorded this in its queue.
    #[track_caller]
    fn wait_until_begun(&self, job: &str) {
        let lock = self.store().join(job).join("lock");
        let begun = format!(r#""begun":{{"job":"{job}"}}"#);
        let is_begun = |record: &PathBuf| fs::read_to_string(record).is_ok_and(|text| text.contains(&begun));
        wait_until(|| {
            let records = files(&self.store().join("coordinator/journal"));
            let has_begun = lock.exists() && records.iter().any(is_begun);
            (!has_begun)
                .then(|| format!("{} is missing, or no record of {records:?} has {begun}", lock.display()))
        });
    }

    /// Stops the coordinator with a signal, and restarts it.
    #[track_caller]
    fn restart(&mut self, signal: &str) {
        self.server.signal(signal);
        while self.server.runs() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.server = start_coordinator(&self.store(), "127.0.0.1:0");
    }
}

fn ask(server: &Server, args: &[&str]) -> Finished {
    exact2048([&args[..1], &["--coordinator", &server.url], &args[1..]].concat())
}

/// Waits until `wrong` returns `None`.
#[track_caller]
fn wait_until(wrong: impl Fn() -> Option<String>) {
    let begun = Instant::now();
    while let Some(what) = wrong() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn pairs(jobs: &[(&str, &str)]) -> Vec<(String, String)> {
    jobs.iter().map(|&(job, state)| (job.to_owned(), state.to_owned())).collect()
}

fn store_args(store: &Path) -> [String; 3] {
    ["coordinator".to_owned(), "--store".to_owned(), store.to_str().unwrap().to_owned()]
}

#[test]
fn jobs_are_submitted_once_and_listed_in_turn() {
    let coordinator = Coordinator::new();
    assert_eq!(coordinator.ask(&["submit", "--board", "3x2"]).exits(0).stdout, "3x2\n");
    let reach =
        ["submit", "--board", "2x2", "--objective", "reach:16", "--spawn4", "1/3", "--precision", "64"];
    assert_eq!(coordinator.ask(&reach).exits(0).stdout, "2x2-reach16-spawn1.3-64bit\n");
    let named = coordinator.ask(&["submit", "--board", "3x2", "--name", "again", "--json"]).exits(0).json();
    assert_eq!((text(&named["job"]), text(&named["state"])), ("again", "queued"));
    let expected = [("3x2", "running"), ("2x2-reach16-spawn1.3-64bit", "queued"), ("again", "queued")];
    assert_eq!(coordinator.jobs(), pairs(&expected));

    let again = coordinator.ask(&["submit", "--board", "3x2"]).exits(1);
    again.says(&["3x2"]).prints("job of a name in use");
    let other = coordinator.ask(&["submit", "--board", "3x3", "--name", "again"]).exits(1);
    other.says(&["again"]);
    for unknown in [["status", "nothing"], ["cancel", "nothing"], ["resume", "nothing"]] {
        coordinator.ask(&unknown).exits(1).says(&["nothing"]).prints("unknown job");
    }
    coordinator.ask(&["status", "nothing", "--watch"]).exits(1).prints("unknown job");
    coordinator.server.stop();
}

/// A queue inside a run would damage both.
#[test]
fn a_run_is_no_store() {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 2x2");
    let refused = exact2048(["coordinator", "--store", run.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    refused.exits(2).says(&["--store"]).prints("store inside a run");
    assert!(!run.join("coordinator").exists());
    on_run(&run, "verify", &[]).exits(0);
}

#[test]
fn invalid_jobs_are_wrong_usage() {
    let coordinator = Coordinator::new();
    for name in ["../escape", "a/b", "A", "", ".hidden", "coordinator", &"x".repeat(64)] {
        if !name.is_empty() {
            coordinator.ask(&["submit", "--board", "2x2", "--name", name]).exits(2).says(&["--name"]);
        }
        coordinator.ask(&["cancel", name]).exits(2).says(&[name]);
    }
    coordinator.ask(&["submit", "--board", "9x9"]).exits(2);
    coordinator.ask(&["submit", "--board", "4x4"]).exits(2).says(&["--objective reach:TILE"]);
    coordinator.ask(&["submit", "--board", "2x2", "--until-layer", "7"]).exits(2).says(&["--until-layer"]);
    exact2048(["status", "--coordinator", "http://127.0.0.1:1"]).exits(1).prints("no coordinator");
    let store = store_args(&coordinator.store());
    let open = ["--listen", "0.0.0.0:0"].map(str::to_owned);
    exact2048([&store[..], &open].concat()).exits(2).says(&["0.0.0.0", "--insecure"]);
    assert_eq!(coordinator.jobs(), []);
    assert_eq!(files(&coordinator.store()).len(), 1, "only the queue");
    coordinator.server.stop();
}

#[test]
fn jobs_are_cancelled_and_resumed() {
    let coordinator = Coordinator::new();
    for name in ["a", "b", "c"] {
        coordinator.ask(&["submit", "--board", "2x2", "--name", name]).exits(0);
    }
    let cancelled = coordinator.ask(&["cancel", "a"]).exits(0);
    assert_section("cancelled job", &cancelled.stdout);
    assert_eq!(coordinator.jobs(), pairs(&[("a", "cancelled"), ("b", "running"), ("c", "queued")]));
    coordinator.ask(&["cancel", "a"]).exits(1).prints("cancel of a cancelled job");
    coordinator.ask(&["resume", "b"]).exits(1).prints("resume of a running job");
    // Watching a cancelled job ends at once.
    let ended = coordinator.ask(&["status", "a", "--watch"]).exits(1).prints("watch of a cancelled job");
    assert!(ended.stdout.contains("cancelled"), "{ended:?}");
    let resumed = coordinator.ask(&["resume", "a", "--json"]).exits(0).json();
    assert_eq!(text(&resumed["state"]), "queued");
    assert_eq!(coordinator.jobs(), pairs(&[("b", "running"), ("c", "queued"), ("a", "queued")]));
    coordinator.server.stop();
}

#[test]
fn the_queue_survives() {
    let mut coordinator = Coordinator::new();
    for name in ["a", "b", "c", "d"] {
        coordinator.ask(&["submit", "--board", "2x2", "--name", name]).exits(0);
    }
    coordinator.ask(&["cancel", "b"]).exits(0);
    coordinator.ask(&["cancel", "a"]).exits(0);
    coordinator.ask(&["resume", "a"]).exits(0);
    for signal in ["KILL", "TERM", "KILL"] {
        let before = coordinator.jobs();
        coordinator.restart(signal);
        let after = coordinator.jobs();
        assert_eq!(after, before, "after {signal}");
        // The log repeats no earlier events.
        let log = coordinator.server.log();
        assert!(!log.contains("state=\"cancelled\"") && !log.contains("state=\"queued\""), "{log}");
    }
    let expected = [("b", "cancelled"), ("c", "running"), ("d", "queued"), ("a", "queued")];
    assert_eq!(coordinator.jobs(), pairs(&expected));
    coordinator.ask(&["resume", "b"]).exits(0);
    coordinator.restart("KILL");
    assert_eq!(coordinator.jobs()[3], ("b".to_owned(), "queued".to_owned()));
    coordinator.server.stop();
}

#[test]
fn a_run_that_is_there_is_continued() {
    let coordinator = Coordinator::new();
    let run = coordinator.store().join("mine");
    let solved = solve(&run, "--board 2x2");
    // The run belongs to another job.
    let other = coordinator.ask(&["submit", "--board", "3x2", "--name", "mine"]).exits(2);
    other.says(&["2x2", "3x2"]).prints("name of another run");
    assert_eq!(coordinator.jobs(), []);
    // The run belongs to this job, and is solved.
    coordinator.ask(&["submit", "--board", "2x2", "--name", "mine"]).exits(0);
    let job = coordinator.ask(&["status", "mine", "--json"]).exits(0).json();
    assert_eq!(text(&job["state"]), "done");
    assert_eq!(job["fingerprint"], solved["fingerprint"]);
    assert_eq!(job["states"], solved["states"]);
    assert_eq!(job["run"], format!("file://{}", run.display()));
    coordinator.ask(&["status", "mine", "--watch"]).exits(0);
    // The job is done, so any process may open its run for writing.
    try_solve(&run, "--board 2x2").exits(0);
    // Only the coordinator may write the run of a running job.
    coordinator.ask(&["submit", "--board", "3x2"]).exits(0);
    coordinator.wait_until_begun("3x2");
    let taken = try_solve(&coordinator.store().join("3x2"), "--board 3x2").exits(1);
    taken.says(&[&coordinator.server.process_id().to_string()]);
    coordinator.server.stop();
}

/// A resumed job uses the work of other processes during its cancellation.
#[test]
fn a_job_that_was_finished_elsewhere_is_done() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    coordinator.ask(&["cancel", "2x2"]).exits(0);
    let begun = Instant::now();
    let solved = loop {
        let finished = try_solve(&coordinator.store().join("2x2"), "--board 2x2");
        if finished.code == Some(0) {
            break finished.json();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "its run stays locked: {finished:?}");
    };
    coordinator.ask(&["resume", "2x2"]).exits(0);
    coordinator.wait_for(&[("2x2", "done")]);
    let job = coordinator.ask(&["status", "2x2", "--json"]).exits(0).json();
    assert_eq!((text(&job["state"]), &job["fingerprint"]), ("done", &solved["fingerprint"]));
    coordinator.server.stop();
}

#[test]
fn a_second_coordinator_on_a_store_is_refused() {
    let coordinator = Coordinator::new();
    let store = store_args(&coordinator.store());
    let listen = ["--listen", "127.0.0.1:0"].map(str::to_owned);
    let second = exact2048([&store[..], &listen].concat()).exits(1);
    second.says(&["lock", "--store"]).prints("second coordinator");
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    coordinator.server.stop();
}

/// On a file system that grants the lock twice, the second coordinator fences off the first.
#[test]
fn a_coordinator_that_was_taken_over_ends() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2", "--name", "a"]).exits(0);
    coordinator.wait_until_begun("a");
    for lock in ["coordinator/lock", "a/lock"] {
        fs::remove_file(coordinator.store().join(lock)).unwrap();
    }
    let second = start_coordinator(&coordinator.store(), "127.0.0.1:0");
    // The first coordinator notices this at its next write, or some seconds later without a write.
    let refused = coordinator.ask(&["submit", "--board", "2x2", "--name", "b"]).exits(1);
    refused.prints("submit after a takeover");
    let Coordinator { server, place: _place } = coordinator;
    assert_section("coordinator after a takeover", server.end().exits(1).last_line());
    ask(&second, &["submit", "--board", "2x2", "--name", "b"]).exits(0);
    let jobs = ask(&second, &["status", "--json"]).exits(0).json();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2);
    second.stop();
}

#[test]
fn a_coordinator_that_is_idle_finds_out_too() {
    let coordinator = Coordinator::new();
    fs::remove_file(coordinator.store().join("coordinator/lock")).unwrap();
    let second = start_coordinator(&coordinator.store(), "127.0.0.1:0");
    let Coordinator { server, place: _place } = coordinator;
    assert_section("coordinator after a takeover", server.end().exits(1).last_line());
    second.stop();
}

/// A job with an unreadable run fails without other jobs. It can be resumed after a repair of the run.
#[test]
fn a_damaged_run_stops_no_other_job() {
    let mut coordinator = Coordinator::new();
    for name in ["a", "b"] {
        coordinator.ask(&["submit", "--board", "2x2", "--name", name]).exits(0);
    }
    let manifest = coordinator.store().join("a/manifest.json");
    wait_until(|| if manifest.exists() { None } else { Some("the run of a is not there".to_owned()) });
    let sound = fs::read(&manifest).unwrap();
    fs::write(&manifest, b"{}").unwrap();
    coordinator.restart("TERM");
    coordinator.wait_for(&[("a", "failed"), ("b", "running")]);
    let job = coordinator.ask(&["status", "a", "--json"]).exits(0).json();
    assert!(text(&job["failure"]).contains("manifest.json"), "{job}");
    coordinator.ask(&["status", "a", "--watch"]).exits(1).says(&["manifest.json"]);
    coordinator.ask(&["resume", "a"]).exits(1).says(&["manifest.json"]);
    coordinator.ask(&["submit", "--board", "2x2", "--name", "a"]).exits(1).says(&["resume"]);
    coordinator.ask(&["cancel", "a"]).exits(1);
    fs::write(&manifest, sound).unwrap();
    coordinator.ask(&["resume", "a"]).exits(0);
    assert_eq!(coordinator.jobs(), pairs(&[("b", "running"), ("a", "queued")]));
    coordinator.server.stop();
}

#[test]
fn an_unreadable_queue_is_not_overwritten() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    let store = coordinator.store();
    let Coordinator { server, place: _place } = coordinator;
    server.stop();
    let last = files(&store.join("coordinator/journal")).pop().unwrap();
    fs::write(&last, b"junk").unwrap();
    exact2048(store_args(&store)).exits(1).says(&["coordinator/journal"]);
    // Puts a run in place of the queue.
    let other = Place::new();
    solve(&other.join("coordinator"), "--board 2x2");
    exact2048(store_args(other.path())).exits(2).prints("run in place of the queue");
}

#[test]
fn watching_survives_a_restart_and_ends_with_the_job() {
    let mut coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    let address = coordinator.server.address().to_string();
    let args = ["status", "--coordinator", &coordinator.server.url, "2x2", "--watch", "--json"];
    let mut watching = command(args);
    watching.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let watching = watching.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    coordinator.server.kill();
    coordinator.server = start_coordinator(&coordinator.store(), &address);
    std::thread::sleep(Duration::from_millis(1500));
    coordinator.ask(&["cancel", "2x2"]).exits(0);
    let watched = Finished::new(watching.wait_with_output().unwrap()).exits(1);
    let states: Vec<String> =
        watched.json_lines().iter().map(|line| text(&line["state"]).to_owned()).collect();
    assert_eq!((states.first().unwrap().as_str(), states.last().unwrap().as_str()), ("running", "cancelled"));
    watched.prints("watch during a restart");
    coordinator.server.stop();
}

#[test]
fn metrics_of_a_coordinator() {
    let place = Place::new();
    let store = place.join("store");
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let server = Server::launch(&[&args[..], &["--metrics-listen", "127.0.0.1:0"]].concat(), &[]);
    ask(&server, &["submit", "--board", "2x2"]).exits(0);
    ask(&server, &["submit", "--board", "3x2"]).exits(0);
    let metrics = server.scrape();
    for line in [
        "exact2048_workers 0",
        "exact2048_jobs{state=\"running\"} 1",
        "exact2048_jobs{state=\"queued\"} 1",
        "exact2048_commits_total 0",
        "exact2048_epochs_failed_total 0",
        "exact2048_states_total 0",
        "exact2048_requests_total{method=\"exact2048.v1.Coordinator/Submit\",code=\"Ok\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing from\n{metrics}");
    }
    server.stop();
}

/// A waiting job holds neither a lock nor a run.
#[test]
fn jobs_that_wait_hold_no_files() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2", "--name", "first"]).exits(0);
    coordinator.wait_until_begun("first");
    let open_files =
        || fs::read_dir(format!("/proc/{}/fd", coordinator.server.process_id())).unwrap().count();
    let before = open_files();
    for number in 0..40 {
        coordinator.ask(&["submit", "--board", "2x2", "--name", &format!("job-{number}")]).exits(0);
    }
    assert!(open_files() < before + 10, "{} files, then {}", before, open_files());
    assert!(!coordinator.store().join("job-7").exists(), "its run is made when its turn comes");
    // While a job waits, other processes may use its run.
    solve(&coordinator.store().join("job-7"), "--board 2x2");
    coordinator.ask(&["cancel", "first"]).exits(0);
    coordinator.server.stop();
}

/// With a file limit far below the number of jobs, no job fails, not even at a start.
#[test]
fn a_coordinator_with_few_files_has_many_jobs() {
    let place = Place::new();
    let store = place.join("store");
    let few = ["sh", "-c", "ulimit -n 48; exec \"$@\"", "sh"];
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut server = Server::launch_within(&few, &args);
    for number in 0..100 {
        ask(&server, &["submit", "--board", "2x2", "--name", &format!("job-{number}")]).exits(0);
    }
    server.kill();
    let server = Server::launch_within(&few, &args);
    let all = || ask(&server, &["status", "--json"]).exits(0).json()["jobs"].as_array().unwrap().clone();
    assert_eq!(all().len(), 100);
    let worker = start_worker(&server.url, &place.join("cache"), &[]);
    wait_until(|| {
        let left = all().into_iter().filter(|job| text(&job["state"]) != "done").collect::<Vec<_>>();
        assert!(left.iter().all(|job| text(&job["state"]) != "failed"), "{left:?}");
        if left.is_empty() { None } else { Some(format!("{} jobs are left", left.len())) }
    });
    worker.stop();
    server.stop();
}

/// A refused submit makes no files, and reports the problem.
#[test]
fn a_refused_submit_leaves_no_trace() {
    let mut coordinator = Coordinator::new();
    let foreign = coordinator.store().join("mine");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("notes.txt"), b"a foreign file").unwrap();
    let refused = coordinator.ask(&["submit", "--board", "2x2", "--name", "mine"]).exits(1);
    assert!(!refused.stderr.contains("Internal"), "{refused:?}");
    refused.says(&["notes.txt"]);
    assert_eq!(coordinator.jobs(), []);
    // The coordinator does not recreate a deleted store.
    fs::remove_dir_all(coordinator.store()).unwrap();
    coordinator.ask(&["submit", "--board", "2x2", "--name", "two"]).exits(1);
    assert!(!coordinator.store().join("two").exists());
    coordinator.server.kill();
}

/// After a lost lock, the second coordinator waits until the first one has ended, and no job fails.
#[test]
fn a_run_that_another_coordinator_has_open_is_waited_for() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2", "--name", "a"]).exits(0);
    coordinator.wait_until_begun("a");
    // A stopped process keeps the run's lock, and does not see yet that it has lost the queue.
    coordinator.server.signal("STOP");
    fs::remove_file(coordinator.store().join("coordinator/lock")).unwrap();
    let second = start_coordinator(&coordinator.store(), "127.0.0.1:0");
    let state = || ask(&second, &["status", "a", "--json"]).exits(0).json();
    let writer = coordinator.server.process_id().to_string();
    wait_until(|| {
        let job = state();
        assert_ne!(text(&job["state"]), "failed", "{job}");
        if text(&job["trouble"]).contains(&writer) { None } else { Some(job.to_string()) }
    });
    let Coordinator { server, place: _place } = coordinator;
    server.signal("CONT");
    server.end().exits(1);
    wait_until(|| {
        let job = state();
        assert_ne!(text(&job["state"]), "failed", "{job}");
        let goes_on = text(&job["state"]) == "running" && text(&job["trouble"]).is_empty();
        if goes_on { None } else { Some(job.to_string()) }
    });
    second.stop();
}

/// A finished job can be removed from the list. Its run stays, and a new job with the same name resumes the run.
#[test]
fn jobs_that_have_ended_are_forgotten() {
    let mut coordinator = Coordinator::new();
    let solved = solve(&coordinator.store().join("a"), "--board 2x2");
    for name in ["a", "b"] {
        coordinator.ask(&["submit", "--board", "2x2", "--name", name]).exits(0);
    }
    coordinator.ask(&["forget", "b"]).exits(1).prints("forget of a running job");
    coordinator.ask(&["forget", "nothing"]).exits(1).prints("unknown job");
    assert_section("forgotten job", &coordinator.ask(&["forget", "a"]).exits(0).stdout);
    assert_eq!(coordinator.jobs(), pairs(&[("b", "running")]));
    coordinator.restart("KILL");
    assert_eq!(coordinator.jobs(), pairs(&[("b", "running")]));
    let again = coordinator.ask(&["submit", "--board", "2x2", "--name", "a", "--json"]).exits(0).json();
    assert_eq!((text(&again["state"]), &again["fingerprint"]), ("done", &solved["fingerprint"]));
    coordinator.server.stop();
}

/// A restarted coordinator knows the final states of jobs, and retries a failed job only after `resume`.
#[test]
fn ends_of_jobs_survive() {
    let mut coordinator = Coordinator::new();
    let manifest = coordinator.store().join("a/manifest.json");
    let solved = solve(&coordinator.store().join("done"), "--board 2x2");
    coordinator.ask(&["submit", "--board", "2x2", "--name", "done"]).exits(0);
    coordinator.ask(&["submit", "--board", "2x2", "--name", "a"]).exits(0);
    wait_until(|| if manifest.exists() { None } else { Some("the run of a is not there".to_owned()) });
    fs::write(&manifest, b"{}").unwrap();
    coordinator.restart("TERM");
    coordinator.wait_for(&[("done", "done"), ("a", "failed")]);
    let journal = coordinator.store().join("coordinator/journal");
    let records = || files(&journal).iter().map(|file| fs::read_to_string(file).unwrap()).collect::<String>();
    wait_until(|| if records().contains("\"failed\"") { None } else { Some(records()) });
    // The coordinator does not read the run of the finished job.
    fs::rename(coordinator.store().join("done"), coordinator.store().join("moved")).unwrap();
    coordinator.restart("KILL");
    assert_eq!(coordinator.jobs(), pairs(&[("done", "done"), ("a", "failed")]));
    let job = coordinator.ask(&["status", "a", "--json"]).exits(0).json();
    assert!(text(&job["failure"]).contains("manifest.json"), "{job}");
    let job = coordinator.ask(&["status", "done", "--json"]).exits(0).json();
    assert_eq!((&job["fingerprint"], &job["states"]), (&solved["fingerprint"], &solved["states"]));
    coordinator.server.stop();
}

/// Finished runs of format 1 are accepted, and unfinished runs are refused. A queue of format 1 is resumed.
#[test]
fn runs_of_format_1_are_not_continued() {
    let mut coordinator = Coordinator::new();
    let words = ["format 1", "version 0.1"];
    let place = Place::new();
    fs::rename(format_run(&place, 1), coordinator.store().join("finished")).unwrap();
    let unfinished = coordinator.store().join("unfinished");
    fs::rename(format_run_unfinished(&place, 1), &unfinished).unwrap();
    let before = content_of(&unfinished);
    coordinator.ask(&["submit", "--board", "2x2", "--name", "unfinished"]).exits(1).says(&words);
    let done = coordinator.ask(&["submit", "--board", "2x2", "--name", "finished", "--json"]).exits(0).json();
    assert_eq!(
        (text(&done["state"]), text(&done["fingerprint"])),
        ("done", "57c6832cc8aabcdc3b550062b0d703b7")
    );

    // Submits a job of an earlier coordinator.
    coordinator.ask(&["submit", "--board", "2x2", "--name", "begun"]).exits(0);
    coordinator.wait_until_begun("begun");
    coordinator.server.signal("TERM");
    while coordinator.server.runs() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let begun = coordinator.store().join("begun");
    fs::remove_dir_all(&begun).unwrap();
    fs::rename(&unfinished, &begun).unwrap();
    let queue = coordinator.store().join("coordinator/manifest.json");
    let sealed = fs::read_to_string(&queue).unwrap();
    let body = sealed.split_once("\"body\":").unwrap().1.trim_end().strip_suffix('}').unwrap();
    let older = body.replacen("\"format_version\": 2", "\"format_version\": 1", 1);
    assert_ne!(older, body);
    let sealed = format!("{{\"xxh3\":\"{:016x}\",\"body\":{older}}}\n", xxh3_64(older.as_bytes()));
    fs::write(&queue, sealed).unwrap();
    coordinator.server = start_coordinator(&coordinator.store(), "127.0.0.1:0");
    coordinator.wait_for(&[("finished", "done"), ("begun", "failed")]);
    let job = coordinator.ask(&["status", "begun", "--json"]).exits(0).json();
    assert!(words.iter().all(|word| text(&job["failure"]).contains(word)), "{job}");
    coordinator.ask(&["resume", "begun"]).exits(1).says(&words);
    assert_eq!(
        content_of(&begun),
        before
            .iter()
            .map(|(path, content)| { (begun.join(path.strip_prefix(&unfinished).unwrap()), content.clone()) })
            .collect::<Vec<_>>(),
        "something was written"
    );
    coordinator.server.stop();
}
