//! Output of commands: for people, for programs, and for readers that close a pipe early.

use crate::common;

use std::fs;
use std::io::BufRead;
use std::process::Stdio;

use common::snapshots::assert_section;
use common::{Finished, Place, Solved, command, exact2048, files, on_run, sizes, solve_args, text, whole};

/// All commands about a run show its discount and its adversary.
#[test]
fn discounts_and_adversaries_are_shown() {
    let solved = Solved::new("--board 2x2 --objective reach:16 --discount 0.95 --spawner worst");
    assert_eq!(text(&solved.summary["discount"]), "19/20");
    assert_eq!(text(&solved.summary["spawner"]), "worst");
    let info = on_run(&solved.run(), "info", &[]).exits(0).stdout;
    assert!(info.contains("19/20") && info.contains("worst"), "{info}");
    let answer = on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(0).stdout;
    assert!(answer.contains("worst"), "{answer}");
    let usual = Solved::new("--board 2x2 --objective reach:16");
    let answer = on_run(&usual.run(), "query", &["2 2 / 0 0"]).exits(0).stdout;
    assert!(!answer.contains("worst"), "{answer}");
    // Statistics need random spawns, and a score or a tile to reach.
    for run in [&solved, &Solved::new("--board 2x2 --objective lose:16")] {
        on_run(&run.run(), "evaluate", &["--player", "greedy"]).exits(2).says(&["reach:TILE"]);
        on_run(&run.run(), "stats", &[]).exits(2).says(&["reach:TILE"]);
    }
}

/// A lost board is shown as lost with every objective.
#[test]
fn a_lost_board_is_lost_for_certain() {
    let solved = Solved::new("--board 2x2 --objective lose:16");
    let answer = on_run(&solved.run(), "query", &["--json", "2 4 / 4 2"]).exits(0).json();
    assert_eq!((common::number(&answer["value"]), common::number(&answer["error_bound"])), (1.0, 0.0));
    let shown = on_run(&solved.run(), "query", &["2 4 / 4 2"]).exits(0).stdout;
    assert!(shown.contains("1, exactly"), "{shown}");
}

/// Answers for people show only significant digits, name the score, and show ties as ties.
#[test]
fn answers_for_people() {
    let solved = Solved::new("--board 2x2");
    let ask = |board: &str| on_run(&solved.run(), "query", &[board]).exits(0).stdout;
    let tied = ask("2 2 / 0 0");
    assert_section("answer with equal moves", &tied);
    let field = |text: &str, name: &str| -> String {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[14..].to_owned()
    };
    let value = field(&tied, "value");
    let (value, bound) = value.split_once(" (").unwrap();
    let bound: f64 = bound.trim_end_matches(')').rsplit(' ').next().unwrap().parse().unwrap();
    let decimals = value.split_once('.').map_or(0, |(_, decimals)| decimals.len()) as i32;
    assert!(10f64.powi(-decimals) <= bound && bound < 10f64.powi(1 - decimals), "{tied}");
    let json = on_run(&solved.run(), "query", &["--json", "2 2 / 0 0"]).exits(0).json();
    let best: Vec<bool> = json["moves"].as_array().unwrap().iter().map(|m| m["best"] == true).collect();
    assert_eq!((best, text(&json["best"])), (vec![true, true, false, true], "left"));
    assert!(common::number(&json["error_bound"]) <= bound);
    // A finished game has the exact value 0.
    assert_section("answer for a finished game", &ask("2 4 / 4 2"));
    let json = on_run(&solved.run(), "query", &["--json", "2 4 / 4 2"]).exits(0).json();
    assert_eq!((common::number(&json["value"]), common::number(&json["error_bound"])), (0.0, 0.0));
}

