//! Runs with a disk limit: they never exceed the limit, and have the usual values, even after a kill at any step.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::snapshots::assert_section;
use common::{
    Finished, Place, Solved, close, command, content_of, files, layers, least_memory, number, on_run, query,
    sizes, solve, solve_args, text, try_solve, whole,
};
use exact2048_game::Layer;
use exact2048_solution::{Phase, Run};
use serde_json::{Value, json};

/// A job with 14 million states that takes a second or two: 1.2 MB of reach, and 25 MB of values if all are stored.
pub const JOB: &str = "--board 3x3 --objective reach:512 --threads 2";

static USUAL: LazyLock<Solved> = LazyLock::new(|| Solved::new(JOB));

/// Boards from all parts of a game. Most of their layers are not stored.
const BOARDS: [&str; 3] = ["2,0,0/0,2,0/0,0,0", "128,64,16/32,8,2/4,0,2", "256,128,8/32,16,4/4,2,0"];

/// The files of a run that have names, each with its bytes on the disk.
fn named(run: &Path) -> BTreeMap<PathBuf, u64> {
    let folders = ["", "journal", "shards"].map(|folder| run.join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let sized = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let data = entry.metadata().ok().filter(|data| data.is_file())?;
        Some((entry.path(), 512 * data.blocks()))
    };
    entries.filter_map(sized).collect()
}

/// Bytes of all files of a run that have names.
pub fn taken(run: &Path) -> u64 {
    named(run).values().sum()
}

/// The unnamed files of a run that a process has open or mapped: scratch files, and shards removed during a read. The keys
/// are the former, unique names of the files.
fn unnamed(run: &Path, process: u32) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::<PathBuf, u64>::new();
    let mut add = |file: PathBuf, bytes: u64| {
        if file.starts_with(run) && file.to_string_lossy().ends_with(" (deleted)") {
            let known = found.entry(file).or_default();
            *known = bytes.max(*known);
        }
    };
    let process = PathBuf::from(format!("/proc/{process}"));
    for link in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
        // The process may have closed the file after the listing.
        if let (Ok(file), Ok(data)) = (fs::read_link(link.path()), fs::metadata(link.path())) {
            add(file, 512 * data.blocks());
        }
    }
    // Most scratch files are only mapped: `7f12a000-7f12e000 r--s 00000000 fe:00 4711    /run/.tmp-scratch-1 (deleted)`.
    for line in fs::read_to_string(process.join("maps")).unwrap_or_default().lines() {
        let Some(name) = line.find('/') else { continue };
        let mut fields = line.split_whitespace();
        let (from, to) = fields.next().unwrap().split_once('-').unwrap();
        let [from, to, offset] =
            [from, to, fields.nth(1).unwrap()].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        add(PathBuf::from(&line[name..]), offset + (to - from));
    }
    found
}

/// Lower bounds of the bytes of a run's named and unnamed files at one moment. Files appear and vanish during the search. A
/// file found twice existed in between, and no file shrinks.
fn taken_at_once(run: &Path, process: u32) -> [u64; 2] {
    let look = || [named(run), unnamed(run, process)];
    let (before, after) = (look(), look());
    let lasting = |before: &BTreeMap<PathBuf, u64>, after: &BTreeMap<PathBuf, u64>| -> u64 {
        before.iter().filter_map(|(file, bytes)| Some((*bytes).min(*after.get(file)?))).sum()
    };
    [0, 1].map(|kind: usize| lasting(&before[kind], &after[kind]))
}

/// Result of a watched process, and the largest observed sizes: of all files, and of unnamed files.
struct Watched {
    finished: Finished,
    most: u64,
    most_unnamed: u64,
}

/// Solves a job while it measures the disk usage of the run repeatedly.
fn solve_watched(run: &Path, options: &str) -> Watched {
    // The path as the system names it.
    let run = fs::canonicalize(run).unwrap();
    let mut command = command(solve_args(&run, options));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (process, is_over) = (child.id(), AtomicBool::new(false));
    let (output, (most, most_unnamed)) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let [named, unnamed] = taken_at_once(&run, process);
                most = (most.0.max(named + unnamed), most.1.max(unnamed));
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let output = child.wait_with_output();
        is_over.store(true, Ordering::Relaxed);
        (output, watcher.join().unwrap())
    });
    Watched { finished: Finished::new(output.unwrap()), most, most_unnamed }
}

