//! `--memory` is a cap: what is resident beside the pages of files never exceeds it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use common::{Finished, Place, Solved, command, least_memory, solve_args};

/// Solves, and gives the summary with the most anonymous memory that was resident, in KiB. Pages of mapped files
/// are not anonymous: they are clean, and the kernel drops them when it needs the memory.
fn solve_watched(options: &str) -> (serde_json::Value, u64) {
    let place = Place::new();
    let mut command = command(solve_args(&place.join("run"), options));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watcher = std::thread::spawn(move || {
        let (mut most, mut samples) = (0, 0);
        // A process that ended has no such line, even before it is waited for.
        while let Some(kib) = anonymous_kib(&fs::read_to_string(&status).unwrap_or_default()) {
            (most, samples) = (kib.max(most), samples + 1);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(samples > 20, "too short to be watched");
        most
    });
    let finished = Finished::new(child.wait_with_output().unwrap()).exits(0);
    (finished.json(), watcher.join().unwrap())
}

fn anonymous_kib(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The result of a job in the least memory that it accepts is that in plenty, and the limit was kept.
fn check(job: &str, field: &str) {
    let plenty = Solved::new(&format!("{job} --memory 8GiB"));
    let least = least_memory(job);
    let (summary, most_kib) = solve_watched(&format!("{job} --memory {least}"));
    assert_eq!(summary[field], plenty.summary[field]);
    let limit: u64 = least.strip_suffix("MiB").unwrap().parse().unwrap();
    assert!(most_kib <= limit << 10, "{job} held {most_kib} KiB with --memory {least}");
}

#[test]
fn a_solved_board_stays_within_the_least_memory() {
    check("--board 3x3 --threads 2", "fingerprint");
}

#[test]
fn wide_values_stay_within_the_least_memory() {
    check("--board 4x2 --precision 64 --threads 5", "fingerprint");
}

/// Its tables take 900 MiB where there is plenty, most of them transitions.
#[test]
fn a_board_with_large_tables_stays_within_the_least_memory() {
    check("--board 4x3 --until-layer 120 --threads 2", "states");
}
