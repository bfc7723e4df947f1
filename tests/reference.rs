//! The value of every state and the counts of every layer, compared with a slow and simple solver.

use crate::common;

use std::collections::HashSet;

use common::{Solved, close, layers, number, query, text, whole};
use exact2048_reference::{Board, DIRECTIONS, Game, Solution, as_f64};
use serde_json::Value;

/// A game, and the number of its states to compare.
pub struct Case<'a> {
    pub board: &'a str,
    pub objective: &'a str,
    pub spawn4: &'a str,
    /// The discount (`1/1` for none), and whether an adversary chooses the spawns.
    pub rules: (&'a str, bool),
    /// Options of `solve` that must not change any result beyond the error bound.
    pub variants: &'a [&'a str],
    /// Largest number of states to compare, spread evenly.
    pub most_states: usize,
}

pub const ALL: usize = usize::MAX;

/// Rules without a discount, with random spawns.
pub const USUAL: (&str, bool) = ("1/1", false);

impl Case<'_> {
    /// Compares counts, starts and states of all variants.
    fn check(&self) {
        self.check_and(|_, _, _| ());
    }

    /// Compares counts, starts and states of all variants, and calls `check` with each run, its solution and its job.
    pub fn check_and(&self, check: impl Fn(&Solved, &Solution, &str)) {
        let game = self.game();
        let solution = game.solve();
        let sample = self.sample(&solution);
        let mut fingerprints = HashSet::new();
        for variant in self.variants {
            let (discount, spawner) = (self.rules.0, if self.rules.1 { "worst" } else { "random" });
            let job = format!(
                "--board {} --objective {} --spawn4 {} --discount {discount} --spawner {spawner} {variant}",
                self.board, self.objective, self.spawn4
            );
            let solved = Solved::new(&job);
            check_counts(&solved, &solution, &job);
            check_starts(&game, &solved, &solution, &job);
            let boards: Vec<String> = sample.iter().map(|state| game.text(state)).collect();
            for (state, answer) in sample.iter().zip(query(&solved.run(), &boards)) {
                check_answer(&game, &solution, state, &answer, &job);
            }
            check(&solved, &solution, &job);
            if !variant.contains("--precision 64") {
                fingerprints.insert(solved.fingerprint().to_owned());
            }
        }
        assert!(fingerprints.len() <= 1, "the variants of {} differ: {fingerprints:?}", self.board);
    }

    fn game(&self) -> Game {
        let game = Game::new(self.board, self.objective, self.spawn4).discounted(self.rules.0);
        if self.rules.1 { game.against_the_worst() } else { game }
    }

    /// A sample of states from all layers, each as one of its images.
    fn sample(&self, solution: &Solution) -> Vec<Board> {
        let game = self.game();
        let mut states: Vec<Board> = Vec::new();
        for layer in solution.layers.values() {
            let mut of_layer: Vec<Board> = layer.states.iter().copied().collect();
            of_layer.sort();
            states.extend(of_layer);
        }
        let every = states.len().div_ceil(self.most_states);
        let image = |(i, state): (usize, Board)| {
            let images = game.images(&state);
            images[i % images.len()]
        };
        states.into_iter().step_by(every).enumerate().map(image).collect()
    }
}

fn check_counts(solved: &Solved, solution: &Solution, job: &str) {
    let expected: Vec<_> = solution
        .layers
        .iter()
        .map(|(&sum, l)| (u64::from(sum), l.states.len() as u64, l.afterstates.len() as u64))
        .collect();
    assert_eq!(layers(&solved.run()), expected, "{job}");
    assert_eq!(whole(&solved.summary["states"]), solution.values.len() as u64, "{job}");
}

fn check_starts(game: &Game, solved: &Solved, solution: &Solution, job: &str) {
    let start = &solved.summary["start"];
    let (expected, by_layer) = game.start_values(solution);
    let bound = number(&start["error_bound"]);
    close(number(&start["expected"]), expected, bound + printed(expected), job);
    let found = start["by_layer"].as_object().unwrap();
    assert_eq!(found.len(), 3);
    for (layer, mean) in by_layer {
        close(number(&found[&layer.to_string()]), mean, bound + printed(mean), job);
    }
}

