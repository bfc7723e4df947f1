//! Runs that store the values of other layers: the same values, the same answers, however far a question has to search.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use common::reference::Game;
use common::{Place, Solved, exact2048, on_run, solve, text, try_solve, whole};
use exact2048_game::Board;
use exact2048_solution::{Evaluation, Oracle, Run, StartValues};
use proptest::prelude::*;

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

/// A game, solved with two layers in every four kept.
struct Usual {
    job: &'static str,
    fingerprint: String,
    /// All its states.
    states: Vec<Board>,
    answers: Answers,
}

/// What an oracle says.
#[derive(PartialEq)]
struct Answers {
    starts: StartValues,
    values: Vec<Option<f64>>,
    /// Of some of the states.
    evaluations: Vec<Evaluation>,
}

impl Answers {
    fn of(oracle: &Oracle, states: &[Board], evaluate_every: usize) -> Self {
        let some: Vec<Board> = states.iter().copied().step_by(evaluate_every).collect();
        let evaluations = oracle.evaluate_all(&some, ALWAYS).unwrap();
        Self {
            starts: oracle.starts().unwrap(),
            values: oracle.values(states, ALWAYS).unwrap(),
            evaluations: evaluations.into_iter().map(Result::unwrap).collect(),
        }
    }
}

/// One state in so many is asked about its moves too.
const EVALUATE_EVERY: usize = 7;

impl Usual {
    fn new(job: &'static str, board: &str, objective: &str) -> Self {
        let game = Game::new(board, objective, "1/10");
        let size = board.parse().unwrap();
        let reachable = game.solve().values;
        let mut states: Vec<Board> =
            reachable.keys().map(|state| Board::parse(&game.text(state), size).unwrap()).collect();
        states.sort();
        let solved = Solved::new(job);
        let oracle = Oracle::new(&Run::open(&solved.run()).unwrap()).unwrap();
        let answers = Answers::of(&oracle, &states, EVALUATE_EVERY);
        assert!(answers.values.iter().all(Option::is_some));
        Self { job, fingerprint: solved.fingerprint().to_owned(), states, answers }
    }
}

static GAMES: LazyLock<[Usual; 3]> = LazyLock::new(|| {
    [
        Usual::new("--board 2x2", "2x2", "score"),
        Usual::new("--board 3x2", "3x2", "score"),
        Usual::new("--board 3x2 --objective reach:32 --precision 64", "3x2", "reach:32"),
    ]
});

/// All layers, or at least two neighbours of every period.
fn kept_layers() -> impl Strategy<Value = (u32, u32)> {
    let some = (3u32..40).prop_flat_map(|period| (2..period.min(6), Just(period)));
    prop_oneof![1 => Just((1, 1)), 1 => Just((2, 1 << 20)), 6 => some]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn values_and_answers_are_the_same((width, period) in kept_layers(), game in 0usize..3) {
        let usual = &GAMES[game];
        let solved = Solved::new(&format!("{} --keep {width}/{period}", usual.job));
        prop_assert_eq!(solved.fingerprint(), &usual.fingerprint);
        let oracle = Oracle::new(&Run::open(&solved.run()).unwrap()).unwrap();
        prop_assert!(Answers::of(&oracle, &usual.states, EVALUATE_EVERY) == usual.answers);
    }
}

/// Where not all that a question needs may be open at once, it is answered piece by piece, also where nothing of it is
/// kept for the next piece.
#[test]
fn little_memory_is_enough() {
    let usual = &GAMES[1];
    for (keep, cache_bytes, open_states, every) in
        [("2/16", 1 << 20, 1000, 1), ("2/16", 1 << 20, 20, 1), ("2/16", 1 << 20, 0, 5), ("2/8", 0, 50, 500)]
    {
        let solved = Solved::new(&format!("{} --keep {keep}", usual.job));
        let run = Run::open(&solved.run()).unwrap();
        let oracle = Oracle::with_cache(&run, cache_bytes).unwrap().with_open_states(open_states);
        let some: Vec<Board> = usual.states.iter().copied().step_by(every).collect();
        let expected: Vec<_> = usual.answers.values.iter().copied().step_by(every).collect();
        let what = format!("{keep}, {cache_bytes} bytes, {open_states} states");
        assert!(oracle.values(&some, ALWAYS).unwrap() == expected, "{what}");
        assert!(oracle.starts().unwrap() == usual.answers.starts, "{what}");
    }
}

