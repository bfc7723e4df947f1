//! Damaged, lost, foreign and newer files: always noticed, never trusted, and repaired if possible.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use common::patient::{JOB, LARGE_JOB, Patient, contents, flip, name, seal};
use common::snapshots::assert_section;
use common::{
    Place, Solved, command, committed, exact2048, files, layers, on_run, shards, solve, solve_args, try_solve,
};
use exact2048_run::remove_lost;
use exact2048_solution::{Run, UnnamedPolicy};
use exact2048_storage::{ShardReader, StorageError};
use xxhash_rust::xxh3::xxh3_64;

#[test]
fn every_flipped_byte_of_a_shard_is_noticed_by_a_reader() {
    let healthy = Solved::new(JOB);
    for shard in shards(&healthy.run()) {
        let bytes = fs::read(&shard).unwrap();
        let expected = *ShardReader::open_any(&shard).unwrap().identity();
        for at in 0..bytes.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= bits;
                let read = ShardReader::from_bytes(&shard, damaged, Some(&expected)).and_then(|r| r.verify());
                let error = read.expect_err("damage was not noticed");
                let told =
                    matches!(&error, StorageError::Damaged { file, .. } if file.as_path() == Some(&*shard));
                assert!(told, "byte {at}: {error}");
            }
        }
    }
}

#[test]
fn flipped_bytes_of_a_shard_fail_verification() {
    let healthy = Solved::new(JOB);
    let patient = Patient::of(&healthy);
    for shard in shards(&patient.run()) {
        let bytes = fs::read(&shard).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            flip(&shard, at, 1 << (at % 8));
            on_run(&patient.run(), "verify", &[]).exits(1).says(&[name(&shard)]);
            fs::write(&shard, &bytes).unwrap();
        }
    }
    on_run(&patient.run(), "verify", &[]).exits(0);
}

#[test]
fn flipped_bytes_of_a_shard_are_mended() {
    let healthy = Solved::new(JOB);
    let patient = Patient::of(&healthy);
    for kind in ["reach", "values"] {
        let length = fs::metadata(patient.shard(kind)).unwrap().len() as usize;
        for at in (0..length).step_by(length / 12) {
            let shard = patient.shard(kind);
            flip(&shard, at, 0x10);
            patient.is_ill(&shard);
            patient.is_mended_by_solving();
        }
    }
}

#[test]
fn cut_and_lengthened_shards_are_mended() {
    let healthy = Solved::new(JOB);
    for kind in ["reach", "values"] {
        let patient = Patient::of(&healthy);
        let bytes = fs::read(patient.shard(kind)).unwrap();
        for length in [0, 1, 8, 16, 103, 104, 105, 128, bytes.len() / 2, bytes.len() - 1] {
            let shard = patient.shard(kind);
            fs::write(&shard, &bytes[..length]).unwrap();
            patient.is_ill(&shard);
            patient.is_mended_by_solving();
        }
        let shard = patient.shard(kind);
        fs::write(&shard, [&bytes[..], b"and more"].concat()).unwrap();
        patient.is_ill(&shard);
        patient.is_mended_by_solving();
    }
}

#[test]
fn removed_shards_are_mended() {
    let healthy = Solved::new(JOB);
    for (kinds, section) in [
        (&["reach"][..], "missing reach"),
        (&["values"], "missing values"),
        (&["reach", "values"], "missing reach and values"),
    ] {
        let patient = Patient::of(&healthy);
        let removed: Vec<PathBuf> = kinds.iter().map(|kind| patient.shard(kind)).collect();
        removed.iter().for_each(|shard| fs::remove_file(shard).unwrap());
        patient.is_ill(&removed[0]);
        on_run(&patient.run(), "verify", &[])
            .exits(1)
            .says(&[&removed[0].display().to_string()])
            .prints(section);
        patient.is_mended_by_solving();
    }
    let patient = Patient::of(&healthy);
    fs::remove_dir_all(patient.run().join("shards")).unwrap();
    patient.is_mended_by_solving();
}

#[test]
fn shards_of_another_run_are_noticed_and_mended() {
    let healthy = Solved::new(JOB);
    // Tests the same job, another job of the same size, and another board.
    for other in [JOB, "--board 2x2 --spawn4 0.2", "--board 4x1"] {
        let other = Solved::new(other);
        for kind in ["reach", "values"] {
            let (patient, other) = (Patient::of(&healthy), Patient::of(&other));
            let shard = patient.shard(kind);
            fs::copy(other.shard(kind), &shard).unwrap();
            patient.is_ill(&shard);
            patient.is_mended_by_solving();
        }
    }
}