#[test]
fn certain_and_impossible_wins_are_named() {
    for (options, section) in [
        ("--board 2x2 --objective reach:8", "certain win"),
        ("--board 2x2 --objective lose:8", "impossible loss"),
        ("--board 2x2 --objective reach:32 --spawn4 0", "impossible win"),
        ("--board 3x3 --objective reach:64", "almost certain win"),
    ] {
        let place = Place::new();
        let run = place.join("run");
        let args = solve_args(&run, options).into_iter().filter(|arg| arg != "--json");
        let solved = exact2048(args).exits(0);
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).map(|line| line[14..].to_owned());
            line.unwrap_or_else(|| panic!("{name} is missing from {text}"))
        };
        let start = value(&solved.stdout, "start ");
        assert_section(section, &start);
        if options.contains("2x2") && !options.contains("spawn4") {
            let asked = on_run(&run, "query", &["2 2 / 0 0"]).exits(0).stdout;
            assert_eq!(value(&asked, "value "), start, "{options}");
        }
    }
}

/// Errors quote the beginning of the input, and never print control characters.
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
    let finished = on_run(&odd, "info", &[]).exits(1).says(&["\\u{1b}[2J\\u{7}\\nodd"]);
    assert!(finished.stderr.lines().count() == 1 && !finished.stderr.contains(['\u{1b}', '\u{7}']));
    let finished = exact2048(["solve", "--board", "\u{1b}[2J\u{7}3x", "--run", "x"]).exits(2);
    assert!(!finished.stderr.contains(['\u{1b}', '\u{7}']), "{finished:?}");
}

/// Printed commands can be copied to a shell, with any name of a run.
#[test]
fn printed_commands_can_be_copied() {
    for name in ["my run", "it's", "$HOME;`x`", "-run", "a\u{1b}[2Jb\nc", "Größe 4×3"] {
        let place = Place::new();
        let run = place.join(name);
        let run = run.to_str().unwrap();
        let printed = exact2048(["solve", "--board", "2x2", "--run", run]).exits(0).stdout;
        assert!(!printed.contains('\u{1b}'), "{printed}");
        let command = printed.lines().find_map(|line| line.strip_prefix("  exact2048 ")).unwrap();
        let command = command.replace("BOARD", "2 2 / 0 0");
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &format!("\"$0\" {command}"), env!("CARGO_BIN_EXE_exact2048")]);
        let answer = Finished::new(shell.output().unwrap()).exits(0);
        assert!(answer.stdout.contains("canonical"), "{command}: {answer:?}");
    }
}

/// Long commands show progress.
#[test]
fn a_large_bag_shows_progress() {
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

/// A reader that closes a pipe early, like `head`, causes no error message and no panic.
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

/// A command fails if it cannot write its results.
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
        &["--help"],
        &["--version"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = command(args);
        command.stdout(full).stderr(Stdio::piped());
        let finished = Finished::new(command.spawn().unwrap().wait_with_output().unwrap());
        finished.exits(1).says(&["stdout"]).prints("full standard output");
    }
}

/// A closed pipe of records is an error, unlike a closed standard output.
#[test]
fn a_closed_pipe_of_records_is_an_error() {
    let place = Place::new();
    let pipe = place.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || drop(fs::File::open(pipe).unwrap())
    });
    let record = pipe.to_str().unwrap();
    let played = exact2048(["play", "--player", "random", "--games", "20000", "--record", record]);
    reader.join().unwrap();
    played.exits(1).says(&["/pipe"]);
}

#[test]
fn records_of_games_are_not_overwritten() {
    let place = Place::new();
    let record = place.join("games.jsonl");
    let args = [
        "play",
        "--player",
        "random",
        "--board",
        "2x2",
        "--games",
        "3",
        "--record",
        record.to_str().unwrap(),
    ];
    exact2048(args).exits(0);
    let games = fs::read_to_string(&record).unwrap();
    assert_eq!(games.lines().count(), 3);
    exact2048(args).exits(2).says(&["games.jsonl", "--record"]);
    assert_eq!(fs::read_to_string(&record).unwrap(), games);
}

#[test]
fn progress_does_not_disturb_the_result() {
    let place = Place::new();
    let mut solving = command(solve_args(&place.join("run"), "--board 4x2"));
    let finished = Finished::new(solving.output().unwrap()).exits(0);
    finished.json();
    // Stderr is not a terminal and may be a log file, so it has no cursor movements.
    assert!(!finished.stderr.contains('\u{1b}'), "{finished:?}");
    let printed =
        exact2048(["solve", "--board", "4x2", "--run", place.join("run").to_str().unwrap()]).exits(0);
    assert!(printed.stdout.contains("4,980,767"), "{printed:?}");
}

