//! `verify`: right runs pass, and wrong runs fail even if all their files are intact.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use common::forge::Forge;
use common::snapshots::assert_section;
use common::{Place, Solved, command, exact2048, files, on_run, solve, solve_args, text, whole};
use exact2048_game::class::{Class, ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::configs::Configs;
use exact2048_game::lane::lanes;
use exact2048_game::{Lane, Layer};
use exact2048_run::verify::{CheckOutcome, CheckProgress, Problem, Span, Verifier};
use exact2048_solution::Run;
use exact2048_storage::{ItemKey, ShardKind};
use serde_json::{Value, json};

/// The problems of a run, in the words of `verify`.
fn problems(run: &Path) -> Vec<String> {
    match Run::open(run) {
        Ok(run) => problems_of(&run).iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// The problems that `verify` finds in an open run.
fn problems_of(run: &Run) -> Vec<Problem> {
    let go_on = AtomicBool::new(false);
    let verifier = Verifier::new(run, 1, &go_on, &|_| {}).unwrap();
    let mut outcome = verifier.shards(verifier.all_layers());
    if outcome.problems.is_empty() {
        outcome = verifier.all_states(verifier.all_layers());
        assert!(!outcome.problems.is_empty() || outcome.checked.layers > 0);
    }
    outcome.problems
}

/// Requires that `verify` finds problems in a run, and returns them.
#[track_caller]
fn is_refused(run: &Path, what: &str) -> String {
    let problems = problems(run);
    assert!(!problems.is_empty(), "verify found nothing: {what}");
    problems.join("\n")
}

/// Number of columns of a lane of a run, from its code.
fn columns(run: &Path, lane: u64) -> usize {
    Columns::count(Run::open(run).unwrap().params(), Lane::from_code(lane).unwrap()) as usize
}

#[test]
fn right_runs_of_every_kind_pass() {
    let mut jobs = Vec::new();
    for objective in ["score", "reach:8", "reach:16"] {
        for options in ["", "--spawn4 0", "--spawn4 1", "--spawn4 2/3 --precision 64", "--large 3"] {
            jobs.push(format!("--board 2x2 --objective {objective} {options}"));
        }
    }
    for rules in [
        "--objective reach:16 --discount 0.95",
        "--objective reach:16 --discount 1/3 --spawner worst --precision 64",
        "--objective lose:16",
        "--objective lose:16 --precision 64 --spawn4 2/3",
        "--spawner worst",
        "--spawner worst --spawn4 1",
    ] {
        jobs.extend(["2x2", "2x3"].map(|board| format!("--board {board} {rules}")));
    }
    let more = "2x3 --precision 64,3x2,1x5,4x1,3x3 --objective reach:16,3x3 --objective reach:32 --precision 64,3x3 \
                --objective reach:32 --spawn4 1/2,3x3 --until-layer 60,2x4 --objective reach:16,5x2 --until-layer 26";
    jobs.extend(more.split(',').map(|job| format!("--board {}", job.trim())));
    for job in jobs {
        let place = Place::new();
        let solved = solve(&place.join("run"), &job);
        let verified = on_run(&place.join("run"), "verify", &["--json"]).exits(0).json();
        assert_eq!(verified["verdict"], "right", "{job}");
        for field in ["states", "afterstates", "fingerprint"] {
            assert_eq!(verified[field], solved[field], "{field} of {job}");
        }
        if !job.contains("until-layer") {
            on_run(&place.join("run"), "verify", &["--sample", "50", "--threads", "2"]).exits(0);
        }
    }
}

/// Verification finds a change of any bit of any item or key.
#[test]
fn no_changed_bit_goes_unnoticed() {
    let solved = Solved::new("--board 2x2 --objective reach:16");
    let run = solved.run();
    let whole = Forge::open(&run);
    whole.clone().write();
    assert_eq!(problems(&run), Vec::<String>::new());
    let mut changes = 0;
    for shard in 0..whole.shards.len() {
        for item in 0..whole.shards[shard].items.len() {
            let (key, bytes) = &whole.shards[shard].items[item];
            for bit in 0..8 * bytes.len() {
                let mut forge = whole.clone();
                forge.shards[shard].items[item].1[bit / 8] ^= 1 << (bit % 8);
                forge.write_shard(shard);
                is_refused(&run, &format!("bit {bit} of {key:?}"));
                changes += 1;
            }
            for bit in 0..128 {
                let mut forge = whole.clone();
                let key = &mut forge.shards[shard].items[item].0;
                match bit {
                    0..32 => key.layer ^= 1 << bit,
                    32..64 => key.part ^= 1 << (bit - 32),
                    _ => key.lane ^= 1 << (bit - 64),
                }
                forge.write_shard(shard);
                is_refused(&run, &format!("bit {bit} of a key"));
            }
        }
        whole.clone().write_shard(shard);
    }
    assert!(changes > 500, "{changes}");
    assert_eq!(problems(&run), Vec::<String>::new());
}

/// Removes each entry of a run with its value, and fills each gap. Only the rules reveal these changes.
///
/// For two images of a board in one row, the change of one image leaves all counts and the fingerprint unchanged.
#[test]
fn entries_can_neither_be_taken_away_nor_added() {
    let images = forge_entries("2x2", 110);
    assert!(images > 0, "expected two images of a board in a row");
    forge_entries("2x3:x.x/...", 100);
    forge_entries("2x3:#.#/...", 100);
}

/// Removes each of the `least` or more entries of a run, and fills each gap. Returns the number of changes of an image.
fn forge_entries(board: &str, least: usize) -> usize {
    let solved = Solved::new(&format!("--board {board} --large 3"));
    let run = solved.run();
    let forge = Forge::open(&run);
    let (mut removed, mut added, mut images) = (0, 0, 0);
    for shard in forge.of_kind(ShardKind::Reach).collect::<Vec<_>>() {
        for item in 0..forge.shards[shard].items.len() {
            let (key, bytes) = forge.shards[shard].items[item].clone();
            let row_bytes = columns(&run, key.lane).div_ceil(8);
            let (columns, values) = (columns(&run, key.lane), forge.find(ShardKind::Values, key));
            // The rows of small boards fit in one part. The length of its leading occupancy follows from its total length.
            let occupancy = (0..bytes.len())
                .find(|&n| n + row_bytes * ones(&bytes[..n]) == bytes.len() && n > 0 && ones(&bytes[..n]) > 0)
                .unwrap();
            let mut before = 0;
            for row in 0..(bytes.len() - occupancy) / row_bytes {
                for column in 0..columns {
                    let (at, bit) = (occupancy + row * row_bytes + column / 8, 1 << (column % 8));
                    let is_marked = bytes[at] & bit != 0;
                    let mut forge = forge.clone();
                    forge.shards[shard].items[item].1[at] ^= bit;
                    if ones(&forge.shards[shard].items[item].1[at - column / 8..][..row_bytes]) == 0 {
                        // Removes the whole row: its occupancy bit and its bytes.
                        take_row(&mut forge.shards[shard].items[item].1, row, occupancy, row_bytes);
                    }
                    if let Some((shard, item)) = values {
                        let values = &mut forge.shards[shard].items[item].1;
                        if is_marked {
                            values.drain(4 * before..4 * before + 4);
                        } else {
                            values.splice(4 * before..4 * before, [0; 4]);
                        }
                        forge.write_shard(shard);
                    }
                    forge.write_shard(shard);
                    let found = is_refused(&run, &format!("row {row}, column {column} of {key:?}"));
                    removed += usize::from(is_marked);
                    added += usize::from(!is_marked);
                    images += usize::from(found.contains("images"));
                    before += usize::from(is_marked);
                }
            }
            forge.clone().write();
        }
    }
    let changes = format!("{board}: {removed} removed, {added} added, {images} images");
    assert!(removed >= least && added > 0, "{changes}");
    images
}

/// Changes each value alone. With two images of a board in a row, only queries of one image would see the change.
#[test]
fn no_image_has_another_value_than_its_board() {
    let solved = Solved::new("--board 2x2 --large 3");
    let run = solved.run();
    let whole = Forge::open(&run);
    let mut images = 0;
    for shard in whole.of_kind(ShardKind::Values).collect::<Vec<_>>() {
        for item in 0..whole.shards[shard].items.len() {
            for value in 0..whole.shards[shard].items[item].1.len() / 4 {
                let mut forge = whole.clone();
                forge.shards[shard].items[item].1[4 * value] ^= 1;
                forge.write_shard(shard);
                let found =
                    is_refused(&run, &format!("value {value} of {:?}", whole.shards[shard].items[item].0));
                images += usize::from(found.contains("images"));
            }
            let mut forge = whole.clone();
            forge.shards[shard].items[item].1.extend([0; 4]);
            forge.write_shard(shard);
            is_refused(&run, "a value of no state");
        }
        whole.clone().write_shard(shard);
    }
    assert!(images > 0);
}

/// A row without an entry, an entry of a missing row, and an item without entries change no state. Nevertheless, the
/// format forbids them.
#[test]
fn nothing_stands_for_no_state() {
    let solved = Solved::new("--board 2x2 --large 3");
    let run = solved.run();
    let whole = Forge::open(&run);
    let params = Run::open(&run).unwrap().params().clone();
    let space = Space::new(&params);
    let rows = |layer, lane| space.class(ClassId::of(layer, lane)?).map(Class::rows);
    let (mut empty, mut beyond, mut items) = (0, 0, 0);
    for shard in whole.of_kind(ShardKind::Reach).collect::<Vec<_>>() {
        for item in 0..whole.shards[shard].items.len() {
            let (key, bytes) = &whole.shards[shard].items[item];
            let rows = rows(Layer(key.layer), Lane::from_code(key.lane).unwrap()).unwrap();
            let (occupancy, row_bytes) = (rows.div_ceil(8), columns(&run, key.lane).div_ceil(8));
            for row in (0..8 * occupancy).filter(|&row| bytes[row / 8] >> (row % 8) & 1 == 0) {
                let mut forge = whole.clone();
                let bytes = &mut forge.shards[shard].items[item].1;
                let before = (0..row).filter(|&other| bytes[other / 8] >> (other % 8) & 1 == 1).count();
                bytes[row / 8] |= 1 << (row % 8);
                let at = occupancy + before * row_bytes;
                bytes.splice(at..at, (0..row_bytes).map(|byte| u8::from(row >= rows && byte == 0)));
                forge.write_shard(shard);
                is_refused(&run, &format!("row {row} of {rows} of {key:?}"));
                *(if row < rows { &mut empty } else { &mut beyond }) += 1;
            }
        }
        for layer in (4..=params.last_layer().0).step_by(2).map(Layer) {
            for lane in lanes(&params) {
                let key = ItemKey { layer: layer.0, lane: lane.code(), part: 0 };
                // Skips layers with stored values, because they would also need an item of values.
                if params.contents().kept().keeps(layer) || whole.find(ShardKind::Reach, key).is_some() {
                    continue;
                }
                let Some(rows) = rows(layer, lane).filter(|&rows| rows > 0) else { continue };
                let mut forge = whole.clone();
                let forged = &mut forge.shards[shard].items;
                forged.push((key, vec![0; rows.div_ceil(8)]));
                forged.sort_by_key(|(key, _)| *key);
                forge.write_shard(shard);
                is_refused(&run, &format!("an item for {key:?}"));
                items += 1;
            }
        }
        whole.clone().write_shard(shard);
    }
    assert!(empty > 0 && beyond > 0 && items > 0, "{empty} rows, {beyond} beyond the last, {items} items");
}

fn ones(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| byte.count_ones() as usize).sum()
}

/// Removes an occupied row from a reach item, unless it is the only row.
fn take_row(item: &mut Vec<u8>, row: usize, occupancy: usize, row_bytes: usize) {
    let occupied = (0..8 * occupancy).filter(|&i| item[i / 8] >> (i % 8) & 1 == 1).nth(row).unwrap();
    item[occupied / 8] ^= 1 << (occupied % 8);
    item.drain(occupancy + row * row_bytes..occupancy + (row + 1) * row_bytes);
}

/// Moves a board from its canonical row to the row of its mirror image. No query reads that row.
///
/// Only masks with very many configs have rows that are not canonical.
#[test]
fn boards_in_rows_that_are_not_canonical_are_refused() {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 5x2 --until-layer 22");
    let mut forge = Forge::open(&run);
    let key = ItemKey { layer: 22, lane: 0, part: 0 };
    let (shard, item) = forge.find(ShardKind::Reach, key).unwrap();
    let bytes = &mut forge.shards[shard].items[item].1;
    let rows = 36_430usize;
    let configs = Configs::new(10, 4);
    let mirror = |row: usize| {
        let config = configs.config(10, 22, row as u32);
        // Swaps neighbours in a row of the board. The first digit is the highest.
        let mirrored = (0..10).fold(0, |m, cell| m | (config >> (4 * cell) & 15) << (4 * (cell ^ 1)));
        configs.rank(10, 22, mirrored) as usize
    };
    let row = (0..rows).find(|&row| bytes[row / 8] >> (row % 8) & 1 == 1 && mirror(row) != row).unwrap();
    let other = mirror(row);
    assert!(other > row && other < rows);
    // Each occupied row has one byte after the occupancy, with its only column marked. So no byte has to move.
    bytes[row / 8] ^= 1 << (row % 8);
    bytes[other / 8] ^= 1 << (other % 8);
    forge.write();
    let found = is_refused(&run, "a board in another row");
    assert!(found.contains("canonical"), "{found}");
}

/// Two states swap their values. All states exist, but queries would find wrong values.
#[test]
fn values_cannot_change_places() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let whole = Forge::open(&run);
    let mut swapped = 0;
    for shard in whole.of_kind(ShardKind::Values).collect::<Vec<_>>() {
        for item in 0..whole.shards[shard].items.len() {
            let values = &whole.shards[shard].items[item].1;
            for at in (4..values.len()).step_by(4) {
                let mut forge = whole.clone();
                let values = &mut forge.shards[shard].items[item].1;
                if values[at - 4..at] == values[at..at + 4] {
                    continue;
                }
                values[at - 4..at + 4].rotate_left(4);
                forge.write_shard(shard);
                is_refused(&run, "values that have changed places");
                swapped += 1;
            }
        }
    }
    assert!(swapped > 10, "{swapped}");
}

/// The journal has the number of states and their fingerprint. Missing and wrong entries are problems.
#[test]
fn the_journal_must_count_the_contents_of_shards() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let whole = Forge::open(&run);
    let change = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut forge = whole.clone();
        let records = forge.records.iter_mut().map(|(_, body)| &mut body["record"]["commit"]);
        let before = whole.records.clone();
        records.for_each(change);
        assert_ne!(before, forge.records, "{what}");
        (0..forge.records.len()).for_each(|record| forge.write_record(record));
        let found = is_refused(&run, what);
        assert!(found.contains("journal"), "{what}: {found}");
        on_run(&run, "verify", &[]).exits(1);
    };
    let enumerate = |commit: &mut Value, change: &dyn Fn(&mut Value)| {
        if commit["phase"] == "enumerate" {
            change(commit);
        }
    };
    change("no counts", &|commit| enumerate(commit, &|commit| commit["layers"] = json!([])));
    change("counts dropped", &|commit| drop(commit.as_object_mut().unwrap().remove("layers")));
    change("a layer without counts", &|commit| {
        enumerate(commit, &|commit| drop(commit["layers"].as_array_mut().unwrap().remove(3)));
    });
    change("a layer counted twice", &|commit| {
        enumerate(commit, &|commit| {
            let again = commit["layers"][3].clone();
            commit["layers"].as_array_mut().unwrap().push(again);
        });
    });
    for of in ["states", "afterstates"] {
        for layer in [0, 5, 20] {
            change(&format!("one more of {of}"), &|commit| {
                enumerate(commit, &|commit| {
                    let count = &mut commit["layers"][layer][of];
                    *count = json!(whole_number(count) + 1);
                });
            });
        }
    }
    change("no fingerprint", &|commit| drop(commit.as_object_mut().unwrap().remove("fingerprint")));
    change("another fingerprint", &|commit| {
        if commit["phase"] == "back_up" {
            commit["fingerprint"] = json!("0123456789abcdef0123456789abcdef");
        }
    });
    change("a fingerprint of states", &|commit| {
        enumerate(commit, &|commit| commit["fingerprint"] = json!("0123456789abcdef0123456789abcdef"));
    });
}

