//! Clusters of real processes, also with faults. Their runs have the same bits as runs of one process.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use common::cluster::{Cluster, start_coordinator};
use common::snapshots::assert_section;
use common::{Finished, Solved, events, layers, on_run, solve, solve_args, text, whole};

/// The fingerprint of a run that one process solved.
fn expected(options: &str) -> String {
    Solved::new(options).fingerprint().to_owned()
}

#[test]
fn any_number_of_workers_comes_to_the_same_run() {
    for options in [
        "--board 3x2",
        "--board 3x2 --objective reach:64 --spawn4 1/3",
        "--board 2x2 --precision 64",
        "--board 3x2 --objective reach:64 --discount 0.95 --spawner worst",
        "--board 3x2 --values best-move --keep 8",
        "--board 3x2 --value-step 1/4",
        "--board 3x2 --sectors 3 --keep all",
        "--board 3x2 --from 8,4/2,2/0,0 --keep 16",
    ] {
        let one = Solved::new(options);
        for workers in 1..=4 {
            let cluster = Cluster::new(workers);
            let job = cluster.submit(options);
            let status = cluster.wait(&job);
            assert_eq!(cluster.verified_fingerprint(&job), one.fingerprint(), "{workers} workers, {options}");
            assert_eq!(layers(&cluster.run(&job)), layers(&one.run()));
            assert_eq!(whole(&status["retries"]), 0, "{}", cluster.logs());
            assert_eq!(status["best_moves"], options.contains("best-move"));
        }
    }
}

#[test]
fn an_enumeration_ends_where_it_is_to() {
    let cluster = Cluster::new(2);
    let job = cluster.submit("--board 3x3 --until-layer 120");
    cluster.wait(&job);
    let one = Solved::new("--board 3x3 --until-layer 120");
    assert_eq!(layers(&cluster.run(&job)), layers(&one.run()));
}

#[test]
fn runs_are_handed_over_between_one_process_and_a_cluster() {
    hand_over("--board 4x2", "job that keeps other layers");
}

#[test]
fn a_run_that_keeps_few_layers_is_handed_over() {
    hand_over("--board 4x2 --keep 16", "job that keeps more layers");
}

#[test]
fn a_run_of_rounded_values_is_handed_over() {
    hand_over("--board 4x2 --value-step 1/4 --keep 16", "job that keeps more layers");
}

#[test]
fn a_run_of_best_moves_is_handed_over() {
    hand_over("--board 4x2 --values best-move", "job that keeps values");
}

/// Lets a cluster finish a run of one process, and one process finish a run of a cluster.
///
/// Both runs equal the run of one process alone, and store the same layers.
fn hand_over(options: &str, section: &str) {
    let expected = Solved::new(options);
    let stored = |run: &Path| {
        let params = on_run(run, "info", &["--json"]).exits(0).json()["params"].clone();
        (params["kept"].clone(), params["best_moves"].clone())
    };
    let mut cluster = Cluster::new(2);
    // One process begins this run, and dies after the commit of the upward pass.
    let run = cluster.run("begun");
    let mut alone = common::command(solve_args(&run, options));
    let died = Finished::new(alone.env("FAILPOINTS", "journal.folder_synced=return").output().unwrap());
    assert_eq!(died.signal, Some(6), "{died:?}");
    let info = on_run(&run, "info", &["--json"]).exits(0).json();
    assert_eq!(text(&info["progress"]), "unfinished");
    // A job with another choice of stored values is refused.
    let other = cluster.client(&["submit", "--board", "4x2", "--keep", "8", "--name", "begun"]).exits(2);
    other.prints(section);
    let job = cluster.submit(&format!("{options} --name begun"));
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), expected.fingerprint());
    assert_eq!(stored(&run), stored(&expected.run()));

    // A cluster begins this run, and is then stopped.
    let job = cluster.submit(&format!("{options} --name handed-over"));
    cluster.wait_until(&job, |status| whole(&status["states"]) > 100_000);
    let run = cluster.run(&job);
    cluster.client(&["cancel", &job]).exits(0);
    cluster.wait_until(&job, |status| status["state"] == "cancelled");
    cluster.workers.drain(..).for_each(|worker| drop(worker.stop()));
    cluster.coordinator.kill();
    let solved = solve(&run, options);
    assert_eq!(text(&solved["fingerprint"]), expected.fingerprint());
    assert_eq!(stored(&run), stored(&expected.run()));
    on_run(&run, "verify", &[]).exits(0);
}

