//! Texts of the program, compared with the files of `tests/snapshots`.
//!
//! `SNAPSHOTS=overwrite cargo test --workspace --test program` accepts the current texts of the program.

use std::collections::BTreeMap;
use std::fs;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use snapbox::data::DataFormat;
use snapbox::{Assert, Data, Redactions};

use super::{Finished, files};

/// Start of the line that names a section of a snapshot file.
const SECTION: &str = "## ";

/// Parts of texts that differ between two runs of a test, and their names in snapshots.
static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let folder = regex::escape(std::env::temp_dir().to_str().unwrap());
    [
        (format!("{folder}/\\.tmp[A-Za-z0-9]+"), "[PLACE]"),
        (r"(?P<host>127\.0\.0\.1|localhost):[3-6][0-9]{4}".to_owned(), "$host:[PORT]"),
        (r"process [0-9]+( on [^ ;:,)]+)?".to_owned(), "process [PID]"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z".to_owned(), "[TIME]"),
        (r"[0-9][0-9.]* (ms|s|min|h)(?-u:\b)".to_owned(), "[DURATION]"),
        (r"[0-9]+\.[0-9]+(µs|ms|s)(?-u:\b)".to_owned(), "[DURATION]"),
        // A loaded machine makes fewer of them in the same time.
        (r"(?-u:\b)[0-9]+ tries(?-u:\b)".to_owned(), "[COUNT] tries"),
        (r"[0-9][0-9.]* ([KMGT]i|[kMGT])?B(?-u:\b)".to_owned(), "[SIZE]"),
        (r"[0-9]+ (?P<kind>(other |more )?bytes)".to_owned(), "[N] $kind"),
        (r"checksum: [0-9]+".to_owned(), "checksum: [HASH]"),
        (r"(?-u:\b)([0-9a-f]{16}|[0-9a-f]{32})(?-u:\b)".to_owned(), "[HASH]"),
    ]
    .into_iter()
    .map(|(pattern, name)| (Regex::new(&pattern).unwrap(), name))
    .collect()
});

/// Replaces the parts of a text that differ between two runs of a test.
pub fn normalised(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, name) in CHANGING.iter() {
        text = pattern.replace_all(&text, *name).into_owned();
    }
    text
}

/// Requires that a text equals section `name` in the snapshots of the calling test file.
///
/// All sections of a test file are in one snapshot file, so a reworded sentence changes one file. A section that two
/// tests use has one text: overwriting it with another one would hide a failure of the first test.
#[track_caller]
pub fn assert_section(name: &str, text: &str) {
    static SEEN: Mutex<BTreeMap<(PathBuf, String), String>> = Mutex::new(BTreeMap::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let test = Path::new(Location::caller().file()).file_stem().unwrap();
    let file = folder().join(test).with_extension("txt");
    let before = fs::read_to_string(&file).unwrap_or_default();
    let mut sections: BTreeMap<&str, &str> = before
        .split(&format!("\n{SECTION}"))
        .filter_map(|section| section.trim_start_matches(SECTION).split_once('\n'))
        .collect();
    let text = normalised(text);
    let first = seen.entry((file.clone(), name.to_owned())).or_insert_with(|| text.clone());
    assert_eq!(*first, text, "two texts of section {name}: give each its own section");
    sections.insert(name, &text);
    let sections: Vec<String> =
        sections.iter().map(|(name, text)| format!("{SECTION}{name}\n{}\n", text.trim_end())).collect();
    assert_file(&file, sections.join("\n"));
}

/// Requires that the commands of a transcript, run by a shell in `place`, print what the transcript says.
///
/// A transcript has lines `$ COMMAND`. After each such line follow the command's normalised output and a line `? CODE`.
/// Lines that start with `#` are comments.
#[track_caller]
pub fn assert_transcript(name: &str, place: &Path) {
    let file = folder().join(name).with_extension("txt");
    let before = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut now = String::new();
    for line in before.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let finished = by_shell(command, place);
            let code = finished.code.expect("an exit code");
            let output = normalised(&(finished.stdout + &finished.stderr));
            let output = output.trim_end();
            let end = if output.is_empty() { "" } else { "\n" };
            now += &format!("{line}\n{output}{end}? {code}\n\n");
        } else if line.starts_with('#') {
            now += &format!("{line}\n");
        }
    }
    assert!(now.contains("$ exact2048"), "{} has no commands", file.display());
    assert_file(&file, now);
}

/// Requires that all commands of a transcript exit with code 2, print the expected text, and leave no files.
#[track_caller]
pub fn assert_usage(name: &str) {
    let place = super::Place::new();
    assert_transcript(&format!("usage/{name}"), place.path());
    assert!(files(place.path()).is_empty(), "a refused command left {:?}", files(place.path()));
    let transcript = fs::read_to_string(folder().join("usage").join(name).with_extension("txt")).unwrap();
    let codes = transcript.lines().filter_map(|line| line.strip_prefix("? "));
    assert!(codes.clone().all(|code| code == "2"), "{:?}", codes.collect::<Vec<_>>());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/snapshots")
}

/// Runs a line of a transcript. In the line, `exact2048` is the program under test.
fn by_shell(line: &str, place: &Path) -> Finished {
    let program = Path::new(env!("CARGO_BIN_EXE_exact2048")).parent().unwrap();
    let path = std::env::join_paths(
        [program.to_path_buf()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(place).stdin(Stdio::null()).env("PATH", path.unwrap());
    for name in ["COLUMNS", "FAILPOINTS"] {
        shell.env_remove(name);
    }
    Finished::new(shell.output().unwrap())
}

#[track_caller]
fn assert_file(file: &Path, text: String) {
    let compare = Assert::new().redact_with(Redactions::new()).normalize_paths(false);
    let compare = compare.action_env(snapbox::assert::DEFAULT_ACTION_ENV);
    compare.eq(text, Data::read_from(file, Some(DataFormat::Text)));
}
