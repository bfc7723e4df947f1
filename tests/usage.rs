//! Wrong usage: exit code 2, an error that names the option, and no files. The program never panics.

use crate::common;

use std::fs;
use std::path::Path;

use common::snapshots::{assert_transcript, assert_usage};
use common::{
    Finished, Place, Solved, command, exact2048, exact2048_reading, files, layers, on_run, sizes, solve,
    text, try_solve, whole,
};
use exact2048_storage::RunDir;

/// Requires that the program refuses options as wrong usage, with an empty stdout.
#[track_caller]
fn refused(options: &str, words: &[&str]) {
    let place = Place::new();
    let finished = try_solve(&place.join("run"), options).exits(2).says(words);
    assert!(finished.stdout.is_empty(), "{finished:?}");
    assert!(files(place.path()).is_empty(), "{options}: a refused command left a run directory");
}

#[test]
fn invalid_boards() {
    for board in ["", "3", "3x", "x3", "axb", "3x3x3", "3*3", "-3x3", "3.0x3", "99999999999999999999x3"] {
        let place = Place::new();
        let run = place.join("run");
        let args = ["solve", "--json", "--run", run.to_str().unwrap(), &format!("--board={board}")];
        exact2048(args).exits(2).says(&["--board"]);
        assert!(!run.exists());
    }
}

#[test]
fn boards_out_of_range() {
    for board in ["0x0", "0x3", "1x1", "9x1", "1x9", "4x5", "5x4", "8x8", "1000x1000"] {
        refused(&format!("--board {board}"), &["--board", board]);
    }
}

#[test]
fn transcripts_of_wrong_usage() {
    for name in ["commands", "combo", "solve", "systems"] {
        assert_usage(name);
    }
}

#[cfg(feature = "net")]
#[test]
fn transcripts_of_wrong_usage_of_servers_and_clients() {
    assert_usage("net");
}

/// Checks transcripts with `run`, a solved run of 2x2, and `enumerated`, a run of 2x2 without values.
#[cfg(all(feature = "net", feature = "export"))]
#[test]
fn transcripts_on_runs() {
    for name in ["evaluate", "export", "query", "report", "serve", "verify"] {
        let place = Place::new();
        solve(&place.join("run"), "--board 2x2");
        solve(&place.join("enumerated"), "--board 2x2 --until-layer 20");
        assert_transcript(&format!("runs/{name}"), place.path());
        let left: Vec<_> = files(place.path()).into_iter().filter(|path| path.is_file()).collect();
        assert!(left.is_empty(), "a refused command left {left:?}");
    }
}

#[cfg(all(feature = "net", feature = "export"))]
#[test]
fn transcript_of_help() {
    assert_transcript("help", Place::new().path());
}

/// An unused section could have a wrong text unnoticed.
#[test]
fn all_sections_of_snapshots_are_used() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    for file in files(&tests.join("snapshots")).iter().filter(|file| file.is_file()) {
        let test = tests.join(file.file_stem().unwrap()).with_extension("rs");
        let (Ok(test), text) = (fs::read_to_string(test), fs::read_to_string(file).unwrap()) else {
            continue;
        };
        for name in text.lines().filter_map(|line| line.strip_prefix("## ")) {
            assert!(test.contains(&format!("\"{name}\"")), "{} has an unused {name:?}", file.display());
        }
    }
}

#[test]
fn invalid_objectives() {
    for objective in [
        "",
        "Score",
        "reach",
        "reach:",
        "reach:0",
        "reach:1",
        "reach:2",
        "reach:4",
        "reach:7",
        "reach:65536",
        "reach:-8",
        "reach:x",
        "reach:8x",
        "reach:18446744073709551616",
        "max",
    ] {
        let place = Place::new();
        let run = place.join("run");
        let objective = format!("--objective={objective}");
        exact2048(["solve", "--run", run.to_str().unwrap(), "--board", "2x2", &objective])
            .exits(2)
            .says(&["objective", "reach:TILE"]);
        assert!(!run.exists());
    }
}

#[test]
fn invalid_spawn_probabilities() {
    for spawn4 in [
        "",
        "-0.1",
        "1.1",
        "2",
        "1/0",
        "3/2",
        "nan",
        "NaN",
        "inf",
        "1e-1",
        "0,1",
        "1/65537",
        "0.12345678",
        "1/",
        "/2",
        "one",
        "0x1",
    ] {
        let place = Place::new();
        let run = place.join("run");
        let spawn4 = format!("--spawn4={spawn4}");
        exact2048(["solve", "--run", run.to_str().unwrap(), "--board", "2x2", &spawn4])
            .exits(2)
            .says(&["spawn4"]);
        assert!(!run.exists());
    }
}

