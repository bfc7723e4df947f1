//! Runs that begin at a position: `solve --from`.

use crate::common;

use common::snapshots::assert_usage;
use common::{Place, Solved, close, layers, number, on_run, query, solve, text, try_solve, whole};
use exact2048_reference::{Board, Game, Solution, as_f64};

/// Options of `solve` for a run from a board. Commas separate cells, because spaces separate options.
fn options(job: &str, from: &str) -> String {
    format!("{job} --from {}", from.replace(" / ", "/").replace(' ', ","))
}

/// The exponents of a board as text.
fn board(text: &str) -> Board {
    let mut board = Board::default();
    let cells = text.split([' ', '/']).filter(|cell| !cell.is_empty());
    for (cell, tile) in board.iter_mut().zip(cells.map(|cell| cell.parse::<u32>().unwrap())) {
        *cell = if tile == 0 { 0 } else { tile.ilog2() as u8 };
    }
    board
}

/// A few states of a whole game, from low, middle and high layers, which have a legal move.
fn positions(game: &Game, solution: &Solution) -> Vec<Board> {
    let sums: Vec<u32> = solution.layers.keys().copied().collect();
    let mut found = Vec::new();
    for sum in [1, sums.len() / 5, sums.len() / 2, sums.len() * 4 / 5].map(|nth| sums[nth]) {
        let mut states: Vec<Board> = solution.layers[&sum].states.iter().copied().collect();
        states.sort();
        states.retain(|state| !game.moves(state).is_empty());
        found.extend(states.get(states.len() / 2).copied());
    }
    found
}

/// Values of states equal those of the whole run, bit for bit. The counts equal those of the slow reference.
#[test]
fn values_are_those_of_the_whole_game() {
    for (size, objective, rules, more) in [
        ("3x2", "score", ("1/10", "1/1", false), ["", "--keep 16", "--keep all", "--values best-move"]),
        ("2x3", "reach:64", ("1/3", "1/1", false), ["", "--keep 3", "--keep starts", "--large 3"]),
        ("3x2", "lose:32", ("1/10", "1/1", false), ["--precision 64", "--large 5", "--keep 16", ""]),
        (
            "2x4:.xx./....",
            "score",
            ("1/10", "1/1", false),
            ["", "--keep 16", "--large 3", "--values best-move"],
        ),
        (
            "3x3:#../.../..#",
            "reach:32",
            ("1/3", "1/1", false),
            ["--keep 3", "--keep starts", "", "--keep all"],
        ),
        ("2x2", "score", ("0/1", "1/1", true), ["", "--keep all", "--precision 64", "--keep starts"]),
        ("3x2", "reach:32", ("1/10", "19/20", true), ["", "--keep 16", "--precision 64", "--keep starts"]),
    ] {
        let (spawn4, discount, worst) = rules;
        let spawner = if worst { "worst" } else { "random" };
        let game = || {
            let game = Game::new(size, objective, spawn4).discounted(discount);
            if worst { game.against_the_worst() } else { game }
        };
        let solution = game().solve();
        let job = format!(
            "--board {size} --objective {objective} --spawn4 {spawn4} --discount {discount} --spawner {spawner}"
        );
        for (position, more) in positions(&game(), &solution).into_iter().zip(more) {
            let wide = if more.contains("64") { "--precision 64" } else { "" };
            let whole_run = Solved::new(&format!("{job} {wide}"));
            let job = options(&format!("{job} {more}"), &game().text(&position));
            let run = Solved::new(&job);
            let expected = game().from(position).enumerate(u32::MAX - 8);
            let counts: Vec<_> = expected
                .iter()
                .map(|(&sum, l)| (u64::from(sum), l.states.len() as u64, l.afterstates.len() as u64))
                .collect();
            let found: Vec<_> = layers(&run.run()).into_iter().filter(|&(_, states, _)| states > 0).collect();
            assert_eq!(found, counts, "{job}");
            assert_eq!(layers(&run.run())[0].0, u64::from(game().sum(&position)), "{job}");
            let states: Vec<Board> =
                expected.values().flat_map(|layer| layer.states.iter().copied()).collect();
            let every = states.len().div_ceil(1500);
            let boards: Vec<String> = states.iter().step_by(every).map(|state| game().text(state)).collect();
            let (ours, theirs) = (query(&run.run(), &boards), query(&whole_run.run(), &boards));
            for (ours, theirs) in ours.iter().zip(&theirs) {
                if more.contains("best-move") {
                    let mut moves = theirs["moves"].as_array().unwrap().iter();
                    let is_best = moves.any(|way| way["best"] == true && way["move"] == ours["best"]);
                    assert!(is_best || ours["best"].is_null() && theirs["best"].is_null(), "{job}: {ours}");
                } else {
                    assert_eq!(
                        (&ours["value"], &ours["moves"]),
                        (&theirs["value"], &theirs["moves"]),
                        "{job}"
                    );
                }
            }
            let start = &run.summary["start"];
            let value = as_f64(solution.values[&game().canonical(&position)]);
            close(number(&start["expected"]), value, number(&start["error_bound"]) + 1e-9, &job);
            on_run(&run.run(), "verify", &[]).exits(0);
        }
    }
}

