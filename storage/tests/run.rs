//! Run directories: creating, opening, locking, committing, replaying, cleaning up.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::{frame, identity, key, names, new_run, write_small_shard};
use exact2048_storage::{
    Attempt, ErrorKind, Frame, ItemKey, RunDir, ShardRecord, ShardWriter, StorageError, TypedRun, file_cost,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::tempdir;

/// A run with `count` records, closed.
fn closed_run(folder: &Path, count: u64) {
    let mut run = new_run(folder);
    for n in 0..count {
        assert_eq!(run.commit(&json!({ "n": n })).unwrap(), n);
    }
}

#[test]
fn a_run_survives_a_round_trip() {
    let place = tempdir().unwrap();
    let folder = place.path().join("deep/down/run");
    let params = json!({ "rows": 3, "seed": u64::MAX, "probability": 0.1 });
    let mut run = RunDir::create(&folder, &params).unwrap();
    let awkward =
        [json!(null), json!(0.1 + 0.2), json!({ "text": "é\n\"\\" }), json!([5e-324, f64::MAX, -0.0])];
    for record in &awkward {
        run.commit(record).unwrap();
    }
    assert_eq!(run.records(), awkward);
    let id = run.run_id();
    drop(run);
    for run in [RunDir::open_read_only(&folder).unwrap(), RunDir::open_for_writing(&folder).unwrap()] {
        assert_eq!((run.run_id(), run.params(), run.place().as_path()), (id, &params, Some(&*folder)));
        assert_eq!(run.records(), awkward);
        assert!(run.created_by().starts_with("exact2048 "));
    }
}

#[test]
fn another_run_in_the_place_of_a_run_is_detected() {
    let place = tempdir().unwrap();
    let folder = place.path().join("run");
    closed_run(&folder, 3);
    let run = RunDir::open_read_only(&folder).unwrap();
    let found = || match run.require_place() {
        Err(StorageError::Away { run: id, found, .. }) if id == run.run_id() => found,
        other => panic!("{other:?}"),
    };
    run.require_place().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found(), "no run");
    fs::create_dir(&folder).unwrap();
    assert_eq!(found(), "no run");
    closed_run(&folder, 3);
    assert_eq!(found(), "another run");
    fs::write(folder.join("manifest.json"), "damaged").unwrap();
    assert!(matches!(run.require_place(), Err(StorageError::Damaged { .. })));
}

/// Replacement of an open run's folder.
#[derive(Clone, Copy, PartialEq, Debug)]
enum InPlace {
    Nothing,
    EmptyFolder,
    AnotherRun,
    OlderCopy,
}

/// No file is written, removed or created in the replacement of a run, and no shard counts as lost. When the run is
/// back, its writer can continue.
#[test]
fn a_missing_run_is_reported_and_its_replacement_stays_unchanged() {
    for instead in [InPlace::Nothing, InPlace::EmptyFolder, InPlace::AnotherRun, InPlace::OlderCopy] {
        let place = tempdir().unwrap();
        let (folder, aside) = (place.path().join("run"), place.path().join("aside"));
        let mut run = new_run(&folder);
        let shard = write_small_shard(&run);
        run.commit(&json!({ "first": shard })).unwrap();
        let older = place.path().join("older");
        copy_folder(&folder, &older);
        run.commit(&json!("second")).unwrap();
        let identity = identity(run.run_id());
        let opened = run.shards().open(&shard, &identity).unwrap();
        let mut begun = ShardWriter::create(&run, identity).unwrap();
        begun.push(frame(&[(key(4, 0, 0), b"raw bytes")])).unwrap();
        fs::rename(&folder, &aside).unwrap();
        match instead {
            InPlace::Nothing => {}
            InPlace::EmptyFolder => fs::create_dir(&folder).unwrap(),
            InPlace::AnotherRun => drop(write_small_shard(&new_run(&folder))),
            InPlace::OlderCopy => fs::rename(&older, &folder).unwrap(),
        }
        let before = tree(&folder);
        let is_copy = instead == InPlace::OlderCopy;
        let away = |error: StorageError| {
            let text = error.to_string();
            if is_copy {
                assert!(matches!(error, StorageError::Damaged { .. }), "{text}");
            } else {
                assert!(matches!(error, StorageError::Away { .. }), "{instead:?}: {text}");
                assert_eq!((error.kind(), error.blames()), (ErrorKind::Unavailable, None));
            }
        };
        away(run.commit(&json!("third")).unwrap_err());
        away(run.confirm().unwrap_err());
        away(run.remove_needless_shards(std::slice::from_ref(&shard)).unwrap_err());
        away(run.remove_unreferenced_shards(&HashSet::new()).unwrap_err());
        if is_copy {
            drop(begun);
        } else {
            away(begun.finish().unwrap_err());
            let written = ShardWriter::create(&run, identity).and_then(ShardWriter::finish);
            away(written.unwrap_err());
            away(run.shards().open(&shard, &identity).unwrap_err());
            away(run.shards().check(&shard, &identity).unwrap_err());
            away(run.shards().look(&[(&shard, identity)]).unwrap_err());
            // An open file stays readable.
            opened.verify().unwrap();
        }
        assert_eq!(tree(&folder), before, "{instead:?}");
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&aside, &folder).unwrap();
        run.confirm().unwrap();
        run.commit(&json!("third")).unwrap();
        run.shards().open(&shard, &identity).unwrap();
        drop(run);
        assert_eq!(RunDir::open_read_only(&folder).unwrap().records().len(), 3, "{instead:?}");
    }
}

