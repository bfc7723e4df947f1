//! Runs that store the values of other layers have the same values and answers, regardless of the length of a search.

use crate::common;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use common::{Place, Solved, exact2048, on_run, solve, text, try_solve, whole};
use exact2048_game::Board;
use exact2048_reference::Game;
use exact2048_solution::{
    CostSum, Evaluation, Oracle, OracleOptions, QueryError, QuestionLimits, Run, StartValues,
};
use proptest::prelude::*;

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

/// A solved game. The run stores two layers in every four.
struct Usual {
    job: &'static str,
    fingerprint: String,
    /// All states of the game.
    states: Vec<Board>,
    answers: Answers,
}

/// Answers of an oracle.
#[derive(PartialEq)]
struct Answers {
    starts: StartValues,
    values: Vec<Option<f64>>,
    /// Evaluations of some of the states.
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

/// The tests ask for the moves of one state in this number.
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

/// Choices of layers: all layers, or at least two neighbours of every period.
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

/// A cone above the memory limit is an error. If the cones of several states together exceed the limit, the oracle solves
/// them one by one, even without a cache.
#[test]
fn little_memory_suffices_or_is_an_error() {
    let usual = &GAMES[1];
    let solved = Solved::new(&format!("{} --keep 16", usual.job));
    let run = Run::open(&solved.run()).unwrap();
    let oracle = |cone_bytes, kept_bytes| {
        let options = OracleOptions {
            cache_bytes: kept_bytes,
            cone_bytes,
            solved_bytes: kept_bytes,
            cone_files: None,
            kernels: None,
        };
        Oracle::with_options(&run, options).unwrap()
    };
    for (cone_bytes, kept_bytes, every) in [(1 << 30, 0, 1), (2 << 20, 1 << 20, 1), (1 << 19, 0, 20)] {
        let some: Vec<Board> = usual.states.iter().copied().step_by(every).collect();
        let expected: Vec<_> = usual.answers.values.iter().copied().step_by(every).collect();
        let what = format!("{cone_bytes} bytes, {kept_bytes} kept");
        assert!(oracle(cone_bytes, kept_bytes).values(&some, ALWAYS).unwrap() == expected, "{what}");
    }
    let few = oracle(1000, 0).values(&usual.states, ALWAYS).unwrap_err();
    assert!(matches!(few, QueryError::TooLarge(_)), "{few}");
    assert!(oracle(1000, 0).starts().unwrap() == usual.answers.starts, "these are stored");
}

/// A solved cone is not solved again, neither by the same process nor by the next process with the same folder.
#[test]
fn solved_cones_are_found_again() {
    let usual = &GAMES[1];
    let place = Place::new();
    let solved = Solved::new(&format!("{} --keep 64", usual.job));
    let run = Run::open(&solved.run()).unwrap();
    let folder = place.join("cones");
    std::fs::create_dir(&folder).unwrap();
    let oracle = |most_bytes| {
        let cone_files = Some((folder.clone(), most_bytes));
        Oracle::with_options(&run, OracleOptions { cone_files, ..OracleOptions::default() }).unwrap()
    };
    let size = run.params().game().board();
    let asked: Vec<usize> =
        (0..usual.states.len()).filter(|&i| usual.states[i].tile_sum(size) == 30).collect();
    let computed = |oracle: &Oracle| {
        let spent = CostSum::default();
        let boards: Vec<Board> = asked.iter().map(|&i| usual.states[i]).collect();
        let values = oracle.values_as(&boards, &QuestionLimits::new(ALWAYS, 1 << 30, &spent)).unwrap();
        assert!(asked.iter().zip(values).all(|(&i, value)| value == usual.answers.values[i]));
        spent.computed_states()
    };
    let files = || -> Vec<PathBuf> {
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let first = oracle(1 << 30);
    let all = computed(&first);
    assert!(all > 2048, "{all}");
    assert_eq!(computed(&first), 0, "it is in memory");
    assert_eq!(computed(&oracle(1 << 30)), 0, "it is on disk");
    let [file] = &files()[..] else { panic!("{:?}", files()) };
    let bytes = std::fs::read(file).unwrap();
    // Damaged files, truncated files and files of another run are solved again.
    for at in (0..bytes.len()).step_by(bytes.len() / 100) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(file, damaged).unwrap();
        // Damage in an unused page does no harm.
        computed(&oracle(1 << 30));
        std::fs::write(file, &bytes[..at]).unwrap();
        assert_eq!(computed(&oracle(1 << 30)), all, "cut off at {at}");
        assert_eq!(std::fs::read(file).unwrap(), bytes, "made again");
    }
    let other = Solved::new(&format!("{} --keep 64", usual.job));
    let of_other = Run::open(&other.run()).unwrap();
    let cone_files = Some((folder.clone(), 1 << 30));
    let of_other =
        Oracle::with_options(&of_other, OracleOptions { cone_files, ..OracleOptions::default() }).unwrap();
    assert_eq!(computed(&of_other), all, "cones of another run are not its own");
    // The folder stays within its limits of bytes and files. Without write access, it stays unchanged.
    for nth in 0..600 {
        std::fs::write(folder.join(format!("000004-000008-{nth:016x}.cone")), "old").unwrap();
    }
    std::fs::remove_file(file).unwrap();
    assert_eq!(computed(&oracle(1 << 30)), all);
    assert_eq!(files().len(), 512);
    std::fs::remove_dir_all(&folder).unwrap();
    let little = oracle(bytes.len() as u64 - 1);
    assert_eq!(computed(&little), all);
    assert!(!folder.exists());
    std::fs::write(&folder, "a file").unwrap();
    assert_eq!(computed(&oracle(1 << 30)), all);
}

/// Every command knows which layers a run stores.
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

        // Only the layers of lost values are computed again.
        let values = common::shards(&run)
            .into_iter()
            .find(|shard| shard.to_string_lossy().contains("values"))
            .unwrap();
        std::fs::remove_file(values).unwrap();
        assert_eq!(text(&solve(&run, &job)["fingerprint"]), usual.fingerprint, "{keep}");

        let before = files(&run);
        let other = if keep == "4" { "all" } else { "4" };
        let converted = [
            (format!("--board 3x2 --keep {other}"), [keep, other]),
            (format!("{job} --values best-move"), ["layers", "best-move"]),
        ];
        for (options, choices) in converted {
            try_solve(&run, &options).exits(2).says(&choices).says(&["--run"]);
        }
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

/// An invalid choice of layers is wrong usage. The error names valid choices, and no files are made.
#[test]
fn invalid_choices_of_layers() {
    let place = Place::new();
    let coordinator = ["--coordinator", "http://127.0.0.1:1", "--board", "2x2"];
    for (keep, words) in [
        ("1/2", "1048576"),
        ("4/4", "1048576"),
        ("0/1", "1048576"),
        ("2/1048577", "1048576"),
        ("0", "1048576"),
        ("2", "`all`"),
        ("-4", "`all`"),
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
