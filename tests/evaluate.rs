//! Losses of players. The tests compare exact evaluations with a plain form of the definition, and samples with both.

use crate::common;

use std::collections::HashMap;

use common::{Solved, close, exact2048, number, on_run, text, whole};
use exact2048_game::rules::{Move, empty_cells, make_move, starts};
use exact2048_game::{Board, BoardSize, SpawnKind};
use serde_json::Value;

/// All players whose moves follow from the board, or are uniformly random.
const EXACT: [&str; 8] = [
    "random",
    "greedy",
    "corner:corner=bottom-right,forbidden=up",
    "linear-paths:depth=1",
    "linear-paths:paths=2,depth=1",
    "minimax:positions=30",
    "expectimax:depth=1",
    "perfect",
];

/// A player by its definition: its possible moves, all equally likely.
type Player = fn(Board, BoardSize) -> Vec<(Board, u32)>;

fn legal(board: Board, size: BoardSize) -> Vec<(Board, u32)> {
    Move::ALL.into_iter().filter_map(|direction| make_move(board, direction, size)).collect()
}

fn greedy(board: Board, size: BoardSize) -> Vec<(Board, u32)> {
    let worth = |&(after, score): &(Board, u32)| (empty_cells(after, size).count(), score);
    let most = legal(board, size).iter().map(worth).max();
    legal(board, size).into_iter().find(|made| Some(worth(made)) == most).into_iter().collect()
}

/// Values by the definition, in f64, with a cache.
struct Reference {
    size: BoardSize,
    player: Player,
    /// Exponent of the target tile; `None` if the score counts.
    target: Option<u8>,
    known: HashMap<Board, f64>,
}

impl Reference {
    fn start(size: &str, player: Player, target: Option<u8>) -> (f64, u64) {
        let size: BoardSize = size.parse().unwrap();
        let mut reference = Self { size, player, target, known: HashMap::new() };
        let weight = |spawn| if spawn == SpawnKind::Four { 0.1 } else { 0.9 };
        let cells = size.cells() as f64;
        let value = |(board, [a, b]): (Board, [SpawnKind; 2])| {
            weight(a) * weight(b) * reference.value(board) / (cells * (cells - 1.0))
        };
        let value = starts(size).map(value).sum();
        (value, reference.known.len() as u64)
    }

    fn value(&mut self, board: Board) -> f64 {
        if let Some(&value) = self.known.get(&board) {
            return value;
        }
        let made = (self.player)(board, self.size);
        let values = made.iter().map(|&(after, score)| {
            let gained = if self.target.is_none() { f64::from(score) } else { 0.0 };
            gained + self.after(after)
        });
        let value = values.sum::<f64>() / made.len().max(1) as f64;
        self.known.insert(board, value);
        value
    }

    fn after(&mut self, after: Board) -> f64 {
        if self.target.is_some_and(|target| self.size.playable().any(|cell| after.get(cell) >= target)) {
            return 1.0;
        }
        let empty: Vec<usize> = empty_cells(after, self.size).collect();
        let spawned = |(exponent, weight), cell| weight * self.value(after.with(cell, exponent));
        let pairs = [(1, 0.9), (2, 0.1)].into_iter().flat_map(|spawn| empty.iter().map(move |&c| (spawn, c)));
        let mut spawned = spawned;
        pairs.map(|(spawn, cell)| spawned(spawn, cell)).sum::<f64>() / empty.len() as f64
    }
}

fn evaluate(run: &Solved, player: &str, options: &[&str]) -> Value {
    let options = [&["--player", player, "--json"], options].concat();
    let mut found = on_run(&run.run(), "evaluate", &options).exits(0).json();
    found.as_object_mut().unwrap().remove("seconds").unwrap();
    found
}

