//! Jobs of clusters with a disk limit: the same results as of one process. The coordinator removes shards.

use crate::common;
use crate::disk::{
    JOB, answers_as_usual, begin, enumerated_again, is_stored_whole, records, shards_of_reach, solve_failing,
    taken,
};

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::snapshots::assert_section;
use common::{sizes, solve, text, whole};
use serde_json::Value;

/// Solves a job while it measures the disk usage of the run repeatedly. Calls `meanwhile` with the job's name after the
/// submission. Returns the status of the job, and the largest observed size.
fn watched(
    cluster: &mut Cluster,
    options: &str,
    name: &str,
    meanwhile: impl FnOnce(&mut Cluster, &str),
) -> (Value, u64) {
    let run = cluster.run(name);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(taken(&run));
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let job = cluster.submit(&format!("{options} --name {name}"));
        meanwhile(cluster, &job);
        let status = cluster.wait(&job);
        is_over.store(true, Ordering::Relaxed);
        (status, watcher.join().unwrap())
    })
}

/// Requires that the run of a finished job has the usual contents.
fn is_whole(cluster: &Cluster, job: &str) {
    is_stored_whole(&cluster.run(job), &cluster.fingerprint(job));
}

/// The options of the job without the options for a single process.
fn job() -> &'static str {
    JOB.split(" --threads").next().unwrap()
}

/// Tests a limit that allows all reach, and a limit so low that most layers are enumerated twice.
#[test]
fn the_limit_holds_and_values_stay_the_same() {
    for (options, limit, is_tight) in [("", 6_000_000u64, false), (" --keep 128", 1_800_000, true)] {
        let mut cluster = Cluster::new(2);
        let options = format!("{}{options} --disk {limit}", job());
        let (status, most) = watched(&mut cluster, &options, "watched", |_, _| {});
        let counted = [&status["bytes_on_disk"], &status["peak_disk_bytes"]].map(whole);
        assert!(most <= limit && counted[1] <= limit, "{most} seen, {counted:?} counted, {limit} allowed");
        assert!(counted[0] < counted[1] && whole(&status["disk_limit_bytes"]) == limit, "{status}");
        let run = cluster.run("watched");
        is_whole(&cluster, "watched");
        if !is_tight {
            // With fewer stored layers, the answers would take a minute. Both runs have the same stored contents.
            answers_as_usual(&run);
        }
        assert_eq!(enumerated_again(&run) > 50, is_tight, "{}", cluster.logs());
        let removed = records(&run).iter().filter(|record| !record["removed"].is_null()).count();
        assert!(removed > 1, "{removed}");
        assert!(taken(&run) <= counted[0], "{} there, {counted:?} counted", taken(&run));
        let shown = cluster.client(&["status", "watched"]).exits(0);
        assert!(shown.stdout.lines().any(|line| line.starts_with("disk ")), "{}", shown.stdout);
    }
}

/// Uncommitted files of killed workers count towards the limit, and are deleted.
#[test]
fn the_limit_holds_where_workers_are_killed() {
    let mut cluster = Cluster::new(3);
    let options = format!("{} --keep 128 --disk 1800000", job());
    let (status, most) = watched(&mut cluster, &options, "watched", |cluster, job| {
        for kill in 0..3 {
            let is_on = |status: &Value| status["state"] == "done" || whole(&status["worker_count"]) > 0;
            cluster.wait_until(job, is_on);
            std::thread::sleep(Duration::from_millis(300));
            cluster.kill_worker(kill % cluster.workers.len());
            cluster.add_worker(&[]);
        }
    });
    assert!(most <= 1_800_000, "{most} seen");
    assert!(whole(&status["retries"]) > 0, "the job was over before the kills: {status}");
    is_whole(&cluster, "watched");
}

