//! Temporary files of processes that cannot know of each other: of other containers, and of earlier lives.

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

/// Not a test of its own: what the processes do. Each begins a shard of the same range, and finishes it when all have.
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
        assert!(begun.elapsed() < Duration::from_secs(120), "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The scenario as process 1 of a namespace of its own.
fn contained(folder: &Path, member: u64) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "scenario", "--ignored"]).stdout(Stdio::null());
    command.env(FOLDER, folder).env(MEMBER, member.to_string()).spawn().unwrap()
}

/// Whether this process may make namespaces. A test that is skipped says so, or fails where it must not be.
fn may_contain() -> bool {
    let made = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    let may = made.is_ok_and(|made| made.success());
    assert!(may || std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "no process namespace is to be had");
    if !may {
        eprintln!("skipped: no process namespace is to be had here");
    }
    may
}

/// Containers that share a volume: every one of them is process 1.
#[test]
fn processes_of_the_same_number_write_beside_each_other() {
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

/// A container that was killed and starts again has the number that it had before, and its counters begin anew.
#[test]
fn a_killed_process_leaves_nothing_that_its_successor_stumbles_over() {
    if !may_contain() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    new_run(place.path()).share().unwrap();
    let mut killed = contained(place.path(), 9);
    in_time(|| names(place.path()).iter().any(|name| name.starts_with("begun-")));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(names(&place.path().join("shards")).len(), 1, "what it was writing");
    fs::write(place.path().join("go"), "").unwrap();
    assert!(contained(place.path(), 9).wait().unwrap().success());
}

/// The names that earlier versions gave to downloads, copies and shards, left by an earlier life of a process of
/// this number.
#[test]
fn left_over_files_are_in_nobodys_way() {
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

/// What a process that ended left in a cache goes soon, what one is writing stays, however long it takes.
#[test]
fn a_cache_loses_what_nobody_writes_any_more() {
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