/// Error of a value or mean printed as a double, plus the error of the reference: fewer than 2^12 roundings of 2^-80 each.
fn printed(value: f64) -> f64 {
    4.0 * value.abs() * f64::EPSILON + 2f64.powi(-68)
}

/// Compares an answer with the reference, field by field.
fn check_answer(game: &Game, solution: &Solution, state: &Board, answer: &Value, job: &str) {
    let asked = game.text(state);
    let what = format!("{asked}, {job}");
    assert_eq!(text(&answer["board"]), asked, "{job}");
    assert!(
        game.images(state).iter().any(|image| game.text(image) == text(&answer["canonical"])),
        "{what}: {} is no image",
        answer["canonical"]
    );
    assert_eq!(whole(&answer["layer"]), u64::from(game.sum(state)), "{what}");

    let bound = number(&answer["error_bound"]);
    let value = as_f64(solution.values[&game.canonical(state)]);
    close(number(&answer["value"]), value, bound + printed(value), &what);

    let moves = answer["moves"].as_array().unwrap();
    let names: Vec<&str> = moves.iter().map(|m| text(&m["move"])).collect();
    assert_eq!(names, DIRECTIONS, "{what}");
    for (found, expected) in moves.iter().zip(game.move_values(state, solution)) {
        assert_eq!(found["legal"], expected.is_some(), "{what}: {found}");
        if let Some((after, score, value)) = expected {
            assert_eq!(text(&found["afterstate"]), game.text(&after), "{what}");
            assert_eq!(whole(&found["score"]), u64::from(score), "{what}");
            let value = as_f64(value);
            // Uses the error bound of the move, or else the error bound of the board.
            let bound = if found["error_bound"].is_null() { bound } else { number(&found["error_bound"]) };
            close(
                number(&found["value"]),
                value,
                bound + printed(value),
                &format!("{}: {what}", found["move"]),
            );
            check_worst(game, solution, &after, found, &what);
        }
    }
    check_best(answer, moves, &what);
}

/// Requires that the reported worst spawn is the first of all worst spawns.
fn check_worst(game: &Game, solution: &Solution, after: &Board, found: &Value, what: &str) {
    let Some(reported) = found["worst_spawn"].as_str() else {
        assert!(!game.has_adversary() || game.is_won(after), "{what}: {found}");
        return;
    };
    assert!(game.has_adversary() && !game.is_won(after), "{what}: {found}");
    if what.contains("--value-step") && !what.contains("--discount 1/1") {
        // The worst of several spawns by rounded values.
        return;
    }
    let spawns = game.spawn_values(after, solution);
    let least = spawns.iter().map(|(_, value)| *value).min();
    let place = |board: &Board| {
        let cell = (0..board.len()).find(|&cell| board[cell] != after[cell]).unwrap();
        (cell, board[cell])
    };
    let worst = spawns.iter().filter(|(_, value)| Some(*value) == least).map(|(board, _)| board);
    let first = worst.min_by_key(|board| place(board)).unwrap();
    assert_eq!(reported, game.text(first), "{what}: {found}");
}

/// Requires that the best move has the value of the state. A best move must exist exactly if a move is legal.
fn check_best(answer: &Value, moves: &[Value], what: &str) {
    let legal = || moves.iter().filter(|m| m["legal"] == true);
    let Some(best) = answer["best"].as_str() else {
        assert!(answer["best"].is_null() && legal().count() == 0, "{what}: {answer}");
        return;
    };
    let best = legal().find(|m| m["move"] == best);
    let best =
        number(&best.unwrap_or_else(|| panic!("{what}: the best move is not legal: {answer}"))["value"]);
    let values = legal().map(|m| number(&m["value"]));
    let wanted =
        if what.contains("lose:") { values.fold(f64::MAX, f64::min) } else { values.fold(0.0, f64::max) };
    assert_eq!(best, wanted, "{what}: {answer}");
    assert_eq!(best, number(&answer["value"]), "{what}: {answer}");
}

