//! Published numbers: counts of states, values of starts, probabilities of reaching a tile.

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;

use common::golden::{self, Row};
use common::{Place, Solved, close, layers, number, on_run, query, solve, whole};
use exact2048_reference::{Game, Layer as ReferenceLayer};
use serde_json::Value;

fn rows_of(table: &str, board: &str) -> Vec<Row> {
    let rows = golden::table(table).into_iter();
    rows.filter(|row| row.text("board") == board).collect()
}

/// Compares counts and values of a score run with all tables that have the board.
fn check_strong_solution(board: &str) {
    let golden = &rows_of("strong_solutions", board)[0];
    let solved = Solved::new(&format!("--board {board}"));
    let summary = &solved.summary;
    assert_eq!(summary["phase"], "solved");
    assert_eq!(whole(&summary["states"]), golden.whole("states"));
    assert_eq!(whole(&summary["afterstates"]), golden.whole("afterstates"));
    let bound = number(&summary["start"]["error_bound"]);
    assert!(bound < 0.005, "{board} promises {bound} only");
    let two_twos = number(&summary["start"]["by_layer"]["4"]);
    close(two_twos, golden.number("start"), bound + golden.number("digits"), board);

    let layers = layers(&solved.run());
    assert_eq!(layers.last().unwrap().0, golden.whole("last_layer"));
    assert_eq!(whole(&summary["layers"]), layers.len() as u64);
    assert_eq!(layers.iter().map(|l| l.1).sum::<u64>(), golden.whole("states"));
    assert_eq!(layers.iter().map(|l| l.2).sum::<u64>(), golden.whole("afterstates"));
    // Every even sum from the smallest to the largest occurs.
    let sums: Vec<u64> = layers.iter().map(|l| l.0).collect();
    assert_eq!(sums, (4..=golden.whole("last_layer")).step_by(2).collect::<Vec<_>>());
    check_layer_states(board, &layers);
    check_start_values(board, &solved);
}

fn check_layer_states(board: &str, layers: &[(u64, u64, u64)]) {
    for row in rows_of("layer_states", board) {
        let layer = layers.iter().find(|l| l.0 == row.whole("layer")).unwrap();
        assert_eq!(layer.1, row.whole("states"), "{board}, layer {}", layer.0);
    }
}

fn check_start_values(board: &str, solved: &Solved) {
    let answers = start_answers(board, "score", solved);
    for row in rows_of("start_values", board) {
        let of_layer = answers.iter().filter(|answer| whole(&answer["layer"]) == row.whole("layer"));
        let values: Vec<f64> = of_layer.map(|answer| number(&answer["value"])).collect();
        let bound = number(&solved.summary["start"]["error_bound"]) + row.number("digits");
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        close(least, row.number("least"), bound, board);
        close(greatest, row.number("greatest"), bound, board);
    }
}

/// The answers to all canonical starts.
fn start_answers(board: &str, objective: &str, solved: &Solved) -> Vec<Value> {
    let game = Game::new(board, objective, "1/10");
    let boards: Vec<String> = game.canonical_starts().iter().map(|start| game.text(start)).collect();
    query(&solved.run(), &boards)
}

#[test]
fn strong_solution_of_2x2() {
    check_strong_solution("2x2");
}

#[test]
fn strong_solution_of_3x2() {
    check_strong_solution("3x2");
}

#[test]
fn strong_solution_of_4x2() {
    check_strong_solution("4x2");
}

#[test]
fn strong_solution_of_3x3() {
    check_strong_solution("3x3");
}

