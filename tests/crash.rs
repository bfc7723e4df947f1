//! Kills of the program at every point of publishing, and full disks. The same command resumes the run.
//!
//! `docs/dev/format.md` describes the files after each crash point. The environment sets the fail points.

use crate::common;

use std::fs;
use std::path::Path;

use common::patient::flip;
use common::{
    Finished, Place, Solved, command, committed, committed_as, files, layers, on_run, shards, solve,
    solve_args, text,
};

/// A job with one shard of states and one of values. It takes a fraction of a second.
const JOB: &str = "--board 3x2";

/// A job with several shards of values. It takes a second or two.
const LARGE_JOB: &str = "--board 3x3 --objective reach:512 --precision 64";

const CREATING: [&str; 2] = ["manifest.synced", "manifest.linked"];

const PUBLISHING: [&str; 8] = [
    "shard.before_sync",
    "shard.synced",
    "shard.renamed",
    "shard.folder_synced",
    "journal.before_sync",
    "journal.synced",
    "journal.linked",
    "journal.folder_synced",
];

/// Runs `solve` with a fail point.
fn solve_failing(run: &Path, job: &str, failpoints: &str) -> Finished {
    let mut command = command(solve_args(run, job));
    Finished::new(command.env("FAILPOINTS", failpoints).output().unwrap())
}

/// Runs `solve`, and requires that it dies at a fail point.
fn crash(run: &Path, job: &str, failpoints: &str) {
    let finished = solve_failing(run, job, failpoints);
    assert_eq!(finished.signal, Some(6), "{failpoints}: {finished:?}");
    assert!(finished.stdout.is_empty(), "{failpoints}: {finished:?}");
}

/// Solves to the end, and requires the results of a run that never crashed, without leftover files.
fn resumes(run: &Path, job: &str, healthy: &Solved, what: &str) {
    let before = committed(run);
    let summary = solve(run, job);
    assert_eq!(text(&summary["fingerprint"]), healthy.fingerprint(), "{what}");
    assert_eq!(summary["start"], healthy.summary["start"], "{what}");
    assert_eq!(layers(run), layers(&healthy.run()), "{what}");
    let after = committed(run);
    assert!(after.starts_with(&before), "{what}: a committed shard was lost or written again");
    let named: Vec<_> = after.into_iter().map(|(path, _)| path).collect();
    for shard in shards(run) {
        assert!(named.contains(&shard), "{what}: {} is left over", shard.display());
    }
    has_no_temporary_files(run, what);
    // If a run stores few layers, a check of all states takes no longer than a sample.
    let how: &[&str] = if job.contains("--keep") { &[] } else { &["--sample", "200"] };
    on_run(run, "verify", how).exits(0);
}

fn has_no_temporary_files(run: &Path, what: &str) {
    for folder in [run.to_path_buf(), run.join("journal"), run.join("shards")] {
        for file in files(&folder) {
            assert!(!file.file_name().unwrap().to_str().unwrap().starts_with(".tmp-"), "{what}: {file:?}");
        }
    }
}

#[test]
fn crashes_while_the_run_is_created() {
    let healthy = Solved::new(JOB);
    for point in CREATING {
        let place = Place::new();
        let run = place.join("run");
        crash(&run, JOB, &format!("{point}=return"));
        let exists = point == "manifest.linked";
        on_run(&run, "info", &[]).exits(if exists { 0 } else { 1 });
        resumes(&run, JOB, &healthy, point);
    }
}

