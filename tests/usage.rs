//! Wrong usage is refused with exit code 2 and a word on what is right; nothing ever panics.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::process::Stdio;

use common::{
    Finished, Place, Solved, command, exact2048, exact2048_reading, files, layers, on_run, solve, solve_args,
    text, try_solve, whole,
};
use exact2048_storage::RunDir;

/// Refused as wrong usage, with nothing on stdout.
#[track_caller]
fn refused(options: &str, words: &[&str]) {
    let place = Place::new();
    let finished = try_solve(&place.join("run"), options).exits(2).says(words);
    assert!(finished.stdout.is_empty(), "{finished:?}");
    assert!(files(place.path()).is_empty(), "{options}: a refused command left a run directory");
}

#[test]
fn boards_that_are_none() {
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
fn boards_whose_tiles_do_not_fit() {
    refused("--board 4x4", &["4x4", "reach:TILE", "--until-layer"]);
    refused("--board 3x5", &["3x5"]);
}

#[test]
fn objectives_that_are_none() {
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
fn objectives_out_of_reach() {
    refused("--board 2x2 --objective reach:64", &["reach:64", "32"]);
    refused("--board 3x3 --objective reach:2048", &["reach:2048", "1024"]);
}

#[test]
fn spawn_probabilities_that_are_none() {
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
            .says(&["spawn4", "probability"]);
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
fn layers_to_stop_at_that_are_none() {
    for layer in ["0", "2", "3", "5", "61", "4294967295"] {
        refused(&format!("--board 2x2 --until-layer {layer}"), &["--until-layer", layer]);
    }
    // (C37)
    for (layer, words) in [
        ("3", "at least 4"),
        ("7", "tile sums are even, as 6 and 8 are"),
        ("61", "at most 60"),
        ("9999999", "at most 60"),
    ] {
        refused(&format!("--board 2x2 --until-layer {layer}"), &[words]);
    }
    for layer in ["x", "4.0", "4294967296"] {
        refused(&format!("--board 2x2 --until-layer {layer}"), &["--until-layer"]);
    }
    refused("--board 3x2 --until-layer 254", &["254", "at most 252", "without --until-layer"]);
}

#[test]
fn numbers_out_of_range() {
    for options in ["--threads 0", "--threads 1025", "--threads x", "--threads=-1"] {
        refused(&format!("--board 2x2 {options}"), &["--threads"]);
    }
    // Not taken for an option (C35).
    for options in ["--threads -3", "--spawn4 -1", "--until-layer -4", "--memory -1"] {
        refused(&format!("--board 2x2 {options}"), &[options.split(' ').next().unwrap(), "invalid value '-"]);
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
fn options_that_are_missing_or_unknown() {
    exact2048::<&str>([]).exits(2).says(&["Usage"]);
    exact2048(["solve"]).exits(2).says(&["--board", "--run"]);
    exact2048(["solve", "--board", "2x2"]).exits(2).says(&["--run"]);
    exact2048(["query"]).exits(2).says(&["--run"]);
    exact2048(["inspect"]).exits(2).says(&["FILE"]);
    exact2048(["unknown"]).exits(2).says(&["unknown"]);
    for subcommand in ["solve", "query", "layers", "verify", "info", "inspect"] {
        exact2048([subcommand, "--no-such-option"]).exits(2);
        let help = exact2048([subcommand, "--help"]).exits(0);
        assert!(help.stdout.contains("Usage"));
        assert!(!help.stdout.contains("--large"), "a hidden option is shown");
    }
    assert!(exact2048(["--version"]).exits(0).stdout.starts_with("exact2048 "));
}

/// The refusal names the least memory, and with just that the job runs.
#[test]
fn too_little_memory() {
    for (board, threads) in [("2x2", 1), ("3x2", 3), ("4x2", 2)] {
        let options = format!("--board {board} --threads {threads}");
        refused(&format!("{options} --memory 1"), &["--memory", "at least", board]);
        let place = Place::new();
        let said = try_solve(&place.join("run"), &format!("{options} --memory 1MiB")).exits(2).stderr;
        // (C14)
        let count = if threads == 1 {
            "with 1 thread needs".to_owned()
        } else {
            format!("with {threads} threads needs")
        };
        assert!(
            said.contains("--memory 1.0 MiB") && said.contains(&count) && said.contains(" MiB;"),
            "{said}"
        );
        let named = said.split("at least ").nth(1).unwrap().split_once("iB").unwrap().0;
        let least = format!("{named}iB").replace(' ', "");
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
        let finished = try_solve(&solved.run(), options).exits(2).says(&["another job", field, held]);
        assert!(finished.stdout.is_empty());
    }
    assert_eq!(layers(&solved.run()), before);
}

/// Rules that do not go together say what would, and what no rule is says what there is.
#[test]
fn rules_that_make_no_sense() {
    let place = Place::new();
    let run = place.join("run");
    for (options, says) in [
        ("--discount 0.95", ["score", "reach:TILE"]),
        ("--objective lose:16 --discount 0.95", ["lose:16", "reach:TILE"]),
        ("--objective lose:16 --spawner worst", ["lose:16", "--spawner worst"]),
        ("--objective reach:16 --discount 0", ["discount", "0.95"]),
        ("--objective reach:16 --discount=-0.5", ["discount", "0.95"]),
        ("--objective reach:16 --discount 1.5", ["discount", "up to 1"]),
        ("--objective reach:16 --spawner best", ["best", "random or worst"]),
        ("--objective loose:16", ["loose:16", "lose:TILE"]),
        ("--objective lose:64", ["lose:64", "32"]),
    ] {
        try_solve(&run, &format!("--board 2x2 {options}")).exits(2).says(&says);
    }
    assert!(!run.exists());
}

/// What is chosen is told by all that tells of a run.
#[test]
fn discounts_and_adversaries_are_told() {
    let solved = Solved::new("--board 2x2 --objective reach:16 --discount 0.95 --spawner worst");
    assert_eq!(text(&solved.summary["discount"]), "19/20");
    assert_eq!(text(&solved.summary["spawner"]), "worst");
    let info = on_run(&solved.run(), "info", &[]).exits(0).stdout;
    assert!(info.contains("19/20") && info.contains("worst"), "{info}");
    let answer = on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(0).stdout;
    assert!(answer.contains("worst spawn"), "{answer}");
    let usual = Solved::new("--board 2x2 --objective reach:16");
    let answer = on_run(&usual.run(), "query", &["2 2 / 0 0"]).exits(0).stdout;
    assert!(!answer.contains("worst"), "{answer}");
    // What a player is worth follows from chance.
    for run in [&solved, &Solved::new("--board 2x2 --objective lose:16")] {
        on_run(&run.run(), "evaluate", &["--player", "greedy"]).exits(2).says(&["score or reach:TILE"]);
        on_run(&run.run(), "stats", &[]).exits(2).says(&["score or reach:TILE"]);
    }
}

/// A lost board is one whatever is played for.
#[test]
fn a_lost_board_is_lost_for_certain() {
    let solved = Solved::new("--board 2x2 --objective lose:16");
    let answer = on_run(&solved.run(), "query", &["--json", "2 4 / 4 2"]).exits(0).json();
    assert_eq!((common::number(&answer["value"]), common::number(&answer["error_bound"])), (1.0, 0.0));
    let shown = on_run(&solved.run(), "query", &["2 4 / 4 2"]).exits(0).stdout;
    assert!(shown.contains("1, exactly"), "{shown}");
}

/// `--large` changes speed, not results: a run goes on whatever it is.
#[test]
fn the_split_is_no_part_of_the_job() {
    let solved = Solved::new("--board 3x2 --large 3");
    let again = solve(&solved.run(), "--board 3x2 --large 5");
    assert_eq!(again["fingerprint"], solved.summary["fingerprint"]);
}

#[test]
fn directories_that_are_no_runs() {
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
            // A file is something else, at a place where nothing is a run may be yet.
            let code = if path == &file { 2 } else { 1 };
            let finished = on_run(path, subcommand, options).exits(code).says(&[name]);
            assert!(finished.stdout.is_empty(), "{finished:?}");
        }
    }
    assert!(!missing.exists(), "reading made a directory");
    assert!(files(&empty).is_empty(), "reading made files");
    // Solving takes an empty directory, and none that holds something else.
    // As for a directory that holds another job (C28).
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

#[test]
fn one_writer_at_a_time() {
    let solved = Solved::new("--board 2x2");
    let writer = RunDir::open_for_writing(&solved.run()).unwrap();
    let pid = std::process::id().to_string();
    let refused = try_solve(&solved.run(), "--board 2x2").exits(1).says(&[&pid, "written"]);
    assert!(refused.stdout.is_empty());
    // Readers do not mind.
    on_run(&solved.run(), "info", &["--json"]).exits(0);
    on_run(&solved.run(), "verify", &[]).exits(0);
    on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(0);
    drop(writer);
    // Processes that other tests are starting may hold the lock for a moment, as they hold all files of this one.
    let begun = std::time::Instant::now();
    while try_solve(&solved.run(), "--board 2x2").code != Some(0) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the lock stays");
    }
}

#[test]
fn queries_of_what_is_no_board() {
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
        // As a shell takes it apart that was given no quotes.
        &["2", "0", "/", "0", "4"],
        &["2,.", "/", ".,4"],
    ];
    for board in spellings {
        let answer = on_run(&solved.run(), "query", &[board, &["--json"]].concat()).exits(0).json();
        assert_eq!(text(&answer["board"]), "2 0 / 0 4");
        assert_eq!(whole(&answer["layer"]), 6);
    }
    let negative =
        on_run(&solved.run(), "query", &["-2 0 / 0 4"]).exits(2).says(&["cell \"-2\" is not a tile"]);
    assert!(!negative.stderr.contains("--help"), "{negative:?}");
    on_run(&solved.run(), "query", &["--jsno"]).exits(2).says(&["--jsno is no option"]);
    on_run(&solved.run(), "query", &["2 2"]).exits(2).says(&["1 row in \"2 2\", expected 2 rows"]);
}

/// What people read of a state: no more digits than mean something, the score named, ties as ties.
#[test]
fn answers_for_people() {
    let solved = Solved::new("--board 2x2");
    let ask = |board: &str| on_run(&solved.run(), "query", &[board]).exits(0).stdout;
    let tied = ask("2 2 / 0 0");
    for said in ["(error at most ", "best          left, right, down: equal\n", "value with score"] {
        assert!(tied.contains(said), "{said:?} is missing from {tied}");
    }
    let field = |text: &str, name: &str| -> String {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[14..].to_owned()
    };
    let value = field(&tied, "value");
    let (value, bound) = value.split_once(" (error at most ").unwrap();
    let bound: f64 = bound.trim_end_matches(')').parse().unwrap();
    let decimals = value.split_once('.').map_or(0, |(_, decimals)| decimals.len()) as i32;
    assert!(10f64.powi(-decimals) <= bound && bound < 10f64.powi(1 - decimals), "{tied}");
    let json = on_run(&solved.run(), "query", &["--json", "2 2 / 0 0"]).exits(0).json();
    let best: Vec<bool> = json["moves"].as_array().unwrap().iter().map(|m| m["best"] == true).collect();
    assert_eq!((best, text(&json["best"])), (vec![true, true, false, true], "left"));
    assert!(common::number(&json["error_bound"]) <= bound);
    // Where nothing can move nothing is left to come.
    let over = ask("2 4 / 4 2");
    assert!(over.contains("value         0, exactly") && over.contains("the game is over"), "{over}");
    let json = on_run(&solved.run(), "query", &["--json", "2 4 / 4 2"]).exits(0).json();
    assert_eq!((common::number(&json["value"]), common::number(&json["error_bound"])), (0.0, 0.0));
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
fn queries_of_runs_that_are_not_solved() {
    let solved = Solved::new("--board 2x2 --until-layer 20");
    on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(1).says(&["not solved", "--until-layer"]);
    on_run(&solved.run(), "query", &["--json", "-"]).exits(1).says(&["not solved"]);
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
    let told = "2 2 / 0 0\n\nrubbish / 2 2\n8 8 / 8 8\n".to_owned();
    let told = exact2048_reading(["query", "--run", run.to_str().unwrap(), "-"], told).exits(2);
    let errors: Vec<&str> = told.stderr.lines().collect();
    assert!(errors.len() == 2, "{told:?}");
    assert!(errors[0].starts_with("error: line 3: 1 cell in row 1 in \"rubbish / 2 2\""), "{told:?}");
    assert!(errors[1].starts_with("error: line 4: 8 8 / 8 8 is not reachable"), "{told:?}");
    assert!(errors.iter().all(|error| error.matches("8 8 / 8 8").count() < 2), "{told:?}");
    let unreachable = ask("8 8 / 8 8\n2 0 / 0 2\n");
    assert_eq!(unreachable.code, Some(3));
    assert_eq!(values(&unreachable), [false, true]);
}

/// Asks for boards in bytes that may be no text.
fn query_bytes(run: &Path, options: &[&str], bytes: &[u8]) -> Finished {
    let input = run.join("bytes");
    fs::write(&input, bytes).unwrap();
    let mut query = command([&["query", "--run", run.to_str().unwrap()], options, &["-"]].concat());
    Finished::new(query.stdin(fs::File::open(&input).unwrap()).output().unwrap())
}

/// A line is refused for itself alone, whatever its bytes are.
#[test]
fn lines_that_are_no_text() {
    let solved = Solved::new("--board 2x2");
    let bytes = b"2 2 / 0 0\n\xff\xfe\n2 0 / 0 \x1b[2J2\n\0\n2 0 / 0 2";
    let told = query_bytes(&solved.run(), &[], bytes).exits(2);
    let errors: Vec<&str> = told.stderr.lines().collect();
    assert_eq!(errors.len(), 3, "{told:?}");
    assert!(errors[0].starts_with("error: line 2: expected a board, found what is no UTF-8"), "{told:?}");
    assert!(errors[1].starts_with("error: line 3: cell \"\\u{1b}[2J2\" is not a tile"), "{told:?}");
    assert!(errors[2].starts_with("error: line 4: ") && !told.stderr.contains('\u{1b}'), "{told:?}");
    assert_eq!(told.stdout.matches("canonical").count(), 2, "{told:?}");
    let told = query_bytes(&solved.run(), &["--json"], bytes);
    assert_eq!(told.code, Some(2));
    let lines = told.json_lines();
    let errors: Vec<Option<u64>> = lines.iter().map(|line| line["line"].as_u64()).collect();
    assert_eq!(errors, [None, Some(2), Some(3), Some(4), None]);
}

/// A line is never held whole: it may be a disk's length. The process may not take the memory for it.
#[test]
fn lines_that_are_too_long() {
    let solved = Solved::new("--board 2x2");
    let long = [b"2 2 / 0 0\n", &vec![b'2'; 64 << 20][..], b"\n2 0 / 0 2\n"].concat();
    let input = solved.run().join("bytes");
    fs::write(&input, &long).unwrap();
    let binary = env!("CARGO_BIN_EXE_exact2048");
    let mut query = std::process::Command::new("bash");
    // Of address space, without which nothing can be held: threads have stacks of some megabytes each.
    query.args(["-c", "cat \"$0\" | (ulimit -v 400000; exec \"$@\")"]);
    query.arg(&input).args([binary, "query", "--json", "--run", solved.run().to_str().unwrap(), "-"]);
    let finished = Finished::new(query.output().unwrap());
    let lines = finished.json_lines();
    assert_eq!((finished.code, lines.len()), (Some(2), 3), "{finished:?}");
    assert!(text(&lines[1]["error"]).contains("more than 4096 bytes"), "{finished:?}");
    assert!(text(&lines[1]["board"]).chars().count() <= 81, "{finished:?}");
    assert!(lines[2]["value"].is_number());
}

/// Errors quote the beginning of what was given, and never what would command a terminal.
#[test]
fn errors_quote_little_and_plainly() {
    let solved = Solved::new("--board 2x2");
    let long = "2 ".repeat(5000);
    let finished = on_run(&solved.run(), "query", &["--", &long]).exits(2);
    assert!(finished.stderr.len() < 400 && finished.stderr.contains('…'), "{finished:?}");
    let finished = on_run(&solved.run(), "query", &["--", "\u{1b}[2J\u{7} / 0 0"]).exits(2);
    assert!(!finished.stderr.contains(['\u{1b}', '\u{7}']), "{finished:?}");
    let place = Place::new();
    let odd = place.join("\u{1b}[2J\u{7}\nodd");
    let finished = on_run(&odd, "info", &[]).exits(1).says(&["\\u{1b}[2J\\u{7}\\nodd is no run"]);
    assert!(finished.stderr.lines().count() == 1 && !finished.stderr.contains(['\u{1b}', '\u{7}']));
    let finished = exact2048(["solve", "--board", "\u{1b}[2J\u{7}3x", "--run", "x"]).exits(2);
    assert!(!finished.stderr.contains(['\u{1b}', '\u{7}']), "{finished:?}");
}

/// What is said to be run next can be, whatever the run is called.
#[test]
fn commands_that_are_told_can_be_copied() {
    for name in ["my run", "it's", "$HOME;`x`", "-run", "a\u{1b}[2Jb\nc", "Größe 4×3"] {
        let place = Place::new();
        let run = place.join(name);
        let run = run.to_str().unwrap();
        let told = exact2048(["solve", "--board", "2x2", "--run", run]).exits(0).stdout;
        assert!(!told.contains('\u{1b}'), "{told}");
        let command = told.lines().find_map(|line| line.strip_prefix("  exact2048 ")).unwrap();
        let command = command.replace("BOARD", "2 2 / 0 0");
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &format!("\"$0\" {command}"), env!("CARGO_BIN_EXE_exact2048")]);
        let answer = Finished::new(shell.output().unwrap()).exits(0);
        assert!(answer.stdout.contains("canonical"), "{command}: {answer:?}");
    }
}

/// Who gives a name wants one. Nobody is asked whether it is one.
#[test]
fn a_job_of_a_name_that_is_none() {
    for name in ["", "  ", "a b", "../x", "coordinator"] {
        let name = format!("--name={name}");
        let args = ["submit", "--coordinator", "http://127.0.0.1:1", "--board", "2x2", &name];
        exact2048(args).exits(2).says(&["for '--name <NAME>'", "job"]);
    }
}

/// A sample of more values than there are is all of them, each once.
#[test]
fn samples_that_are_larger_than_the_run() {
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

/// What takes long says that it goes on.
#[test]
fn a_large_bag_tells_how_far_it_is() {
    let mut bag = command(["bag", "--target", "2097152"]);
    let mut child = bag.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = std::io::BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = said.take(1).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.len() == 1 && said[0].starts_with("bag: ") && said[0].contains(" of 4: "), "{said:?}");
}

#[test]
fn json_is_one_object_with_all_its_fields() {
    let solved = Solved::new("--board 3x2");
    let fields = |value: &serde_json::Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let mut expected = vec![
        "board",
        "objective",
        "spawn4",
        "phase",
        "layers",
        "states",
        "afterstates",
        "start",
        "fingerprint",
        "seconds",
        "bytes_on_disk",
        "peak_rss_bytes",
    ];
    expected.sort();
    assert_eq!(fields(&solved.summary), expected);
    assert_eq!(fields(&solved.summary["start"]), ["by_layer", "error_bound", "expected"]);
    assert_eq!(fields(&solved.summary["seconds"]), ["enumerate", "solve", "total"]);
    assert_eq!(fields(&solved.summary["start"]["by_layer"]), ["4", "6", "8"]);
    assert_eq!(text(&solved.summary["board"]), "3x2");
    assert_eq!(text(&solved.summary["objective"]), "score");
    assert_eq!(text(&solved.summary["spawn4"]), "1/10");
    let on_disk: u64 = ["", "journal", "shards"]
        .iter()
        .flat_map(|folder| files(&solved.run().join(folder)))
        .filter(|path| path.is_file())
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(whole(&solved.summary["bytes_on_disk"]), on_disk);
    let answer = on_run(&solved.run(), "query", &["--json", "2 2 / 0 0 / 0 0"]).exits(0).json();
    assert_eq!(fields(&answer), ["best", "board", "canonical", "error_bound", "layer", "moves", "value"]);
    assert_eq!(fields(&answer["moves"][0]), ["afterstate", "best", "legal", "move", "score", "value"]);
    on_run(&solved.run(), "info", &["--json"]).exits(0).json();
}

/// Readers who leave early, as `head` does, are no failure worth a word, let alone a panic.
#[test]
fn closed_standard_output() {
    let solved = Solved::new("--board 3x2");
    let run = solved.run();
    let run = run.to_str().unwrap();
    let fresh = Place::new();
    let fresh = fresh.join("run");
    let shard = common::shards(&solved.run()).remove(0);
    let boards = "2 2 / 0 0 / 0 0\n".repeat(5000);
    let boards_file = solved.run().join("boards");
    fs::write(&boards_file, boards).unwrap();
    let all: [&[&str]; 9] = [
        &["layers", "--run", run],
        &["layers", "--run", run, "--json"],
        &["query", "--run", run, "--json", "-"],
        &["query", "--run", run, "-"],
        &["info", "--run", run],
        &["inspect", shard.to_str().unwrap()],
        &["verify", "--run", run],
        &["solve", "--run", run, "--board", "3x2"],
        &["solve", "--run", fresh.to_str().unwrap(), "--board", "2x2", "--json"],
    ];
    for args in all {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut closed = command(args);
        closed.stdin(fs::File::open(&boards_file).unwrap()).stdout(writer).stderr(Stdio::piped());
        let finished = Finished::new(closed.spawn().unwrap().wait_with_output().unwrap());
        assert!(
            matches!(finished.code, Some(0 | 1)) || finished.signal == Some(13),
            "{args:?}: {finished:?}"
        );
        assert!(!finished.stderr.contains("error"), "{args:?}: {finished:?}");
    }
}

/// Results that cannot be written are a failure.
#[test]
fn full_standard_output() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let run = run.to_str().unwrap();
    for args in [
        &["layers", "--run", run, "--json"][..],
        &["query", "--run", run, "--json", "2 2 / 0 0"],
        &["info", "--run", run, "--json"],
        &["solve", "--run", run, "--board", "2x2", "--json"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = command(args);
        command.stdout(full).stderr(Stdio::piped());
        Finished::new(command.spawn().unwrap().wait_with_output().unwrap()).exits(1);
    }
}

#[test]
fn progress_does_not_disturb_the_result() {
    let place = Place::new();
    let mut solving = command(solve_args(&place.join("run"), "--board 4x2"));
    let finished = Finished::new(solving.output().unwrap()).exits(0);
    finished.json();
    // Not a terminal: no cursor movements in what may be a log file.
    assert!(!finished.stderr.contains('\u{1b}'), "{finished:?}");
    let printed =
        exact2048(["solve", "--board", "4x2", "--run", place.join("run").to_str().unwrap()]).exits(0);
    assert!(printed.stdout.contains("4,980,767"), "{printed:?}");
}

/// A worker that could never do anything is refused, as `solve` refuses it (C36).
#[test]
fn a_worker_without_memory_for_any_job() {
    let refused =
        exact2048(["worker", "--coordinator", "http://127.0.0.1:1", "--memory", "1MiB", "--threads", "1"]);
    let refused =
        refused.exits(2).says(&["--memory 1.0 MiB is too small for any job", "1 thread", "at least", "MiB"]);
    assert!(refused.stdout.is_empty(), "{refused:?}");
}

/// What a large job takes is said before it begins (C2).
#[test]
fn the_disk_that_a_job_takes_is_said_before() {
    let place = Place::new();
    let run = place.join("run");
    let args =
        ["solve", "--board", "4x3", "--threads", "1", "--memory", "9GiB", "--run", run.to_str().unwrap()];
    let mut solving = command(args);
    let mut child = solving.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Before all else: what comes after it is the progress of hours.
    let said = std::io::BufReader::new(child.stderr.take().unwrap()).lines().next();
    let said = said.map(Result::unwrap).unwrap_or_default();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("this takes about 1.2 T states, 1.0 TiB on disk"), "{said}");
    assert!(said.contains("are free there"), "{said}");
}

/// With `--spawn4 0` no game starts with a 4; that is said where starts are told (C38).
#[test]
fn starts_that_cannot_occur_are_told() {
    let place = Place::new();
    let run = place.join("run");
    let told = exact2048(["solve", "--board", "2x2", "--spawn4", "0", "--run", run.to_str().unwrap()])
        .exits(0)
        .stdout;
    assert_eq!(told.matches("does not occur").count(), 2, "{told}");
    let help = exact2048(["solve", "--help"]).exits(0).stdout;
    let help: Vec<&str> = help.split_whitespace().collect();
    assert!(help.join(" ").contains("with 0 or 1 too, those that no game can come to"), "{help:?}");
}