#[test]
fn workers_that_are_killed_are_made_up_for() {
    let expected = expected("--board 4x2");
    let mut cluster = Cluster::new(3);
    let job = cluster.submit("--board 4x2");
    let mut retries = 0;
    for kill in 0..4 {
        cluster.wait_until(&job, |status| status["state"] == "done" || whole(&status["worker_count"]) > 0);
        std::thread::sleep(Duration::from_millis(100));
        cluster.kill_worker(kill % cluster.workers.len());
        cluster.add_worker(&[]);
        let status = cluster
            .wait_until(&job, |status| status["state"] == "done" || whole(&status["retries"]) > retries);
        retries = whole(&status["retries"]);
    }
    assert!(retries >= 2, "the job was over before the kills: {retries} retries");
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), expected);
}

#[test]
fn a_killed_coordinator_resumes() {
    let expected = expected("--board 4x2");
    let mut cluster = Cluster::new(2);
    let job = cluster.submit("--board 4x2");
    let second = cluster.submit("--board 2x2");
    for restart in 0..3 {
        let working = |status: &Value| whole(&status["worker_count"]) > 0 && whole(&status["states"]) > 0;
        let status = cluster.wait_until(&job, |status| status["state"] == "done" || working(status));
        assert!(
            restart > 0 || status["state"] == "running",
            "the job was over before the first kill: {status}"
        );
        cluster.restart_coordinator();
    }
    cluster.wait(&job);
    cluster.wait(&second);
    assert_eq!(cluster.verified_fingerprint(&job), expected);
}

/// Retries, epochs and progress belong to the job, and a new coordinator continues their counts.
#[test]
fn the_counts_of_a_job_outlive_its_coordinator() {
    let mut cluster = Cluster::new(1);
    let job = cluster.submit("--board 4x2");
    cluster.wait_until(&job, |status| whole(&status["bytes"]) > 0);
    cluster.kill_worker(0);
    let before = cluster.wait_until(&job, |status| whole(&status["retries"]) > 0);
    assert_eq!(before["state"], "running", "the job was over before its worker was killed");
    for _ in 0..2 {
        cluster.stop_and_restart_coordinator();
        let after = cluster.status(&job);
        for count in ["retries", "epochs"] {
            assert_eq!(after[count], before[count], "{after}, and before {before}");
        }
    }
    cluster.add_worker(&[]);
    let done = cluster.wait(&job);
    assert!(whole(&done["epochs"]) > whole(&before["epochs"]), "{done}");
    cluster.stop_and_restart_coordinator();
    let after = cluster.status(&job);
    assert_eq!((&after["epochs"], &after["retries"]), (&done["epochs"], &done["retries"]));
}

#[test]
fn a_cluster_killed_at_once_resumes() {
    let expected = expected("--board 4x2");
    let mut cluster = Cluster::new(2);
    let job = cluster.submit("--board 4x2 --sectors 2");
    let status = cluster.wait_until(&job, |status| whole(&status["bytes"]) > 0);
    assert_eq!(status["state"], "running", "the job was over before it was killed");
    while !cluster.workers.is_empty() {
        cluster.kill_worker(0);
    }
    cluster.restart_coordinator();
    cluster.add_worker(&[]);
    cluster.add_worker(&[]);
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), expected);
}

#[test]
fn a_worker_that_sleeps_past_its_lease_does_no_harm_when_it_wakes() {
    let expected = expected("--board 4x2");
    let cluster = Cluster::new(2);
    let job = cluster.submit("--board 4x2");
    cluster.wait_until(&job, |status| whole(&status["states"]) > 50_000);
    cluster.workers[0].signal("STOP");
    // The other worker finishes the job, alone or together with the woken worker.
    cluster.wait_until(&job, |status| whole(&status["retries"]) > 0);
    cluster.workers[0].signal("CONT");
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), expected);
}