/// The records of a run's journal.
pub fn records(run: &Path) -> Vec<Value> {
    let record = |path: &std::path::PathBuf| -> Value {
        let sealed: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        sealed["body"]["record"].clone()
    };
    files(&run.join("journal")).iter().map(record).collect()
}

/// Number of layers that were enumerated twice. Requires that no layer was enumerated more often.
pub fn enumerated_again(run: &Path) -> usize {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for record in records(run).iter().filter(|record| record["commit"]["phase"] == "enumerate") {
        for counts in record["commit"]["layers"].as_array().unwrap() {
            *times.entry(whole(&counts["layer"])).or_default() += 1;
        }
    }
    assert!(times.values().all(|&times| times <= 2), "{times:?}");
    times.values().filter(|&&times| times == 2).count()
}

/// Number of existing reach shards.
pub fn shards_of_reach(run: &Path) -> usize {
    common::shards(run).iter().filter(|path| path.to_string_lossy().contains("/reach-")).count()
}

/// Requires that a run has the usual results.
fn is_whole(run: &Path, summary: &Value) {
    assert_eq!(summary["start"], USUAL.summary["start"]);
    is_stored_whole(run, text(&summary["fingerprint"]));
}

/// Requires that a run with this fingerprint has the usual contents.
pub fn is_stored_whole(run: &Path, fingerprint: &str) {
    assert_eq!(fingerprint, USUAL.fingerprint());
    assert_eq!(layers(run), layers(&USUAL.run()));
    let named = common::committed_now(run);
    assert!(common::shards(run).iter().all(|shard| named.contains(shard)), "a shard is left over");
}

/// Requires the usual answers of a run, except for the reachability of the boards.
pub fn answers_as_usual(run: &Path) {
    let boards = BOARDS.map(str::to_owned);
    let answers = |run: &Path| -> Vec<Value> {
        let mut answers = query(run, &boards);
        for answer in answers.iter_mut().filter_map(Value::as_object_mut) {
            answer.retain(|field, _| field != "cost" && field != "known_reachable");
        }
        answers
    };
    assert_eq!(answers(run), answers(&USUAL.run()));
}

/// Makes an empty run that stores these layers.
///
/// Existing runs skip the estimate of the disk. The estimate exceeds the limits of these tests, because it allows for worse
/// boards.
pub fn begin(run: &Path, keep: &str) {
    let began = solve_failing(run, &format!("{JOB} --keep {keep}"), "shard.before_sync=return");
    assert_eq!(began.signal, Some(6), "{began:?}");
}

/// With a lower limit, the run deletes more reach. Below some limit, it enumerates many layers twice.
#[test]
fn the_limit_holds_and_values_stay_the_same() {
    let mut again = Vec::new();
    for (limit, keep) in [(8_000_000u64, "16"), (4_000_000, "64"), (2_000_000, "64")] {
        let place = Place::new();
        let run = place.join("run");
        begin(&run, keep);
        let Watched { finished, most, .. } = solve_watched(&run, &format!("{JOB} --disk {limit}"));
        let summary = finished.exits(0).json();
        let peak = whole(&summary["peak_disk_bytes"]);
        assert!(most <= peak && peak <= limit, "{most} seen, {peak} counted, {limit} allowed");
        is_whole(&run, &summary);
        answers_as_usual(&run);
        // If few layers are stored, each value of a sample needs most states of the board.
        let how: &[&str] = if keep == "16" { &["--sample", "5"] } else { &["--partial"] };
        on_run(&run, "verify", how).exits(0);
        // Dead states of layers without reach are unknown.
        let dead = on_run(&run, "layers", &["--dead", "--csv"]).exits(0);
        assert!(!dead.stderr.is_empty(), "{dead:?}");
        assert!(dead.stdout.lines().any(|line| line.ends_with(',')), "{dead:?}");
        again.push(enumerated_again(&run));
        // Only the reach of kept layers remains, and the reach in the same shards.
        let removed = records(&run).iter().filter(|record| !record["removed"].is_null()).count();
        assert!(removed > 1, "{limit}: {removed}");
        // A second solve with any sufficient limit does nothing.
        let before = files(&run.join("journal")).len();
        solve(&run, &format!("{JOB} --disk {limit}"));
        assert_eq!(files(&run.join("journal")).len(), before);
    }
    assert_eq!(again[0], 0, "there was room for all reach");
    assert!(again[2] > 50, "many layers were enumerated twice: {again:?}");
}