/// The journal's description of a shard must be true.
#[test]
fn the_journal_must_describe_its_shards() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let whole = Forge::open(&run);
    for record in 0..whole.records.len() {
        let kind = whole.records[record].1["record"]["shards"][0]["kind"].clone();
        let other = if kind == "reach" { "values" } else { "reach" };
        for (field, value) in [
            ("kind", json!(other)),
            ("first_layer", json!(6)),
            ("last_layer", json!(58)),
            ("bytes", json!(1000)),
            ("frames", json!(7)),
            ("items", json!(7)),
            ("header_checksum", json!("0123456789abcdef")),
        ] {
            let mut forge = whole.clone();
            forge.records[record].1["record"]["shards"][0][field] = value;
            forge.write_record(record);
            is_refused(&run, field);
        }
        whole.write_record(record);
    }
    assert_eq!(problems(&run), Vec::<String>::new());
}

fn whole_number(value: &Value) -> u64 {
    whole(value)
}

/// `verify` never calls an unfinished run right. With `--partial` it checks the existing part.
#[test]
fn unfinished_runs_are_reported() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let records = files(&run.join("journal"));
    assert_eq!(records.len(), 2);
    fs::remove_file(&records[1]).unwrap();
    let printed = on_run(&run, "verify", &[]).exits(1).prints("verify of an unfinished run");
    assert!(printed.stderr.contains("4 to 60") && !printed.stderr.contains("BackUp"), "{printed:?}");
    assert_section("result for an unfinished run", &printed.stdout);
    on_run(&run, "verify", &["--partial"]).exits(0);
    let json = on_run(&run, "verify", &["--json"]).exits(1).json();
    assert_eq!((&json["verdict"], &json["missing"][0]["of"]), (&json!("unfinished"), &json!("values")));
    // There is nothing to sample.
    for options in [&["--sample", "10"][..], &["--sample", "10", "--partial"]] {
        on_run(&run, "verify", options).exits(1).prints("sample of an unfinished run");
    }
    // Without a commit there is nothing to check, even with --partial.
    fs::remove_file(&records[0]).unwrap();
    for options in [&[][..], &["--partial"], &["--sample", "10"]] {
        assert_eq!(on_run(&run, "verify", options).exits(1).stdout, "", "{options:?}");
    }
}