#[test]
fn spellings_of_a_probability_are_one_job() {
    let solved = Solved::new("--board 2x2 --spawn4 0.25");
    assert_eq!(text(&solved.summary["spawn4"]), "1/4");
    for same in ["1/4", ".25", "0.250", "2/8"] {
        let again = solve(&solved.run(), &format!("--board 2x2 --spawn4 {same}"));
        assert_eq!(again["fingerprint"], solved.summary["fingerprint"]);
    }
}

#[test]
fn invalid_layers_to_stop_at() {
    for layer in ["0", "2", "3", "5", "61", "4294967295"] {
        refused(&format!("--board 2x2 --until-layer {layer}"), &["--until-layer", layer]);
    }
    for layer in ["x", "4.0", "4294967296"] {
        refused(&format!("--board 2x2 --until-layer {layer}"), &["--until-layer"]);
    }
}

#[test]
fn numbers_out_of_range() {
    for options in ["--threads 0", "--threads 1025", "--threads x", "--threads=-1"] {
        refused(&format!("--board 2x2 {options}"), &["--threads"]);
    }
    // A negative number is a value, not an option.
    for options in ["--threads -3", "--spawn4 -1", "--until-layer -4", "--memory -1"] {
        refused(&format!("--board 2x2 {options}"), &[options.split(' ').next().unwrap(), "'-"]);
    }
    for options in ["--precision 16", "--precision x", "--precision 0"] {
        refused(&format!("--board 2x2 {options}"), &["--precision"]);
    }
    for options in ["--memory x", "--memory 3GiBs", "--memory=-1"] {
        refused(&format!("--board 2x2 {options}"), &["--memory"]);
    }
    for options in ["--large 0", "--large 2", "--large 7", "--large 255"] {
        refused(&format!("--board 2x2 {options}"), &["3 to 6"]);
    }
    refused("--board 2x2 --large 256", &["--large"]);
}

#[test]
fn unknown_options_and_help() {
    for subcommand in ["solve", "query", "layers", "verify", "info", "inspect"] {
        exact2048([subcommand, "--no-such-option"]).exits(2);
        let help = exact2048([subcommand, "--help"]).exits(0);
        assert!(help.stdout.contains("Usage"));
        assert!(!help.stdout.contains("--large"), "a hidden option is shown");
    }
    assert!(exact2048(["--version"]).exits(0).stdout.starts_with("exact2048 "));
}

/// The error names the least memory, and the job runs with exactly that memory.
#[test]
fn too_little_memory() {
    for (board, threads) in [("2x2", 1), ("3x2", 3), ("4x2", 2)] {
        let options = format!("--board {board} --threads {threads}");
        refused(&format!("{options} --memory 1"), &["--memory", board]);
        let place = Place::new();
        let refused = try_solve(&place.join("run"), &format!("{options} --memory 1MiB")).exits(2);
        let refused = refused.says(&["--memory 1.0 MiB", &format!("{threads} thread")]);
        let least = &sizes(&refused.stderr)[1];
        let summary = solve(&place.join("enough"), &format!("{options} --memory {least}"));
        assert_eq!(summary["phase"], "solved");
    }
}

#[test]
fn a_directory_that_holds_another_job() {
    let solved = Solved::new("--board 2x2 --objective reach:16 --spawn4 0.2");
    let before = layers(&solved.run());
    for (field, held, options) in [
        ("board", "2x2", "--board 3x2 --objective reach:16 --spawn4 0.2"),
        ("objective", "reach:16", "--board 2x2 --spawn4 0.2"),
        ("objective", "reach:16", "--board 2x2 --objective reach:32 --spawn4 0.2"),
        ("spawn4", "1/5", "--board 2x2 --objective reach:16"),
        ("precision", "32", "--board 2x2 --objective reach:16 --spawn4 0.2 --precision 64"),
        ("until-layer", "none", "--board 2x2 --objective reach:16 --spawn4 0.2 --until-layer 8"),
        ("discount", "1/1", "--board 2x2 --objective reach:16 --spawn4 0.2 --discount 0.95"),
        ("spawner", "random", "--board 2x2 --objective reach:16 --spawn4 0.2 --spawner worst"),
    ] {
        let finished = try_solve(&solved.run(), options).exits(2).says(&[field, held]);
        assert!(finished.stdout.is_empty());
    }
    assert_eq!(layers(&solved.run()), before);
}

