//! Estimates of `plan`, compared with the sizes and limits of real solves.

use crate::common;

use common::snapshots::assert_section;
use common::{Finished, Place, exact2048, least_memory, number, sizes, solve, text, try_solve, whole};
use serde_json::Value;

/// The choices of `--keep` in a plan, in descending order of stored layers.
const KEPT: [&str; 11] = ["all", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "starts"];

/// The headings of the plan's table.
const HEADS: [&str; 7] =
    ["--keep", "disk at most", "least --disk", "in the end", "solve", "solve, least", "query"];

/// Runs `plan`. It solves 3x3 twice to measure the speed. Spaces separate `options`.
fn plan(options: &str) -> Finished {
    exact2048(["plan", "--threads", "2"].into_iter().chain(options.split_whitespace()))
}

fn policies(plan: &Value) -> &[Value] {
    plan["policies"].as_array().unwrap()
}

/// The values of `--keep` and `--values` that select a policy.
fn asked_by(policy: &Value) -> (&str, &str) {
    (text(&policy["keep"]), text(&policy["values"]))
}

/// The least limit for a number of bytes. An eighth of the limit stays free for the next files, and a part is for the
/// journal.
fn least_limit(bytes: u64) -> u64 {
    let bytes = bytes + (256 << 10);
    bytes + bytes.div_ceil(7)
}

#[test]
fn a_plan_has_all_policies() {
    let plan = plan("--board 3x2 --memory 1GiB --json").exits(0).json();
    assert_eq!(text(&plan["params"]["board"]), "3x2");
    assert_eq!(text(&plan["params"]["objective"]), "score");
    assert_eq!(whole(&plan["threads"]), 2);
    assert_eq!(whole(&plan["states"]), 21_752);
    for name in ["states_about", "states_range", "states_at_most"] {
        assert!(plan[name].is_null(), "{name}: {plan}");
    }
    assert_eq!((&plan["measured_before"], number(&plan["off_by_at_most"])), (&Value::Bool(true), 1.3));
    assert!(plan["chosen"].is_null(), "nothing limits the disk: {plan}");
    assert_eq!(whole(&plan["memory_bytes"]), 1 << 30);
    assert!((1 << 20..1 << 30).contains(&whole(&plan["least_memory_bytes"])), "{plan}");
    let measured = plan["measured_states_per_second"].as_array().unwrap();
    assert!(measured.len() == 2 && measured.iter().all(|rate| number(rate) > 1e4), "{plan}");

    let asked: Vec<(&str, &str)> = policies(&plan).iter().map(asked_by).collect();
    let of_layers = KEPT.map(|keep| (keep, "layers"));
    assert_eq!(asked, [&of_layers[..], &[("128", "best-move")]].concat());
    for policy in policies(&plan) {
        let bytes = |name: &str| whole(&policy[name]);
        let (peak, end, least) =
            (bytes("peak_disk_bytes"), bytes("end_disk_bytes"), bytes("least_disk_bytes"));
        assert!(0 < end && end <= peak && end < least && least <= least_limit(peak), "{policy}");
        let (hours, at_least_disk) = (number(&policy["hours"]), number(&policy["hours_at_least_disk"]));
        assert!(0.0 < hours && hours <= at_least_disk && at_least_disk <= 2.0 * hours, "{policy}");
        let query_hours = number(&policy["query_seconds"]) / 3600.0;
        assert!(0.0 < query_hours && query_hours <= 1.001 * hours, "no query takes longer: {policy}");
    }
    let ends: Vec<u64> = policies(&plan).iter().map(|policy| whole(&policy["end_disk_bytes"])).collect();
    assert!(ends[..KEPT.len()].is_sorted_by(|more, less| more >= less), "{ends:?}");
    let with_128 = KEPT.iter().position(|keep| *keep == "128").unwrap();
    assert!(ends[KEPT.len()] > ends[with_128], "best moves are stored besides: {ends:?}");
}

/// A plan without a measured run has a range of states and a factor for its other errors.
#[test]
fn a_plan_without_a_run_like_it_gives_a_range() {
    let job = "--board 4x2 --until-layer 100";
    let plan = plan(&format!("{job} --json")).exits(0).json();
    assert!(plan["states"].is_null() && plan["measured_before"] == Value::Bool(false), "{plan}");
    let range: Vec<f64> = plan["states_range"].as_array().unwrap().iter().map(number).collect();
    let place = Place::new();
    let states = whole(&solve(&place.join("run"), &format!("{job} --threads 2"))["states"]) as f64;
    assert!(range.len() == 2 && range[0] < states && states < range[1], "{states} states: {plan}");
    assert!(number(&plan["off_by_at_most"]) > 1.3, "{plan}");
    let shown = self::plan(job).exits(0).stdout;
    let last = shown.trim_end().rsplit("\n\n").next().unwrap();
    assert_section("plan without a measured run", last);
}