#[test]
fn a_board_and_its_transpose_are_the_same_game() {
    for (board, transpose) in [("3x2", "2x3"), ("4x2", "2x4"), ("5x1", "1x5")] {
        let one = Solved::new(&format!("--board {board}"));
        let other = Solved::new(&format!("--board {transpose}"));
        assert_eq!(layers(&one.run()), layers(&other.run()), "{board}");
        assert_eq!(one.summary["start"], other.summary["start"], "{board}");
        // Transposed boards have values with the same bits.
        let game = Game::new(board, "score", "1/10");
        let starts = game.canonical_starts();
        let transposed = |cells: &str| -> String {
            let rows: Vec<Vec<&str>> = cells.split(" / ").map(|row| row.split(' ').collect()).collect();
            let column = |c: usize| rows.iter().map(|row| row[c]).collect::<Vec<_>>().join(" ");
            (0..rows[0].len()).map(column).collect::<Vec<_>>().join(" / ")
        };
        let boards: Vec<String> = starts.iter().map(|start| game.text(start)).collect();
        let images: Vec<String> = boards.iter().map(|board| transposed(board)).collect();
        let values = |answers: Vec<Value>| answers.iter().map(|a| number(&a["value"])).collect::<Vec<_>>();
        assert_eq!(values(query(&one.run(), &boards)), values(query(&other.run(), &images)), "{board}");
    }
}

#[test]
fn layers_of_4x3_are_the_published_ones() {
    let solved = Solved::new("--board 4x3 --until-layer 84");
    assert_eq!(solved.summary["phase"], "enumerated");
    assert!(solved.summary["start"].is_null() && solved.summary["fingerprint"].is_null());
    let found = layers(&solved.run());
    assert_eq!(found.last().unwrap().0, 84);
    check_layer_states("4x3", &found);
}

#[test]
#[ignore = "800 million states: half a minute or more"]
fn states_of_4x3_up_to_layer_224() {
    let row = &golden::table("first_layers")[0];
    let until = row.whole("until_layer");
    let solved = Solved::new(&format!("--board {} --until-layer {until}", row.text("board")));
    assert_eq!(whole(&solved.summary["states"]), row.whole("states"));
}

#[test]
fn no_layer_depends_on_where_the_enumeration_stops() {
    let place = Place::new();
    let whole_game = Solved::new("--board 3x2");
    let all = layers(&whole_game.run());
    for until in [4, 6, 8, 30, 62, 64, 66, 250, 252] {
        let run = place.join(&until.to_string());
        let summary = solve(&run, &format!("--board 3x2 --until-layer {until}"));
        let up_to: Vec<_> = all.iter().copied().filter(|layer| layer.0 <= until).collect();
        assert_eq!(layers(&run), up_to, "until {until}");
        assert_eq!(whole(&summary["layers"]), up_to.len() as u64);
    }
}

/// Layer, states and dead states of a run.
pub fn dead_states(run: &Path) -> Vec<(u64, u64, u64)> {
    let lines = on_run(run, "layers", &["--dead", "--json"]).exits(0).json_lines();
    let line = |v: &Value| (whole(&v["layer"]), whole(&v["states"]), whole(&v["dead"]));
    lines.iter().map(line).collect()
}

/// Layer, states and dead states by the slow reference.
pub fn dead_of(layers: &BTreeMap<u32, ReferenceLayer>) -> Vec<(u64, u64, u64)> {
    let of_layer = |(&sum, l): (&u32, &ReferenceLayer)| (sum.into(), l.states.len() as u64, l.dead as u64);
    layers.iter().map(of_layer).collect()
}

/// Published counts omit dead boards. The reference solver marks dead boards, and must agree with both counts.
#[test]
fn live_states_are_the_published_ones() {
    for row in golden::table("live_states") {
        let (board, objective) = (row.text("board"), row.text("objective"));
        let solved = Solved::new(&format!("--board {board} --objective {objective}"));
        let found = dead_states(&solved.run());
        let live: u64 = found.iter().map(|(_, states, dead)| states - dead).sum();
        assert_eq!(live, row.whole("live"), "{board} {objective}");
        let mut live_layers = golden::table("live_layers");
        live_layers.retain(|row| row.text("board") == board && row.text("objective") == objective);
        if !live_layers.is_empty() {
            let published: Vec<_> = live_layers.iter().map(|r| (r.whole("layer"), r.whole("live"))).collect();
            let live = found.iter().map(|&(layer, states, dead)| (layer, states - dead));
            assert_eq!(live.filter(|l| l.1 > 0).collect::<Vec<_>>(), published, "{board} {objective}");
        }
        if row.text("reference") == "no" {
            continue;
        }
        let reference = Game::new(board, objective, "1/10").enumerate(u32::MAX - 8);
        assert_eq!(found, dead_of(&reference), "{board} {objective}");
        let expected = reference
            .iter()
            .map(|(&sum, l)| (u64::from(sum), l.states.len() as u64, l.afterstates.len() as u64));
        assert_eq!(layers(&solved.run()), expected.collect::<Vec<_>>(), "{board} {objective}");
    }
}