#[test]
fn exact_values_follow_from_the_definition() {
    for (size, objective, target) in [
        ("2x2", "score", None),
        ("3x2", "score", None),
        ("3x2", "reach:32", Some(5)),
        ("3x3:.../..x/.xx", "reach:16", Some(4)),
        ("2x4:.#../...#", "reach:32", Some(5)),
    ] {
        let run = Solved::new(&format!("--board {size} --objective {objective}"));
        for (name, player) in [("random", legal as Player), ("greedy", greedy as Player)] {
            let (expected, boards) = Reference::start(size, player, target);
            for options in [&["--no-losses"][..], &[]] {
                let found = &evaluate(&run, name, options)["exact"];
                let error = number(&found["error"]);
                assert!(error > 0.0 && error < 1e-9 * expected, "{size} {name} {found}");
                close(number(&found["value"]), expected, error + 1e-12 * expected, name);
                if name == "greedy" {
                    assert_eq!(whole(&found["boards"]), boards, "{size} {name}");
                }
            }
        }
    }
}

#[test]
fn unlikely_boards_are_left_out_and_the_error_says_so() {
    let run = Solved::new("--board 3x2");
    let exact = |options: &[&str]| evaluate(&run, "random", options)["exact"].clone();
    let (all, few) = (exact(&["--cutoff", "0"]), exact(&["--cutoff", "1e-7"]));
    assert_eq!((whole(&all["boards"]), number(&all["left_out"])), (21_752, 0.0));
    let left_out = number(&few["left_out"]);
    assert!(whole(&few["boards"]) < 21_752 && left_out > 0.0 && left_out < 0.01, "{few}");
    let short = number(&all["value"]) - number(&few["value"]);
    assert!(short > 0.0 && short < number(&few["error"]) + number(&all["error"]), "{all} {few}");
    assert!(number(&few["error"]) < 0.1 * number(&all["value"]), "{few}");
    on_run(&run.run(), "evaluate", &["--player", "random", "--cutoff", "0.1", "--games", "9"]).exits(2);
}

/// Perfect play leaves out about the same share as `stats`, and a game ends with the target tile.
#[test]
fn perfect_play_agrees_with_stats() {
    let run = Solved::new("--board 3x2");
    let followed = on_run(&run.run(), "stats", &["--cutoff", "1e-5", "--json"]).exits(0).json();
    let evaluated = evaluate(&run, "perfect", &["--cutoff", "1e-5", "--no-losses"]);
    let (followed, evaluated) = (number(&followed["left_out"]), number(&evaluated["exact"]["left_out"]));
    // The two commands sum a board's probabilities in different orders before the comparison with the cutoff.
    assert!(followed > 0.0 && (evaluated / followed - 1.0).abs() < 0.1, "{evaluated}, {followed}");
    let run = Solved::new("--board 2x2 --objective reach:8");
    let found = evaluate(&run, "greedy", &[]);
    let tiles = found["exact"]["tiles"].as_array().unwrap().iter().map(|of| whole(&of["tile"]));
    assert_eq!(tiles.collect::<Vec<_>>(), [8, 4]);
}

#[test]
fn losses_add_up_to_the_difference_from_perfect_play() {
    for options in
        ["--board 3x2", "--board 3x2 --objective reach:64", "--board 3x2 --spawn4 1/3 --precision 64"]
    {
        let run = Solved::new(options);
        for player in EXACT {
            let found = evaluate(&run, player, &["--threads", "2"]);
            assert_eq!(found, evaluate(&run, player, &["--threads", "1"]), "{player}");
            let (perfect, exact, losses) = (&found["perfect"], &found["exact"], &found["losses"]);
            let short = number(&perfect["value"]) - number(&exact["value"]);
            let error = number(&perfect["error"]) + number(&exact["error"]);
            let all = &losses["all"];
            let lost = number(&all["mean_loss"]) * number(&all["moves"]);
            // Each of a move's two values may have the same error as the value of the start.
            let moves = number(&exact["moves"]);
            close(lost, short, error * (1.0 + 2.0 * moves), &format!("{options} {player}"));
            close(number(&all["moves"]), moves, 1e-9 * moves, "moves");
            for group in ["by_layer", "by_largest_tile"] {
                let parts =
                    losses[group].as_array().unwrap().iter().map(|part| number(&part["losses"]["moves"]));
                close(parts.sum(), moves, 1e-9 * moves, group);
            }
            let (best, worst) = (number(&all["share_best"]), losses["worst"].as_array().unwrap());
            if player == "perfect" {
                assert!((short.abs() <= error) && best == 1.0 && worst.is_empty(), "{found}");
            } else {
                assert!(short > error && best < 1.0, "{options} {found}");
                let first = &worst[0];
                let values = first["values"].as_object().unwrap().values();
                let most = values.filter_map(Value::as_f64).fold(0.0, f64::max);
                let of_move = number(&first["values"][text(&first["move"])]);
                close(most - of_move, number(&first["loss"]), 2.0 * error, "the worst");
            }
        }
    }
}