/// A stopped worker says goodbye, so the list drops it before its lease ends.
#[test]
fn a_worker_that_was_stopped_is_not_shown_any_more() {
    let mut cluster = Cluster::new(2);
    let shown = |cluster: &Cluster| {
        let all = cluster.client(&["status", "--json"]).exits(0).json();
        all["workers"].as_array().unwrap().len()
    };
    let begun = Instant::now();
    while shown(&cluster) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(20));
    }
    cluster.workers.remove(0).stop();
    assert_eq!(shown(&cluster), 1);
    let log = cluster.coordinator.log();
    assert!(log.contains(events::WORKER_LEFT) && !log.contains(events::WORKER_LOST), "{log}");
}

/// All logs use the same name for an epoch, and the names of the passes.
#[test]
fn epochs_and_passes_have_one_name_in_all_logs() {
    let cluster = Cluster::new(1);
    let job = cluster.submit("--board 2x2");
    cluster.wait(&job);
    for log in [cluster.coordinator.log(), cluster.workers[0].log()] {
        let named: Vec<&str> =
            log.split("epoch=").skip(1).filter_map(|rest| rest.split([' ', '\n']).next()).collect();
        assert!(
            named.len() >= 2 && named.iter().all(|name| name.trim_matches('"').starts_with("1.")),
            "{log}"
        );
        assert!(log.contains("phase=\"enumerate\"") && log.contains("phase=\"back up\""), "{log}");
        assert!(!log.contains("BackUp") && !log.contains("Enumerate"), "{log}");
    }
}

#[test]
fn workers_may_join_and_leave() {
    let expected = expected("--board 4x2");
    let mut cluster = Cluster::new(1);
    let job = cluster.submit("--board 4x2");
    cluster.wait_until(&job, |status| whole(&status["states"]) > 0);
    cluster.add_worker(&[]);
    let first = cluster.workers.remove(0);
    first.stop();
    cluster.wait(&job);
    assert_eq!(cluster.verified_fingerprint(&job), expected);
}

#[test]
fn a_shard_that_is_lost_or_damaged_is_made_again() {
    let expected = expected("--board 4x2");
    let damages: [fn(&Path); 3] = [remove, flip_a_bit, cut_short];
    for damage in damages {
        let cluster = Cluster::new(2);
        let job = cluster.submit("--board 4x2");
        // Damages a shard of the upward pass that the downward pass needs.
        let status = cluster.wait_until(&job, |status| whole(&status["bytes"]) > 0);
        assert_ne!(status["state"], "done", "nothing left to damage");
        cluster.client(&["cancel", &job]).exits(0);
        cluster.wait_until(&job, |status| status["state"] == "cancelled");
        let shards = fs::read_dir(cluster.run(&job).join("shards")).unwrap();
        let shard = shards
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("reach-"))
            .max_by_key(|path| fs::metadata(path).unwrap().len())
            .unwrap();
        damage(&shard);
        cluster.client(&["resume", &job]).exits(0);
        cluster.wait(&job);
        assert_eq!(cluster.verified_fingerprint(&job), expected);
    }
}

#[test]
fn the_shards_of_a_job_that_is_done_are_read_again_when_it_is_resumed() {
    let cluster = Cluster::new(2);
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    let expected = cluster.verified_fingerprint(&job);
    let shards = |kind| {
        let shards =
            fs::read_dir(cluster.run(&job).join("shards")).unwrap().map(|entry| entry.unwrap().path());
        let is_of = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(kind);
        shards.filter(is_of).collect::<Vec<_>>()
    };
    let check_again = || {
        let resumed = cluster.client(&["resume", &job]).exits(0);
        assert_section("resume of a finished job", &resumed.stdout);
        cluster.wait(&job);
        assert_eq!(cluster.verified_fingerprint(&job), expected);
        cluster.client(&["status", &job, "--json"]).exits(0).json()
    };
    // In an undamaged run, no shard is computed again.
    let epochs = cluster.client(&["status", &job, "--json"]).exits(0).json()["epochs"].clone();
    let before = (shards("reach-"), shards("values-"));
    assert_eq!(check_again()["epochs"], epochs);
    assert_eq!((shards("reach-"), shards("values-")), before);
    // Damages a shard of each pass, then deletes one.
    for kind in ["reach-", "values-"] {
        let shard = shards(kind).pop().unwrap();
        flip_a_bit(&shard);
        on_run(&cluster.run(&job), "verify", &[]).exits(1).says(&["exact2048 resume"]);
        check_again();
    }
    remove(&shards("values-").pop().unwrap());
    let mended = check_again();
    // Without a readable manifest, the job reports this problem, and no shard counts as lost.
    let manifest = cluster.run(&job).join("manifest.json");
    let sound = fs::read(&manifest).unwrap();
    fs::write(&manifest, b"{}").unwrap();
    cluster.client(&["resume", &job]).exits(0);
    let unread = cluster.wait(&job);
    assert!(text(&unread["trouble"]).contains("manifest.json"), "{unread}");
    cluster.client(&["status", &job, "--watch"]).exits(1).says(&["manifest.json"]);
    fs::write(&manifest, sound).unwrap();
    assert_eq!(check_again()["epochs"], mended["epochs"]);
}