/// Crashes at each point of publishing after a number of publications have passed it, and resumes.
fn check_publishing(job: &str, points: &[&str], passed: impl Fn(usize) -> Vec<usize>) {
    let healthy = Solved::new(job);
    for point in points {
        for passed in passed(committed(&healthy.run()).len()) {
            let place = Place::new();
            let run = place.join("run");
            let failpoints = match passed {
                0 => format!("{point}=return"),
                _ => format!("{point}={passed}*off->return"),
            };
            crash(&run, job, &failpoints);
            // A journal record counts once it has its name.
            let counts = matches!(*point, "journal.linked" | "journal.folder_synced");
            assert_eq!(committed(&run).len(), passed + usize::from(counts), "{failpoints}");
            // Readers can use the published files, and change no files.
            on_run(&run, "info", &["--json"]).exits(0).json();
            if job == JOB {
                // `verify --partial` fails on a run without commits.
                let is_new = committed(&run).is_empty();
                on_run(&run, "verify", &["--partial"]).exits(i32::from(is_new));
            }
            resumes(&run, job, &healthy, &failpoints);
        }
    }
}

#[test]
fn crashes_while_shards_are_published() {
    check_publishing(JOB, &PUBLISHING, |publications| (0..publications).collect());
}

/// Crashes of a job with one shard of states, and several shards of best moves with few values.
#[test]
fn crashes_between_shards_of_best_moves() {
    let job = "--board 3x3 --objective reach:256 --values best-move --keep 16";
    check_publishing(job, &["shard.synced", "shard.folder_synced", "journal.linked"], |publications| {
        vec![publications - 1]
    });
}

#[test]
fn crashes_between_shards_of_values() {
    let points = ["shard.folder_synced", "journal.synced", "journal.linked"];
    check_publishing(LARGE_JOB, &points, |publications| {
        assert!(publications >= 3, "the job has several shards of values");
        vec![publications - 1]
    });
}

/// A job with several shards of rounded values. A solve resumes from the checkpoint of the last one.
const ROUNDED_JOB: &str = "--board 3x3 --objective reach:512 --precision 64 --value-step 1e-9";

/// After any crash, the run resumes with all bits, so its shards are those of a run that never crashed.
#[test]
fn crashes_between_shards_of_rounded_values() {
    let healthy = Solved::new(ROUNDED_JOB);
    assert_eq!(healthy.fingerprint(), Solved::new(LARGE_JOB).fingerprint());
    let publications = committed(&healthy.run()).len();
    assert!(publications >= 4, "the job has several shards of values");
    assert!(checkpoints(&healthy.run()).is_empty(), "a finished run has no checkpoint");
    let mut resumed = 0;
    // Each range but the lowest publishes two shards before its record.
    for (point, times) in [("shard.synced", 2..=5), ("shard.folder_synced", 3..=4), ("journal.linked", 2..=3)]
    {
        for passed in times {
            let place = Place::new();
            let run = place.join("run");
            let failpoints = format!("{point}={passed}*off->return");
            let crashed = solve_failing(&run, ROUNDED_JOB, &failpoints);
            if crashed.signal.is_none() {
                continue;
            }
            resumed += 1;
            let had_values = committed_as(&run, "values").len();
            on_run(&run, "info", &["--json"]).exits(0).json();
            on_run(&run, "verify", &["--partial"]).exits(0);
            let summary = solve(&run, ROUNDED_JOB);
            assert_eq!(text(&summary["fingerprint"]), healthy.fingerprint(), "{failpoints}");
            assert!(committed_as(&run, "values").len() >= had_values, "{failpoints}");
            assert!(checkpoints(&run).is_empty(), "{failpoints}");
            assert_eq!(values_items(&run), values_items(&healthy.run()), "{failpoints}");
            has_no_temporary_files(&run, &failpoints);
            on_run(&run, "verify", &["--sample", "200"]).exits(0);
        }
    }
    assert!(resumed > 5, "{resumed}");
}

/// The published checkpoints of a run.
fn checkpoints(run: &Path) -> Vec<std::path::PathBuf> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    shards(run).into_iter().filter(|path| name(path).starts_with("checkpoint")).collect()
}