/// `verify` does not report layers as checked before they are enumerated.
#[test]
fn missing_layers_are_not_reported_as_checked() {
    let place = Place::new();
    let run = place.join("run");
    // With a low disk limit, states are committed in several ranges.
    let args = solve_args(&run, "--board 3x3 --objective reach:512 --disk 2.4MB");
    let died = command(args).env("FAILPOINTS", "journal.linked=1*off->return").output().unwrap();
    assert!(!died.status.success());
    let last =
        Run::open(run.as_path()).unwrap().catalog().commits().iter().map(|commit| commit.last).max().unwrap();
    let json = on_run(&run, "verify", &["--partial", "--json"]).exits(0).json();
    assert_eq!((&json["verdict"], &json["layers"]), (&json!("right"), &json!([4, last.0])));
    assert_eq!(json["missing"][0]["first"], last.0 + 2);
    let above = format!("{}..", last.0 + 10);
    on_run(&run, "verify", &["--layers", &above]).exits(1).prints("verify of missing layers");
}

/// Checks a span of a run, and requires that it is right.
fn check(run: &Run, span: Span) -> CheckOutcome {
    let go_on = AtomicBool::new(false);
    let verifier = Verifier::new(run, 2, &go_on, &|_| {}).unwrap();
    let outcome = verifier.all_states(span);
    assert!(outcome.problems.is_empty(), "{span:?}: {:?}", outcome.problems);
    outcome
}

