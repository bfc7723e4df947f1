//! The commands that read a run, end to end on small boards.

use crate::common::snapshots::assert_section;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use exact2048_solution::{Commit, JournalRecord, Phase, Record, Run};
use exact2048_storage::{Frame, ItemKey, ShardWriter, TypedRun};
use serde_json::Value;
use tempfile::TempDir;

fn exact2048(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exact2048"));
    let streams = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A run directory. It is removed when the value is dropped.
struct Solved {
    _folder: TempDir,
    run: PathBuf,
}

impl Solved {
    fn new(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let solved = exact2048(&[&["solve", "--run", run.to_str().unwrap()], options].concat(), "");
        assert!(solved.status.success(), "{}", text(&solved.stderr));
        Self { _folder: folder, run }
    }

    fn call(&self, command: &str, options: &[&str], input: &str) -> Output {
        exact2048(&[&[command, "--run", self.run.to_str().unwrap()], options].concat(), input)
    }

    /// The problems that `verify` prints. Requires that it fails.
    fn problems(&self, options: &[&str]) -> String {
        let output = self.call("verify", options, "");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        text(&output.stderr)
    }

    fn shard(&self, kind: &str) -> PathBuf {
        let files = std::fs::read_dir(self.run.join("shards")).unwrap();
        let of_kind = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(kind);
        files.map(|file| file.unwrap().path()).find(of_kind).unwrap()
    }

    /// Rewrites the shard of a pass with other items or another commit, as a faulty solver would write it.
    fn tamper(
        &self,
        phase: Phase,
        mut item: impl FnMut(ItemKey, &mut Vec<u8>),
        commit: impl Fn(&mut Commit),
    ) {
        let run = Run::open(&self.run).unwrap();
        let shard = run.catalog().shards().into_iter().find(|s| s.commit.phase == phase).unwrap();
        let reader = shard.reader().unwrap();
        let mut items: Vec<(ItemKey, Vec<u8>)> =
            reader.items().iter().map(|e| (e.key, reader.read(e.key).unwrap().unwrap())).collect();
        items.iter_mut().for_each(|(key, bytes)| item(*key, bytes));
        let mut committed = exact2048_solution::Commit::clone(&shard.commit);
        let identity = run.catalog().identity(phase, committed.first, committed.last);
        assert_eq!(identity.kind, phase.shard_kind());
        // Does not use `Run`, because it refuses counts that differ from earlier counts.
        let mut faulty = TypedRun::<JournalRecord>::open_for_writing(self.run.as_path()).unwrap();
        let mut writer = ShardWriter::create(&faulty, identity).unwrap();
        for (key, bytes) in &items {
            writer.push(Frame::encode(&[(*key, bytes)], 1).unwrap()).unwrap();
        }
        commit(&mut committed);
        let shards = vec![writer.finish().unwrap()];
        let record = Record::new(committed, shards);
        faulty.commit(&JournalRecord::Commit(record)).unwrap();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json_lines(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn query_answers_any_image_and_says_why_not() {
    let run = Solved::new(&["--board", "2x2"]);
    let output =
        run.call("query", &["--json", "-"], "2 0 / 0 2\n\n0,2/2,.\n2 4 / 8 16\n256 256 / 0 0\n9 9\n");
    assert_eq!(output.status.code(), Some(2));
    let answers = json_lines(&output);
    assert_eq!(answers.len(), 5);
    assert_eq!(answers[0]["value"], answers[1]["value"]);
    assert_eq!(answers[0]["canonical"], "0 2 / 2 0");
    assert_eq!(answers[0]["layer"], 4);
    assert_eq!(answers[0]["best"], "left");
    let moves: Vec<&Value> = answers[0]["moves"].as_array().unwrap().iter().map(|m| &m["move"]).collect();
    assert_eq!(moves, ["left", "right", "up", "down"]);
    assert_eq!(answers[0]["moves"][1]["afterstate"], "0 2 / 0 2");
    assert_eq!(answers[2]["best"], Value::Null);
    let dead = &answers[2]["moves"][0];
    assert_eq!(
        (&dead["legal"], &dead["score"], &dead["value"]),
        (&Value::Bool(false), &Value::Null, &Value::Null)
    );
    assert!(answers[3]["error"].as_str().unwrap().contains(answers[3]["board"].as_str().unwrap()));
    assert_eq!(answers[4]["board"], "9 9");
    for (board, code) in [("2 0 / 0 2", 0), ("256 256 / 0 0", 3), ("2 2", 2), ("3 3 / 0 0", 2)] {
        let output = run.call("query", &[board], "");
        assert_eq!(output.status.code(), Some(code), "{board}");
        assert_eq!(output.stdout.is_empty(), code != 0);
    }
    assert!(text(&run.call("query", &["2 0 / 0 2"], "").stdout).contains("left   best"));
}

#[test]
fn layers_and_info_agree() {
    let run = Solved::new(&["--board", "2x2"]);
    let layers = json_lines(&run.call("layers", &["--json"], ""));
    let states: u64 = layers.iter().map(|layer| layer["states"].as_u64().unwrap()).sum();
    assert_eq!((layers.len(), states), (29, 110));
    let csv = text(&run.call("layers", &["--csv"], "").stdout);
    assert!(csv.starts_with("layer,states,afterstates\n4,"));
    assert_eq!(csv.lines().count(), 30);
    assert!(text(&run.call("layers", &[], "").stdout).contains("all 29 layers     110"));
    let info = &json_lines(&run.call("info", &["--json"], ""))[0];
    assert_eq!((&info["progress"], info["states"].as_u64()), (&Value::from("solved"), Some(110)));
    assert_eq!(info["passes"][1]["committed"][0], serde_json::json!([4, 60]));
    assert!(text(&run.call("info", &[], "").stdout).contains(info["fingerprint"].as_str().unwrap()));
}

#[test]
fn inspect_describes_a_shard() {
    let run = Solved::new(&["--board", "2x2"]);
    let shard = run.shard("reach");
    let output = exact2048(&["inspect", "--json", shard.to_str().unwrap()], "");
    let found = &json_lines(&output)[0];
    assert_eq!(found["identity"]["kind"], "reach");
    assert_eq!(found["file_bytes"].as_u64(), Some(std::fs::metadata(&shard).unwrap().len()));
    let items: u64 = found["frames"].as_array().unwrap().iter().map(|f| f["items"].as_u64().unwrap()).sum();
    assert_eq!(found["items"]["count"].as_u64(), Some(items));
    assert!(exact2048(&["inspect", shard.to_str().unwrap()], "").status.success());
    assert_eq!(exact2048(&["inspect", run.run.to_str().unwrap()], "").status.code(), Some(2));
}

#[test]
fn verify_passes_solved_runs() {
    for options in [
        &["--board", "3x2"] as &[&str],
        &["--board", "3x2", "--precision", "64", "--spawn4", "1/3"],
        &["--board", "3x2", "--objective", "reach:64"],
        &["--board", "2x3", "--objective", "reach:32", "--precision", "64"],
        &["--board", "2x2", "--spawn4", "0"],
        &["--board", "1x6", "--spawn4", "12345/65536"],
        &["--board", "4x2", "--until-layer", "60"],
    ] {
        let run = Solved::new(options);
        let output = run.call("verify", &[], "");
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        if !options.contains(&"--until-layer") {
            let output = run.call("verify", &["--sample", "200"], "");
            assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn verify_finds_a_flipped_bit() {
    for (kind, section) in [("reach", "flipped bit of reach"), ("values", "flipped bit of values")] {
        let run = Solved::new(&["--board", "2x2"]);
        let shard = run.shard(kind);
        let mut bytes = std::fs::read(&shard).unwrap();
        bytes[200] ^= 4;
        std::fs::write(&shard, bytes).unwrap();
        let problems = run.problems(&[]);
        assert!(problems.contains(file_name(&shard)), "{problems}");
        assert_section(section, &problems.replace(file_name(&shard), "[SHARD]"));
    }
}

#[test]
fn verify_finds_a_wrong_value() {
    let run = Solved::new(&["--board", "2x2"]);
    let one_more =
        |key: ItemKey, bytes: &mut Vec<u8>| bytes[0] = bytes[0].wrapping_add(u8::from(key.layer == 18));
    run.tamper(Phase::BackUp, one_more, |_| {});
    for options in [&[] as &[&str], &["--sample", "1000"]] {
        let problems = run.problems(options);
        assert!(problems.contains(file_name(&run.shard("values"))), "{problems}");
        assert!(problems.contains("value of "), "{problems}");
    }
}

#[test]
fn verify_finds_wrong_states() {
    let unchanged = |_: &mut Commit| {};
    let options = ["--board", "2x2", "--until-layer", "30"];
    // Without large tiles, a row has one column: a leading occupancy bit, and a trailing byte 1 if the bit is set.
    let lose_one = |key: ItemKey, bytes: &mut Vec<u8>| {
        if (key.layer, key.lane) == (12, 0) {
            bytes[0] &= bytes[0] - 1;
            bytes.pop();
        }
    };
    let run = Solved::new(&options);
    run.tamper(Phase::Enumerate, lose_one, unchanged);
    assert_section("lost state", &run.problems(&[]));
    // Does the same with a faulty solver that counts its output, and with a solver that does not count.
    let counted = |layer: u32, more: i64| {
        move |commit: &mut Commit| {
            let counts = commit.layers.iter_mut().find(|counts| counts.layer.0 == layer).unwrap();
            counts.states = counts.states.checked_add_signed(more).unwrap();
        }
    };
    let run = Solved::new(&options);
    run.tamper(Phase::Enumerate, lose_one, counted(12, -1));
    assert_section("lost and uncounted state", &run.problems(&[]));
    let run = Solved::new(&options);
    run.tamper(Phase::Enumerate, lose_one, |commit| commit.layers.retain(|counts| counts.layer.0 != 12));
    assert_section("lost counts", &run.problems(&[]));

    let invent_one = |key: ItemKey, bytes: &mut Vec<u8>| {
        if (key.layer, key.lane) == (20, 0) {
            bytes[0] |= bytes[0] + 1;
            bytes.push(1);
        }
    };
    let run = Solved::new(&["--board", "3x2", "--until-layer", "20"]);
    run.tamper(Phase::Enumerate, invent_one, counted(20, 1));
    assert_section("invented state", &run.problems(&[]));

    let run = Solved::new(&options);
    run.tamper(Phase::Enumerate, |_, _| {}, |commit| commit.layers[3].states += 1);
    assert_section("wrong count", &run.problems(&[]));

    let run = Solved::new(&["--board", "2x2"]);
    run.tamper(Phase::BackUp, |_, _| {}, |commit| commit.fingerprint = Some(1));
    assert_section("wrong fingerprint", &run.problems(&[]));
}

#[test]
fn a_reader_that_closes_its_end_is_no_failure() {
    let run = Solved::new(&["--board", "3x2"]);
    for command in ["layers", "info"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_exact2048"))
            .args([command, "--run", run.run.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}