#[test]
fn shards_in_each_others_place_are_noticed_and_mended() {
    let patient = Patient::of(&Solved::new(JOB));
    let (reach, values) = (patient.shard("reach"), patient.shard("values"));
    fs::copy(&values, &reach).unwrap();
    patient.is_ill(&reach);
    patient.is_mended_by_solving();
}

/// A query never answers from any part of a damaged shard.
#[test]
fn queries_do_not_answer_from_damaged_shards() {
    let healthy = Solved::new(JOB);
    let patient = Patient::of(&healthy);
    let answer = |run: &Path| on_run(run, "query", &["--json", "2 0 / 0 2"]);
    let right = answer(&patient.run()).exits(0).json();
    for shard in shards(&patient.run()) {
        let bytes = fs::read(&shard).unwrap();
        for at in (0..bytes.len()).step_by(41) {
            flip(&shard, at, 0x20);
            let found = answer(&patient.run());
            if found.code == Some(0) {
                assert_eq!(found.json(), right, "byte {at} of {}", shard.display());
            } else {
                found.exits(1).says(&[name(&shard)]);
            }
            fs::write(&shard, &bytes).unwrap();
        }
    }
}

/// A shard of a later format stays unchanged, because a newer program may be able to read it.
#[test]
fn newer_shards_are_refused_and_kept() {
    let patient = Patient::of(&Solved::new(JOB));
    let shard = patient.shard("values");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[8] = 2;
    let checksum = xxh3_64(&bytes[..96]);
    bytes[96..104].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&shard, &bytes).unwrap();
    on_run(&patient.run(), "verify", &[]).exits(1).says(&[name(&shard)]).prints("verify of a newer shard");
    try_solve(&patient.run(), JOB).exits(1).says(&[name(&shard)]).prints("solve of a newer shard");
    let inspect = exact2048(["inspect", shard.to_str().unwrap()]);
    inspect.exits(1).says(&[name(&shard)]).prints("inspect of a newer shard");
    assert!(fs::read(&shard).unwrap() == bytes, "the newer shard was replaced");
}

#[test]
fn newer_manifests_are_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    let manifest = patient.run().join("manifest.json");
    let sealed = fs::read_to_string(&manifest).unwrap();
    let body = sealed.split_once("\"body\":").unwrap().1.trim_end().strip_suffix('}').unwrap();
    assert_eq!(seal(body), sealed, "the test seals as the program does");
    let newer = body.replacen("\"format_version\": 2", "\"format_version\": 3", 1);
    let newer =
        if newer == body { body.replacen("\"format_version\":2", "\"format_version\":3", 1) } else { newer };
    assert_ne!(newer, body);
    fs::write(&manifest, seal(&newer)).unwrap();
    patient.is_refused(&manifest).prints("newer manifest");
}

#[test]
fn damaged_manifests_are_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    let manifest = patient.run().join("manifest.json");
    let bytes = fs::read(&manifest).unwrap();
    for at in (0..bytes.len()).step_by(23) {
        flip(&manifest, at, 0x04);
        patient.is_refused(&manifest);
        fs::write(&manifest, &bytes).unwrap();
    }
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&manifest, &bytes[..length]).unwrap();
        patient.is_refused(&manifest);
    }
}

#[test]
fn a_run_without_its_manifest_is_refused() {
    let patient = Patient::of(&Solved::new(JOB));
    fs::remove_file(patient.run().join("manifest.json")).unwrap();
    let before = contents(&patient.run());
    for (subcommand, options) in
        [("verify", &[][..]), ("info", &[]), ("layers", &[]), ("query", &["2 2 / 0 0"])]
    {
        on_run(&patient.run(), subcommand, options).exits(1).prints("lost manifest");
    }
    // `solve` begins no new run in the folder of an old run.
    try_solve(&patient.run(), JOB).exits(1).prints("lost manifest");
    assert!(contents(&patient.run()) == before);
}

/// A stopped check of all shards changes nothing, so the next one finds all damage.
#[test]
fn a_stopped_check_changes_nothing() {
    let solved = Solved::new(LARGE_JOB);
    let sound = committed(&solved.run());
    for (path, _) in sound.iter().filter(|(path, _)| name(path).starts_with("values")) {
        flip(path, fs::metadata(path).unwrap().len() as usize / 2, 1);
    }
    let params = Run::open(&solved.run()).unwrap().params().clone();
    let mut run = Run::open_or_create(&solved.run(), &params, UnnamedPolicy::Refuse).unwrap();
    let warned = AtomicU32::new(0);
    let is_stopped = || warned.load(Ordering::Relaxed) > 0;
    let warn = |_: &StorageError| {
        warned.fetch_add(1, Ordering::Relaxed);
    };
    remove_lost(&mut run, 1, &is_stopped, &warn, &|_| ()).unwrap();
    assert!(is_stopped() && run.missing().is_empty());
    drop(run);
    assert_eq!(solve(&solved.run(), LARGE_JOB)["fingerprint"], solved.summary["fingerprint"]);
    on_run(&solved.run(), "verify", &["--sample", "10"]).exits(0);
}

