//! Resident memory, without the pages of files, never exceeds `--memory`.

use crate::common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Finished, Place, Solved, command, least_memory, needed_memory, on_run, solve_args};

/// Solves a job, and returns the summary with the largest resident anonymous memory, in KiB.
///
/// Pages of mapped files are not anonymous. They are clean, and the kernel drops them when it needs memory.
fn solve_watched(options: &str) -> (serde_json::Value, u64) {
    let place = Place::new();
    let mut command = command(solve_args(&place.join("run"), options));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watcher = std::thread::spawn(move || {
        let (mut most, mut samples) = (0, 0);
        // An ended process has no such line, even before its parent waits for it.
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

/// Requires that a job has the same result with the least accepted memory as with plenty, and stays within the limit.
fn check(job: &str, field: &str) {
    let plenty = Solved::new(&format!("{job} --memory 8GiB"));
    let least = least_memory(job);
    let (summary, most_kib) = solve_watched(&format!("{job} --memory {least}"));
    assert_eq!(summary[field], plenty.summary[field]);
    let limit: f64 = least.strip_suffix("MiB").unwrap().parse().unwrap();
    assert!(most_kib as f64 <= limit * 1024.0, "{job} held {most_kib} KiB with --memory {least}");
}

#[test]
fn a_solved_board_stays_within_the_least_memory() {
    check("--board 3x3 --threads 2", "fingerprint");
}

#[test]
fn wide_values_stay_within_the_least_memory() {
    check("--board 4x2 --precision 64 --threads 5", "fingerprint");
}

/// With less memory than the largest block needs, lanes are divided into sectors. The results are the same.
#[test]
fn lanes_are_divided_if_memory_is_small() {
    let job = "--board 3x3 --threads 2";
    let mib = |text: &str| text.strip_suffix("MiB").unwrap().parse::<f64>().unwrap();
    let (whole, divided) = (least_memory(job), needed_memory(job));
    assert!(mib(&divided) < mib(&whole), "{divided} {whole}");
    let plenty = Solved::new(job);
    let (summary, most_kib) = solve_watched(&format!("{job} --memory {divided}"));
    assert_eq!(summary["fingerprint"], plenty.fingerprint());
    assert!(most_kib as f64 <= mib(&divided) * 1024.0, "{most_kib} KiB with --memory {divided}");
    let sectors = |memory: &str| {
        let solved = Solved::new(&format!("{job} --memory {memory}"));
        on_run(&solved.run(), "info", &["--json"]).exits(0).json()["params"]["sectors"].clone()
    };
    assert!(sectors(&divided).as_u64() > Some(1) && sectors(&whole).is_null());
}

/// With plenty of memory, the tables of this job take 900 MiB, mostly for transitions.
#[test]
fn a_board_with_large_tables_stays_within_the_least_memory() {
    check("--board 4x3 --until-layer 120 --threads 2", "states");
}

/// A control group with a memory limit, inside the group of this process.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let line = groups.lines().find(|line| line.contains(":memory:") || line.starts_with("0::"))?;
        let path = line.splitn(3, ':').nth(2)?.trim_start_matches('/');
        let (mount, limit) = match line.contains(":memory:") {
            true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            false => ("/sys/fs/cgroup", "memory.max"),
        };
        let group = PathBuf::from(mount).join(path).join(format!("exact2048-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let group = Self(group);
        fs::write(group.0.join(limit), bytes.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // All processes of the group have ended.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The program uses half of the limit of a control group, at any depth of the tree. 50 MB are too little for 3x3. The
/// program refuses the job instead of being killed.
#[test]
fn the_limit_of_a_nested_control_group_is_seen() {
    let Some(group) = Group::new(100_000_000) else {
        println!("skipped: this process cannot make control groups");
        return;
    };
    let place = Place::new();
    let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
    let mut solve = Command::new("sh");
    solve.args(["-c", enter]).arg(&group.0).arg(env!("CARGO_BIN_EXE_exact2048"));
    solve.args(solve_args(&place.join("run"), "--board 3x3 --threads 2")).stdin(Stdio::null());
    let finished = Finished::new(solve.output().unwrap()).exits(2);
    assert!(finished.stderr.contains("--memory 47.7 MiB"), "{finished:?}");
}