#[test]
fn tiny_boards_in_every_way() {
    for board in ["2x2", "4x1", "1x4", "1x2", "2x1", "1x3"] {
        for spawn4 in ["1/10", "0/1", "1/3", "1/1", "65535/65536"] {
            let variants = &["", "--large 3", "--large 5", "--large 6", "--precision 64"];
            Case { board, objective: "score", spawn4, rules: USUAL, variants, most_states: ALL }.check();
        }
    }
    for board in ["2x2", "1x4"] {
        for objective in ["reach:8", "reach:16", "reach:32"] {
            for spawn4 in ["1/10", "0/1", "1/3", "1/1"] {
                let variants = &["", "--large 3", "--large 5", "--precision 64", "--threads 1"];
                Case { board, objective, spawn4, rules: USUAL, variants, most_states: ALL }.check();
            }
        }
    }
}

#[test]
fn all_states_of_boards_of_five_cells() {
    for board in ["1x5", "5x1"] {
        for objective in ["score", "reach:16", "reach:64"] {
            let variants = &["", "--large 3", "--large 5", "--precision 64"];
            Case { board, objective, spawn4: "1/10", rules: USUAL, variants, most_states: ALL }.check();
        }
    }
}

#[test]
fn all_states_of_3x2() {
    let variants = &["", "--precision 64", "--keep 1/1", "--keep 2/16"];
    Case { board: "3x2", objective: "score", spawn4: "1/10", rules: USUAL, variants, most_states: ALL }
        .check();
}

#[test]
fn all_states_of_2x3_with_other_spawns() {
    let variants = &["--large 3", "--precision 64 --large 5"];
    Case { board: "2x3", objective: "score", spawn4: "1/3", rules: USUAL, variants, most_states: ALL }
        .check();
}

#[test]
fn states_of_six_cells_at_the_ends_of_the_spawn_range() {
    for spawn4 in ["0/1", "1/1"] {
        let variants = &["", "--large 3", "--large 5", "--precision 64"];
        Case { board: "3x2", objective: "score", spawn4, rules: USUAL, variants, most_states: 3000 }.check();
    }
}

#[test]
fn states_of_six_cells_reaching_tiles() {
    for objective in ["reach:8", "reach:16", "reach:32", "reach:64", "reach:128"] {
        let variants = &["", "--large 3", "--large 5", "--precision 64"];
        Case { board: "3x2", objective, spawn4: "1/10", rules: USUAL, variants, most_states: 2000 }.check();
        Case { board: "2x3", objective, spawn4: "1/3", rules: USUAL, variants, most_states: 2000 }.check();
    }
}

/// Symmetries fix some skeletons of square boards. The case 3x3 tests the counts of such skeletons.
#[test]
fn states_of_3x3_reaching_tiles() {
    for (objective, most_states) in [("reach:16", 5000), ("reach:32", 5000)] {
        let variants = &["", "--large 3", "--large 5", "--precision 64"];
        Case { board: "3x3", objective, spawn4: "1/10", rules: USUAL, variants, most_states }.check();
    }
}

#[test]
fn states_of_4x2_scoring() {
    let variants = &["", "--large 3", "--large 5", "--precision 64"];
    Case { board: "4x2", objective: "score", spawn4: "1/10", rules: USUAL, variants, most_states: 2000 }
        .check();
}

#[test]
fn states_of_2x4_reaching_tiles() {
    let variants = &["", "--large 3", "--precision 64"];
    Case { board: "2x4", objective: "reach:64", spawn4: "1/4", rules: USUAL, variants, most_states: 3000 }
        .check();
}

