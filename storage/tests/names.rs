//! Temporary files of processes that do not know each other, because they run in other containers or ran before a
//! restart.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;
#[path = "common/faulty.rs"]
mod faulty;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use common::{frame, identity, key, names, new_run, write_small_shard};
use exact2048_storage::{Attempt, Location, RunDir, ShardWriter, StoreSettings};
use faulty::Faulty;
use serde_json::json;

const FOLDER: &str = "EXACT2048_NAMES_TEST_FOLDER";
const MEMBER: &str = "EXACT2048_NAMES_TEST_MEMBER";

/// The work of the processes, rather than a test. Each starts a shard of the same range and finishes it after all
/// have started.
#[test]
#[ignore = "started by the other tests"]
fn scenario() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (folder, member): (PathBuf, u64) = (folder.into(), std::env::var(MEMBER).unwrap().parse().unwrap());
    let run = RunDir::open_read_only(&folder).unwrap();
    let attempt = Attempt { opening: 0, epoch: 1, member };
    let mut writer = ShardWriter::create_as(&run.shards(), identity(run.run_id()), attempt).unwrap();
    fs::write(folder.join(format!("begun-{member}-as-{}", std::process::id())), "").unwrap();
    in_time(|| folder.join("go").exists());
    writer.push(frame(&[(key(4, member, 0), b"raw bytes")])).unwrap();
    let record = writer.finish().unwrap();
    run.shards().open(&record, &identity(run.run_id())).unwrap().verify().unwrap();
}

fn in_time(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(120), "the wait timed out");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts the scenario as process 1 of a new namespace.
fn contained(folder: &Path, member: u64) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "scenario", "--ignored"]).stdout(Stdio::null());
    command.env(FOLDER, folder).env(MEMBER, member.to_string()).spawn().unwrap()
}

/// Returns whether this process may create namespaces. If not, the test reports that it is skipped, or fails where
/// namespaces are required.
fn may_contain() -> bool {
    let made = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    let may = made.is_ok_and(|made| made.success());
    assert!(may || std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "cannot create a process namespace");
    if !may {
        eprintln!("skipped: cannot create a process namespace");
    }
    may
}

/// In containers that share a volume, every process has id 1.
#[test]
fn processes_with_the_same_id_can_write_at_the_same_time() {
    if !may_contain() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    new_run(place.path()).share().unwrap();
    let mut members: Vec<Child> = (1..4).map(|member| contained(place.path(), member)).collect();
    let begun = |name: &String| name.starts_with("begun-");
    in_time(|| {
        let ended = members.iter_mut().any(|member| member.try_wait().unwrap().is_some());
        assert!(!ended, "a member ended early");
        names(place.path()).iter().filter(|name| begun(name)).count() == 3
    });
    let as_one = names(place.path()).iter().filter(|name| begun(name) && name.ends_with("-as-1")).count();
    assert_eq!(as_one, 3, "each is process 1 of its namespace");
    fs::write(place.path().join("go"), "").unwrap();
    for member in &mut members {
        assert!(member.wait().unwrap().success());
    }
    assert_eq!(names(&place.path().join("shards")).len(), 3);
}

/// A container that restarts after a kill has the same process id, and its counters start again.
#[test]
fn a_killed_process_does_not_obstruct_its_successor() {
    if !may_contain() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    new_run(place.path()).share().unwrap();
    let mut killed = contained(place.path(), 9);
    in_time(|| names(place.path()).iter().any(|name| name.starts_with("begun-")));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(names(&place.path().join("shards")).len(), 1, "its unfinished shard");
    fs::write(place.path().join("go"), "").unwrap();
    assert!(contained(place.path(), 9).wait().unwrap().success());
}

/// Earlier versions named downloads, copies and shards by process id. This process finds such leftovers of the same
/// id.
#[test]
fn leftover_files_obstruct_no_process() {
    let (store, local) = (Faulty::new(), tempfile::tempdir().unwrap());
    let settings =
        StoreSettings { cache_folder: Some(local.path().to_path_buf()), ..StoreSettings::default() };
    let location = Location::objects(store, "s3://bucket/run", "run", &settings).unwrap();
    for name in ["download", "copy", "inspect", "scratch", "reach-000004-000120.shard"] {
        for number in 0..100 {
            let path = local.path().join(format!(".tmp-{name}-{}-{number}", std::process::id()));
            fs::write(path, "half").unwrap();
        }
    }
    let run = RunDir::create(&location, &json!({})).unwrap();
    let shard = write_small_shard(&run);
    run.scratch().create().unwrap();
    for name in names(local.path()).iter().filter(|name| !name.starts_with(".tmp-")) {
        fs::remove_file(local.path().join(name)).unwrap();
    }
    run.shards().open(&shard, &identity(run.run_id())).unwrap().verify().unwrap();
}

/// Abandoned temporary files of a cache are removed; files still being written stay, regardless of their age.
#[test]
fn a_cache_loses_only_abandoned_files() {
    let (store, local) = (Faulty::new(), tempfile::tempdir().unwrap());
    let settings =
        StoreSettings { cache_folder: Some(local.path().to_path_buf()), ..StoreSettings::default() };
    let location = Location::objects(store, "s3://bucket/run", "run", &settings).unwrap();
    let run = RunDir::create(&location, &json!({})).unwrap();
    let writer = ShardWriter::create(&run, identity(run.run_id())).unwrap();
    fs::write(local.path().join(format!(".tmp-download-{:032x}", 1)), "half").unwrap();
    for name in names(local.path()) {
        let file = fs::File::options().append(true).open(local.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    }
    fs::write(local.path().join(format!(".tmp-download-{:032x}", 2)), "half").unwrap();
    RunDir::open_read_only(&location).unwrap();
    let left = names(local.path());
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().any(|name| name.contains("reach-")) && left.iter().any(|name| name.ends_with("02")));
    writer.finish().unwrap();
}
