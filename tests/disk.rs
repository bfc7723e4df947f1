//! Runs whose disk is limited: never exceeded, whatever has to go for that, and the same values as ever. Killed at any step.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{
    Finished, Place, Solved, close, command, content_of, files, layers, least_memory, number, on_run, query,
    solve, solve_args, text, try_solve, whole,
};
use exact2048_game::Layer;
use exact2048_solution::{Phase, Run};
use serde_json::{Value, json};

/// 14 million states in a second or two: 1.2 MB of reach, and 25 MB of values if all are kept.
pub const JOB: &str = "--board 3x3 --objective reach:512 --threads 2";

static USUAL: LazyLock<Solved> = LazyLock::new(|| Solved::new(JOB));

/// Boards of all parts of a game; of most of their layers nothing is kept.
const BOARDS: [&str; 3] = ["2,0,0/0,2,0/0,0,0", "128,64,16/32,8,2/4,0,2", "256,128,8/32,16,4/4,2,0"];

/// The files of a run that have names, each with what it takes of the disk.
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

/// What these take together.
pub fn taken(run: &Path) -> u64 {
    named(run).values().sum()
}

/// The files of a run without a name that a process has open or mapped: scratch files, and shards that were removed while
/// they were read. By the names that they had, which no two share.
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
        // It may have been closed since it was listed.
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

/// What the files of a run that have names took at a moment, at least, and those without. Files come and go while they are
/// looked at; one that is found twice was there in between, and none grows shorter.
fn taken_at_once(run: &Path, process: u32) -> [u64; 2] {
    let look = || [named(run), unnamed(run, process)];
    let (before, after) = (look(), look());
    let lasting = |before: &BTreeMap<PathBuf, u64>, after: &BTreeMap<PathBuf, u64>| -> u64 {
        before.iter().filter_map(|(file, bytes)| Some((*bytes).min(*after.get(file)?))).sum()
    };
    [0, 1].map(|kind: usize| lasting(&before[kind], &after[kind]))
}

/// How a process ended that was watched, and the most that it was seen to take: in all, and in files without names.
struct Watched {
    finished: Finished,
    most: u64,
    most_unnamed: u64,
}

/// Solves while what the run takes is looked at, over and over.
fn solve_watched(run: &Path, options: &str) -> Watched {
    // As the system names it.
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

/// How many layers were enumerated a second time. None is enumerated more often than that.
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

/// Shards of reach that are there.
pub fn shards_of_reach(run: &Path) -> usize {
    common::shards(run).iter().filter(|path| path.to_string_lossy().contains("/reach-")).count()
}

/// Requires that what came out of a run is the usual.
fn is_whole(run: &Path, summary: &Value) {
    assert_eq!(summary["start"], USUAL.summary["start"]);
    is_stored_whole(run, text(&summary["fingerprint"]));
}

/// Requires that a run with this fingerprint holds what it usually does.
pub fn is_stored_whole(run: &Path, fingerprint: &str) {
    assert_eq!(fingerprint, USUAL.fingerprint());
    assert_eq!(layers(run), layers(&USUAL.run()));
    let named = common::committed_now(run);
    assert!(common::shards(run).iter().all(|shard| named.contains(shard)), "a shard is left over");
}

/// Requires that a run answers as usual, whatever is left of it, but for whether it knows that games come to the boards.
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

/// A run that keeps these layers, of which nothing is done yet. What it may take is then not forecast: the limits here are
/// below the estimate, which leaves room for worse boards.
pub fn begin(run: &Path, keep: &str) {
    let began = solve_failing(run, &format!("{JOB} --keep {keep}"), "shard.before_sync=return");
    assert_eq!(began.signal, Some(6), "{began:?}");
}

/// With less and less disk: more reach is let go of, and from some point on much is enumerated twice.
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
        // Where few layers are kept, each value of a sample takes most of the board.
        let how: &[&str] = if keep == "16" { &["--sample", "5"] } else { &["--partial"] };
        on_run(&run, "verify", how).exits(0);
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
    assert!(again[2] > 50, "many layers were enumerated twice: {again:?}");
}

/// Where memory is short, blocks wait in scratch files, which have no names: they count as well. Where they find no room
/// that is said, and the run goes on with more memory.
#[test]
fn the_limit_holds_with_scratch_files() {
    if !Path::new("/proc/self/maps").exists() {
        println!("not checked: this system does not tell what a process has mapped");
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
                finished.says(&["committed is safe"]);
                solve(&run, &format!("{JOB} --disk {limit}"))
            }
        };
        is_whole(&run, &summary);
    }
}

/// The layers whose reach is stored.
fn layers_with_reach(run: &Run) -> BTreeSet<u64> {
    let shards = run.catalog().shards();
    let of_reach = shards.iter().filter(|shard| shard.commit.phase == Phase::Enumerate);
    let layers = of_reach.flat_map(|shard| shard.commit.first.to(shard.commit.last));
    layers.map(|layer| u64::from(layer.0)).collect()
}

