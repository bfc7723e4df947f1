//! Damaged, lost, foreign and newer records of the journal: always noticed, never trusted.

use crate::common;

use std::fs;
use std::path::Path;

use common::patient::{JOB, LARGE_JOB, Patient, contents, flip, seal};
use common::{Solved, files, on_run, shards, solve, text, try_solve, whole};
use exact2048_game::{KeptLayers, Layer};
use serde_json::{Value, json};

#[test]
fn damaged_journal_records_are_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    for record in files(&patient.run().join("journal")) {
        let bytes = fs::read(&record).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 9) {
            flip(&record, at, 0x01);
            patient.is_refused(&record);
            fs::write(&record, &bytes).unwrap();
        }
        fs::write(&record, &bytes[..bytes.len() / 2]).unwrap();
        patient.is_refused(&record);
        fs::write(&record, &bytes).unwrap();
    }
    on_run(&patient.run(), "verify", &[]).exits(0);
}

#[test]
fn a_gap_in_the_journal_is_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    let records = files(&patient.run().join("journal"));
    assert!(records.len() >= 2);
    fs::remove_file(&records[0]).unwrap();
    patient.is_refused(&records[0]);
}

#[test]
fn journal_records_in_each_others_place_are_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    let records = files(&patient.run().join("journal"));
    fs::copy(&records[1], &records[0]).unwrap();
    patient.is_refused(&records[0]);
}

#[test]
fn journal_records_of_another_run_are_refused() {
    let healthy = Solved::new(JOB);
    let (patient, other) = (Patient::of(&healthy), Solved::new(JOB));
    let record = files(&patient.run().join("journal")).remove(0);
    fs::copy(files(&other.run().join("journal")).remove(0), &record).unwrap();
    patient.is_refused(&record).prints("record of another run");
}

/// An intact record with unknown fields is refused.
#[test]
fn unknown_journal_records_are_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    let record = files(&patient.run().join("journal")).remove(0);
    let sealed = fs::read_to_string(&record).unwrap();
    let body = sealed.split_once("\"body\":").unwrap().1.trim_end().strip_suffix('}').unwrap();
    let unknown = body.replacen("\"commit\"", "\"later\": 1, \"commit\"", 1);
    assert_ne!(unknown, body);
    fs::write(&record, seal(&unknown)).unwrap();
    let before = contents(&patient.run());
    for subcommand in ["verify", "info", "layers"] {
        on_run(&patient.run(), subcommand, &[]).exits(1).says(&["journal", "0"]);
    }
    try_solve(&patient.run(), JOB).exits(1).says(&["journal", "0"]);
    assert!(contents(&patient.run()) == before);
}

/// No program removes the reach of kept layers. If a record does so, all commands report the reach as missing, and `solve`
/// enumerates it again.
#[test]
fn kept_reach_that_a_record_removes_is_missing() {
    let patient = Patient::of(&Solved::new(JOB));
    let (run, journal) = (patient.run(), patient.run().join("journal"));
    let records = files(&journal);
    let last: Value = serde_json::from_slice(&fs::read(records.last().unwrap()).unwrap()).unwrap();
    let mut body = last["body"].clone();
    body["sequence"] = json!(records.len());
    body["record"] = json!({ "removed": [{ "first": 4, "last": 1000 }] });
    fs::write(journal.join(format!("{:06}.json", records.len())), seal(&body.to_string())).unwrap();

    let info = on_run(&run, "info", &["--json"]).exits(0).json();
    assert_eq!(text(&info["progress"]), "unfinished");
    let ranges = |field: &str| -> Vec<u64> {
        let ranges = info["passes"][0][field].as_array().unwrap();
        ranges.iter().flat_map(|range| (whole(&range[0])..=whole(&range[1])).step_by(2)).collect()
    };
    let (missing, removed) = (ranges("missing"), ranges("removed"));
    assert!(!missing.is_empty() && !removed.is_empty(), "{info}");
    for layer in missing.iter().chain(&removed) {
        let is_kept = KeptLayers::TWO_IN_FOUR.keeps(Layer(*layer as u32));
        assert_eq!(missing.contains(layer), is_kept, "layer {layer}: {info}");
    }
    on_run(&run, "layers", &[]).exits(0).prints("layers without kept reach");
    on_run(&run, "query", &["2 2 / 0 0"]).exits(1).prints("query without kept reach");
    let found = on_run(&run, "verify", &["--json"]).exits(1).json();
    assert_eq!((text(&found["verdict"]), &found["removed"]), ("unfinished", &info["passes"][0]["removed"]));
    // No command needs the removed reach between kept layers.
    assert_eq!(text(&solve(&run, JOB)["fingerprint"]), patient.fingerprint);
    on_run(&run, "query", &["2 2 / 0 0"]).exits(0);
    let info = on_run(&run, "info", &["--json"]).exits(0).json();
    assert_eq!((text(&info["progress"]), &info["passes"][0]["missing"]), ("solved", &json!([])));
}