/// Returns all files and folders below a folder, with the contents of files.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let within = |path: PathBuf| match fs::read(&path) {
        Ok(contents) => vec![(path, contents)],
        Err(_) => [vec![(path.clone(), Vec::new())], tree(&path)].concat(),
    };
    paths.into_iter().flat_map(within).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy_folder(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_place_without_a_run_is_detected() {
    let place = tempdir().unwrap();
    let reason = |path: &Path| match RunDir::open_for_writing(path) {
        Err(StorageError::NotARun { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&place.path().join("missing")), "it does not exist");
    assert_eq!(reason(place.path()), "it has no manifest.json");
    assert!(names(place.path()).is_empty(), "looking for a run created a file");
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = RunDir::open_for_writing(&file).unwrap_err();
    assert!(matches!(error, StorageError::NotADirectory { .. }), "{error}");
    let error = RunDir::create(&file, &json!({})).unwrap_err();
    assert!(error.to_string().contains("found a file"), "{error}");
}

#[test]
fn a_run_is_created_only_in_an_empty_place() {
    let place = tempdir().unwrap();
    let create = |name: &str| RunDir::create(&place.path().join(name), &json!({}));
    let run = create("run").unwrap();
    assert!(matches!(create("run"), Err(StorageError::AlreadyARun { .. })));
    drop(run);
    assert!(matches!(create("run"), Err(StorageError::AlreadyARun { .. })));

    fs::create_dir(place.path().join("empty")).unwrap();
    create("empty").unwrap();

    for occupied in ["notes.txt", "journal/000000.txt", "shards/x", "manifest"] {
        let folder = place.path().join(occupied.replace('/', "-"));
        let file = folder.join(occupied);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        match RunDir::create(&folder, &json!({})) {
            Err(StorageError::NotEmpty { found, .. }) => assert_eq!(found.as_path(), Some(&*file)),
            other => panic!("{occupied}: {other:?}"),
        }
        assert!(!folder.join("lock").exists(), "a lock was created among other files");
    }
    let folder = place.path().join("locked");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("lock"), "combination 1234").unwrap();
    assert!(matches!(RunDir::create(&folder, &json!({})), Err(StorageError::NotEmpty { .. })));
    assert_eq!(fs::read_to_string(folder.join("lock")).unwrap(), "combination 1234");
    fs::write(folder.join("lock"), "1234\n").unwrap();
    RunDir::create(&folder, &json!({})).unwrap();
}

/// A run that lost its manifest is distinguished from an unrelated folder.
#[test]
fn a_run_without_its_manifest_is_reported() {
    for left in ["journal/000000.json", "shards/reach-000004-000120.shard"] {
        let place = tempdir().unwrap();
        let run = new_run(place.path());
        write_small_shard(&run);
        drop(run);
        closed_record(place.path());
        fs::remove_file(place.path().join("manifest.json")).unwrap();
        if left.starts_with("shards") {
            fs::remove_dir_all(place.path().join("journal")).unwrap();
        }
        for error in [
            RunDir::open_read_only(place.path()).unwrap_err(),
            RunDir::open_for_writing(place.path()).unwrap_err(),
            RunDir::create(place.path(), &json!({})).unwrap_err(),
        ] {
            assert!(matches!(error, StorageError::ManifestMissing { .. }), "{error}");
            assert!(error.to_string().contains("Restore manifest.json"), "{error}");
            assert!(error.to_string().contains(left), "{error}");
        }
    }
}

/// Adds one record to a run and closes it.
fn closed_record(folder: &Path) {
    RunDir::open_for_writing(folder).unwrap().commit(&json!("a record")).unwrap();
}

/// A run is readable without its last record, so only the error for that record suggests removing the file.
#[test]
fn a_damaged_last_record_may_be_removed() {
    let place = tempdir().unwrap();
    closed_run(place.path(), 3);
    let record = |n: u32| place.path().join(format!("journal/00000{n}.json"));
    for (n, is_last) in [(1, false), (2, true)] {
        let sound = fs::read(record(n)).unwrap();
        for damage in [&sound[..sound.len() / 2], b""] {
            fs::write(record(n), damage).unwrap();
            for error in [RunDir::open_read_only(place.path()), RunDir::open_for_writing(place.path())]
                .map(Result::unwrap_err)
            {
                let may_remove = error.to_string().contains("remove the file while no process writes");
                assert_eq!(may_remove, is_last, "{error}");
            }
        }
        fs::write(record(n), sound).unwrap();
    }
    fs::write(record(2), "").unwrap();
    fs::remove_file(record(2)).unwrap();
    let mut run = RunDir::open_for_writing(place.path()).unwrap();
    assert_eq!(run.records(), [json!({ "n": 0 }), json!({ "n": 1 })]);
    assert_eq!(run.commit(&json!("again")).unwrap(), 2);
}

/// Records are parsed into the caller's type, and can be taken.
#[test]
fn records_have_the_type_of_the_caller() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Count {
        n: u64,
    }
    let place = tempdir().unwrap();
    closed_run(place.path(), 2);
    let mut run = TypedRun::<Count>::open_for_writing(place.path()).unwrap();
    assert_eq!(run.share().unwrap(), 2);
    assert_eq!(run.commit(&Count { n: 7 }).unwrap(), 3);
    let taken = [(0, Count { n: 0 }), (1, Count { n: 1 }), (3, Count { n: 7 })];
    assert_eq!((run.take_records(), run.records(), run.records_before()), (taken.to_vec(), &[][..], 2));
    assert_eq!(run.commit(&Count { n: 8 }).unwrap(), 4);
    drop(run);
    assert_eq!(RunDir::open_read_only(place.path()).unwrap().records()[3], json!({ "n": 8 }));
    let error = TypedRun::<String>::open_read_only(place.path()).unwrap_err();
    assert!(
        matches!(&error, StorageError::NotUnderstood { file, .. } if file.to_string().ends_with("000000.json")),
        "{error}"
    );
}