/// `solve` prints an estimate of a large job before it begins. For each run of 4x3, the memory determines the split once.
#[test]
fn estimates_are_printed_first_and_memory_decides_the_split() {
    let place = Place::new();
    for (memory, large) in [("4GiB", 5), ("9GiB", 4)] {
        let run = place.join(memory);
        let args =
            ["solve", "--board", "4x3", "--threads", "1", "--memory", memory, "--run", run.to_str().unwrap()];
        let mut child = command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // The estimate is the first line. Hours of progress follow it.
        let said = std::io::BufReader::new(child.stderr.take().unwrap()).lines().next();
        let said = said.map(Result::unwrap).unwrap_or_default();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(said.contains("1.2 T"), "{said}");
        let gib: f64 = sizes(&said)[0].strip_suffix("GiB").expect(&said).parse().unwrap();
        assert!((600.0..1000.0).contains(&gib), "{said}");
        let manifest = std::fs::read_to_string(run.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["body"]["params"]["large"], large, "{manifest}");
    }
    let begun = place.join("9GiB");
    let less = ["solve", "--board", "4x3", "--memory", "4GiB", "--run", begun.to_str().unwrap()];
    let refused = exact2048(less).exits(2).says(&["--memory 4.0 GiB"]);
    assert!(sizes(&refused.stderr)[1].starts_with("5."), "{refused:?}");
}

/// With `--spawn4 0`, no game starts with a 4, and the list of starts shows this.
#[test]
fn impossible_starts_are_marked() {
    let place = Place::new();
    let run = place.join("run");
    let printed = exact2048(["solve", "--board", "2x2", "--spawn4", "0", "--run", run.to_str().unwrap()]);
    let printed = printed.exits(0).stdout;
    let is_start = |line: &str| line.starts_with("start") || line.starts_with("  layer ");
    let starts: String =
        printed.lines().filter(|line| is_start(line)).map(|line| format!("{line}\n")).collect();
    assert_section("starts with --spawn4 0", &starts);
}

/// Requests completions from bash.
#[test]
fn shells_complete_commands_and_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = exact2048(["completions", shell]).exits(0).stdout;
        assert!(script.contains("until-layer"), "{shell}");
    }
    let script = exact2048(["completions", "bash"]).exits(0).stdout;
    let completed = |words: &str| {
        let last = words.split(' ').count() - 1;
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}\n\
             _exact2048 exact2048 \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{last} - 1]}}\"\necho \"${{COMPREPLY[@]}}\""
        );
        let answer = std::process::Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        String::from_utf8(answer.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(completed("exact2048 sol"), "solve");
    assert_eq!(completed("exact2048 solve --until"), "--until-layer");
}

#[test]
fn each_command_has_a_manual_page() {
    let page = exact2048(["man"]).exits(0).stdout;
    assert!(page.contains(".SH SYNOPSIS") && page.contains("solve"), "{page}");
    let place = Place::new();
    let folder = place.join("man").join("man1");
    exact2048(["man", "--out", folder.to_str().unwrap()]).exits(0);
    let help = exact2048(["--help"]).exits(0).stdout;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.into_iter().filter(|name| !name.is_empty() && *name != "help") {
        let page = fs::read_to_string(folder.join(format!("exact2048-{name}.1"))).unwrap();
        assert!(page.contains(".SH OPTIONS"), "{name}: {page}");
    }
    let without = |entry: fs::DirEntry| !entry.file_name().to_string_lossy().contains("help");
    assert!(fs::read_dir(&folder).unwrap().map(Result::unwrap).all(without), "pages of help are empty");
    let file = place.join("file");
    fs::write(&file, "").unwrap();
    exact2048(["man", "--out", file.to_str().unwrap()]).exits(1).says(&["/file"]);
}