/// All items of a run's shards of values.
fn values_items(run: &Path) -> Vec<(exact2048_storage::ItemKey, Vec<u8>)> {
    let forge = common::forge::Forge::open(run);
    let of_values = forge.of_kind(exact2048_storage::ShardKind::Values);
    let mut items: Vec<_> = of_values.flat_map(|shard| forge.shards[shard].items.clone()).collect();
    items.sort();
    items
}

/// The same run crashes at every point in sequence.
#[test]
fn a_crash_at_every_start() {
    let healthy = Solved::new(JOB);
    let place = Place::new();
    let run = place.join("run");
    CREATING.iter().for_each(|point| {
        // A solve passes the second point only if the first crash left no manifest.
        crash(&run, JOB, &format!("{point}=return"));
    });
    for point in &PUBLISHING[..6] {
        crash(&run, JOB, &format!("{point}=return"));
        assert!(committed(&run).is_empty(), "{point}");
    }
    crash(&run, JOB, "journal.linked=return");
    assert_eq!(committed(&run).len(), 1);
    resumes(&run, JOB, &healthy, "every point");
}

#[test]
fn crashes_while_a_damaged_shard_is_replaced() {
    let healthy = Solved::new(JOB);
    for point in PUBLISHING {
        for which in [0, 1] {
            let place = Place::new();
            let run = place.join("run");
            solve(&run, JOB);
            let (victim, _) = committed(&run).remove(which);
            let mut bytes = fs::read(&victim).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&victim, bytes).unwrap();
            crash(&run, JOB, &format!("{point}=return"));
            let summary = solve(&run, JOB);
            assert_eq!(text(&summary["fingerprint"]), healthy.fingerprint(), "{point}");
            has_no_temporary_files(&run, point);
            on_run(&run, "verify", &["--sample", "200"]).exits(0);
        }
    }
}

/// `solve` reads all shards only if none is missing. If it finds damaged shards and then dies, the next command computes
/// these shards again.
#[test]
fn crashes_while_several_damaged_shards_are_replaced() {
    let healthy = Solved::new(LARGE_JOB);
    let run = healthy.run();
    let is_of_values = |path: &Path| path.file_name().unwrap().to_str().unwrap().starts_with("values");
    // Crashes after the retraction of one commit of two, after the retraction of both, and after the first new commit.
    for point in ["journal.linked=return", "journal.linked=1*off->return", "journal.linked=2*off->return"] {
        let values: Vec<_> =
            committed(&run).into_iter().map(|(path, _)| path).filter(|path| is_of_values(path)).collect();
        for victim in [&values[0], values.last().unwrap()] {
            flip(victim, fs::metadata(victim).unwrap().len() as usize / 2, 1);
        }
        crash(&run, LARGE_JOB, point);
        let summary = solve(&run, LARGE_JOB);
        assert_eq!(summary["fingerprint"], healthy.summary["fingerprint"], "{point}");
        // This command reads the whole run.
        on_run(&run, "verify", &["--sample", "10"]).exits(0);
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let healthy = Solved::new(JOB);
    for passed in [0, 1, 20, 200, 600] {
        let place = Place::new();
        let run = place.join("run");
        let failpoints = match passed {
            0 => "shard.write=return(enospc)".to_owned(),
            _ => format!("shard.write={passed}*off->return(enospc)"),
        };
        let finished = solve_failing(&run, JOB, &failpoints);
        if finished.code == Some(0) {
            continue; // fewer writes than that
        }
        let finished = finished.exits(1).says(&["/shards/"]);
        assert!(finished.stdout.is_empty(), "{finished:?}");
        assert!(
            files(&run.join("shards")).iter().all(|file| shards(&run).contains(file)),
            "a temporary file is left"
        );
        resumes(&run, JOB, &healthy, &failpoints);
    }
}

#[test]
fn a_broken_disk_is_reported() {
    let place = Place::new();
    let run = place.join("run");
    let finished = solve_failing(&run, JOB, "shard.write=return").exits(1).says(&["shards"]);
    assert!(finished.stdout.is_empty(), "{finished:?}");
}