#[test]
fn samples_agree_with_exact_values() {
    let run = Solved::new("--board 3x2");
    let exact = evaluate(&run, "greedy", &[]);
    let games = ["--games", "2000", "--seed", "3"];
    let sampled = evaluate(&run, "greedy", &games);
    assert_eq!(sampled, evaluate(&run, "greedy", &[&games[..], &["--threads", "1"]].concat()));
    let found = &sampled["sampled"];
    // The tolerance is twice the half width of a 95% interval. One seed in ten thousand would exceed it.
    let half_width = number(&found["half_width"]);
    close(number(&found["value"]), number(&exact["exact"]["value"]), 2.0 * half_width, "value");
    let (score, lost) = (&found["score"]["half_width"], &found["lost"]["half_width"]);
    assert!(half_width > 0.0 && half_width == number(score).min(number(lost)), "{found}");
    let short = number(&exact["perfect"]["value"]) - number(&exact["exact"]["value"]);
    close(number(&found["lost"]["mean"]), short, 2.0 * number(lost), "what is lost");
    let share = |found: &Value| number(&found["losses"]["all"]["share_best"]);
    close(share(&sampled), share(&exact), 0.02, "share of best moves");

    // In few games, perhaps no move has a loss. Such games say little about the frequency of losses.
    let run = Solved::new("--board 3x2 --objective reach:16");
    let player = "linear-paths:paths=2";
    let exact = number(&evaluate(&run, player, &[])["exact"]["value"]);
    for seed in ["1", "2", "3", "4", "5"] {
        let found = evaluate(&run, player, &["--games", "20", "--seed", seed])["sampled"].clone();
        assert_eq!(text(&found["estimated_by"]), "games won");
        assert!(number(&found["low"]) < exact && exact < number(&found["high"]), "{found}");
    }

    let run = Solved::new("--board 3x2");
    let lots = evaluate(&run, "monte-carlo:runs=5", &["--games", "40"]);
    assert_eq!((&lots["sampled"]["games"], lots.get("exact")), (&40.into(), None));
    let shown = on_run(&run.run(), "evaluate", &["--player", "win-fraction:runs=3,steps=3", "--games", "20"]);
    let shown = shown.exits(0).stdout;
    for line in ["games         20, seed 1", ", by its ", "loses ", "worst ", "95% confidence"] {
        assert!(shown.contains(line), "{line:?} is missing from {shown}");
    }
}

#[test]
fn failed_evaluations() {
    let unsolved = common::Place::new();
    common::solve(&unsolved.join("run"), "--board 3x2 --until-layer 40");
    on_run(&unsolved.join("run"), "evaluate", &["--player", "greedy"]).exits(1);
    exact2048(["evaluate", "--player", "greedy", "--run", "/nowhere/at/all"]).exits(1);
}

#[test]
fn the_papers_rules_are_played() {
    let play = |rules: &[&str]| {
        let player = ["play", "--player", "win-fraction:runs=2,steps=3", "--games", "30", "--json"];
        exact2048([&player[..], rules].concat()).exits(0).json()
    };
    let (usual, papers) = (play(&[]), play(&["--paper-rules"]));
    assert_eq!((&usual["paper_rules"], &papers["paper_rules"]), (&false.into(), &true.into()));
    assert_ne!(usual["moves"], papers["moves"]);
}