/// `--large` changes the speed but not the results, so a run resumes with any value.
#[test]
fn the_split_is_no_part_of_the_job() {
    let solved = Solved::new("--board 3x2 --large 3");
    let again = solve(&solved.run(), "--board 3x2 --large 5");
    assert_eq!(again["fingerprint"], solved.summary["fingerprint"]);
}

#[test]
fn directories_without_a_run() {
    let place = Place::new();
    let (missing, empty, other, file) =
        (place.join("missing"), place.join("empty"), place.join("other"), place.join("file"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("holiday.jpg"), "not ours").unwrap();
    fs::write(&file, "a file").unwrap();
    for path in [&missing, &empty, &other, &file] {
        let name = path.file_name().unwrap().to_str().unwrap();
        for (subcommand, options) in
            [("query", &["2 2 / 0 0"][..]), ("layers", &[]), ("verify", &[]), ("info", &[])]
        {
            // A missing or empty directory may become a run; a file is wrong usage.
            let code = if path == &file { 2 } else { 1 };
            let finished = on_run(path, subcommand, options).exits(code).says(&[name]);
            assert!(finished.stdout.is_empty(), "{finished:?}");
        }
    }
    assert!(!missing.exists(), "reading made a directory");
    assert!(files(&empty).is_empty(), "reading made files");
    // `solve` accepts an empty directory. It refuses a directory with other files like a run of another job.
    try_solve(&other, "--board 2x2").exits(2).says(&["other", "holiday.jpg"]);
    assert_eq!(files(&other).len(), 1);
    try_solve(&file, "--board 2x2").exits(2).says(&["file"]);
    solve(&empty, "--board 2x2");
    solve(&missing.join("and").join("more"), "--board 2x2");
}

#[test]
fn directories_that_cannot_be_written() {
    let place = Place::new();
    let file = place.join("file");
    fs::write(&file, "a file").unwrap();
    try_solve(&file.join("run"), "--board 2x2").exits(1).says(&["file"]);
    try_solve(Path::new("/proc/run"), "--board 2x2").exits(1).says(&["/proc"]);
}

/// Shells do not expand `--run=~/x` and `s3:`, so each would become a folder of that name.
#[test]
fn places_that_only_look_like_paths() {
    let place = Place::new();
    let solved = Solved::new("--board 2x2");
    let run = format!("--run={}", solved.run().display());
    let here = |args: &[&str]| Finished::new(command(args).current_dir(place.path()).output().unwrap());
    for (args, form) in [
        (&["solve", "--board", "2x2", "--run=~/x"][..], "./~/x"),
        (&["solve", "--board", "2x2", "--run", "s3:/bucket/x"], "s3://bucket/x"),
        (&["query", "--run", "file:x", "2 2 / 0 0"], "file:///x"),
        (&["query", &run, "--cone-cache=~/x", "2 2 / 0 0"], "./~/x"),
        (&["info", &run, "--cache=~/x"], "./~/x"),
        (&["export", &run, "--what", "states", "--output=~/x"], "./~/x"),
        (&["export", &run, "--what", "states", "-o", "s3://bucket/x"], "s3://bucket/x"),
        (&["report", &run, "--output=~/x"], "./~/x"),
        (&["play", "--player", "random", "--record=~/x"], "./~/x"),
        (&["man", "--out=~/x"], "./~/x"),
        #[cfg(feature = "net")]
        (&["coordinator", "--store=~/x"], "./~/x"),
    ] {
        here(args).exits(2).says(&[form]);
        assert!(files(place.path()).is_empty(), "{args:?} made something");
    }
    for name in ["a", "./~"] {
        let given =
            if name == "a" { format!("file:{}", place.join(name).display()) } else { name.to_owned() };
        here(&["solve", "--board", "2x2", "--run", &given]).exits(0);
        assert!(place.join(name).join("manifest.json").exists(), "{given}");
    }
}

#[test]
fn one_writer_at_a_time() {
    let solved = Solved::new("--board 2x2");
    let writer = RunDir::open_for_writing(&solved.run()).unwrap();
    let pid = std::process::id().to_string();
    let refused = try_solve(&solved.run(), "--board 2x2").exits(1).says(&[&pid]).prints("two writers");
    assert!(refused.stdout.is_empty());
    // Readers need no lock.
    on_run(&solved.run(), "info", &["--json"]).exits(0);
    on_run(&solved.run(), "verify", &[]).exits(0);
    on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(0);
    drop(writer);
    // New processes of other tests may hold the lock for a moment, because they inherit the open files of this process.
    let begun = std::time::Instant::now();
    while try_solve(&solved.run(), "--board 2x2").code != Some(0) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the lock stays");
    }
}