fn remove(file: &Path) {
    fs::remove_file(file).unwrap();
}

fn cut_short(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() * 2 / 3]).unwrap();
}

fn flip_a_bit(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_second_coordinator_is_refused() {
    let mut cluster = Cluster::new(0);
    let store = format!("file://{}", cluster.store().display());
    let second = common::exact2048(["coordinator", "--store", &store, "--listen", "127.0.0.1:0"]);
    second.exits(1).says(&["lock"]);
    // After the first coordinator has ended, the second one takes over.
    let store = cluster.store();
    cluster.coordinator.kill();
    start_coordinator(&store, "127.0.0.1:0").stop();
}

#[test]
fn a_run_of_a_cluster_is_served() {
    let cluster = Cluster::new(2);
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    let alone = Solved::new("--board 3x2");
    let board = ["2 0 / 0 2 / 0 0"];
    let from_cluster = on_run(&cluster.run(&job), "query", &[board[0], "--json"]).exits(0);
    let from_one = on_run(&alone.run(), "query", &[board[0], "--json"]).exits(0);
    assert_eq!(from_cluster.stdout, from_one.stdout);
}

/// Replaces the journal of a running job with another file.
fn break_journal(cluster: &Cluster, job: &str, put: impl Fn(&std::path::Path)) {
    // Avoids the time between the two passes. There, the worker that begins the second pass could not even open the run.
    cluster.wait_until(job, |status| whole(&status["bytes"]) > 0 && whole(&status["states"]) > 0);
    let journal = cluster.run(job).join("journal");
    std::fs::rename(&journal, cluster.run(job).join("journal-was")).unwrap();
    put(&journal);
}

/// The reported failure of a job.
fn failure(cluster: &Cluster, job: &str) -> String {
    let begun = std::time::Instant::now();
    loop {
        let status = cluster.status(job);
        if status["state"] == "failed" {
            return text(&status["failure"]).to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{status}\n{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A job with an unwritable journal fails after half a minute with the true reason, and the next job starts. Before the
/// failure, the job can be cancelled.
#[test]
fn a_journal_that_cannot_be_written_stops_no_other_job() {
    let cluster = Cluster::new(1);
    let stuck = cluster.submit("--board 4x2");
    break_journal(&cluster, &stuck, |journal| std::fs::write(journal, b"no folder").unwrap());
    let other = cluster.submit("--board 2x2");
    let reason = failure(&cluster, &stuck);
    assert!(reason.contains("journal"), "{reason}");
    cluster.wait(&other);
    // Does the same with another job, and cancels it.
    let second = cluster.submit("--board 4x2 --name second");
    break_journal(&cluster, &second, |journal| std::fs::write(journal, b"no folder").unwrap());
    cluster.wait_until(&second, |status| !text(&status["trouble"]).is_empty());
    cluster.client(&["cancel", &second]).exits(0);
    cluster.wait_until(&second, |status| status["state"] == "cancelled");
}

/// Deleted records fail one job with the true reason; the coordinator keeps running.
#[test]
fn a_journal_that_was_removed_stops_no_coordinator() {
    let mut cluster = Cluster::new(1);
    let job = cluster.submit("--board 4x2");
    break_journal(&cluster, &job, |_| {});
    let other = cluster.submit("--board 2x2");
    let reason = failure(&cluster, &job);
    assert!(reason.contains("journal"), "{reason}");
    assert_section("failure after the journal was removed", &reason);
    cluster.wait(&other);
    assert!(cluster.coordinator.runs());
}