#[test]
fn one_process_writes_while_others_read() {
    let place = tempdir().unwrap();
    let mut writer = new_run(place.path());
    match RunDir::open_for_writing(place.path()) {
        Err(error @ StorageError::Locked { pid, .. }) => {
            assert_eq!(pid, Some(std::process::id()));
            assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        }
        other => panic!("{other:?}"),
    }
    writer.commit(&json!("seen")).unwrap();
    let mut reader = RunDir::open_read_only(place.path()).unwrap();
    writer.commit(&json!("later")).unwrap();
    assert_eq!(reader.records(), [json!("seen")]);
    assert!(matches!(reader.commit(&json!(0)), Err(StorageError::ReadOnly { .. })));
    let removed = reader.remove_unreferenced_shards(&HashSet::new());
    assert!(matches!(removed, Err(StorageError::ReadOnly { .. })));
    drop(writer);
    RunDir::open_for_writing(place.path()).unwrap();
}

#[test]
fn a_gap_in_the_journal_is_damage() {
    let place = tempdir().unwrap();
    closed_run(place.path(), 4);
    fs::remove_file(place.path().join("journal/000002.json")).unwrap();
    match RunDir::open_read_only(place.path()) {
        Err(StorageError::Damaged { file, .. }) => assert!(file.to_string().ends_with("journal/000002.json")),
        other => panic!("{other:?}"),
    }
    // A missing last record cannot be distinguished from one that was never written.
    fs::remove_file(place.path().join("journal/000003.json")).unwrap();
    assert_eq!(RunDir::open_read_only(place.path()).unwrap().records().len(), 2);
}