const POSITION: &str = "16 8 2 / 4 2 0 / 2 0 0";

/// A board and its images are the same run, and the same command resumes it. Another position is refused.
#[test]
fn images_are_the_same_run() {
    let place = Place::new();
    let run = place.join("run");
    let first = solve(&run, &options("--board 3x3 --objective reach:64", POSITION));
    let image = options("--board 3x3 --objective reach:64", "0 0 2 / 0 2 8 / 2 4 16");
    let again = solve(&run, &image);
    let again_transposed =
        solve(&run, &options("--board 3x3 --objective reach:64", "16 4 2 / 8 2 0 / 2 0 0"));
    for other in [&again, &again_transposed] {
        assert_eq!((&first["from"], &first["fingerprint"]), (&other["from"], &other["fingerprint"]));
    }
    try_solve(&run, &options("--board 3x3 --objective reach:64", "16 8 2 / 4 2 0 / 4 0 0"))
        .exits(2)
        .says(&["from"]);
    try_solve(&run, "--board 3x3 --objective reach:64").exits(2).says(&["from", "none"]);
}

/// An interrupted run resumes to the same bits, with each choice of kept layers.
#[test]
fn stopped_runs_resume() {
    for more in ["", "--keep 16", "--keep starts --disk 10MB", "--values best-move"] {
        let job = options(&format!("--board 3x3 --objective reach:128 {more}"), POSITION);
        let whole_run = Solved::new(&job);
        let place = Place::new();
        let run = place.join("run");
        for delay in [30, 60, 120, 200] {
            let mut command = common::command(common::solve_args(&run, &job));
            let mut child = command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(std::time::Duration::from_millis(delay));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(text(&solve(&run, &job)["fingerprint"]), whole_run.fingerprint(), "{more}");
        assert_eq!(layers(&run), layers(&whole_run.run()));
        // A disk limit may have removed reach.
        on_run(&run, "verify", &["--partial"]).exits(0);
    }
}

/// All other commands work on such a run.
#[test]
fn commands_know_where_the_run_begins() {
    let run = Solved::new(&options("--board 3x3 --objective score", "64 32 16 / 8 4 2 / 2 0 0"));
    let info = on_run(&run.run(), "info", &["--json"]).exits(0).json();
    assert_eq!(info["params"]["from"], run.summary["from"]);
    let counted = layers(&run.run());
    assert_eq!(counted[0], (128, 1, counted[0].2));
    let below = on_run(&run.run(), "query", &["2 2 0 / 0 0 0 / 0 0 0"]).exits(3);
    assert!(below.stderr.contains("the position from which the run begins"), "{below:?}");
    let expected = number(&run.summary["start"]["expected"]);
    let stats = on_run(&run.run(), "stats", &["--json"]).exits(0).json();
    close(number(&stats["value"]["value"]), expected, 1e-2, "the value by chances");
    close(stats["layers"][0]["reached"].as_f64().unwrap(), 1.0, 1e-12, "all games begin there");
    let place = run.run();
    let args = ["play", "--player", "perfect", "--games", "300", "--json", "--run", place.to_str().unwrap()];
    let played = common::exact2048(args).exits(0).json();
    let (mean, half) = (number(&played["score"]["mean"]), number(&played["score"]["half_width"]));
    close(mean, expected, 2.0 * half, "the mean score of games from the position");
}

/// Games of any player begin at a given board.
#[test]
fn games_begin_at_the_given_board() {
    let args = |from: &str| {
        let args = ["play", "--board", "2x2", "--player", "greedy", "--games", "3", "--json", "--from"];
        common::exact2048(args.into_iter().chain([from]))
    };
    let played = args("8 4 / 2 2").exits(0).json();
    assert_eq!(text(&played["from"]), "8 4 / 2 2");
    args("8 4 / 2 4").exits(0);
    args("8 4 / 4 2").exits(2).says(&["--from", "legal move"]);
    args("8 4 / 2").exits(2).says(&["--from"]);
}

/// Positions that no game can have, and how the program says so.
#[test]
fn wrong_positions_are_refused() {
    assert_usage("from");
}

/// A position that no start leads to is fine if it stands within the bounds of the game.
#[test]
fn positions_that_no_game_reaches_are_solved() {
    // On a board of four cells in a row, no game brings a 2 between two 16s so early.
    let solved = Solved::new(&options("--board 1x4", "16 2 16 0"));
    let game = Game::new("1x4", "score", "1/10").from(board("16 2 16 0"));
    let solution = game.solve();
    assert_eq!(whole(&solved.summary["states"]), solution.values.len() as u64);
    let value = as_f64(solution.values[&game.canonical(&board("16 2 16 0"))]);
    close(number(&solved.summary["start"]["expected"]), value, 1e-3, "the value");
    on_run(&solved.run(), "verify", &[]).exits(0);
}