#[test]
fn dead_states_are_the_published_ones() {
    for board in ["2x2", "3x2", "4x2", "3x3"] {
        let golden = &rows_of("strong_solutions", board)[0];
        let found = dead_states(&Solved::new(&format!("--board {board}")).run());
        assert_eq!(found.iter().map(|(.., dead)| dead).sum::<u64>(), golden.whole("dead"), "{board}");
    }
}

/// The counts of layers agree with queries of their states.
#[test]
fn dead_states_have_no_move_and_no_value() {
    for board in ["2x2", "3x2"] {
        let game = Game::new(board, "score", "1/10");
        let states = game.enumerate(u32::MAX - 8);
        let boards: Vec<String> =
            states.values().flat_map(|layer| layer.states.iter()).map(|state| game.text(state)).collect();
        let solved = Solved::new(&format!("--board {board}"));
        let dead = |answer: &&Value| {
            if answer["best"].is_null() {
                assert_eq!(number(&answer["value"]), 0.0, "{answer}");
                assert!(answer["moves"].as_array().unwrap().iter().all(|m| m["legal"] == false), "{answer}");
            }
            answer["best"].is_null()
        };
        let found = query(&solved.run(), &boards).iter().filter(dead).count() as u64;
        let counted = dead_states(&solved.run());
        assert_eq!(found, counted.iter().map(|(.., dead)| dead).sum::<u64>(), "{board}");
    }
}

#[test]
fn layers_of_4x4_are_those_of_the_reference() {
    let solved = Solved::new("--board 4x4 --until-layer 24");
    let reference = Game::new("4x4", "score", "1/10").enumerate(24);
    let expected: Vec<_> = reference
        .iter()
        .map(|(&sum, l)| (u64::from(sum), l.states.len() as u64, l.afterstates.len() as u64))
        .collect();
    assert_eq!(layers(&solved.run()), expected);
}

#[test]
fn probabilities_of_reaching_a_tile_are_the_published_means() {
    for row in golden::table("reach_means") {
        let objective = format!("reach:{}", row.text("tile"));
        let solved = Solved::new(&format!("--board {} --objective {objective}", row.text("board")));
        let answers = start_answers(row.text("board"), &objective, &solved);
        assert_eq!(answers.len() as u64, row.whole("canonical_starts"));
        let mean = answers.iter().map(|a| number(&a["value"])).sum::<f64>() / answers.len() as f64;
        let bound = number(&solved.summary["start"]["error_bound"]) + 1e-12;
        close(mean, row.number("mean"), bound, &format!("{} {objective}", row.text("board")));
    }
}

#[test]
fn probabilities_of_reaching_a_tile_from_a_random_start() {
    for row in golden::table("reach_starts") {
        for precision in [32, 64] {
            let what = format!(
                "--board {} --objective reach:{} --precision {precision}",
                row.text("board"),
                row.text("tile")
            );
            let start = &Solved::new(&what).summary["start"];
            let bound = number(&start["error_bound"]) + row.number("digits");
            close(number(&start["expected"]), row.number("expected"), bound, &what);
        }
    }
}

#[test]
fn probabilities_of_losing_are_the_recomputed_ones() {
    for row in golden::table("losses") {
        let what =
            format!("--board {} --objective reach:{} --precision 64", row.text("board"), row.text("tile"));
        let start = &Solved::new(&what).summary["start"];
        // A probability of a win near 1 is printed to 16 digits.
        let bound = number(&start["error_bound"]) + row.number("digits") + 4.0 * f64::EPSILON;
        close(1.0 - number(&start["expected"]), row.number("loss"), bound, &what);
    }
}