/// Solves need the estimated disk. Smaller boards need less than the 200 kB that every estimate adds for the journal.
#[test]
fn solves_take_the_estimated_disk_and_keep_the_chosen_layers() {
    let disk = 4_000_000;
    let plan = plan(&format!("--board 4x2 --disk {disk} --json")).exits(0).json();
    for asked in [("all", "layers"), ("4", "layers"), ("16", "layers"), ("128", "best-move")] {
        let policy = policies(&plan).iter().find(|policy| asked_by(policy) == asked).unwrap();
        let (keep, values) = asked;
        let place = Place::new();
        let job = format!("--board 4x2 --threads 2 --keep {keep} --values {values}");
        let summary = solve(&place.join("run"), &job);
        let (estimated, taken) = (whole(&policy["end_disk_bytes"]), whole(&summary["bytes_on_disk"]));
        let off = estimated as f64 / taken as f64;
        assert!((0.7..1.3).contains(&off), "{job}: {estimated} bytes estimated, {taken} taken");
    }

    let of_layers = &policies(&plan)[..KEPT.len()];
    let chosen = of_layers.iter().position(|policy| policy["keep"] == plan["chosen"]);
    let chosen = chosen.unwrap_or_else(|| panic!("none of the policies is chosen: {plan}"));
    let fits = |policy: &Value| least_limit(whole(&policy["peak_disk_bytes"])) <= disk;
    assert!(fits(&of_layers[chosen]) && whole(&of_layers[chosen]["least_disk_bytes"]) <= disk, "{plan}");
    assert!(!of_layers[..chosen].iter().any(fits), "more could be kept: {plan}");
    // The solve makes the same choice, and stays within the limit.
    let place = Place::new();
    let solved = try_solve(&place.join("run"), &format!("--board 4x2 --threads 2 --disk {disk}")).exits(0);
    let kept = format!("2 in every {}", text(&plan["chosen"]));
    assert!(solved.stderr.contains(&kept), "{kept:?} is missing from: {}", solved.stderr);
    assert!(whole(&solved.json()["peak_disk_bytes"]) <= disk);
}

/// `solve` prints its estimated duration before it begins. A query takes no longer than the solve.
#[test]
fn solve_prints_its_duration() {
    let place = Place::new();
    let solved = try_solve(&place.join("run"), "--board 3x2 --threads 2 --keep starts --disk 1MB").exits(0);
    assert!(!solved.stderr.contains(" min"), "{}", solved.stderr);
    let estimate: Vec<&str> = solved.stderr.lines().filter(|line| line.contains("milliseconds")).collect();
    assert_section("estimate of a small solve", &estimate.join("\n"));
}

/// `plan` reports the least disk, `plan` and `solve` accept it, and the table for people shows it.
#[test]
fn too_little_is_refused_with_the_least() {
    let refused = plan("--board 3x2 --disk 100kB").exits(2).says(&["--disk 100.0 kB"]);
    let least = sizes(&refused.stderr).swap_remove(1);
    let job = "--board 3x2 --threads 2";
    let place = Place::new();
    solve(&place.join("run"), &format!("{job} --disk {least}"));

    let shown = plan(&format!("--board 3x2 --disk {least} --memory 1KiB")).exits(0).stdout;
    for said in ["states        21,752", "2 threads", "1.0 KiB"] {
        assert!(shown.contains(said), "{said:?} is missing from {shown}");
    }
    let memory = shown.lines().find(|line| line.starts_with("memory")).unwrap().replace(' ', "");
    assert!(memory.contains(&least_memory(job)), "{memory}");
    is_table_of_all(&shown);
}

/// Requires a line for each policy below the headings. The first column is left-aligned with its heading, and the other
/// columns are right-aligned.
#[track_caller]
fn is_table_of_all(shown: &str) {
    let below = shown.lines().skip_while(|line| !line.trim_start().starts_with(HEADS[0]));
    let table: Vec<&str> = below.take_while(|line| !line.is_empty()).collect();
    let (head, rows) = table.split_first().unwrap_or_else(|| panic!("no table: {shown}"));
    assert_eq!(rows.len(), KEPT.len() + 1, "{shown}");
    let begin = head.find(HEADS[0]).unwrap();
    for (row, keep) in rows.iter().zip(KEPT) {
        assert!(row[begin..].starts_with(&format!("{keep} ")), "{row:?} is not of {keep}: {shown}");
    }
    assert!(rows[KEPT.len()][begin..].starts_with("128 --values best-move "), "{shown}");
    for name in &HEADS[1..] {
        let end = head.find(*name).unwrap_or_else(|| panic!("{name:?} is missing: {shown}")) + name.len();
        for row in rows {
            let is_aligned = row.is_char_boundary(end)
                && !row[..end].ends_with(' ')
                && (row[end..].is_empty() || row[end..].starts_with(' '));
            assert!(is_aligned, "{row:?} below {name:?}: {shown}");
        }
    }
}
