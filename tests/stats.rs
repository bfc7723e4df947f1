//! Statistics of perfect play against the definition, written down plainly.

use crate::common;

use std::collections::{BTreeMap, HashMap};

use common::{Solved, close, exact2048, number, on_run, whole};
use exact2048_game::rules::{Move, empty_cells, make_move, starts};
use exact2048_game::{Board, BoardSize, Layer};
use exact2048_run::layer_solver;
use exact2048_solution::{Asking, CostSum, Oracle, Run};
use exact2048_stats::{StatsLimits, perfect_play};
use serde_json::Value;

/// Games, by where they end.
#[derive(Default)]
struct Ends {
    by_layer: BTreeMap<u64, f64>,
    by_tile: BTreeMap<u64, f64>,
    moves: f64,
    score: f64,
    states: u64,
}

/// Follows all games with the moves that queries of canonical boards call the best, board by board.
fn follow(run: &std::path::Path, size: &str, target: Option<u8>) -> Ends {
    let size: BoardSize = size.parse().unwrap();
    let oracle = Oracle::new(&Run::open(run).unwrap()).unwrap();
    let symmetries = exact2048_game::symmetry::Symmetries::new(size);
    let (cells, weights) = (size.cells(), [(1, 0.9), (2, 0.1)]);
    let weight = |exponent: u8| weights[usize::from(exponent) - 1].1;
    let mut layers: BTreeMap<u32, HashMap<Board, f64>> = BTreeMap::new();
    let send = |layers: &mut BTreeMap<u32, HashMap<Board, f64>>, board: Board, chance: f64| {
        *layers.entry(board.tile_sum(cells)).or_default().entry(symmetries.canonical(board)).or_default() +=
            chance;
    };
    for (board, [a, b]) in starts(size) {
        send(&mut layers, board, weight(a) * weight(b) / (cells * (cells - 1)) as f64);
    }
    let mut ends = Ends::default();
    while let Some((layer, states)) = layers.pop_first() {
        ends.states += states.len() as u64;
        for (state, chance) in states {
            let largest = |board: Board| 1u64 << (0..cells).map(|cell| board.get(cell)).max().unwrap();
            let mut end = |tile| {
                *ends.by_layer.entry(layer.into()).or_default() += chance;
                *ends.by_tile.entry(tile).or_default() += chance;
            };
            let best: Option<Move> = oracle.evaluate(state, &|| true).unwrap().best;
            let Some((after, score)) = best.and_then(|best| make_move(state, best, size)) else {
                end(largest(state));
                continue;
            };
            if target.is_some_and(|target| (0..cells).any(|cell| after.get(cell) >= target)) {
                end(1 << target.unwrap());
            } else {
                let empty: Vec<usize> = empty_cells(after, size).collect();
                for (&cell, (exponent, weight)) in
                    empty.iter().flat_map(|cell| weights.map(|spawn| (cell, spawn)))
                {
                    send(&mut layers, after.with(cell, exponent), chance * weight / empty.len() as f64);
                }
            }
            ends.moves += chance;
            ends.score += chance * f64::from(score);
        }
    }
    ends
}

fn stats(run: &Solved, options: &[&str]) -> Value {
    let mut found = on_run(&run.run(), "stats", &[options, &["--json"]].concat()).exits(0).json();
    found["seconds"] = 0.into();
    found
}

#[test]
fn statistics_are_those_of_all_games() {
    for (board, objective, target) in
        [("2x2", "score", None), ("3x2", "score", None), ("3x2", "reach:64", Some(6)), ("1x4", "score", None)]
    {
        let mut found: Option<Value> = None;
        for keep in ["4", "all", "24", "starts"] {
            let run = Solved::new(&format!("--board {board} --objective {objective} --keep {keep}"));
            let at = format!("{board} {objective} --keep {keep}");
            let stats = stats(&run, &["--cutoff", "0"]);
            match &found {
                Some(found) => assert_eq!(*found, stats, "{at}: values do not depend on what is kept"),
                None => {
                    let ends = follow(&run.run(), board, target);
                    check(&stats, &ends, target, &at);
                    found = Some(stats);
                }
            }
        }
    }
}