#[test]
fn queries_of_invalid_boards() {
    let solved = Solved::new("--board 2x2");
    for board in [
        "",
        "2",
        "2 2",
        "2 2 / 0",
        "2 2 / 0 0 / 0 0",
        "2 2 0 / 0 0 0",
        "2 3 / 0 0",
        "1 2 / 0 0",
        "x 2 / 0 0",
        "-2 2 / 0 0",
        "2 2 / 0 65536",
        "2 2 / 0 99999999999999999999",
        "2 2 // 0 0",
        "2;2/0;0",
        "2 2 \\ 0 0",
        "\u{fffd}",
    ] {
        let finished = on_run(&solved.run(), "query", &["--json", "--", board]).exits(2);
        assert!(finished.stdout.is_empty(), "{finished:?}");
    }
}

#[test]
fn spellings_of_a_board() {
    let solved = Solved::new("--board 2x2");
    let spellings: [&[&str]; 8] = [
        &["2 0 / 0 4"],
        &["2,0/0,4"],
        &["2 . / . 4"],
        &[" 2  0/0 4 "],
        &["2,./.,4"],
        &["2 0\n0 4"],
        // A board without quotes arrives as several words.
        &["2", "0", "/", "0", "4"],
        &["2,.", "/", ".,4"],
    ];
    for board in spellings {
        let answer = on_run(&solved.run(), "query", &[board, &["--json"]].concat()).exits(0).json();
        assert_eq!(text(&answer["board"]), "2 0 / 0 4");
        assert_eq!(whole(&answer["layer"]), 6);
    }
    let negative = on_run(&solved.run(), "query", &["-2 0 / 0 4"]).exits(2).says(&["\"-2\""]);
    assert!(!negative.stderr.contains("--help"), "{negative:?}");
}

#[test]
fn queries_of_unreachable_states() {
    let solved = Solved::new("--board 2x2");
    for board in [
        "0 0 / 0 0",
        "2 0 / 0 0",
        "4 0 / 0 0",
        "8 0 / 0 0",
        "8 8 / 8 8",
        "64 0 / 0 2",
        "32768 32768 / 32768 32768",
        "16 16 / 16 16",
    ] {
        let finished = on_run(&solved.run(), "query", &["--json", board]).exits(3).says(&[board]);
        assert!(finished.stdout.is_empty(), "{finished:?}");
    }
    let solved = Solved::new("--board 2x2 --objective reach:16");
    for board in ["16 0 / 0 2", "32 0 / 0 2"] {
        on_run(&solved.run(), "query", &["--json", board]).exits(3).says(&[board]);
    }
}

#[test]
fn queries_of_runs_without_values() {
    let solved = Solved::new("--board 2x2 --until-layer 20");
    for board in [&["2 2 / 0 0"][..], &["--json", "-"]] {
        on_run(&solved.run(), "query", board)
            .exits(1)
            .says(&["--until-layer"])
            .prints("query without values");
    }
}

#[test]
fn lines_without_an_answer_do_not_stop_the_others() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let ask = |lines: &str| {
        exact2048_reading(["query", "--run", run.to_str().unwrap(), "--json", "-"], lines.to_owned())
    };
    let values = |finished: &Finished| -> Vec<bool> {
        finished.json_lines().iter().map(|answer| answer["value"].is_number()).collect()
    };
    assert_eq!(values(&ask("2 2 / 0 0\n2 0 / 0 2\n").exits(0)), [true, true]);
    assert!(values(&ask("").exits(0)).is_empty());
    let mixed = ask("2 2 / 0 0\nrubbish\n8 8 / 8 8\n2 0 / 0 2");
    assert_eq!(mixed.code, Some(2));
    assert_eq!(values(&mixed), [true, false, false, true]);
    let lines: Vec<u64> = mixed.json_lines().iter().filter_map(|line| line["line"].as_u64()).collect();
    assert_eq!(lines, [2, 3]);
    let boards = "2 2 / 0 0\n\nrubbish / 2 2\n8 8 / 8 8\n".to_owned();
    let refused = exact2048_reading(["query", "--run", run.to_str().unwrap(), "-"], boards).exits(2);
    let refused = refused.prints("lines without an answer");
    let errors: Vec<&str> = refused.stderr.lines().collect();
    assert!(errors.len() == 2, "{refused:?}");
    assert!(errors[0].starts_with("error: line 3: ") && errors[0].contains("rubbish / 2 2"), "{refused:?}");
    assert!(errors[1].starts_with("error: line 4: "), "{refused:?}");
    assert_eq!(errors[1].matches("8 8 / 8 8").count(), 1, "{refused:?}");
    let unreachable = ask("8 8 / 8 8\n2 0 / 0 2\n");
    assert_eq!(unreachable.code, Some(3));
    assert_eq!(values(&unreachable), [false, true]);
}

