//! Runs whose disk is limited: never exceeded, whatever has to go for that, and the same values as ever. Killed at any step.

use crate::common;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{
    Finished, Place, Solved, command, files, layers, on_run, query, solve, solve_args, text, try_solve, whole,
};
use serde_json::Value;

/// 14 million states in a second or two: 1.2 MB of reach, and 25 MB of values if all are kept.
const JOB: &str = "--board 3x3 --objective reach:512 --threads 2";

static USUAL: LazyLock<Solved> = LazyLock::new(|| Solved::new(JOB));

/// Boards of all parts of a game; of most of their layers nothing is kept.
const BOARDS: [&str; 3] = ["2,0,0/0,2,0/0,0,0", "128,64,16/32,8,2/4,0,2", "256,128,8/32,16,4/4,2,0"];

/// What all files of a run take of the disk.
fn taken(run: &Path) -> u64 {
    let folders = ["", "journal", "shards"].map(|folder| run.join(folder));
    let of_folder = |folder: &std::path::PathBuf| -> u64 {
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        let files = entries.filter_map(|entry| entry.ok()?.metadata().ok()).filter(|data| data.is_file());
        files.map(|data| data.blocks() * 512).sum()
    };
    folders.iter().map(of_folder).sum()
}

/// Solves while what the run takes is looked at, over and over. Returns its summary and the most that was seen.
fn solve_watched(run: &Path, options: &str) -> (Value, u64) {
    let (is_over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let summary = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(taken(run), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let finished = try_solve(run, options);
        is_over.store(true, Ordering::Relaxed);
        finished.exits(0).json()
    });
    (summary, most.into_inner())
}

/// The records of a run's journal.
fn records(run: &Path) -> Vec<Value> {
    let record = |path: &std::path::PathBuf| -> Value {
        let sealed: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        sealed["body"]["record"].clone()
    };
    files(&run.join("journal")).iter().map(record).collect()
}

/// How many layers were enumerated a second time. None is enumerated more often than that.
fn enumerated_again(run: &Path) -> usize {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for record in records(run).iter().filter(|record| record["commit"]["phase"] == "enumerate") {
        for counts in record["commit"]["layers"].as_array().unwrap() {
            *times.entry(whole(&counts["layer"])).or_default() += 1;
        }
    }
    assert!(times.values().all(|&times| times <= 2), "{times:?}");
    times.values().filter(|&&times| times == 2).count()
}

/// Shards of reach that are there.
fn shards_of_reach(run: &Path) -> usize {
    common::shards(run).iter().filter(|path| path.to_string_lossy().contains("/reach-")).count()
}

/// Requires that what came out of a run is the usual.
fn is_whole(run: &Path, summary: &Value) {
    assert_eq!(text(&summary["fingerprint"]), USUAL.fingerprint());
    assert_eq!(summary["start"], USUAL.summary["start"]);
    assert_eq!(layers(run), layers(&USUAL.run()));
    let named = common::committed_now(run);
    assert!(common::shards(run).iter().all(|shard| named.contains(shard)), "a shard is left over");
}

/// The same, and that a run answers as usual, whatever is left of it.
fn is_as_usual(run: &Path, summary: &Value) {
    is_whole(run, summary);
    let boards = BOARDS.map(str::to_owned);
    let answers = |run: &Path| -> Vec<Value> {
        let mut answers = query(run, &boards);
        answers.iter_mut().for_each(|answer| drop(answer.as_object_mut().unwrap().remove("cost")));
        answers
    };
    assert_eq!(answers(run), answers(&USUAL.run()));
    on_run(run, "verify", &["--sample", "20"]).exits(0);
}

/// A run that keeps these layers, of which nothing is done yet. What it may take is then not forecast: the limits here are
/// below the estimate, which leaves room for worse boards.
fn begin(run: &Path, keep: &str) {
    let began = solve_failing(run, &format!("{JOB} --keep {keep}"), "shard.before_sync=return");
    assert_eq!(began.signal, Some(6), "{began:?}");
}

/// With less and less disk: more reach is let go of, and from some point on much is enumerated twice.
#[test]
fn the_limit_holds_and_values_stay_the_same() {
    let mut again = Vec::new();
    for (limit, keep) in [(8_000_000u64, "16"), (4_000_000, "64"), (2_000_000, "64"), (2_000_000, "128")] {
        let place = Place::new();
        let run = place.join("run");
        begin(&run, keep);
        let (summary, most) = solve_watched(&run, &format!("{JOB} --disk {limit}"));
        let peak = whole(&summary["peak_disk_bytes"]);
        assert!(most <= peak && peak <= limit, "{most} seen, {peak} counted, {limit} allowed");
        is_as_usual(&run, &summary);
        // Of layers without reach nobody knows which states are dead.
        let dead = on_run(&run, "layers", &["--dead", "--csv"]).exits(0).says(&["not stored any more"]);
        assert!(dead.stdout.lines().any(|line| line.ends_with(',')), "{dead:?}");
        again.push(enumerated_again(&run));
        // All that is left of reach is that of kept layers, and what is stored together with it.
        let removed = records(&run).iter().filter(|record| !record["removed"].is_null()).count();
        assert!(removed > 1, "{limit}: {removed}");
        // Asked for again, with any limit that it fits into, nothing is done.
        let before = files(&run.join("journal")).len();
        solve(&run, &format!("{JOB} --disk {limit}"));
        assert_eq!(files(&run.join("journal")).len(), before);
    }
    assert_eq!(again[0], 0, "there was room for all reach");
    assert!(again[2] > 50 && again[3] > 50, "many layers were enumerated twice: {again:?}");
}

