//! Output on terminals of several widths: no line wraps, and the final screen has only the result.

use crate::common;

use std::process::Stdio;

use common::cluster::{Cluster, start_coordinator};
use common::forge::Forge;
use common::terminal::{Terminal, on_terminal};
use common::{Finished, Place, Solved, command, exact2048, number, on_run, shards, solve, text};

const WIDTHS: [u16; 4] = [60, 80, 100, 160];

/// Widths of narrower terminals. Live displays fit these widths too.
const NARROW: [u16; 3] = [10, 20, 40];

#[test]
fn solve_fits_the_terminal() {
    for columns in WIDTHS {
        let place = Place::new();
        let run = place.join("run");
        let args = ["solve", "--board", "4x2", "--threads", "1", "--run", run.to_str().unwrap()];
        let seen = on_terminal(columns, &args);
        assert!(seen.status.success(), "{}", seen.screen);
        // A line with the path of the run may wrap, because the program does not shorten paths.
        let wrapped: Vec<&String> =
            seen.wrapped.iter().filter(|line| !line.contains("query --run")).collect();
        assert!(wrapped.is_empty(), "at {columns} columns: {wrapped:?}");
        for words in ["% of the upward pass", "layer ", "of 1,020", "states", "on disk"] {
            assert!(seen.shown.iter().any(|screen| screen.contains(words)), "{words}: {:?}", seen.shown);
        }
        for words in ["509, tile sums 4 to 1,020", "start         2,641.8730 (", "back up"] {
            assert!(seen.screen.contains(words), "{}", seen.screen);
        }
        assert!(!seen.screen.contains("ward pass"), "progress is left on the screen: {}", seen.screen);
    }
}

#[test]
fn progress_fits_narrow_terminals() {
    for columns in NARROW {
        let place = Place::new();
        let run = place.join("run");
        // Without --memory, the program may warn of a machine with little memory.
        let job = ["--board", "3x3", "--objective", "reach:512", "--threads", "1", "--memory", "256MiB"];
        let seen = on_terminal(columns, &[&["solve", "--run", run.to_str().unwrap()], &job[..]].concat());
        assert!(seen.status.success(), "{}", seen.screen);
        // Only the path of the run, and tables that need twenty columns, may wrap on the final screen.
        let wrapped: Vec<&String> =
            seen.wrapped.iter().filter(|line| !seen.screen.contains(line.trim_end())).collect();
        assert!(wrapped.is_empty(), "at {columns} columns: {wrapped:?}");
        let works = |screen: &&String| screen.starts_with("enumerat") || screen.starts_with("back up");
        let pictures: Vec<&String> = seen.shown.iter().filter(works).collect();
        let is_one = |screen: &&String| screen.matches("layer").count() == 1;
        assert!(pictures.len() > 5 && pictures.iter().all(is_one), "at {columns} columns: {pictures:?}");
        // The display shows the earlier speeds next to the current speed.
        let has_bars = |screen: &&String| screen.contains("/s ") && screen.contains('█');
        assert!(columns < 20 || pictures.iter().any(has_bars), "{pictures:?}");
    }
}

#[test]
fn facts_of_a_run_fit_the_terminal() {
    let solved = Solved::new("--board 4x2");
    let (run, shard) = (solved.run(), shards(&solved.run()).remove(0));
    let run = run.to_str().unwrap();
    for columns in WIDTHS {
        for args in [&["info", "--run", run][..], &["layers", "--run", run]] {
            let seen = on_terminal(columns, args);
            assert!(seen.status.success() && seen.wrapped.is_empty(), "{args:?}: {:?}", seen.wrapped);
        }
        let seen = on_terminal(columns, &["inspect", shard.to_str().unwrap()]);
        let wrapped: Vec<&String> = seen.wrapped.iter().filter(|line| !line.contains("/shards")).collect();
        assert!(wrapped.is_empty(), "at {columns} columns: {wrapped:?}");
    }
}

