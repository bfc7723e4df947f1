//! Output of the commands for related systems. The crates of these commands test the numbers.

use crate::common;

use common::snapshots::assert_section;
use common::{Place, Solved, exact2048, on_run, shards, solve};

fn run(words: &str) -> common::Finished {
    exact2048(words.split_whitespace())
}

#[test]
fn a_bag_is_described() {
    let shown = run("bag --target 2048").exits(0).stdout;
    for line in
        ["states        3,487, 26 absorbing", "519 to 1,032 moves", "cells needed  10 to 11", "2,2,8,8,2048"]
    {
        assert!(shown.contains(line), "{line:?} is missing from {shown}");
    }
    // The output shows exactly the digits that the error allows.
    assert!(shown.contains("\nmoves         938.8099173553"), "{shown}");

    let json = run("bag --target 2048 --json --simulate 1000 --seed 3").exits(0).json();
    assert_eq!((&json["states"], &json["absorbing_states"]), (&3487.into(), &26.into()));
    let mean = &json["moves"]["mean"];
    let difference = (mean["value"].as_f64().unwrap() - 938.809_917_355_371_9).abs();
    assert!(difference <= mean["error"].as_f64().unwrap(), "{mean}");
    assert_eq!(json["simulation"]["runs"], 1000);
    assert_eq!(json["times"]["tiles"].as_array().unwrap().len(), 9);

    let exact = run("bag --target 8 --exact --json").exits(0).json();
    assert_eq!(exact["moves"]["mean"]["fraction"], "35371/10000");
}

#[test]
fn tables_of_a_bag_add_up() {
    for (table, header, column) in
        [("moves", "tile,moves,probability", 2), ("sums", "sum,probability,error", 1)]
    {
        let printed = run(&format!("bag --target 64 --csv {table}")).exits(0).stdout;
        let mut lines = printed.lines();
        assert_eq!(lines.next(), Some(header));
        let sum: f64 = lines
            .filter(|line| table == "sums" || line.starts_with("64,"))
            .map(|line| line.split(',').nth(column).unwrap().parse::<f64>().unwrap())
            .sum();
        assert!((sum - 1.0).abs() < 1e-12, "{table}: {sum}");
    }
    let dot = run("bag --target 8 --dot").exits(0).stdout;
    assert!(dot.starts_with("digraph bag {") && dot.contains("\"2,2\" -> \"2,4\" [label=2];"), "{dot}");
}

#[test]
fn boards_are_counted() {
    let shown = run("count --board 4x4 --target 2048").exits(0).stdout;
    for number in ["44,096,709,674,720,289", "44,096,167,159,459,777", "9,212"] {
        assert!(shown.contains(number), "{number} is missing from {shown}");
    }
    let json = run("count --board 2x2 --target 32 --json").exits(0).json();
    assert_eq!(json["totals"]["reachable_layers"]["boards"], "529");
}

#[test]
fn a_run_is_counted_with_its_bounds() {
    let place = Place::new();
    let dir = place.join("run");
    solve(&dir, "--board 3x2");
    let json = on_run(&dir, "count", &["--json"]).exits(0).json();
    assert_eq!(json["totals"]["states"], "21752");
    let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<u64>().unwrap();
    for layer in json["layers"].as_array().unwrap() {
        assert!(number(&layer["states"]) <= number(&layer["within_tile_bound"]["orbits"]), "{layer}");
    }
    let csv = on_run(&dir, "count", &["--csv"]).exits(0).stdout;
    assert!(csv.starts_with(
        "sum,boards,orbits,boards_within_tile_bound,orbits_within_tile_bound,states\n4,15,6,15,6,6\n"
    ));
}

#[test]
fn players_play() {
    let random = run("play --player random --board 3x3 --games 50 --seed 4 --json").exits(0).json();
    assert_eq!((&random["games"], &random["failed"]), (&50.into(), &0.into()));
    let alone =
        run("play --player random --board 3x3 --games 50 --seed 4 --threads 1 --json").exits(0).json();
    assert_eq!(
        (&alone["score"], &alone["tiles"], &alone["moves"]),
        (&random["score"], &random["tiles"], &random["moves"])
    );
    let shown = run("play --player greedy --board 2x2 --games 20").exits(0).stdout;
    assert!(shown.lines().any(|line| line.starts_with("mean score")) && shown.contains("95%"), "{shown}");
    let watched = run("play --player greedy --board 2x2 --watch").exits(0).stdout;
    assert!(watched.contains("score 0, 0 moves"), "{watched}");
    assert_section("end of a watched game", watched.trim_end().lines().next_back().unwrap());
}

#[test]
fn the_perfect_player_scores_what_the_run_says() {
    let place = Place::new();
    let dir = place.join("run");
    let value = solve(&dir, "--board 2x2")["start"]["expected"].clone();
    let played = on_run(&dir, "play", &["--player", "perfect", "--games", "4000", "--json"]).exits(0).json();
    let (mean, half) = (&played["score"]["mean"], &played["score"]["half_width"]);
    let difference = (mean.as_f64().unwrap() - value.as_f64().unwrap()).abs();
    // The tolerance is three times the half width at 95%. One seed in 10^8 exceeds it, and this seed does not.
    assert!(difference < 3.0 * half.as_f64().unwrap(), "{played} {value}");
}

/// Long games reach the damaged shard. The other games would be a biased sample of the player's games.
#[test]
fn games_on_a_damaged_run_are_not_summed_up() {
    let solved = Solved::new("--board 3x2");
    for shard in shards(&solved.run()).iter().filter(|shard| shard.to_string_lossy().contains("values")) {
        let mut bytes = std::fs::read(shard).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 3].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(shard, bytes).unwrap();
    }
    for output in [&[][..], &["--json"]] {
        let args = [&["--player", "perfect", "--games", "50"][..], output].concat();
        let refused = on_run(&solved.run(), "play", &args).exits(1).says(&["values-0"]);
        assert_eq!(refused.stdout, "");
    }
}

#[test]
fn games_are_recorded_and_failures_reported() {
    let place = Place::new();
    let file = place.join("games.jsonl");
    let path = file.to_str().unwrap();
    run(&format!("play --player random --board 2x2 --games 40 --record {path}")).exits(0);
    let records = std::fs::read_to_string(&file).unwrap();
    assert_eq!(records.lines().count(), 40);
    let first: serde_json::Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    assert_eq!((&first["board"], &first["player"]), (&"2x2".into(), &"random".into()));
    exact2048([
        "play",
        "--player",
        "cmd:while read -r w r; do echo up; done",
        "--board",
        "2x2",
        "--games",
        "3",
    ])
    .exits(1)
    .says(&["game 0 ", "up"]);
}
