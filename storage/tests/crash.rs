//! Processes killed at every crash point.
//!
//! Each test starts this program again to run one scenario, kills it at one crash point, and inspects the folders it
//! leaves. Killing a process does not lose unsynced data. The order of the syncs protects contents against a power
//! loss; see `docs/dev/format.md`.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use common::{identity, names, new_run, shard_path, write_small_shard};
use exact2048_storage::{RunDir, ShardReader, ShardRecord, StorageError};
use serde_json::json;

const FOLDER: &str = "EXACT2048_CRASH_TEST_FOLDER";
const POINT: &str = "EXACT2048_CRASH_TEST_POINT";

/// The work of the killed processes, rather than a test.
#[test]
#[ignore = "started by the other tests"]
fn scenario() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (folder, point) = (Path::new(&folder), std::env::var(POINT).unwrap());
    let run = (!point.starts_with("manifest")).then(|| RunDir::open_for_writing(folder).unwrap());
    fail::cfg(point, "return").unwrap();
    let mut run = run.unwrap_or_else(|| new_run(folder));
    let record = write_small_shard(&run);
    run.commit(&json!(record)).unwrap();
    unreachable!("the process did not stop at the crash point");
}

/// Runs the scenario in `folder` up to the crash point.
fn crash(folder: &Path, point: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scenario", "--ignored"])
        .env(FOLDER, folder)
        .env(POINT, point)
        .output()
        .unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(6), "{point}: {}", String::from_utf8_lossy(&output.stdout));
}

/// Runs one test at a time, because a new process briefly shares the open files of this process and their locks.
fn alone() -> impl Drop {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn temps(folder: &Path) -> usize {
    names(folder).iter().filter(|name| name.starts_with(".tmp-")).count()
}

#[test]
fn an_interrupted_creation_is_completed_by_the_same_command() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    crash(&folder, "manifest.synced");
    assert_eq!(temps(&folder), 1);
    assert!(matches!(RunDir::open_read_only(&folder), Err(StorageError::NotARun { .. })));
    drop(new_run(&folder));
    assert_eq!(temps(&folder), 0);
    RunDir::open_for_writing(&folder).unwrap();
}

#[test]
fn a_run_with_a_published_manifest_is_complete() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    crash(&folder, "manifest.linked");
    assert_eq!(temps(&folder), 1);
    assert_eq!(names(&folder)[1..], ["journal", "lock", "manifest.json", "shards"]);
    let again = RunDir::create(&folder, &json!({}));
    assert!(matches!(again, Err(StorageError::AlreadyARun { .. })));
    RunDir::open_for_writing(&folder).unwrap();
    assert_eq!(temps(&folder), 0);
}

#[test]
fn the_next_writer_finds_all_or_nothing_after_any_crash() {
    let _alone = alone();
    // Crash point; numbers of temporary files in shards and in the journal; whether the shard has its final name and
    // is committed.
    let cases = [
        ("shard.before_sync", 1, 0, false, false),
        ("shard.synced", 1, 0, false, false),
        ("shard.renamed", 0, 0, true, false),
        ("shard.folder_synced", 0, 0, true, false),
        ("journal.before_sync", 0, 1, true, false),
        ("journal.synced", 0, 1, true, false),
        ("journal.linked", 0, 1, true, true),
        ("journal.folder_synced", 0, 0, true, true),
    ];
    for (point, shard_temps, journal_temps, named, committed) in cases {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let first = new_run(folder).commit(&json!("first")).unwrap();
        assert_eq!(first, 0);
        crash(folder, point);

        let (shards, journal) = (folder.join("shards"), folder.join("journal"));
        assert_eq!((temps(&shards), temps(&journal)), (shard_temps, journal_temps), "{point}");
        let seen = RunDir::open_read_only(folder).unwrap();
        assert_eq!(seen.records().len(), 1 + usize::from(committed), "{point}");
        assert_eq!(temps(&shards), shard_temps, "{point}: a reader removed files");

        let mut run = RunDir::open_for_writing(folder).unwrap();
        assert_eq!((temps(&shards), temps(&journal)), (shard_temps, 0), "{point}");
        assert_eq!(names(&shards).len() - shard_temps, usize::from(named), "{point}");
        let referenced: HashSet<String> = run.records()[1..]
            .iter()
            .map(|record| serde_json::from_value::<ShardRecord>(record.clone()).unwrap().file)
            .collect();
        let freed = run.remove_unreferenced_shards(&referenced).unwrap();
        assert_eq!(freed > 0, named && !committed, "{point}");
        assert_eq!(names(&shards).len(), usize::from(committed), "{point}");

        // After resuming, the work is repeated unless it is committed and intact.
        if !committed {
            let record = write_small_shard(&run);
            assert_eq!(run.commit(&json!(record)).unwrap(), 1, "{point}");
        }
        let record: ShardRecord = serde_json::from_value(run.records()[1].clone()).unwrap();
        let reader = ShardReader::open(&shard_path(&run, &record.file), &identity(run.run_id())).unwrap();
        assert_eq!(reader.header_checksum(), record.header_checksum, "{point}");
        reader.verify().unwrap();
    }
}