/// With little memory, blocks wait in unnamed scratch files. These files count towards the limit. Without space for them,
/// `solve` ends with an error, and the run resumes with more memory.
#[test]
fn the_limit_holds_with_scratch_files() {
    if !Path::new("/proc/self/maps").exists() {
        println!("skipped: this system does not list the mapped files of a process");
        return;
    }
    let memory = least_memory(JOB);
    for limit in [60_000_000u64, 10_000_000] {
        let place = Place::new();
        let run = place.join("run");
        begin(&run, "16");
        let options = format!("{JOB} --disk {limit} --memory {memory}");
        let Watched { finished, most, most_unnamed } = solve_watched(&run, &options);
        assert!(most_unnamed > 1_000_000, "{most_unnamed} bytes waited in scratch files, too few for a test");
        assert!(most <= limit, "{most} seen, {limit} allowed");
        let summary = match finished.code {
            Some(0) => {
                let summary = finished.json();
                let peak = whole(&summary["peak_disk_bytes"]);
                assert!(most <= peak && peak <= limit, "{most} seen, {peak} counted, {limit} allowed");
                summary
            }
            _ => {
                assert!(limit < 20_000_000 && matches!(finished.code, Some(1 | 2)), "{finished:?}");
                finished.says(&["--disk"]);
                solve(&run, &format!("{JOB} --disk {limit}"))
            }
        };
        is_whole(&run, &summary);
    }
}

/// The layers with stored reach.
fn layers_with_reach(run: &Run) -> BTreeSet<u64> {
    let shards = run.catalog().shards();
    let of_reach = shards.iter().filter(|shard| shard.commit.phase == Phase::Enumerate);
    let layers = of_reach.flat_map(|shard| shard.commit.first.to(shard.commit.last));
    layers.map(|layer| u64::from(layer.0)).collect()
}

/// `verify` checks the layers with stored reach, and reports the others as unchecked. A sample needs no reach.
#[test]
fn verify_reports_unchecked_layers() {
    let place = Place::new();
    let path = place.join("run");
    begin(&path, "64");
    solve(&path, &format!("{JOB} --disk 2MB"));
    let run = Run::open(&path).unwrap();
    let (stored, last) = (layers_with_reach(&run), run.params().last_layer());
    let all = Layer::FIRST.to(last).map(|layer| u64::from(layer.0));
    let removed: BTreeSet<u64> = all.filter(|layer| !stored.contains(layer)).collect();
    assert!(stored.len() > 10 && removed.len() > 100, "{stored:?} are stored, {removed:?} are not");
    let states_of = |is_counted: &dyn Fn(u64) -> bool| -> u64 {
        layers(&path).iter().filter(|(layer, ..)| is_counted(*layer)).map(|(_, states, _)| states).sum()
    };

    let found = on_run(&path, "verify", &["--json"]).exits(1).json();
    assert_eq!(found["verdict"], "unfinished", "{found}");
    assert_eq!(
        (&found["problems"], &found["missing"], &found["unread"]),
        (&json!([]), &json!([]), &json!([]))
    );
    let ranges = found["removed"].as_array().unwrap();
    let listed = ranges.iter().flat_map(|range| (whole(&range[0])..=whole(&range[1])).step_by(2));
    assert_eq!(listed.collect::<BTreeSet<u64>>(), removed);
    let info = on_run(&path, "info", &["--json"]).exits(0).json();
    let pass = &info["passes"][0];
    assert_eq!((&pass["removed"], &pass["missing"]), (&found["removed"], &json!([])), "{info}");
    assert!(on_run(&path, "info", &[]).exits(0).stdout.contains("removed"));
    assert_eq!(whole(&found["states"]), states_of(&|layer| stored.contains(&layer)));
    // The check of a value needs the next layers. So values just below layers without reach stay unchecked.
    let kept = states_of(&|layer| run.params().contents().kept().keeps(Layer(layer as u32)));
    let [checked, left_out] = ["values", "values_left_out"].map(|field| whole(&found[field]));
    assert!(checked + left_out == kept && left_out > 0, "{checked} and {left_out} of {kept}");
    assert!(found["fingerprint"].is_null(), "{found}");

    let printed = on_run(&path, "verify", &[]).exits(1).says(&["--sample", "--partial"]);
    let printed = printed.prints("verify with removed reach");
    assert!(printed.stdout.contains(&removed.len().to_string()), "{printed:?}");
    assert_section("result of verify with removed reach", &printed.stdout);
    let partial = on_run(&path, "verify", &["--partial"]).exits(0).prints("verify --partial");
    assert_section("result of verify --partial", &partial.stdout);
    assert_eq!(on_run(&path, "verify", &["--partial", "--json"]).exits(0).json()["verdict"], "right");

    // An answer reports whether games reach the board, or that the reachability is unknown.
    assert!(removed.contains(&16) && stored.contains(&8));
    for (board, known_reachable) in
        [("2 4 8 / 0 2 0 / 0 0 0", json!(false)), ("4 0 0 / 0 4 0 / 0 0 0", Value::Null)]
    {
        let answer = on_run(&path, "query", &["--json", board]).exits(0).json();
        assert_eq!(answer["known_reachable"], known_reachable, "{answer}");
        let shown = on_run(&path, "query", &[board]).exits(0).stdout;
        assert_eq!(shown.contains("\nreachable"), known_reachable == false, "{shown}");
    }
    // This board has no 2 and no 4, so no spawn made it and no game reaches it.
    let refused = on_run(&path, "query", &["8 8 0 / 0 0 0 / 0 0 0"]).exits(3);
    refused.says(&["8 8 0 / 0 0 0 / 0 0 0"]).prints("query of an unreachable state");
    // After a failed export, the next export can use the folder.
    let folder = place.join("out");
    let export = |layers: &str| {
        on_run(&path, "export", &["--what", "states", "--layers", layers, "-o", folder.to_str().unwrap()])
    };
    export("4..").exits(1).prints("export of layers without reach");
    export("4..8").exits(0);

    let sample = on_run(&path, "verify", &["--sample", "1", "--json"]).exits(0).json();
    assert_eq!((&sample["verdict"], &sample["removed"]), (&json!("right"), &json!([])), "{sample}");
    assert_eq!(whole(&sample["values"]), 1);
}