/// `verify` goes through the layers whose reach is stored, and says of the others that it did not; a sample needs none of it.
#[test]
fn verify_says_what_it_could_not_check() {
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
    let told = ranges.iter().flat_map(|range| (whole(&range[0])..=whole(&range[1])).step_by(2));
    assert_eq!(told.collect::<BTreeSet<u64>>(), removed);
    let info = on_run(&path, "info", &["--json"]).exits(0).json();
    let pass = &info["passes"][0];
    assert_eq!((&pass["removed"], &pass["missing"]), (&found["removed"], &json!([])), "{info}");
    assert!(on_run(&path, "info", &[]).exits(0).stdout.contains("removed"));
    assert_eq!(whole(&found["states"]), states_of(&|layer| stored.contains(&layer)));
    // The values just below layers without reach follow from theirs.
    let kept = states_of(&|layer| run.params().kept.keeps(Layer(layer as u32)));
    let [checked, left_out] = ["values", "values_left_out"].map(|field| whole(&found[field]));
    assert!(checked + left_out == kept && left_out > 0, "{checked} and {left_out} of {kept}");
    assert!(found["fingerprint"].is_null(), "{found}");

    let without = format!("without {} that were not checked", removed.len());
    let told = on_run(&path, "verify", &[]).exits(1);
    let told = told.says(&[
        "not checked: layers",
        "whose reachable states are not stored any more",
        "stored values that follow from theirs; --sample N draws values",
        "what was checked is right; --partial is content with that",
    ]);
    assert!(told.stdout.contains(&without) && !told.stdout.contains("Nothing is wrong"), "{told:?}");
    assert!(!told.stderr.contains("problem") && !told.stderr.contains("not finished"), "{told:?}");
    let partial = on_run(&path, "verify", &["--partial"]).exits(0).says(&["not checked: layers"]);
    assert!(partial.stdout.contains("Nothing is wrong with the layers that were checked."), "{partial:?}");
    assert_eq!(on_run(&path, "verify", &["--partial", "--json"]).exits(0).json()["verdict"], "right");

    // An answer says whether games come to the board, or that it is not known.
    assert!(removed.contains(&16) && stored.contains(&8));
    for (board, known_reachable) in
        [("2 4 8 / 0 2 0 / 0 0 0", json!(false)), ("4 0 0 / 0 4 0 / 0 0 0", Value::Null)]
    {
        let answer = on_run(&path, "query", &["--json", board]).exits(0).json();
        assert_eq!(answer["known_reachable"], known_reachable, "{answer}");
        let shown = on_run(&path, "query", &[board]).exits(0).stdout;
        assert_eq!(shown.contains("\nreachable"), known_reachable == false, "{shown}");
    }
    // In none that games come to is the tile missing that was spawned last.
    let refused = on_run(&path, "query", &["8 8 0 / 0 0 0 / 0 0 0"]).exits(3);
    refused.says(&["not reachable in this run"]);
    // What cannot be exported leaves the folder for what can.
    let folder = place.join("out");
    let export = |layers: &str| {
        on_run(&path, "export", &["--what", "states", "--layers", layers, "-o", folder.to_str().unwrap()])
    };
    export("4..").exits(1).says(&["not stored any more"]);
    export("4..8").exits(0);

    let sample = on_run(&path, "verify", &["--sample", "1", "--json"]).exits(0).json();
    assert_eq!((&sample["verdict"], &sample["removed"]), (&json!("right"), &json!([])), "{sample}");
    assert_eq!(whole(&sample["values"]), 1);
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
    is_whole(&run, &summary);
    answers_as_usual(&run);
    on_run(&run, "verify", &[]).exits(0);
    // And without a limit again.
    solve(&run, JOB);
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    // What a finished run keeps is not removed, and that is said.
    try_solve(&run, &format!("{JOB} --disk 1kB")).exits(0).says(&["more than the", "it is finished"]);
    assert_eq!((shards_of_reach(&run), taken(&run)), before);
    // Another policy is another run, with or without a limit.
    try_solve(&run, &format!("{JOB} --disk 8MB --keep 64"))
        .exits(2)
        .says(&["its choice of kept layers is 32, and 64 was asked for", "--run OTHER"]);
}

/// A finished run keeps what it holds under any limit: what `verify` and `export` read is still there.
#[test]
fn a_finished_run_keeps_all_reach() {
    let place = Place::new();
    let run = place.join("run");
    begin(&run, "64");
    // A limit makes shards small. Interrupted on the way up, the run goes on without one and keeps all its reach.
    let died = solve_failing(&run, &format!("{JOB} --disk 8MB"), "shard.renamed=3*off->return");
    assert_eq!(died.signal, Some(6), "{died:?}");
    solve(&run, JOB);
    // All but the lock, which has the id of the last process.
    let content =
        || -> Vec<_> { content_of(&run).into_iter().filter(|(path, _)| !path.ends_with("lock")).collect() };
    let before = content();
    assert!(shards_of_reach(&run) > 1);
    for (limit, is_exceeded) in [("1GB", false), ("8MB", false), ("100kB", true)] {
        let again = try_solve(&run, &format!("{JOB} --disk {limit}")).exits(0);
        assert_eq!(again.stderr.contains("more than the"), is_exceeded, "{again:?}");
        assert!(content() == before, "--disk {limit} changed the run");
    }
    assert!(on_run(&run, "verify", &[]).exits(0).stdout.contains("Nothing is wrong."));
    let folder = place.join("out");
    let some = ["--what", "states", "--layers", "100..110", "-o", folder.to_str().unwrap()];
    on_run(&run, "export", &some).exits(0);
}

/// Where reach is enumerated twice, the times of a run are of all that was done.
#[test]
fn times_count_what_was_enumerated_twice() {
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
        assert_eq!(refused.stderr.contains("would do"), options.contains("--keep"), "{refused:?}");
        let least = refused.stderr.split("at least about ").nth(1).unwrap().split('B').next().unwrap();
        let least = format!("{least}B").replace(' ', "");
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
    let before = common::shards(&run);
    try_solve(&run, &format!("{job} --disk 300kB"))
        .exits(2)
        .says(&["--disk 300.0 kB is too small", "at least"]);
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