/// Compares what the program says with all games.
fn check(stats: &Value, ends: &Ends, target: Option<u8>, at: &str) {
    let near = |value: &Value, wanted: f64| {
        close(number(value), wanted, 1e-12 * wanted.max(1.0), at);
    };
    assert_eq!(whole(&stats["states"]), ends.states, "{at}");
    assert_eq!(number(&stats["left_out"]), 0.0, "{at}");
    near(&stats["moves"]["value"], ends.moves);
    let value = match target {
        None => ends.score,
        Some(target) => ends.by_tile.get(&(1 << target)).copied().unwrap_or(0.0),
    };
    near(&stats["value"]["value"], value);
    // The value of the start is what comes of it, but for what means of the run were rounded.
    let bounds = [&stats["value"]["error"], &stats["perfect"]["error"]].map(number);
    let apart = (number(&stats["value"]["value"]) - number(&stats["perfect"]["value"])).abs();
    assert!(apart <= bounds.iter().sum(), "{at}: {apart} apart, {bounds:?}");
    let tiles = stats["tiles"].as_array().unwrap();
    assert_eq!(tiles.len(), ends.by_tile.len(), "{at}");
    let mut reached = 0.0;
    for (tile, (&wanted, &ended)) in tiles.iter().zip(ends.by_tile.iter().rev()) {
        reached += ended;
        assert_eq!(whole(&tile["tile"]), wanted, "{at}");
        near(&tile["ended"], ended);
        near(&tile["reached"], reached);
    }
    close(reached, 1.0, 1e-12, "every game ends");
    let layers = stats["layers"].as_array().unwrap();
    for layer in layers {
        let wanted = ends.by_layer.get(&whole(&layer["layer"])).copied().unwrap_or(0.0);
        near(&layer["ended"], wanted);
    }
    let mean = ends.by_layer.iter().map(|(&layer, share)| layer as f64 * share).sum();
    near(&stats["last_layer"]["mean"], mean);
}

/// Neither threads nor memory change a bit, and what the cutoff leaves out bounds what it changes.
#[test]
fn cutoffs_are_accounted_for() {
    let run = Solved::new("--board 3x2 --keep 16");
    let all = stats(&run, &["--cutoff", "0"]);
    assert_eq!(all, stats(&run, &["--cutoff", "0", "--threads", "1", "--memory", "400MiB"]));
    let mut states = whole(&all["states"]);
    for cutoff in ["1e-9", "1e-6"] {
        let some = stats(&run, &["--cutoff", cutoff]);
        let left_out = number(&some["left_out"]);
        assert!(whole(&some["states"]) < states && left_out > 0.0, "{cutoff}");
        states = whole(&some["states"]);
        for (field, error) in [("value", "error"), ("moves", "error")] {
            let apart = number(&all[field]["value"]) - number(&some[field]["value"]);
            assert!((0.0..=number(&some[field][error])).contains(&apart), "{cutoff}: {field} {apart}");
        }
        for (all, some) in
            all["tiles"].as_array().unwrap().iter().rev().zip(some["tiles"].as_array().unwrap().iter().rev())
        {
            let apart = number(&all["ended"]) - number(&some["ended"]);
            assert!((-1e-12..=left_out).contains(&apart), "{cutoff}: {all} {some}");
        }
    }
    let rows = on_run(&run.run(), "stats", &["--csv"]).exits(0).stdout;
    let mut lines = rows.lines();
    assert!(lines.next().unwrap().starts_with("layer,states,reached,ended,ended_with_"), "{rows}");
    let ended: f64 = lines.map(|line| line.split(',').nth(3).unwrap().parse::<f64>().unwrap()).sum();
    close(ended, 1.0, 1e-9, "every game ends");
    let table = on_run(&run.run(), "stats", &[]).exits(0).stdout;
    for words in ["largest at the end", "ended by layer", "left out", "standard deviation"] {
        assert!(table.contains(words), "{words}: {table}");
    }
}

/// Whole layers are read where that fits the memory, and else the oracle is asked; what is not stored of them the kernels of
/// the solver back up, or the oracle itself: the statistics are the same.
#[test]
fn all_ways_to_best_moves_are_one() {
    let run = Solved::new("--board 3x2 --keep 8");
    let opened = Run::open(&run.run()).unwrap();
    let oracle = Oracle::new(&opened).unwrap();
    let reader = oracle.state_reader(&|| true);
    assert!(reader.has_all_states());
    let needed = reader.bytes(Layer::FIRST..=oracle.params().last_layer());
    let found = |oracle: &Oracle, cone_bytes| {
        let spent = CostSum::default();
        let asking = Asking::new(&|| true, cone_bytes, &spent);
        let limits = StatsLimits { bytes: 1 << 30, least_chance: 0.0 };
        let mut shares = Vec::new();
        let found = perfect_play(oracle, &asking, limits, |at| shares.push(at.share)).unwrap();
        assert!(shares.is_sorted() && shares[0] > 0.0 && shares[shares.len() - 1] <= 1.0, "{shares:?}");
        (found, spent.computed_states() > 0)
    };
    let [whole, asked] = [needed, needed - 1].map(|bytes| found(&oracle, bytes));
    assert_eq!((whole.1, asked.1), (false, true), "which way was taken");
    assert_eq!(whole.0, asked.0);
    let with_kernels = Oracle::new(&opened).unwrap().with_layer_solver(layer_solver(&opened));
    assert_eq!(found(&with_kernels, 1 << 30), whole);
}

#[test]
fn wrong_use_is_refused() {
    let run = Solved::new("--board 3x2 --keep 32");
    for (options, code, words) in
        [(&["--cutoff", "2"][..], 2, "from 0 to below 1"), (&["--memory", "1KiB"], 1, "--memory")]
    {
        on_run(&run.run(), "stats", options).exits(code).says(&[words]);
    }
    exact2048(["stats", "--run", "/no/such/run"]).exits(1).says(&["/no/such/run"]);
}