/// Tiny probabilities have all recomputed digits. In a complement to 1, the digits of 7·10^-18 would vanish.
#[test]
fn tiny_probabilities_to_lose_are_precise() {
    for row in golden::table("losses") {
        for precision in [32, 64] {
            let (board, tile) = (row.text("board"), row.text("tile"));
            let what = format!("--board {board} --objective lose:{tile} --precision {precision}");
            let start = &Solved::new(&what).summary["start"];
            let (found, bound) = (number(&start["expected"]), number(&start["error_bound"]));
            let relative = if precision == 32 { 1e-4 } else { 1e-10 };
            assert!(bound < found * relative, "{what}: {bound} of {found}");
            close(found, row.number("loss"), bound + row.number("digits"), &what);
        }
    }
}

#[test]
fn discounted_wins_are_the_published_means() {
    for row in golden::table("discounted") {
        let (board, tile) = (row.text("board"), row.text("tile"));
        let objective = format!("reach:{tile}");
        let what = format!("--board {board} --objective {objective} --discount 0.95 --precision 64");
        let solved = Solved::new(&what);
        let answers = start_answers(board, &objective, &solved);
        assert_eq!(answers.len() as u64, row.whole("canonical_starts"));
        let mean = answers.iter().map(|a| number(&a["value"])).sum::<f64>() / answers.len() as f64;
        let bound = number(&solved.summary["start"]["error_bound"]);
        assert!(bound < 1e-9 * mean, "{what}: {bound} of {mean}");
        close(mean, row.number("mean"), bound + 1e-12 * mean, &what);
    }
}

/// Against the worst spawns, the largest tile that can be forced has value 1, and the next larger tile has value 0.
#[test]
fn tiles_are_forced_against_an_adversary() {
    for row in golden::table("forced") {
        let (board, tile) = (row.text("board"), row.whole("tile"));
        for (tile, worth) in [(tile, 1.0), (2 * tile, 0.0)] {
            let job = format!("--board {board} --objective reach:{tile} --spawner worst");
            let start = &Solved::new(&job).summary["start"];
            assert_eq!((number(&start["expected"]), number(&start["error_bound"])), (worth, 0.0), "{job}");
        }
    }
}

#[test]
fn forced_tiles_are_certain_however_tiles_are_spawned() {
    for row in golden::table("forced") {
        for spawn4 in ["1/10", "1/2", "2/3"] {
            let job = format!(
                "--board {} --objective reach:{} --spawn4 {spawn4}",
                row.text("board"),
                row.text("tile")
            );
            let solved = Solved::new(&job);
            close(number(&solved.summary["start"]["expected"]), 1.0, 1e-12, &job);
            for (layer, mean) in solved.summary["start"]["by_layer"].as_object().unwrap() {
                assert_eq!(number(mean), 1.0, "{job}, layer {layer}");
            }
        }
    }
}

#[test]
fn a_tile_beyond_the_forced_one_is_not_certain() {
    for row in golden::table("forced").iter().filter(|row| row.text("board") != "3x3") {
        let job = format!("--board {} --objective reach:{}", row.text("board"), 2 * row.whole("tile"));
        let expected = number(&Solved::new(&job).summary["start"]["expected"]);
        assert!(0.0 < expected && expected < 1.0, "{job}: {expected}");
    }
}

#[test]
fn published_runs_pass_verification() {
    for job in ["--board 2x2", "--board 3x2", "--board 3x3 --objective reach:32"] {
        let solved = Solved::new(job);
        on_run(&solved.run(), "verify", &[]).exits(0);
        on_run(&solved.run(), "verify", &["--sample", "1000"]).exits(0);
    }
    // A run without values has no sample.
    let enumerated = Solved::new("--board 4x3 --until-layer 40");
    on_run(&enumerated.run(), "verify", &[]).exits(0);
    on_run(&enumerated.run(), "verify", &["--sample", "1000"])
        .exits(1)
        .prints("sample of a run without values");
}