/// Tests a command that takes long for large tiles.
#[test]
fn counting_shows_progress() {
    for columns in WIDTHS {
        let seen = on_terminal(columns, &["count", "--board", "4x4", "--target", "2048"]);
        assert!(seen.status.success() && seen.wrapped.is_empty(), "{:?}", seen.wrapped);
        let says = |screen: &String| screen.starts_with("count ") && screen.contains("%, ");
        assert!(
            seen.shown.iter().any(|screen| says(screen) && screen.contains(" so far")),
            "{:?}",
            seen.shown
        );
        assert!(!seen.screen.contains("so far"), "progress is left on the screen: {}", seen.screen);
    }
}

/// Names of all subcommands.
pub fn subcommands() -> Vec<String> {
    let commands = exact2048(["--help"]).exits(0).stdout;
    let commands = commands.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Continuation lines of a description have a larger indent.
    let names = commands.lines().filter(|line| !line.starts_with("   "));
    let names: Vec<String> =
        names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect();
    assert!(names.contains(&"solve".to_owned()) && names.len() > 12, "{names:?}");
    names.into_iter().filter(|name| name != "help").collect()
}

#[test]
fn help_is_wrapped_once_and_its_examples_can_be_copied() {
    let names = subcommands();
    for columns in WIDTHS {
        for name in &names {
            let seen = on_terminal(columns, &[name, "--help"]);
            assert!(seen.wrapped.is_empty(), "{name} at {columns} columns: {:?}", seen.wrapped);
            // Help on a terminal and help in a file have the same commands, with other line breaks.
            let examples = examples(&seen.screen);
            assert_eq!(examples, self::examples(&exact2048([name, "--help"]).exits(0).stdout), "{name}");
            assert!(!examples.is_empty(), "{name} has no examples");
            // If text were wrapped twice, a line in the middle of a paragraph would be short.
            let notes = seen.screen.split("Examples:").nth(1).unwrap();
            let lines: Vec<&str> = notes.lines().filter(|line| !line.starts_with(' ')).collect();
            for pair in lines.windows(2).filter(|pair| !pair[0].is_empty() && !pair[1].is_empty()) {
                let next = pair[1].split_whitespace().next().unwrap();
                let room = pair[0].chars().count() + 1 + next.chars().count();
                assert!(room > usize::from(columns.min(100)), "{name} at {columns}: {pair:?}");
            }
        }
        let seen = on_terminal(columns, &["--help"]);
        assert!(seen.wrapped.is_empty(), "at {columns} columns: {:?}", seen.wrapped);
        assert!(seen.screen.contains("Exit codes"), "{}", seen.screen);
    }
}

/// Without a terminal, `COLUMNS` sets the width of help. The default is 80 columns.
#[test]
fn help_in_a_file_is_as_wide_as_it_is_asked_to_be() {
    let names = subcommands();
    for (set, columns) in
        [(Some("60"), 60), (Some("80"), 80), (None, 80), (Some("wide"), 80), (Some("0"), 80)]
    {
        let mut widest = 0;
        for name in names.iter().map(String::as_str).chain([""]) {
            let args = [name, "--help"];
            let mut help = command(args.iter().filter(|arg| !arg.is_empty()));
            match set {
                Some(text) => help.env("COLUMNS", text),
                None => help.env_remove("COLUMNS"),
            };
            // The program has no terminal here, even if the tests have one.
            let help = Finished::new(help.stderr(Stdio::piped()).output().unwrap()).exits(0).stdout;
            for line in help.lines() {
                let width = line.chars().count();
                assert!(width <= columns, "{name} with COLUMNS={set:?}: {width}: {line}");
                widest = widest.max(width);
            }
        }
        assert!(widest > columns - 5, "{widest} of {columns} columns are used");
    }
}

/// The examples of a help text, each in one line, because a shell joins continued lines.
pub fn examples(help: &str) -> Vec<String> {
    let of_examples = help.split("Examples:\n").nth(1).unwrap_or_default();
    let lines = of_examples.lines().take_while(|line| line.starts_with("  "));
    let joined: String = lines.map(|line| line.trim_end().to_owned() + "\n").collect();
    let joined = joined.replace(" \\\n      ", " ");
    joined.lines().map(str::to_owned).collect()
}

