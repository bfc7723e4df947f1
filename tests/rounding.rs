//! Runs that round their stored values (`--value-step`).

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::forge::Forge;
use common::patient::flip;
use common::snapshots::assert_usage;
use common::{Place, Solved, number, on_run, shards, solve, solve_args, text, try_solve};
use exact2048_storage::ShardKind;

fn values_bytes(run: &Path) -> u64 {
    let of_values = of_kind(run, "values").into_iter();
    of_values.map(|path| fs::metadata(path).unwrap().len()).sum()
}

fn of_kind(run: &Path, kind: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(kind);
    shards(run).into_iter().filter(is_one).collect()
}

/// A larger step takes less space. The results of the computation do not change.
#[test]
fn larger_steps_take_less_space() {
    let exact = Solved::new("--board 4x2");
    let mut before = values_bytes(&exact.run());
    for step in ["1/64", "0.3", "4"] {
        let rounded = Solved::new(&format!("--board 4x2 --value-step {step}"));
        assert_eq!(rounded.fingerprint(), exact.fingerprint(), "{step}");
        let bytes = values_bytes(&rounded.run());
        assert!(bytes < before, "{step}: {bytes} instead of {before}");
        before = bytes;
        let [found, wanted] = [&rounded, &exact].map(|of| &of.summary["start"]);
        let bound = number(&found["error_bound"]);
        assert!(bound > number(&wanted["error_bound"]));
        assert!((number(&found["expected"]) - number(&wanted["expected"])).abs() <= bound);
        let verified = on_run(&rounded.run(), "verify", &["--json"]).exits(0).json();
        assert_eq!(text(&verified["fingerprint"]), exact.fingerprint(), "{step}");
        assert!(verified["values_by_bound"].is_null(), "{verified}");
        let sampled = on_run(&rounded.run(), "verify", &["--json", "--sample", "500"]).exits(0).json();
        assert_eq!(sampled["values_by_bound"], sampled["values"], "{sampled}");
    }
    let info = on_run(&exact.run(), "info", &[]).exits(0).stdout;
    assert!(!info.contains("value step"), "{info}");
}

/// Threads, memory and pieces change no byte of the values.
#[test]
fn rounded_values_do_not_depend_on_how_they_are_computed() {
    let job = "--board 3x3 --objective reach:128 --value-step 1/4096";
    let items = |run: &Path| {
        let forge = Forge::open(run);
        let of_values = forge.of_kind(ShardKind::Values);
        let mut items: Vec<_> = of_values.flat_map(|shard| forge.shards[shard].items.clone()).collect();
        items.sort();
        items
    };
    let first = Solved::new(job);
    let expected = items(&first.run());
    let least = common::least_memory(&format!("{job} --threads 1"));
    let variants = ["--threads 1", "--threads 5", "--piece-bytes 1 --threads 3", "--dense-rows 0"];
    for variant in variants.into_iter().chain([format!("--threads 1 --memory {least}").as_str()]) {
        let other = Solved::new(&format!("{job} {variant}"));
        assert!(items(&other.run()) == expected, "{variant}");
        assert_eq!(other.fingerprint(), first.fingerprint(), "{variant}");
    }
}

/// `verify` notices a stored value that is off. A sample notices it by its bound, unless it is off by about one step.
#[test]
fn false_values_are_noticed() {
    let solved = Solved::new("--board 3x2 --value-step 1/4 --keep 16");
    let whole = Forge::open(&solved.run());
    let shard = whole.of_kind(ShardKind::Values).next().unwrap();
    // 3x2 has 21 bits after the point.
    for steps in [1u32, 3, 1000] {
        let place = Place::new();
        let run = place.join("run");
        common::patient::copy(&solved.run(), &run);
        let mut forge = Forge::open(&run);
        let layer = |item: usize| forge.shards[shard].items[item].0.layer;
        let item = (0..forge.shards[shard].items.len()).find(|&item| layer(item) == 96).unwrap();
        let bytes = &mut forge.shards[shard].items[item].1;
        let value = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        bytes[..4].copy_from_slice(&(value + (steps << 19)).to_le_bytes());
        forge.write_shard(shard);
        on_run(&run, "verify", &[]).exits(1).says(&["value of"]);
        let sampled = on_run(&run, "verify", &["--sample", "1000000"]);
        assert!(steps == 1 || sampled.code == Some(1), "{steps}: {sampled:?}");
    }
}