/// A small run that stores some layers. Its values are in three committed ranges, split below the layers of `cuts`.
fn run_in_ranges(keep: &str, cuts: [u32; 2]) -> Solved {
    let solved = Solved::new(&format!("--board 3x3 --objective reach:32 --keep {keep}"));
    let mut forge = Forge::open(&solved.run());
    forge.split_values(&cuts);
    forge.write();
    // Takes the right fingerprints from the reported problems.
    for range in [cuts[0], cuts[1], 4] {
        let name = format!("fingerprint of layers {range} to ");
        let fingerprint = |problem: Problem| match problem {
            Problem::Content { what, expected, .. } => {
                what.starts_with(&name).then(|| expected[..32].to_owned())
            }
            Problem::File(_) => None,
        };
        let run = Run::open(&solved.run()).unwrap();
        let expected = problems_of(&run).into_iter().find_map(fingerprint).unwrap();
        forge.set_fingerprint(range, &expected);
    }
    assert_eq!(problems(&solved.run()), Vec::<String>::new());
    solved
}

/// Spans of all layers together check the whole run. Each span needs only its own shards and the next shards.
#[test]
fn a_run_can_be_checked_in_pieces() {
    for (keep, cuts) in [("2/4", [80, 40]), ("3/7", [72, 28]), ("1/1", [78, 40])] {
        check_in_pieces(&run_in_ranges(keep, cuts));
    }
}