/// A run begun without a limit accepts a limit at any time, and still stores the same layers.
#[test]
fn a_run_that_is_there_can_be_limited() {
    let place = Place::new();
    let run = place.join("run");
    let summary = solve(&run, &format!("{JOB} --keep 32"));
    let before = (shards_of_reach(&run), taken(&run));
    // The run has a single reach shard, and it contains kept layers.
    solve(&run, &format!("{JOB} --disk 8MB"));
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    is_whole(&run, &summary);
    answers_as_usual(&run);
    on_run(&run, "verify", &[]).exits(0);
    // The run also resumes without a limit.
    solve(&run, JOB);
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    // A finished run preserves its files, and `solve` reports this.
    try_solve(&run, &format!("{JOB} --disk 1kB")).exits(0).prints("limit below a finished run");
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    // Another choice of layers needs another run, with or without a limit.
    try_solve(&run, &format!("{JOB} --disk 8MB --keep 64"))
        .exits(2)
        .says(&["32", "64", "--run"])
        .prints("other choice of layers");
}

/// Under any limit, a finished run preserves its files, including those that `verify` and `export` read.
#[test]
fn a_finished_run_keeps_all_reach() {
    let place = Place::new();
    let run = place.join("run");
    begin(&run, "64");
    // A limit makes shards small. After an interruption in the upward pass, the run resumes without a limit and preserves
    // all its reach.
    let died = solve_failing(&run, &format!("{JOB} --disk 8MB"), "shard.renamed=3*off->return");
    assert_eq!(died.signal, Some(6), "{died:?}");
    solve(&run, JOB);
    // Compares all files except the lock, because the lock has the id of the last process.
    let content =
        || -> Vec<_> { content_of(&run).into_iter().filter(|(path, _)| !path.ends_with("lock")).collect() };
    let before = content();
    assert!(shards_of_reach(&run) > 1);
    for (limit, is_exceeded) in [("1GB", false), ("8MB", false), ("100kB", true)] {
        let again = try_solve(&run, &format!("{JOB} --disk {limit}")).exits(0);
        assert_eq!(again.stderr.contains("--disk"), is_exceeded, "{again:?}");
        assert!(content() == before, "--disk {limit} changed the run");
    }
    on_run(&run, "verify", &[]).exits(0);
    let folder = place.join("out");
    let some = ["--what", "states", "--layers", "100..110", "-o", folder.to_str().unwrap()];
    on_run(&run, "export", &some).exits(0);
}