/// Commands that need lost values name the command that computes them again.
#[test]
fn readers_of_lost_values_name_the_remedy() {
    let healthy = Solved::new(LARGE_JOB);
    let values = |path: &&PathBuf| name(path).starts_with("values");
    let mut failed = 0;
    for shard in shards(&healthy.run()).iter().filter(values) {
        let patient = Patient::of(&healthy);
        fs::remove_file(patient.run().join("shards").join(name(shard))).unwrap();
        let found = on_run(&patient.run(), "evaluate", &["--player", "greedy", "--cutoff", "1e-6"]);
        if found.code != Some(0) {
            let found = found.exits(1);
            assert_section("lost values", &found.last_line().replace(name(shard), "[SHARD]"));
            failed += 1;
        }
    }
    assert!(failed > 1, "games reach the layers of several shards");
}

/// Commands neither wait for special files nor read them.
#[test]
fn special_files_are_refused_at_once() {
    let healthy = Solved::new(JOB);
    let fifo = |path: &Path| {
        fs::remove_file(path).unwrap();
        common::make_fifo(path);
    };
    let patient = Patient::of(&healthy);
    fifo(&patient.run().join("manifest.json"));
    patient.is_refused(&patient.run().join("manifest.json")).says(&["FIFO"]);
    let patient = Patient::of(&healthy);
    let record = files(&patient.run().join("journal")).remove(0);
    fifo(&record);
    patient.is_refused(&record).says(&["FIFO"]);
    // A FIFO in place of a shard is replaced.
    let patient = Patient::of(&healthy);
    let shard = patient.shard("values");
    fifo(&shard);
    patient.is_ill(&shard);
    patient.is_mended_by_solving();
}

/// Files and unwritable folders in place of a run are named.
#[test]
fn places_that_cannot_hold_a_run() {
    let place = Place::new();
    let file = place.join("file");
    fs::write(&file, "").unwrap();
    for subcommand in ["info", "verify"] {
        on_run(&file, subcommand, &[]).exits(2).prints("file in place of a run");
    }
    try_solve(&file, JOB).exits(2).prints("file in place of a run");
    try_solve(Path::new("/proc/foo"), JOB).exits(1).prints("folder that cannot be made");
}

/// The next solve removes files of an interrupted or superseded solve, see `docs/dev/format.md`.
#[test]
fn left_over_files_are_removed() {
    let patient = Patient::of(&Solved::new(JOB));
    let run = patient.run();
    let left_over = run.join("shards/reach-000004-000008.shard");
    fs::copy(patient.shard("reach"), &left_over).unwrap();
    let temporary = |target: &str| run.join(format!("{target}-{:032x}", 7));
    let temps = [".tmp-manifest.json", "shards/.tmp-reach-000004-000008.shard", "journal/.tmp-000000.json"];
    let temps = temps.map(temporary);
    temps.iter().for_each(|temp| fs::write(temp, "unfinished").unwrap());
    let others =
        ["shards/note.txt", "shards/mine.shard", ".tmp-mine", "shards/.tmp-mine", "journal/.tmp-mine"];
    let others = others.map(|name| run.join(name));
    others.iter().for_each(|other| fs::write(other, "not ours").unwrap());
    solve(&run, JOB);
    temps.iter().for_each(|temp| assert!(!temp.exists(), "{} is left", temp.display()));
    others.iter().for_each(|other| assert!(other.exists(), "{} was removed", other.display()));
    assert!(!left_over.exists(), "a shard that no record names is left");
}

#[test]
fn a_missing_lock_file_is_no_damage() {
    let patient = Patient::of(&Solved::new(JOB));
    fs::remove_file(patient.run().join("lock")).unwrap();
    on_run(&patient.run(), "verify", &[]).exits(0);
    patient.is_mended_by_solving();
    // The contents of a lock file do not matter.
    fs::write(patient.run().join("lock"), [0xff; 100]).unwrap();
    patient.is_mended_by_solving();
}