/// A lost shard of values is computed again with all bits, although the values above it are rounded.
#[test]
fn lost_shards_are_computed_again() {
    let job = "--board 3x3 --objective reach:512 --precision 64 --value-step 1e-9";
    let healthy = Solved::new(job);
    let values = of_kind(&healthy.run(), "values");
    assert!(values.len() >= 3, "{values:?}");
    let before: Vec<Vec<u8>> = values.iter().map(|path| fs::read(path).unwrap()).collect();
    for victim in [0, values.len() / 2, values.len() - 1] {
        flip(&values[victim], fs::metadata(&values[victim]).unwrap().len() as usize / 2, 1);
        let summary = solve(&healthy.run(), job);
        assert_eq!(text(&summary["fingerprint"]), healthy.fingerprint());
        on_run(&healthy.run(), "verify", &[]).exits(0);
        assert!(of_kind(&healthy.run(), "checkpoint").is_empty());
    }
    let again: usize =
        of_kind(&healthy.run(), "values").iter().map(|path| fs::read(path).unwrap().len()).sum();
    let expected: usize = before.iter().map(Vec::len).sum();
    assert!(again.abs_diff(expected) < expected / 50, "{again}, {expected}");
}

/// A lost or damaged checkpoint costs time, but no data.
#[test]
fn a_lost_checkpoint_is_no_loss() {
    let job = "--board 3x3 --objective reach:512 --precision 64 --value-step 1e-9";
    let healthy = Solved::new(job);
    for damage in [false, true] {
        let place = Place::new();
        let run = place.join("run");
        let mut command = common::command(solve_args(&run, job));
        command.env("FAILPOINTS", "journal.linked=2*off->return").output().unwrap();
        // The program ends after a commit, before it removes the older checkpoint. The lowest checkpoint counts.
        let checkpoint = of_kind(&run, "checkpoint").into_iter().min().expect("a checkpoint");
        if damage {
            flip(&checkpoint, fs::metadata(&checkpoint).unwrap().len() as usize / 2, 1);
        } else {
            fs::remove_file(&checkpoint).unwrap();
        }
        let summary = solve(&run, job);
        assert_eq!(text(&summary["fingerprint"]), healthy.fingerprint());
        on_run(&run, "verify", &["--sample", "100"]).exits(0);
        assert!(of_kind(&run, "checkpoint").is_empty());
    }
}

/// Moves that the bound does not tell apart are marked.
#[test]
fn close_moves_are_told() {
    let rounded = Solved::new("--board 3x3 --value-step 4");
    let board = "64 8 2 / 16 4 0 / 2 0 0";
    let answer = on_run(&rounded.run(), "query", &["--json", board]).exits(0).json();
    let moves = answer["moves"].as_array().unwrap();
    let may_be_best = moves.iter().filter(|m| m["may_be_best"] == true).count();
    assert_eq!(may_be_best, 2, "{answer}");
    let printed = on_run(&rounded.run(), "query", &[board]).exits(0).stdout;
    assert!(printed.contains("right or down: too close to tell apart"), "{printed}");
    let fine = Solved::new("--board 3x3 --value-step 1/64");
    let answer = on_run(&fine.run(), "query", &["--json", board]).exits(0).json();
    let one: Vec<&str> = answer["moves"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["may_be_best"] == true)
        .map(|m| text(&m["move"]))
        .collect();
    assert_eq!(one, ["down"], "{answer}");
}

#[test]
fn wrong_steps_are_refused() {
    assert_usage("value-step");
    let place = Place::new();
    let run = place.join("run");
    // A run keeps its step.
    solve(&run, "--board 2x2 --value-step 0.3");
    solve(&run, "--board 2x2");
    solve(&run, "--board 2x2 --value-step 1/4");
    let other = try_solve(&run, "--board 2x2 --value-step 1/8");
    other.exits(2).says(&["value step 1/8", "1/4"]);
}

/// `--value-step auto` rounds so that more layers are kept within the limit. The same command resumes the run.
#[test]
fn a_disk_limit_chooses_the_step() {
    let place = Place::new();
    let run = place.join("run");
    let job = "--board 3x3 --disk 35MB --value-step auto";
    let solved = try_solve(&run, job).exits(0);
    assert!(solved.stderr.contains("values are rounded to multiples of"), "{}", solved.stderr);
    let step = text(&solved.json()["value_step"]).to_owned();
    assert!(on_run(&run, "info", &[]).exits(0).stdout.contains(&step));
    try_solve(&run, job).exits(0);
    let exact = try_solve(&place.join("exact"), "--board 3x3 --disk 35MB").exits(0);
    assert_eq!(exact.json()["fingerprint"], solved.json()["fingerprint"]);
    assert!(exact.json()["value_step"].is_null(), "no limit alone rounds values");
}