fn check_in_pieces(solved: &Solved) {
    let run = Run::open(solved.run().as_path()).unwrap();
    let commits = run.catalog().commits();
    let whole_run = check(&run, Span { first: Layer(4), last: run.params().last_layer() });
    let values = commits.iter().filter(|commit| commit.fingerprint.is_some());
    let (mut states, mut fingerprints, mut spans) = (0, 0, Vec::new());
    for commit in values {
        // A layer of a commit selects the whole commit.
        let asked = Span { first: commit.last, last: commit.last };
        spans.push(asked.widened(&commits));
        let outcome = check(&run, asked.widened(&commits));
        states += outcome.checked.states;
        fingerprints += outcome.checked.fingerprints;
        assert_eq!(outcome.done_down_to, Some(commit.first));
    }
    assert!(spans.len() > 1, "the run has but one commit: {commits:?}");
    assert_eq!((states, fingerprints), (whole_run.checked.states, spans.len() as u64));
    let layers = format!("{}..", spans.last().unwrap().last);
    let json = on_run(&solved.run(), "verify", &["--json", "--layers", &layers]).exits(0).json();
    assert_eq!(json["layers"], json!([spans.last().unwrap().first.0, spans.last().unwrap().last.0]));
    assert!(whole(&json["states"]) < states);
}