/// After damage in the middle of a larger run, only the damaged range is computed again.
#[test]
fn only_damaged_shards_are_computed_again() {
    let solved = Solved::new(LARGE_JOB);
    let before = committed(&solved.run());
    assert!(before.len() >= 3, "the run has several shards of values: {before:?}");
    let (victim, _) = &before[1];
    let length = fs::metadata(victim).unwrap().len() as usize;
    flip(victim, length / 2, 0x40);
    on_run(&solved.run(), "verify", &["--sample", "10"]).exits(1).says(&[name(victim)]);
    let again = solve(&solved.run(), LARGE_JOB);
    assert_eq!(again["fingerprint"], solved.summary["fingerprint"]);
    let after = committed(&solved.run());
    for shard in &before {
        assert_eq!(shard.0 != *victim, after.contains(shard), "{}", shard.0.display());
    }
    on_run(&solved.run(), "verify", &["--sample", "1000"]).exits(0);
}

/// `solve` reads the shards of an unfinished run when it needs them. It reads all shards once none is missing.
#[test]
fn unfinished_runs_are_mended_where_they_are_read() {
    let solved = Solved::new(LARGE_JOB);
    let before = committed(&solved.run());
    let of_kind = |kind: &str| {
        let of_kind = before.iter().map(|(path, _)| path).filter(|path| name(path).starts_with(kind));
        of_kind.cloned().collect::<Vec<_>>()
    };
    let (reach, values) = (of_kind("reach"), of_kind("values"));
    let (lowest, [highest, .., last]) = (&reach[0], &values[..]) else { panic!("{before:?}") };
    // The values of the lowest layers are missing. Their computation needs the reach of these layers.
    fs::remove_file(files(&solved.run().join("journal")).last().unwrap()).unwrap();
    fs::remove_file(last).unwrap();
    flip(lowest, 150, 0x40);
    flip(highest, fs::metadata(highest).unwrap().len() as usize / 2, 0x40);
    for (damaged, sound) in [(lowest, highest), (highest, lowest)] {
        let again = try_solve(&solved.run(), LARGE_JOB).exits(0).says(&[name(damaged)]);
        assert!(!again.stderr.contains(name(sound)), "{again:?}");
        let found = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
        assert_eq!(found["fingerprint"], solved.summary["fingerprint"]);
    }
    on_run(&solved.run(), "verify", &["--sample", "1000"]).exits(0);
}

/// `inspect` reads any file, and fails on files other than shards.
#[test]
fn inspecting_other_files_is_an_error() {
    let place = Place::new();
    for (file, content, section) in [
        ("empty", "", "inspect an empty file"),
        ("text", "some text that is no shard at all", "inspect a text"),
        ("magic", "EX2048SH", "inspect a cut shard"),
    ] {
        let path = place.join(file);
        fs::write(&path, content).unwrap();
        let inspected = exact2048(["inspect", path.to_str().unwrap()]).exits(1).says(&[file]);
        inspected.prints(section);
    }
    exact2048(["inspect", place.join("missing").to_str().unwrap()]).exits(1).says(&["missing"]);
    exact2048(["inspect", place.path().to_str().unwrap()]).exits(2).prints("inspect a folder");
    let healthy = Solved::new(JOB);
    for shard in shards(&healthy.run()) {
        exact2048(["inspect", shard.to_str().unwrap()]).exits(0);
        let bytes = fs::read(&shard).unwrap();
        for at in (0..bytes.len()).step_by(29) {
            let damaged = place.join("damaged.shard");
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x08;
            fs::write(&damaged, bytes).unwrap();
            let inspected = exact2048(["inspect", damaged.to_str().unwrap()]);
            // `inspect` checks no frames, so damage within a frame stays unnoticed.
            assert!(matches!(inspected.code, Some(0 | 1)), "{inspected:?}");
        }
    }
}

/// An interrupted run has shards with other bounds than an uninterrupted run. Shards that replace lost shards have other
/// bounds too, so the old records must not count together with the new records.
#[test]
fn shards_made_again_in_other_bounds_replace_the_old_ones() {
    let place = Place::new();
    let run = place.join("run");
    let options = "--board 3x3 --objective reach:256";
    let whole = solve(&place.join("whole"), options);
    for _ in 0..4 {
        let mut child =
            command(solve_args(&run, options)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(250));
        // The process may have ended already.
        common::signal(child.id(), "INT");
        child.wait().unwrap();
    }
    solve(&run, options);
    for kind in ["reach", "values"] {
        let of_kind = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(kind);
        let lost: Vec<PathBuf> = shards(&run).into_iter().filter(of_kind).take(3).collect();
        lost.iter().for_each(|path| fs::remove_file(path).unwrap());
        let mended = solve(&run, options);
        let again = solve(&run, options);
        for field in ["states", "afterstates", "layers", "fingerprint"] {
            assert_eq!(mended[field], whole[field], "{field} after {kind} shards were lost");
            assert_eq!(again[field], whole[field], "{field} of the mended run");
        }
        let states: u64 = layers(&run).iter().map(|&(_, states, _)| states).sum();
        assert_eq!(states, whole["states"].as_u64().unwrap());
    }
}