#[test]
fn files_without_a_record_name_are_ignored_by_the_journal() {
    let place = tempdir().unwrap();
    closed_run(place.path(), 1);
    for name in ["0000001.json", "1.json", "000001.json~", "notes"] {
        fs::write(place.path().join("journal").join(name), "?").unwrap();
    }
    assert_eq!(RunDir::open_for_writing(place.path()).unwrap().records().len(), 1);
}

#[test]
fn a_record_of_another_place_or_run_is_foreign() {
    let (ours, theirs) = (tempdir().unwrap(), tempdir().unwrap());
    closed_run(ours.path(), 2);
    closed_run(theirs.path(), 2);
    let record = ours.path().join("journal/000001.json");
    let field = || match RunDir::open_read_only(ours.path()) {
        Err(StorageError::Foreign { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    fs::copy(ours.path().join("journal/000000.json"), &record).unwrap();
    assert_eq!(field(), "sequence");
    fs::copy(theirs.path().join("journal/000001.json"), &record).unwrap();
    assert_eq!(field(), "run id");
}

#[test]
fn every_flipped_byte_of_manifest_and_journal_is_detected() {
    let place = tempdir().unwrap();
    closed_run(place.path(), 2);
    for name in ["manifest.json", "journal/000000.json", "journal/000001.json"] {
        let path = place.path().join(name);
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0xff;
            fs::write(&path, bytes).unwrap();
            let error = RunDir::open_read_only(place.path()).unwrap_err();
            assert!(matches!(error, StorageError::Damaged { .. }), "byte {at} of {name}: {error}");
            fs::write(&path, &sound[..at]).unwrap();
            assert!(RunDir::open_read_only(place.path()).is_err(), "{name} cut at {at}");
        }
        fs::write(&path, sound).unwrap();
    }
    RunDir::open_read_only(place.path()).unwrap();
}

#[test]
fn a_run_of_a_newer_version_is_distinguished_from_damage() {
    let place = tempdir().unwrap();
    let body = r#"{"format_version":3,"anything":"else"}"#;
    let checksum = xxhash_rust::xxh3::xxh3_64(body.as_bytes());
    fs::write(
        place.path().join("manifest.json"),
        format!("{{\"xxh3\":\"{checksum:016x}\",\"body\":{body}}}\n"),
    )
    .unwrap();
    let error = RunDir::open_for_writing(place.path()).unwrap_err();
    assert!(matches!(error, StorageError::NewerVersion { found: 3, supported: 2, .. }), "{error}");
    assert_eq!(names(place.path()), ["manifest.json"]);
}

#[test]
fn an_existing_record_is_never_overwritten() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    let intruder = place.path().join("journal/000000.json");
    fs::write(&intruder, "not ours").unwrap();
    assert!(matches!(run.commit(&json!(1)), Err(StorageError::Conflict { .. })));
    assert!(matches!(run.commit(&json!(1)), Err(StorageError::EarlierFailure { .. })));
    assert_eq!(fs::read_to_string(&intruder).unwrap(), "not ours");
    assert_eq!(names(&place.path().join("journal")), ["000000.json"], "a temporary file was left");
}

#[test]
fn a_record_that_is_too_large_is_refused_and_the_run_stays_usable() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    let huge = Value::String("x".repeat(64 << 20));
    assert!(matches!(run.commit(&huge), Err(StorageError::TooLarge { .. })));
    assert_eq!(run.commit(&json!("small")).unwrap(), 0);
}