/// Tables of every command fit the width.
#[test]
fn tables_fit_the_terminal() {
    let solved = Solved::new("--board 4x2");
    let run = solved.run();
    let run = run.to_str().unwrap();
    // A run with few states, for commands that read them all.
    let small = Solved::new("--board 3x2");
    let small = small.run();
    let small = small.to_str().unwrap();
    for columns in WIDTHS {
        for (args, words) in [
            (&["count", "--run", run][..], &["within the tile bound", "up to symmetry", "4,980,767"][..]),
            (&["count", "--board", "4x4", "--target", "2048"], &["up to symmetry", "won boards"]),
            (&["bag", "--target", "2048", "--simulate", "1000"], &["deviation", "confidence", "absorbing"]),
            (&["bag", "--target", "64", "--exact"], &["deviation", "variance"]),
            (&["play", "--player", "greedy", "--games", "20"], &["95% confidence", "least"]),
            (
                &["evaluate", "--player", "greedy", "--run", small],
                &["player's", "reached", "mean loss", "worst"],
            ),
            (
                &["stats", "--run", small, "--cutoff", "1e-9"],
                &["largest at the end", "ended by layer", "left out"],
            ),
            (&["query", "--run", run, "64 32 / 16 8 / 4 2 / 128 2"], &["afterstate", "canonical"]),
            (&["query", "--run", run, "rubbish / rubbish and more of that which is no board"], &["expected"]),
            (&["query", "--run", run, "512 512 / 512 512 / 512 512 / 512 512"], &["not reachable"]),
            (&["verify", "--run", run, "--sample", "5"], &["Nothing is wrong"]),
            (&["solve", "--board", "9x9", "--run", run], &["out of range"]),
            (&["solve", "--run", run, "--no-such-option"], &["unexpected argument"]),
            (&["solve", "--board", "3x3", "--run", run], &["another job"]),
        ] {
            let seen = on_terminal(columns, args);
            // Lines with a path may wrap, because the program does not shorten paths.
            let wrapped: Vec<&String> = seen.wrapped.iter().filter(|line| !line.contains("/run")).collect();
            assert!(wrapped.is_empty(), "{args:?} at {columns} columns: {wrapped:?}");
            let on_screen = seen.screen.split_whitespace().collect::<Vec<_>>().join(" ");
            for word in words {
                assert!(on_screen.contains(word), "{word:?} of {args:?} at {columns}: {}", seen.screen);
            }
        }
    }
}

/// The screen of a watching client while the coordinator does not answer.
const ALONE: &str = "the coordinator does not answer; waiting for it";

#[test]
fn a_job_that_is_watched_fits_the_terminal() {
    for columns in [20, 60, 160] {
        let mut cluster = Cluster::new(1);
        let job = cluster.submit("--board 3x3 --objective reach:512");
        let url = cluster.coordinator.url.clone();
        let watching = Terminal::start(columns, &["status", "--coordinator", &url, &job, "--watch"]);
        let all = Terminal::start(columns, &["status", "--coordinator", &url, "--watch"]);
        for terminal in [&watching, &all] {
            terminal.wait_until("at work", |screen| screen.contains("running,") && screen.contains('█'));
            assert!(terminal.now().starts_with(&format!("{job} ")), "{}", terminal.now());
        }
        let address = cluster.coordinator.address().to_string();
        cluster.coordinator.kill();
        let is_alone = |screen: &str| screen.split_whitespace().eq(ALONE.split_whitespace());
        // The new screen has replaced the earlier one.
        watching.wait_until("without a coordinator", is_alone);
        all.wait_until("without a coordinator", is_alone);
        let all = all.stop();
        assert!(all.wrapped.is_empty(), "at {columns} columns: {:?}", all.wrapped);
        cluster.coordinator = start_coordinator(&cluster.store(), &address);
        let tables = on_terminal(columns, &["status", "--coordinator", &url]);
        assert!(columns < 60 || tables.wrapped.is_empty(), "at {columns} columns: {:?}", tables.wrapped);
        let one = on_terminal(columns, &["status", "--coordinator", &url, &job]);
        let of_url = |line: &String| columns < 60 || line.contains("file://");
        assert!(one.wrapped.iter().all(of_url), "at {columns} columns: {:?}", one.wrapped);
        let seen = watching.end();
        assert!(seen.status.success(), "{}", seen.screen);
        // On the final screen, a line with the URL of the run may wrap.
        let is_left = |line: &&String| seen.screen.contains(line.trim_end());
        let wrapped: Vec<&String> = seen.wrapped.iter().filter(|line| !is_left(line)).collect();
        assert!(wrapped.is_empty(), "at {columns} columns: {wrapped:?}");
        let heads = |screen: &String| screen.matches("running,").count();
        let twice = seen.shown.iter().find(|screen| heads(screen) > 1);
        assert!(twice.is_none(), "two pictures at once:\n{}", twice.map_or("", |screen| screen));
        assert!(seen.screen.starts_with("job "), "something is left above the end: {}", seen.screen);
        for words in ["start 0.736774", "fingerprint e8321969", " time ", " back up "] {
            let said = seen.screen.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(words), "{words:?} is missing: {}", seen.screen);
        }
    }
}