/// A run that was begun without a limit may be given one at any time, and keeps what it keeps.
#[test]
fn a_run_that_is_there_can_be_limited() {
    let place = Place::new();
    let run = place.join("run");
    let summary = solve(&run, &format!("{JOB} --keep 32"));
    let before = (shards_of_reach(&run), taken(&run));
    // It has one shard of reach, which holds kept layers too.
    solve(&run, &format!("{JOB} --disk 8MB"));
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    is_as_usual(&run, &summary);
    // And without a limit again.
    solve(&run, JOB);
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    // Another policy is another run, with or without a limit.
    try_solve(&run, &format!("{JOB} --disk 8MB --keep 64"))
        .exits(2)
        .says(&["its choice of kept layers is 32"]);
}

#[test]
fn what_is_kept_is_chosen_and_said() {
    for (limit, said) in [("8MB", "2 in every 16"), ("2.4MB", "2 in every 64")] {
        let place = Place::new();
        let run = place.join("run");
        let finished = try_solve(&run, &format!("{JOB} --disk {limit}")).exits(0);
        let finished =
            finished.says(&["layers whose values are kept", said, "at most", "in the end", "it would keep"]);
        assert!(finished.stderr.contains("half way between them takes"), "{}", finished.stderr);
        is_whole(&run, &finished.json());
    }
}

/// The least is told, before anything is made; and it is enough.
#[test]
fn too_little_is_refused_with_the_least() {
    let place = Place::new();
    let run = place.join("run");
    for options in ["--disk 100kB", "--disk 2MB --keep 16"] {
        let refused =
            try_solve(&run, &format!("{JOB} {options}")).exits(2).says(&["--disk", "at least about"]);
        assert!(!run.exists());
        let least = refused.stderr.split("at least about ").nth(1).unwrap().split("iB").next().unwrap();
        let least = format!("{least}iB").replace(' ', "");
        let keep = options.split_once("--keep").map_or(String::new(), |(_, keep)| format!("--keep {keep}"));
        let run = place.join("least");
        is_whole(&run, &solve(&run, &format!("{JOB} {keep} --disk {least}")));
        std::fs::remove_dir_all(run).unwrap();
    }
    try_solve(&run, &format!("{JOB} --disk much")).exits(2).says(&["--disk"]);
}

/// Where a run has less than it needs, it says so, and goes on where it was with more.
#[test]
fn a_run_that_gets_less_goes_on_with_more() {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 3x3 --objective reach:256 --threads 2 --keep 8");
    let values: Vec<_> =
        common::shards(&run).into_iter().filter(|path| path.to_string_lossy().contains("values")).collect();
    std::fs::remove_file(&values[0]).unwrap();
    let job = "--board 3x3 --objective reach:256 --threads 2";
    try_solve(&run, &format!("{job} --disk 300kB"))
        .exits(2)
        .says(&["--disk 293.0 KiB is too small", "at least"]);
    let summary = solve(&run, &format!("{job} --disk 20MB"));
    let usual = Solved::new(job);
    assert_eq!(text(&summary["fingerprint"]), usual.fingerprint());
}

/// Runs `solve` with a fail point.
fn solve_failing(run: &Path, job: &str, failpoints: &str) -> Finished {
    let mut command = command(solve_args(run, job));
    Finished::new(command.env("FAILPOINTS", failpoints).output().unwrap())
}

/// Killed between a commit and the removal that follows from it, between the record of a removal and the first file, and
/// after the first of several files: of what is needed nothing is gone, and nothing is left over in the end.
#[test]
fn crashes_while_shards_are_removed() {
    let job = format!("{JOB} --disk 2MB");
    for point in ["journal.folder_synced", "removal.committed", "removal.begun"] {
        let place = Place::new();
        let run = place.join("run");
        begin(&run, "64");
        // One after the other, on the way up, at the turn and on the way down.
        for passed in [0, 9, 0, 30] {
            let failpoints = match passed {
                0 => format!("{point}=return"),
                _ => format!("{point}={passed}*off->return"),
            };
            let finished = solve_failing(&run, &job, &failpoints);
            if finished.code == Some(0) {
                break;
            }
            assert_eq!(finished.signal, Some(6), "{failpoints}: {finished:?}");
            on_run(&run, "info", &["--json"]).exits(0).json();
            on_run(&run, "layers", &[]).exits(0);
        }
        is_whole(&run, &solve(&run, &job));
    }
}

/// Others may fill the disk although the limit would hold.
#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let job = format!("{JOB} --disk 2MB");
    let place = Place::new();
    let run = place.join("run");
    begin(&run, "64");
    for passed in [10, 200] {
        let full = solve_failing(&run, &job, &format!("shard.write={passed}*off->return(enospc)"));
        full.exits(1).says(&["no space is left", "it resumes"]);
    }
    is_whole(&run, &solve(&run, &job));
}