#[test]
fn a_reader_never_sees_a_gap_while_another_thread_commits() {
    let place = tempdir().unwrap();
    let mut writer = new_run(place.path());
    std::thread::scope(|scope| {
        scope.spawn(move || (0..100).for_each(|n| assert_eq!(writer.commit(&json!(n)).unwrap(), n)));
        let mut seen = 0;
        while seen < 100 {
            let run = RunDir::open_read_only(place.path()).unwrap();
            assert!(run.records().len() >= seen);
            seen = run.records().len();
            assert!(run.records().iter().enumerate().all(|(n, record)| *record == json!(n)));
        }
    });
}

#[test]
fn leftovers_are_removed_by_the_next_writer_only() {
    let place = tempdir().unwrap();
    closed_run(place.path(), 1);
    let shard = "shards/.tmp-reach-000004-000008.shard-1-0";
    let leftovers = [".tmp-manifest.json-1-0", "journal/.tmp-000001.json-1-0", shard];
    for leftover in leftovers {
        fs::write(place.path().join(leftover), "partial").unwrap();
    }
    RunDir::open_read_only(place.path()).unwrap();
    assert!(leftovers.iter().all(|leftover| place.path().join(leftover).exists()));
    let run = RunDir::open_for_writing(place.path()).unwrap();
    assert!(!leftovers[..2].iter().any(|leftover| place.path().join(leftover).exists()));
    // Opening alone keeps temporary shards, because cluster members may still be writing them.
    assert!(place.path().join(shard).exists());
    run.remove_unreferenced_shards(&HashSet::new()).unwrap();
    assert!(!place.path().join(shard).exists());
}

/// A coordinator that reopens the run after a failed append keeps the shards that its workers are writing.
#[test]
fn unfinished_shards_of_members_survive_a_reopening_of_the_run() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    let attempt = Attempt { opening: run.share().unwrap(), epoch: 1, member: 7 };
    let identity = common::identity(run.run_id());
    let writer = ShardWriter::create_as(&run.shards(), identity, attempt).unwrap();
    drop(run);
    let mut run = RunDir::open_for_writing(place.path()).unwrap();
    run.share().unwrap();
    let shard = writer.finish().unwrap();
    run.commit(&json!(shard)).unwrap();
    run.shards().open(&shard, &identity).unwrap();
}

/// A writer removes only the shards of earlier writers.
#[test]
fn shards_of_own_and_later_members_are_kept() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    let opening = run.share().unwrap();
    let identity = common::identity(run.run_id());
    let member =
        |opening| ShardWriter::create_as(&run.shards(), identity, Attempt { opening, epoch: 1, member: 7 });
    let _own = member(opening).unwrap();
    let _later = member(opening + 1).unwrap();
    assert_eq!(names(&place.path().join("shards")).len(), 2);
    run.remove_unreferenced_shards(&HashSet::new()).unwrap();
    assert_eq!(names(&place.path().join("shards")).len(), 2);
}

#[test]
fn only_unreferenced_shards_are_removed() {
    let place = tempdir().unwrap();
    let run = new_run(place.path());
    let kept = write_small_shard(&run).file;
    let shards = place.path().join("shards");
    fs::write(shards.join("values-000001-000002.shard"), [0; 100]).unwrap();
    // Files of other programs stay, even if their names look similar.
    for name in ["notes.txt", "notes.shard", ".tmp-notes"] {
        fs::write(shards.join(name), "mine").unwrap();
    }
    let freed = run.remove_unreferenced_shards(&HashSet::from([kept.clone()])).unwrap();
    assert_eq!(freed, 100);
    assert_eq!(names(&shards), [".tmp-notes", "notes.shard", "notes.txt", &kept]);
    assert_eq!(run.shard_files().unwrap().into_keys().collect::<Vec<_>>(), [kept]);
}