/// Tests discounted wins, tiny probabilities of a loss, and an adversary, with values in floating point and fixed point.
#[test]
fn states_under_other_rules() {
    let variants = &["", "--large 5 --keep 2/16", "--precision 64"];
    let discounts = [("19/20", false), ("1/3", false), ("99/100", true)];
    let with_tile = discounts.into_iter().chain([("1/1", true)]);
    for rules in with_tile {
        for spawn4 in ["1/10", "0/1", "1/1"] {
            Case { board: "2x2", objective: "reach:16", spawn4, rules, variants, most_states: ALL }.check();
        }
        let (board, objective) = ("3x2", "reach:32");
        Case { board, objective, spawn4: "1/10", rules, variants, most_states: 2000 }.check();
    }
    for (board, objective, rules) in [
        ("2x2", "lose:16", USUAL),
        ("3x2", "lose:16", USUAL),
        ("2x3", "lose:64", USUAL),
        ("2x2", "score", ("1/1", true)),
        ("3x2", "score", ("1/1", true)),
    ] {
        for spawn4 in ["1/10", "0/1", "1/1"] {
            Case { board, objective, spawn4, rules, variants, most_states: 1500 }.check();
        }
    }
    for (objective, rules) in [("reach:16", ("9/10", false)), ("lose:32", USUAL), ("reach:32", ("1/1", true))]
    {
        Case { board: "3x3", objective, spawn4: "1/10", rules, variants, most_states: 2000 }.check();
    }
}

/// Answers from rounded values are within the bound that they show, and the fingerprint is that of the unrounded values.
#[test]
fn rounded_values_are_within_their_bounds() {
    let steps = ["", "--value-step 4", "--value-step 1/4 --keep 2/16", "--value-step 0.01 --keep 3/7"];
    let wide = ["--value-step 1 --precision 64", "--value-step 1/1024 --keep 1/1 --precision 64"];
    let variants: Vec<&str> = steps.into_iter().chain(wide).collect();
    let variants: &'static [&'static str] = variants.leak();
    Case { board: "3x2", objective: "score", spawn4: "1/10", rules: USUAL, variants, most_states: 2000 }
        .check();
    Case { board: "2x2", objective: "score", spawn4: "1/3", rules: USUAL, variants, most_states: ALL }
        .check();
    Case {
        board: "3x2",
        objective: "score",
        spawn4: "1/10",
        rules: ("1/1", true),
        variants,
        most_states: 500,
    }
    .check();
    let variants = &[
        "",
        "--value-step 1/2",
        "--value-step 1/64 --keep 2/16",
        "--value-step 1e-4 --keep 3/7",
        "--value-step 1/64 --precision 64",
    ];
    for (board, objective, rules) in [
        ("3x2", "reach:64", USUAL),
        ("3x2", "reach:32", ("19/20", false)),
        ("3x2", "reach:32", ("99/100", true)),
        ("3x2", "reach:32", ("1/1", true)),
        ("3x2", "lose:32", USUAL),
        ("2x3", "lose:64", USUAL),
    ] {
        Case { board, objective, spawn4: "1/10", rules, variants, most_states: 700 }.check();
    }
}

/// Queries of all images of a board return one canonical image and one value.
#[test]
fn all_images_of_a_board_have_the_same_answer() {
    for (board, objective) in [("3x2", "score"), ("3x3", "reach:32"), ("2x2", "score")] {
        let solved = Solved::new(&format!("--board {board} --objective {objective}"));
        let game = Game::new(board, objective, "1/10");
        let layers = game.enumerate(60);
        let states = layers.values().flat_map(|layer| layer.states.iter()).step_by(97).take(400);
        let images: Vec<Vec<Board>> = states.map(|state| game.images(state)).collect();
        let boards: Vec<String> = images.iter().flatten().map(|image| game.text(image)).collect();
        let answers = query(&solved.run(), &boards);
        for (images, answers) in images.iter().zip(answers.chunks(images[0].len())) {
            for answer in answers {
                assert_eq!(answer["canonical"], answers[0]["canonical"], "{}", game.text(&images[0]));
                assert_eq!(answer["value"], answers[0]["value"], "{}", game.text(&images[0]));
            }
        }
    }
}
