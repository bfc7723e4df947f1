//! Helpers of all tests: running the program, reading its output, golden numbers.
#![allow(dead_code, reason = "without its features less is used")]

#[cfg(feature = "net")]
pub mod access;
#[cfg(feature = "net")]
pub mod bare_coordinator;
#[cfg(feature = "net")]
pub mod browser;
pub mod certificates;
pub mod cluster;
pub mod events;
pub mod forge;
pub mod golden;
pub mod http;
pub mod patient;
pub mod proxy;
#[cfg(feature = "net")]
pub mod query_calls;
#[cfg(feature = "net")]
pub mod script;
pub mod serving;
pub mod snapshots;
pub mod terminal;
pub mod wire;

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

/// Exit status and output of the program.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Reads the output of a process. Requires in every test that the program did not panic.
    pub fn new(output: Output) -> Self {
        let finished = Self {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: String::from_utf8(output.stdout).expect("the program printed what is no UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("the program printed what is no UTF-8"),
        };
        assert!(!finished.stderr.contains("panicked"), "the program panicked: {finished:?}");
        finished
    }

    /// Requires an exit code. A failed command must print an error on stderr.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "exit code of {self:?}");
        if code != 0 {
            assert!(!self.stderr.trim().is_empty(), "exit code {code} without a word: {self:?}");
        }
        self
    }

    /// Requires that stderr contains all of these words: options, paths, numbers. Use [`Self::prints`] for sentences.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing from: {}", self.stderr);
        }
        self
    }

    /// Requires that stderr equals section `name` in the snapshots of the calling test file.
    #[track_caller]
    pub fn prints(self, name: &str) -> Self {
        snapshots::assert_section(name, &self.stderr);
        self
    }

    /// The last line of stderr: the error of a server or worker, after its log.
    #[track_caller]
    pub fn last_line(&self) -> &str {
        self.stderr.trim_end().lines().next_back().unwrap_or_else(|| panic!("no error in {self:?}"))
    }

    /// The one JSON object on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        let lines = self.json_lines();
        assert_eq!(lines.len(), 1, "stdout is not one JSON object: {}", self.stdout);
        lines.into_iter().next().unwrap()
    }

    /// The JSON objects on stdout, one a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| match serde_json::from_str(line) {
            Ok(value @ Value::Object(_)) => value,
            other => panic!("{line:?} is no JSON object: {other:?}"),
        };
        self.stdout.lines().map(parse).collect()
    }
}

/// A command for the program with arguments. Only tests that set fail points have them.
pub fn command<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exact2048"));
    command.args(args).stdin(Stdio::null()).env_remove("FAILPOINTS");
    command
}

/// Runs the program to its end.
pub fn exact2048<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Finished {
    Finished::new(command(args).output().unwrap())
}

/// Runs the program to its end, with a text on stdin.
pub fn exact2048_reading<S: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: String,
) -> Finished {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Writes in a separate thread, because the program may block on its output before it reads on. It may also end early.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Finished::new(output)
}

/// The sizes in a text, in order and without spaces, for example `50.6MiB`.
pub fn sizes(text: &str) -> Vec<String> {
    let size = regex::Regex::new(r"[0-9][0-9.]* ?([KMGT]i|[kMGT])?B(?-u:\b)").unwrap();
    size.find_iter(text).map(|found| found.as_str().replace(' ', "")).collect()
}

/// The least memory for a job with undivided lanes.
pub fn least_memory(options: &str) -> String {
    needed_memory(&format!("{options} --sectors 1"))
}

/// The least memory for a job. The error of a solve with too little memory names it second.
pub fn needed_memory(options: &str) -> String {
    let place = Place::new();
    let refused = try_solve(&place.join("run"), &format!("{options} --memory 1KiB")).exits(2);
    sizes(&refused.stderr).into_iter().nth(1).unwrap_or_else(|| panic!("{}", refused.stderr))
}

/// The arguments of `solve --json` for a run directory. Spaces separate `options`.
pub fn solve_args(run: &Path, options: &str) -> Vec<String> {
    let mut args = vec!["solve".to_owned(), "--json".to_owned(), "--run".to_owned()];
    args.push(run.to_str().unwrap().to_owned());
    args.extend(options.split_whitespace().map(str::to_owned));
    args
}

/// Runs `solve --json` to its end, with any exit code.
pub fn try_solve(run: &Path, options: &str) -> Finished {
    exact2048(solve_args(run, options))
}

/// Runs `solve --json`, which must succeed, and returns its summary.
#[track_caller]
pub fn solve(run: &Path, options: &str) -> Value {
    try_solve(run, options).exits(0).json()
}

/// Runs another subcommand on a run directory.
pub fn on_run(run: &Path, subcommand: &str, options: &[&str]) -> Finished {
    exact2048([&[subcommand, "--run", run.to_str().unwrap()], options].concat())
}

/// The answers to many boards, in the order of the boards.
#[track_caller]
pub fn query(run: &Path, boards: &[String]) -> Vec<Value> {
    let args = ["query", "--run", run.to_str().unwrap(), "--json", "-"];
    let answers = exact2048_reading(args, boards.join("\n") + "\n").exits(0).json_lines();
    assert_eq!(answers.len(), boards.len());
    answers
}