/// Every command knows what a run keeps.
#[test]
fn runs_that_keep_other_layers_are_runs() {
    let usual = &GAMES[1];
    let states = usual.states.len() as u64;
    let mut bytes = Vec::new();
    for keep in ["all", "4", "3/7", "16", "starts"] {
        let place = Place::new();
        let run = place.join("run");
        let job = format!("--board 3x2 --keep {keep}");
        let summary = solve(&run, &job);
        assert_eq!(text(&summary["fingerprint"]), usual.fingerprint, "{keep}");
        let info = on_run(&run, "info", &["--json"]).exits(0).json();
        assert_eq!((text(&info["progress"]), whole(&info["states"])), ("solved", states));
        assert_eq!(info["params"]["kept"].is_null(), keep == "4", "{info}");
        let verified = on_run(&run, "verify", &["--json"]).exits(0).json();
        assert_eq!(text(&verified["fingerprint"]), usual.fingerprint, "{keep}: {verified}");
        on_run(&run, "verify", &["--sample", "200"]).exits(0);
        on_run(&run, "verify", &["--layers", "20..40"]).exits(0);

        // Values that are lost are made again, of just those layers, and nothing else is.
        let values = common::shards(&run)
            .into_iter()
            .find(|shard| shard.to_string_lossy().contains("values"))
            .unwrap();
        std::fs::remove_file(values).unwrap();
        assert_eq!(text(&solve(&run, &job)["fingerprint"]), usual.fingerprint, "{keep}");

        let before = files(&run);
        let other = if keep == "4" { "--board 3x2 --keep all" } else { "--board 3x2" };
        try_solve(&run, other)
            .exits(2)
            .says(&[&format!("its choice of kept layers is {keep}, and"), "was asked for"]);
        assert_eq!(files(&run), before, "a run of another policy was changed");
        let shown = on_run(&run, "info", &[]).exits(0);
        let words = match keep {
            "all" => "all",
            "starts" => "those of the starts",
            "3/7" => "3 in every 7",
            _ => &format!("2 in every {keep}"),
        };
        assert!(shown.stdout.lines().any(|line| line.starts_with("kept layers") && line.ends_with(words)));
        bytes.push(whole(&summary["bytes_on_disk"]));
    }
    assert!(bytes.is_sorted_by(|more, fewer| more > fewer), "fewer kept layers take fewer bytes: {bytes:?}");
}

/// The files of a run, with their lengths.
fn files(run: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    for folder in [run.to_path_buf(), run.join("journal"), run.join("shards")] {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let data = entry.metadata().unwrap();
            files.extend(data.is_file().then(|| (entry.path(), data.len())));
        }
    }
    files.sort();
    files
}

/// What is no choice of layers is refused as wrong usage, with what would be one, before anything is made.
#[test]
fn layers_that_are_no_cut_are_refused() {
    let place = Place::new();
    let coordinator = ["--coordinator", "http://127.0.0.1:1", "--board", "2x2"];
    for (keep, words) in [
        ("1/2", "a width of 2 or more"),
        ("4/4", "less than the period"),
        ("0/1", "a width of 2 or more"),
        ("2/1048577", "at most 1048576"),
        ("0", "a width of 2 or more"),
        ("2", "`all`, or a number from 3 on"),
        ("-4", "a number N"),
        ("two", "`starts`"),
        ("", "`all`"),
    ] {
        let refused = try_solve(&place.join("run"), &format!("--board 2x2 --keep={keep}"));
        refused.exits(2).says(&["--keep", words]);
        exact2048([&["submit"], &coordinator[..], &[&format!("--keep={keep}")]].concat())
            .exits(2)
            .says(&["--keep", words]);
    }
    assert!(!place.join("run").exists());
}