/// Queries boards in bytes that may be invalid text.
fn query_bytes(run: &Path, options: &[&str], bytes: &[u8]) -> Finished {
    let input = run.join("bytes");
    fs::write(&input, bytes).unwrap();
    let mut query = command([&["query", "--run", run.to_str().unwrap()], options, &["-"]].concat());
    Finished::new(query.stdin(fs::File::open(&input).unwrap()).output().unwrap())
}

/// Bytes that are not text cause an error only for their line.
#[test]
fn lines_of_other_bytes() {
    let solved = Solved::new("--board 2x2");
    let bytes = b"2 2 / 0 0\n\xff\xff\n2 0 / 0 \x1b[2J2\n\0\n2 0 / 0 2";
    let printed = query_bytes(&solved.run(), &[], bytes).exits(2).prints("lines of other bytes");
    let errors: Vec<&str> = printed.stderr.lines().collect();
    assert_eq!(errors.len(), 3, "{printed:?}");
    assert!(errors[0].starts_with("error: line 2: ") && errors[0].contains("UTF-8"), "{printed:?}");
    assert!(errors[1].starts_with("error: line 3: ") && errors[1].contains("\\u{1b}[2J2"), "{printed:?}");
    assert!(errors[2].starts_with("error: line 4: ") && !printed.stderr.contains('\u{1b}'), "{printed:?}");
    assert_eq!(printed.stdout.matches("canonical").count(), 2, "{printed:?}");
    let printed = query_bytes(&solved.run(), &["--json"], bytes);
    assert_eq!(printed.code, Some(2));
    let lines = printed.json_lines();
    let errors: Vec<Option<u64>> = lines.iter().map(|line| line["line"].as_u64()).collect();
    assert_eq!(errors, [None, Some(2), Some(3), Some(4), None]);
    let utf16: Vec<u8> = "\u{feff}2 2 / 0 0\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    query_bytes(&solved.run(), &[], &utf16).exits(2).says(&["UTF-16", "iconv"]);
}

/// The program never stores a whole long line, because a line may fill a disk. The test limits the program's memory.
#[test]
fn long_lines() {
    let solved = Solved::new("--board 2x2");
    let long = [b"2 2 / 0 0\n", &vec![b'2'; 64 << 20][..], b"\n2 0 / 0 2\n"].concat();
    let input = solved.run().join("bytes");
    fs::write(&input, &long).unwrap();
    let binary = env!("CARGO_BIN_EXE_exact2048");
    let mut query = std::process::Command::new("bash");
    // The limit is on address space. The stack of each thread takes some megabytes. Without the variable, each heap takes
    // 64 MiB.
    query.args(["-c", "cat \"$0\" | (ulimit -v 400000; exec \"$@\")"]).env("MALLOC_ARENA_MAX", "1");
    query.arg(&input).args([binary, "query", "--json", "--run", solved.run().to_str().unwrap(), "-"]);
    let finished = Finished::new(query.output().unwrap());
    let lines = finished.json_lines();
    assert_eq!((finished.code, lines.len()), (Some(2), 3), "{finished:?}");
    assert!(text(&lines[1]["error"]).contains("4096"), "{finished:?}");
    assert!(text(&lines[1]["board"]).chars().count() <= 81, "{finished:?}");
    assert!(lines[2]["value"].is_number());
}

/// The client refuses invalid names of jobs before it connects.
#[test]
fn invalid_names_of_jobs() {
    for name in ["", "  ", "a b", "../x", "coordinator"] {
        let name = format!("--name={name}");
        let args = ["submit", "--coordinator", "http://127.0.0.1:1", "--board", "2x2", &name];
        exact2048(args).exits(2).says(&["--name"]);
    }
}

/// A sample larger than the run contains all values once.
#[test]
fn samples_larger_than_the_run() {
    let solved = Solved::new("--board 2x2");
    let sample = |count: &str| {
        let result = on_run(&solved.run(), "verify", &["--json", "--sample", count]).exits(0).json();
        (whole(&result["values"]), text(&result["verdict"]).to_owned())
    };
    let all = sample(&u64::MAX.to_string()).0;
    assert!((48..110).contains(&all), "{all} values are stored of 110 states");
    for count in [all, all + 1, 1 << 40] {
        assert_eq!(sample(&count.to_string()), (all, "right".to_owned()));
    }
    assert_eq!(sample(&(all - 1).to_string()).0, all - 1);
}