/// States and afterstates of each layer, as `layers --json` prints them.
#[track_caller]
pub fn layers(run: &Path) -> Vec<(u64, u64, u64)> {
    let lines = on_run(run, "layers", &["--json"]).exits(0).json_lines();
    let line = |v: &Value| (whole(&v["layer"]), whole(&v["states"]), whole(&v["afterstates"]));
    lines.iter().map(line).collect()
}

/// A folder for runs. It is deleted when the value is dropped.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A solved run.
pub struct Solved {
    place: Place,
    pub summary: Value,
}

impl Solved {
    #[track_caller]
    pub fn new(options: &str) -> Self {
        let place = Place::new();
        let summary = solve(&place.join("run"), options);
        Self { place, summary }
    }

    pub fn run(&self) -> PathBuf {
        self.place.join("run")
    }

    pub fn fingerprint(&self) -> &str {
        text(&self.summary["fingerprint"])
    }
}

/// A JSON number that is a non-negative integer.
#[track_caller]
pub fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// A JSON number.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A JSON text.
#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// Requires that a value equals the expected value, up to a bound.
#[track_caller]
pub fn close(found: f64, expected: f64, bound: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(off <= bound, "{what}: found {found}, expected {expected} within {bound:e}, off by {off:e}");
}

/// The files of a folder, sorted by name; empty if the folder does not exist.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A copy of the golden run of a format.
pub fn format_run(place: &Place, format: u32) -> PathBuf {
    copy_format_run(format, &place.join("finished"))
}

/// A copy of the golden run of a format, as if its process ended before it committed the values.
pub fn format_run_unfinished(place: &Place, format: u32) -> PathBuf {
    let run = copy_format_run(format, &place.join("unfinished"));
    let values = files(&run.join("shards")).pop().unwrap();
    let commit = files(&run.join("journal")).pop().unwrap();
    [commit, values].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    run
}

fn copy_format_run(format: u32, to: &Path) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/data/format-{format}/2x2"));
    for folder in ["", "journal", "shards"] {
        std::fs::create_dir_all(to.join(folder)).unwrap();
        for file in files(&golden.join(folder)).iter().filter(|path| path.is_file()) {
            std::fs::copy(file, to.join(folder).join(file.file_name().unwrap())).unwrap();
        }
    }
    to.to_path_buf()
}

/// Makes a FIFO. A reader that opens a FIFO waits for a writer.
pub fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// All files of a run with their contents.
pub fn content_of(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let all = ["", "journal", "shards"].into_iter().flat_map(|folder| files(&run.join(folder)));
    let all = all.filter(|path| path.is_file());
    all.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Sends a signal, by its name, to a process; `false` if the process has ended. Uses the shell, because small systems have
/// no program `kill`.
pub fn signal(process: u32, name: &str) -> bool {
    let mut shell = std::process::Command::new("sh");
    let kill = format!("kill -s {name} {process} 2>/dev/null");
    shell.args(["-c", &kill]).status().unwrap().success()
}

/// Whether this machine has the program `openssl`. It must exist where all checks are required.
pub fn has_openssl() -> bool {
    let mut openssl = std::process::Command::new("openssl");
    let has = openssl.arg("version").stdout(std::process::Stdio::null()).status().is_ok();
    assert!(has || std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "this test needs openssl");
    if !has {
        eprintln!("skipped: it needs openssl");
    }
    has
}

/// The published shards of a run.
pub fn shards(run: &Path) -> Vec<PathBuf> {
    let mut shards = files(&run.join("shards"));
    shards.retain(|path| path.extension().is_some_and(|extension| extension == "shard"));
    shards
}

/// The committed shards, according to the last records of the journal.
pub fn committed_now(run: &Path) -> Vec<PathBuf> {
    let run = exact2048_solution::Run::open(run).unwrap();
    let shards = run.catalog().shards();
    shards.iter().map(|shard| shard.place.as_path().unwrap().to_path_buf()).collect()
}

/// An inode and its last modification. A rewritten file can get the inode of the removed one.
pub type Written = (u64, SystemTime);

/// The shards that the journal names. A rewritten shard has another [`Written`].
pub fn committed(run: &Path) -> Vec<(PathBuf, Written)> {
    committed_as(run, "")
}

/// The shards of [`committed`] whose file names begin with `prefix`.
pub fn committed_as(run: &Path, prefix: &str) -> Vec<(PathBuf, Written)> {
    let mut named: Vec<(Value, PathBuf)> = Vec::new();
    let range = |commit: &Value| ["phase", "first", "last"].map(|field| commit[field].clone());
    for record in files(&run.join("journal")) {
        if record.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
        let record = &record["body"]["record"];
        if record["removed"].is_array() {
            // This record names layers, but no shards.
            continue;
        }
        if record["retracted"].is_object() {
            named.retain(|(commit, _)| range(commit) != range(&record["retracted"]));
            continue;
        }
        let files = record["shards"].as_array().expect("a record with shards").iter();
        // A checkpoint counts only until the next range is committed.
        for file in files.map(|shard| text(&shard["file"])).filter(|file| file.starts_with(prefix)) {
            named.push((record.clone(), run.join("shards").join(file)));
        }
    }
    let written = |(_, path): (Value, PathBuf)| {
        let metadata = std::fs::metadata(&path);
        let metadata = metadata.unwrap_or_else(|e| panic!("{} is committed: {e}", path.display()));
        (path, (metadata.ino(), metadata.modified().unwrap()))
    };
    named.into_iter().map(written).collect()
}