/// A run without its last record looks like an earlier state of the run, so `solve` repeats the lost work.
#[test]
fn a_lost_last_record_is_done_again() {
    let patient = Patient::of(&Solved::new(JOB));
    let records = files(&patient.run().join("journal"));
    fs::remove_file(records.last().unwrap()).unwrap();
    on_run(&patient.run(), "query", &["2 2 / 0 0"]).exits(1).prints("query without the last record");
    assert!(on_run(&patient.run(), "info", &["--json"]).exits(0).json()["fingerprint"].is_null());
    patient.is_mended_by_solving();
}

/// A damaged last record can be removed, and only the error for the last record says so.
#[test]
fn a_damaged_last_record_can_be_removed() {
    let patient = Patient::of(&Solved::new(JOB));
    let records = files(&patient.run().join("journal"));
    let [first, .., last] = &records[..] else { panic!("{records:?}") };
    let sound = fs::read(first).unwrap();
    flip(first, 30, 1);
    patient.is_refused(first).prints("damaged first record");
    fs::write(first, sound).unwrap();
    flip(last, 30, 1);
    patient.is_refused(last).prints("damaged last record");
    fs::remove_file(last).unwrap();
    patient.is_mended_by_solving();
}

/// `solve` refuses a copy without its journal, and removes shards only with `--discard-shards`.
#[test]
fn a_run_without_its_journal_is_not_started_over_in_silence() {
    let healthy = Solved::new(JOB);
    let bytes: u64 = shards(&healthy.run()).iter().map(|shard| fs::metadata(shard).unwrap().len()).sum();
    let remove_records = |run: &Path| {
        files(&run.join("journal")).iter().for_each(|record| fs::remove_file(record).unwrap());
    };
    let remove_folder = |run: &Path| fs::remove_dir_all(run.join("journal")).unwrap();
    for remove in [&remove_records as &dyn Fn(&Path), &remove_folder] {
        let patient = Patient::of(&healthy);
        remove(&patient.run());
        let before = contents(&patient.run());
        let refused = try_solve(&patient.run(), JOB).exits(1);
        refused.says(&["2 of ", &format!("{bytes} bytes"), "journal", "--discard-shards"]);
        assert!(contents(&patient.run()) == before, "a refused run was changed");
        let options = format!("{JOB} --discard-shards");
        assert_eq!(text(&solve(&patient.run(), &options)["fingerprint"]), patient.fingerprint);
        patient.is_mended_by_solving();
    }
}

/// A journal that lacks several last records is refused.
#[test]
fn a_journal_that_ends_early_is_refused() {
    let solved = Solved::new(LARGE_JOB);
    let records = files(&solved.run().join("journal"));
    assert!(records.len() >= 4, "the run has several shards of values: {records:?}");
    let [.., earlier, last] = &records[..] else { panic!("{records:?}") };
    fs::remove_file(last).unwrap();
    fs::remove_file(earlier).unwrap();
    try_solve(&solved.run(), LARGE_JOB).exits(1).says(&["2 of ", "--discard-shards"]);
    let again = solve(&solved.run(), &format!("{LARGE_JOB} --discard-shards"));
    assert_eq!(again["fingerprint"], solved.summary["fingerprint"]);
}