/// A file may be shorter than its record states, or missing. Only the space of the file itself is given back.
#[test]
fn a_removed_shard_gives_back_the_space_of_its_file() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    let shard = write_small_shard(&run);
    run.limit_disk(1 << 20).unwrap();
    let taken = || run.allowance().unwrap().taken_bytes();
    let before = taken();
    let longer = ShardRecord { bytes: shard.bytes + 100_000, ..shard.clone() };
    run.remove_needless_shards(std::slice::from_ref(&longer)).unwrap();
    assert_eq!(before - taken(), file_cost(shard.bytes));
    run.remove_needless_shards(&[longer]).unwrap();
    assert_eq!(before - taken(), file_cost(shard.bytes), "the file was already deleted");
}

#[test]
fn bytes_on_disk_count_all_files() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    let before = run.bytes_on_disk().unwrap();
    let record = write_small_shard(&run);
    assert_eq!(run.bytes_on_disk().unwrap(), before + record.bytes);
    run.commit(&json!(record)).unwrap();
    let journal = fs::metadata(place.path().join("journal/000000.json")).unwrap().len();
    assert_eq!(run.bytes_on_disk().unwrap(), before + record.bytes + journal);
}

/// A manifest or record that is not a file is refused without blocking the reader.
#[test]
fn special_files_are_refused_at_once() {
    let place = tempdir().unwrap();
    closed_run(place.path(), 1);
    for name in ["manifest.json", "journal/000000.json"] {
        let file = place.path().join(name);
        let sound = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let error = RunDir::open_read_only(place.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DataLoss);
        assert!(error.to_string().contains("a FIFO"), "{error}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let error = RunDir::open_read_only(place.path()).unwrap_err();
        assert!(error.to_string().contains("a device"), "{error}");
        fs::remove_file(&file).unwrap();
        fs::write(&file, sound).unwrap();
    }
}

/// Data already in a scratch file is not written again, and uses no further disk space.
#[test]
fn frames_are_spilled_to_the_disk_once() {
    let place = tempdir().unwrap();
    let mut run = new_run(place.path());
    run.limit_disk(1 << 20).unwrap();
    let frame = |lane: u64, fill: u8| {
        let key = ItemKey { layer: 4, lane, part: 0 };
        Frame::encode(&[(key, &[fill; 5000][..])], 1).unwrap()
    };
    let taken = || run.allowance().unwrap().taken_bytes();
    let (mut frames, nothing) = (vec![frame(0, 1), frame(1, 2)], taken());
    Frame::spill(&mut frames, &run.scratch()).unwrap();
    let two = taken();
    Frame::spill(&mut frames, &run.scratch()).unwrap();
    assert_eq!(taken(), two);
    assert!(two > nothing);
    frames.push(frame(2, 3));
    Frame::spill(&mut frames, &run.scratch()).unwrap();
    let read: Vec<Vec<u8>> = frames.iter().map(|frame| frame.read().unwrap()).collect();
    assert_eq!(read, [[1; 5000], [2; 5000], [3; 5000]]);
    drop(frames);
    assert_eq!(taken(), nothing);
}

#[test]
fn a_scratch_file_has_no_name_and_keeps_appended_bytes() {
    let place = tempdir().unwrap();
    let run = new_run(place.path());
    let before = names(place.path());
    let mut scratch = run.scratch().create().unwrap();
    assert_eq!(names(place.path()), before);
    assert!(scratch.map().unwrap().is_empty());
    assert_eq!(scratch.append(b"first").unwrap(), 0);
    let early = scratch.map().unwrap();
    assert_eq!(scratch.append(b"second").unwrap(), 5);
    assert_eq!(scratch.length(), 11);
    let late = scratch.map().unwrap();
    drop((scratch, run));
    assert_eq!((&*early, &*late), (&b"first"[..], &b"firstsecond"[..]));
}

#[test]
fn errors_of_the_system_keep_their_cause() {
    let place = tempdir().unwrap();
    // No file system supports names of this length.
    let error = RunDir::open_read_only(&place.path().join("x".repeat(300))).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}