/// A run counts the time of all processes that worked on it.
#[test]
fn times_are_kept_with_the_run() {
    let solved = Solved::new("--board 4x2 --threads 2");
    let enumerate = number(&solved.summary["seconds"]["enumerate"]);
    assert!(enumerate > 0.0);
    let values = shards(&solved.run()).into_iter().find(|path| path.to_str().unwrap().contains("values-"));
    std::fs::remove_file(values.unwrap()).unwrap();
    let again = solve(&solved.run(), "--board 4x2 --threads 1");
    assert_eq!(number(&again["seconds"]["enumerate"]), enumerate, "nothing was enumerated again");
    assert!(number(&again["seconds"]["solve"]) > 0.0);
    assert!(number(&again["seconds"]["total"]) > enumerate);
    let info = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
    assert_eq!(number(&info["passes"][0]["seconds"]), enumerate);
    let info = on_run(&solved.run(), "info", &[]).exits(0).stdout;
    assert!(
        info.contains("ns a state with 2 threads") && info.contains("ns a state with 1 thread\n"),
        "{info}"
    );
    // The time of an earlier command counts, regardless of its age.
    let mut forge = Forge::open(&solved.run());
    let commits = forge.records.iter_mut().map(|(_, body)| &mut body["record"]);
    let up: Vec<_> = commits.filter(|record| record["commit"]["phase"] == "enumerate").collect();
    let whole = 1000.0 * up.len() as f64;
    up.into_iter().for_each(|record| record["took"]["seconds"] = 1000.0.into());
    (0..forge.records.len()).for_each(|record| forge.write_record(record));
    let values = shards(&solved.run()).into_iter().find(|path| path.to_str().unwrap().contains("values-"));
    std::fs::remove_file(values.unwrap()).unwrap();
    let again = solve(&solved.run(), "--board 4x2 --threads 1");
    assert_eq!(number(&again["seconds"]["enumerate"]), whole);
    assert!(number(&again["seconds"]["total"]) > whole);
    // On a small board, the time per state is meaningless.
    let small = Solved::new("--board 2x2");
    let info = on_run(&small.run(), "info", &[]).exits(0).stdout;
    assert!(info.contains("time") && !info.contains("ns a state"), "{info}");
}

#[test]
fn info_sees_lost_shards_and_the_writer() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let info = || on_run(&run, "info", &["--json"]).exits(0).json();
    assert_eq!((text(&info()["progress"]), info()["writer"].is_null()), ("solved", true));
    let writer = exact2048_storage::RunDir::open_for_writing(&run).unwrap();
    let pid = format!("process {}", std::process::id());
    assert_eq!(text(&info()["writer"]), pid);
    assert!(on_run(&run, "info", &[]).exits(0).stdout.contains(&pid));
    drop(writer);
    let shard = shards(&run).remove(0);
    let whole = std::fs::read(&shard).unwrap();
    std::fs::write(&shard, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(text(&info()["progress"]), "damaged");
    assert_eq!(info()["passes"][0]["lost"], serde_json::json!([[4, 60]]));
    std::fs::remove_file(&shard).unwrap();
    let printed = on_run(&run, "info", &[]).exits(0).stdout;
    assert!(printed.contains("4 to 60") && printed.contains("solve"), "{printed}");
    std::fs::write(&shard, whole).unwrap();
    assert_eq!(text(&info()["progress"]), "solved");
}