/// Kills the coordinator at three points: between a commit and the following removal, between the record of a removal and
/// the first file, and after the first of several files.
#[test]
fn a_coordinator_killed_during_a_removal_resumes() {
    let mut cluster = Cluster::new(2);
    let failpoint = |point: &str| format!("{point}=4*off->return");
    cluster.restart_coordinator_failing(&failpoint("removal.begun"));
    let job = cluster.submit(&format!("{} --keep 128 --disk 1800000", job()));
    for next in ["removal.committed", "journal.folder_synced", ""] {
        let begun = Instant::now();
        while cluster.coordinator.runs() {
            assert!(begun.elapsed() < Duration::from_secs(120), "before {next}: {}", cluster.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
        cluster.restart_coordinator_failing(&if next.is_empty() { String::new() } else { failpoint(next) });
    }
    let status = cluster.wait(&job);
    assert_eq!(whole(&status["disk_limit_bytes"]), 1_800_000, "it is in the queue");
    is_whole(&cluster, &job);
}

/// A cluster finishes a limited run of one process within the limit, and vice versa.
#[test]
fn runs_are_handed_over() {
    let mut cluster = Cluster::new(2);
    let run = cluster.run("begun");
    begin(&run, "64");
    let died = solve_failing(&run, &format!("{JOB} --disk 2MB"), "removal.begun=5*off->return");
    assert_eq!(died.signal, Some(6), "{died:?}");
    // The run still stores the same layers, although the limit alone would choose other layers.
    let job_name = cluster.submit(&format!("{} --disk 2MB --name begun", job()));
    assert_eq!(text(&cluster.wait(&job_name)["keep"]), "64");
    is_whole(&cluster, &job_name);

    let job_name = cluster.submit(&format!("{} --keep 128 --disk 1800000 --name handed-over", job()));
    let is_some = |status: &Value| status["phase"] == "back_up" && whole(&status["states"]) > 1_000_000;
    cluster.wait_until(&job_name, |status| is_some(status));
    cluster.client(&["cancel", &job_name]).exits(0);
    cluster.wait_until(&job_name, |status| status["state"] == "cancelled");
    let run = cluster.run(&job_name);
    cluster.workers.drain(..).for_each(|worker| drop(worker.stop()));
    cluster.coordinator.kill();
    let summary = solve(&run, &format!("{JOB} --disk 1800000"));
    assert!(whole(&summary["peak_disk_bytes"]) <= 1_800_000);
    is_stored_whole(&run, text(&summary["fingerprint"]));
}

/// A finished run preserves its files under any limit, and its job ends without a worker.
#[test]
fn a_limit_for_a_run_that_is_done_removes_nothing() {
    let cluster = Cluster::new(0);
    let run = cluster.run("done");
    begin(&run, "64");
    let died = solve_failing(&run, &format!("{JOB} --disk 2MB"), "removal.begun=5*off->return");
    assert_eq!(died.signal, Some(6), "{died:?}");
    // Without a limit, the rest of the reach stays.
    solve(&run, JOB);
    let before = (shards_of_reach(&run), taken(&run));
    let job_name = cluster.submit(&format!("{} --disk 2MB --name done", job()));
    cluster.wait(&job_name);
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    is_whole(&cluster, &job_name);
    cluster.client(&["forget", &job_name]).exits(0);
    let options = format!("submit {} --disk 100kB --name done", job());
    let over: Vec<&str> = options.split_whitespace().collect();
    cluster.client(&over).exits(0).prints("limit below a finished run");
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
}

/// If a job names an existing run, the rest of the run may need less disk than a new run.
#[test]
fn the_rest_of_a_run_takes_less_than_a_new_one() {
    let mut cluster = Cluster::new(1);
    let run = cluster.run("rest");
    begin(&run, "64");
    solve(&run, &format!("{JOB} --disk 2MB"));
    let lost = |path: &std::path::PathBuf| path.to_string_lossy().contains("values-000128");
    std::fs::remove_file(common::shards(&run).into_iter().find(lost).unwrap()).unwrap();
    let limited = format!("{} --keep 64 --disk 1600000", job());
    for options in [&format!("{} --disk 1MB", job()), &limited, &format!("{limited} --name new")] {
        let args = format!("submit {options}");
        let args: Vec<&str> = args.split_whitespace().collect();
        let refused = cluster.client(&args).exits(2).says(&["--disk"]);
        assert!(sizes(&refused.stderr).len() >= 2, "the least is missing: {refused:?}");
    }
    assert!(!cluster.run("new").exists());
    let (status, most) = watched(&mut cluster, &limited, "rest", |_, _| {});
    assert!(most <= 1_600_000, "{most} seen");
    assert_eq!(text(&status["keep"]), "64");
    is_whole(&cluster, "rest");
}

/// The coordinator reports the least disk before it makes a run. An existing run that needs more than the limit fails, names
/// the disk that it needs, and resumes with a higher limit.
#[test]
fn too_little_disk_is_reported_and_more_resumes() {
    let cluster = Cluster::new(2);
    for options in ["--disk 100kB", "--disk 2MB --keep 16"] {
        let args = format!("submit {} {options}", job());
        let args: Vec<&str> = args.split_whitespace().collect();
        let refused = cluster.client(&args).exits(2).says(&["--disk"]);
        assert!(sizes(&refused.stderr).len() >= 2, "the least is missing: {refused:?}");
    }
    assert!(std::fs::read_dir(cluster.store()).unwrap().count() <= 1, "there is no run");

    let run = cluster.run("large");
    begin(&run, "4");
    let job_name = cluster.submit(&format!("{} --disk 3MB --name large", job()));
    let failed = loop {
        let status = cluster.status(&job_name);
        assert_ne!(text(&status["state"]), "done", "{status}");
        if status["state"] == "failed" {
            break status;
        }
        std::thread::sleep(Duration::from_millis(30));
    };
    let failure = text(&failed["failure"]);
    assert!(failure.contains("3.0 MB"), "{failure}");
    assert_section("failure of a job with too little disk", failure);
    assert!(taken(&run) <= 3_000_000);
    cluster.client(&["forget", &job_name]).exits(0);
    let job_name = cluster.submit(&format!("{} --disk 40MB --name large", job()));
    cluster.wait(&job_name);
    is_whole(&cluster, &job_name);
}