/// The times of a run include layers that were enumerated twice.
#[test]
fn times_count_layers_that_were_enumerated_twice() {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 4x2 --disk 1MB");
    let record = |path: &PathBuf| -> Value {
        let sealed: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        sealed["body"]["record"].clone()
    };
    let records = files(&run.join("journal"));
    let records = records.iter().map(record).filter(|record| record["commit"]["phase"] == "enumerate");
    let (mut layers, mut seconds) = (0, 0.0);
    for record in records {
        layers += (whole(&record["commit"]["last"]) - whole(&record["commit"]["first"])) / 2 + 1;
        seconds += number(&record["took"]["seconds"]);
    }
    assert!(layers > 509, "nothing was enumerated twice");
    let info = on_run(&run, "info", &["--json"]).exits(0).json();
    close(number(&info["passes"][0]["seconds"]), seconds, 1e-9, "seconds");
}

#[test]
fn the_choice_of_layers_is_printed() {
    for (limit, said) in [("8MB", "2 in every 16"), ("2.4MB", "2 in every 64")] {
        let place = Place::new();
        let run = place.join("run");
        let finished = try_solve(&run, &format!("{JOB} --disk {limit}")).exits(0);
        let finished = finished.says(&[said]);
        is_whole(&run, &finished.json());
    }
}

/// Before `solve` makes a run, it reports the smallest sufficient limit. This limit suffices.
#[test]
fn too_little_is_refused_with_the_least() {
    let place = Place::new();
    let run = place.join("run");
    for options in ["--disk 100kB", "--disk 2MB --keep 16"] {
        let refused = try_solve(&run, &format!("{JOB} {options}")).exits(2).says(&["--disk"]);
        assert!(!run.exists());
        assert_eq!(refused.stderr.contains("--keep"), options.contains("--keep"), "{refused:?}");
        let least = sizes(&refused.stderr).swap_remove(1);
        let keep = options.split_once("--keep").map_or(String::new(), |(_, keep)| format!("--keep {keep}"));
        let run = place.join("least");
        is_whole(&run, &solve(&run, &format!("{JOB} {keep} --disk {least}")));
        std::fs::remove_dir_all(run).unwrap();
    }
}

/// `solve` refuses an insufficient limit, and resumes with a larger one.
#[test]
fn a_refused_run_resumes_with_more() {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 3x3 --objective reach:256 --threads 2 --keep 8");
    let values: Vec<_> =
        common::shards(&run).into_iter().filter(|path| path.to_string_lossy().contains("values")).collect();
    std::fs::remove_file(&values[0]).unwrap();
    let job = "--board 3x3 --objective reach:256 --threads 2";
    let before = common::shards(&run);
    try_solve(&run, &format!("{job} --disk 300kB")).exits(2).says(&["--disk 300.0 kB"]);
    assert_eq!(common::shards(&run), before, "nothing is removed in vain");
    let summary = solve(&run, &format!("{job} --disk 20MB"));
    let usual = Solved::new(job);
    assert_eq!(text(&summary["fingerprint"]), usual.fingerprint());
}

/// Runs `solve` with a fail point.
pub fn solve_failing(run: &Path, job: &str, failpoints: &str) -> Finished {
    let mut command = command(solve_args(run, job));
    Finished::new(command.env("FAILPOINTS", failpoints).output().unwrap())
}

/// A crash at each step of a removal loses no needed file and leaves no needless file. The steps are the commit before the
/// removal, the removal's record, and the first of several files.
#[test]
fn crashes_while_shards_are_removed() {
    let job = format!("{JOB} --disk 2MB");
    for point in ["journal.folder_synced", "removal.committed", "removal.begun"] {
        let place = Place::new();
        let run = place.join("run");
        begin(&run, "64");
        // Crashes in sequence: in the upward pass, between the passes, and in the downward pass.
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

/// Other programs may fill the disk before the run reaches its limit.
#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let job = format!("{JOB} --disk 2MB");
    let place = Place::new();
    let run = place.join("run");
    begin(&run, "64");
    for passed in [10, 200] {
        let full = solve_failing(&run, &job, &format!("shard.write={passed}*off->return(enospc)"));
        full.exits(1).says(&["/shards/"]);
    }
    is_whole(&run, &solve(&run, &job));
}