/// A stopped check names the remaining layers. A check of these layers completes it.
#[test]
fn a_stopped_check_can_be_resumed() {
    let solved = run_in_ranges("2/4", [80, 40]);
    let run = Run::open(solved.run().as_path()).unwrap();
    let commits = run.catalog().commits();
    let (stop, lowest) = (AtomicBool::new(false), Mutex::new(None));
    let stop_below =
        Layer(commits.iter().filter_map(|c| c.fingerprint.map(|_| c.first.0)).max().unwrap() - 20);
    let progress = |at| {
        if let CheckProgress::Layer(layer, _) = at
            && layer < stop_below
        {
            *lowest.lock().unwrap() = Some(layer);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let verifier = Verifier::new(&run, 2, &stop, &progress).unwrap();
    let all = verifier.all_layers();
    let outcome = verifier.all_states(all);
    assert!(outcome.stopped && outcome.problems.is_empty());
    let done = outcome.done_down_to.unwrap();
    assert_eq!(Some(Layer(done.0 - 4)), *lowest.lock().unwrap());
    let left = all.left_below(done, &commits).unwrap();
    assert!(left.last < all.last && left == left.widened(&commits));
    let rest = check(&run, left);
    let above = check(&run, Span { first: Layer(left.last.0 + 2), last: all.last });
    assert_eq!(rest.checked.states + above.checked.states, whole(&solved.summary["states"]));
}

#[test]
fn a_layer_selects_its_whole_commit() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let json = on_run(&run, "verify", &["--layers", "20..21", "--json"]).exits(0).json();
    // In such a small run, all values are in one committed range.
    assert_eq!(json["layers"], json!([4, 60]));
    assert_eq!(json["verdict"], "right");
}

/// An interrupted check ends with 130 and prints how to resume.
#[test]
fn an_interrupted_check_prints_how_to_resume() {
    let solved = Solved::new("--board 3x3 --objective reach:256");
    let run = solved.run();
    let child = command(["verify", "--json", "--run", run.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Waits until the program handles the signal. An earlier signal would end the program without output.
    let status = format!("/proc/{}/status", child.id());
    let listens = |status: String| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap_or("0");
        u64::from_str_radix(caught, 16).unwrap() >> (libc::SIGINT - 1) & 1 == 1
    };
    while !listens(fs::read_to_string(&status).unwrap())
        && !fs::read_to_string(&status).unwrap().contains("zombie")
    {
        std::thread::yield_now();
    }
    common::signal(child.id(), "INT");
    let ended = common::Finished::new(child.wait_with_output().unwrap());
    match ended.code {
        // The check was faster than the signal.
        Some(0) => {}
        _ => {
            let ended = ended.exits(130).says(&["--layers 4.."]);
            let json = ended.json();
            assert_eq!(json["verdict"], "interrupted");
            let layers = text(&json["go_on_with"]).to_owned();
            exact2048(["verify", "--run", run.to_str().unwrap(), "--layers", &layers]).exits(0);
        }
    }
}
