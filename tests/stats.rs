//! Statistics of perfect play, compared with a simple form of the definition.

use crate::common;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use std::{fs, panic};

use common::snapshots::assert_section;
use common::{Solved, close, exact2048, number, on_run, whole};
use exact2048_game::rules::{Move, empty_cells, make_move, starts};
use exact2048_game::{Board, BoardSize};
use exact2048_run::{PlayProgress, play_follower};
use exact2048_solution::{Oracle, Run};
use exact2048_stats::{KeptStatistics, StatisticsView};
use exact2048_worker::{Heap, Tuning};
use serde_json::Value;

/// Results of games, by their ends.
#[derive(Default)]
struct Ends {
    by_layer: BTreeMap<u64, f64>,
    by_tile: BTreeMap<u64, f64>,
    moves: f64,
    score: f64,
    states: u64,
}

/// Follows all games with the best moves of a run, board by board.
fn follow(run: &std::path::Path, size: &str, target: Option<u8>) -> Ends {
    let size: BoardSize = size.parse().unwrap();
    let oracle = Oracle::new(&Run::open(run).unwrap()).unwrap();
    let symmetries = exact2048_game::symmetry::Symmetries::new(size);
    let (cells, places, weights) = (size.cells(), size.places(), [(1, 0.9), (2, 0.1)]);
    let weight = |exponent: u8| weights[usize::from(exponent) - 1].1;
    let mut layers: BTreeMap<u32, HashMap<Board, f64>> = BTreeMap::new();
    let send = |layers: &mut BTreeMap<u32, HashMap<Board, f64>>, board: Board, chance: f64| {
        *layers.entry(board.tile_sum(size)).or_default().entry(symmetries.canonical(board)).or_default() +=
            chance;
    };
    for (board, [a, b]) in starts(size) {
        let [a, b] = [a, b].map(|spawn| weight(spawn.exponent()));
        send(&mut layers, board, a * b / (cells * (cells - 1)) as f64);
    }
    let mut ends = Ends::default();
    while let Some((layer, states)) = layers.pop_first() {
        ends.states += states.len() as u64;
        for (state, chance) in states {
            let largest = |board: Board| 1u64 << (0..places).map(|place| board.get(place)).max().unwrap();
            let mut end = |tile| {
                *ends.by_layer.entry(layer.into()).or_default() += chance;
                *ends.by_tile.entry(tile).or_default() += chance;
            };
            let best: Option<Move> = oracle.advise(state).unwrap().best;
            let Some((after, score)) = best.and_then(|best| make_move(state, best, size)) else {
                end(largest(state));
                continue;
            };
            if target.is_some_and(|target| (0..places).any(|place| after.get(place) >= target)) {
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

/// Recomputed statistics, instead of the run's stored statistics.
fn stats(run: &Solved, options: &[&str]) -> Value {
    let mut found = on_run(&run.run(), "stats", &[options, &["--again", "--json"]].concat()).exits(0).json();
    found["seconds"] = 0.into();
    found
}

#[test]
fn statistics_are_those_of_all_games() {
    for (board, objective, target) in [
        ("2x2", "score", None),
        ("3x2", "score", None),
        ("3x2", "reach:64", Some(6)),
        ("1x4", "score", None),
        ("2x4:.xx./....", "score", None),
        ("3x3:x../.../..x", "reach:32", Some(5)),
        ("2x4:.##./....", "reach:32", Some(5)),
    ] {
        let run = Solved::new(&format!("--board {board} --objective {objective} --values best-move"));
        let all = stats(&run, &["--cutoff", "0"]);
        check(&all, &follow(&run.run(), board, target), target, &format!("{board} {objective}"));
        for keep in ["--keep 4", "--keep all", "--keep 24", "--keep starts", "--keep 40 --disk 1MB"] {
            let run = Solved::new(&format!("--board {board} --objective {objective} {keep}"));
            assert_eq!(stats(&run, &["--cutoff", "0"]), all, "{board} {objective} {keep}");
        }
    }
}

/// 4x2 has lanes of more columns than a machine word has bits.
#[test]
fn best_moves_that_are_stored_and_worked_out_come_to_the_same_in_wide_lanes() {
    let all = stats(&Solved::new("--board 4x2 --values best-move"), &[]);
    assert_eq!(stats(&Solved::new("--board 4x2 --keep 24"), &[]), all);
    let apart = (number(&all["value"]["value"]) - number(&all["perfect"]["value"])).abs();
    let bounds = [&all["value"]["error"], &all["perfect"]["error"]].map(number);
    assert!(apart <= bounds.iter().sum(), "{apart} apart, {bounds:?}");
}

/// Compares the output of the program with the results of all games.
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
    // The expected result equals the value of the start, up to the roundings of the run's means.
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

/// Threads and memory change no bit. The share that the cutoff leaves out bounds the change of the results.
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

/// The time is stored too, so equal times show that the games were not followed again.
#[test]
fn kept_statistics_are_printed_again() {
    let run = Solved::new("--board 3x2 --keep 16");
    let stats = |options: &[&str]| on_run(&run.run(), "stats", &[options, &["--json"]].concat()).exits(0);
    let first = stats(&["--threads", "1"]);
    // With so little memory, the program cannot follow any game.
    let second = stats(&["--memory", "1KiB"]).says(&["--again"]);
    assert_eq!(second.stdout, first.stdout);
    on_run(&run.run(), "stats", &["--memory", "1KiB", "--again"]).exits(2);
    on_run(&run.run(), "stats", &["--memory", "1KiB", "--cutoff", "0"]).exits(2);
    let again = stats(&["--again"]);
    assert!(!again.stderr.contains("--again"), "{again:?}");
    let without_time = |stats: &common::Finished| {
        let mut json: Value = serde_json::from_str(&stats.stdout).unwrap();
        json["seconds"] = 0.into();
        json
    };
    assert_eq!(without_time(&again), without_time(&first));
    for form in [&[][..], &["--csv"]] {
        let kept = on_run(&run.run(), "stats", form).exits(0);
        let anew = on_run(&run.run(), "stats", &[form, &["--again"]].concat()).exits(0);
        let lines = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with("time")).map(str::to_owned).collect()
        };
        assert_eq!(lines(&kept.stdout), lines(&anew.stdout), "{form:?}");
    }
}

/// With so little memory that all boards wait in scratch files, only the time changes.
#[test]
fn memory_changes_no_bit() {
    for options in ["--board 3x2 --keep 40 --disk 1MB", "--board 3x2 --values best-move --precision 64"] {
        let solved = Solved::new(options);
        let run = Run::open(&solved.run()).unwrap();
        let found = |limit_bytes, heap_bytes| {
            let (dense_rows, piece_bytes) = (Tuning::DENSE_ROWS, Tuning::PIECE_BYTES);
            let tuning = Tuning { limit_bytes, heap: Heap::of(heap_bytes), dense_rows, piece_bytes };
            let mut shares = Vec::new();
            let follower = play_follower(&run, tuning, None).unwrap();
            let found = follower.follow(0.0, &mut |at| shares.push(at.share)).unwrap();
            assert!(shares.is_sorted() && shares[0] > 0.0, "{shares:?}");
            close(shares[shares.len() - 1], 1.0, 1e-9, "all is done");
            found
        };
        assert_eq!(found(1 << 30, || 0), found(1 << 20, || 1 << 21), "{options}");
    }
}

/// An interrupted pass resumes to the same bits. A damaged or foreign progress file is ignored.
#[test]
fn interruptions_change_no_bit() {
    let solved = Solved::new("--board 3x2 --keep 40 --disk 1MB");
    let run = Run::open(&solved.run()).unwrap();
    let folder = solved.run().join("kept");
    let of_cutoff = |cutoff: &str| folder.join(format!("perfect-play-{}-{cutoff}.part", run.dir().run_id()));
    let file = of_cutoff("0e0");
    let tuning = Tuning {
        limit_bytes: 1 << 30,
        heap: Heap::of(|| 0),
        dense_rows: Tuning::DENSE_ROWS,
        piece_bytes: Tuning::PIECE_BYTES,
    };
    let progress =
        PlayProgress { folder: folder.clone(), interval: Duration::ZERO, unkept: |why| panic!("{why}") };
    let follow = |progress, cutoff, stop_after: usize| {
        let follower = play_follower(&run, tuning, progress).unwrap();
        let mut told = 0;
        let found = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            follower.follow(cutoff, &mut |_| {
                told += 1;
                assert!(told <= stop_after, "interrupted");
            })
        }));
        (found.ok().map(Result::unwrap), told)
    };
    let (all, steps) = follow(None, 0.0, usize::MAX);
    for stop_after in [steps / 3, steps * 2 / 3, steps - 1] {
        assert!(follow(Some(progress.clone()), 0.0, stop_after).0.is_none());
        assert!(file.exists());
        let (found, left) = follow(Some(progress.clone()), 0.0, usize::MAX);
        assert!(left < steps, "{left} of {steps}");
        assert_eq!(found, all);
        assert!(!file.exists(), "nothing is left behind");
    }
    assert!(follow(Some(progress.clone()), 0.0, steps / 2).0.is_none());
    let written = fs::read(&file).unwrap();
    for damaged in [&written[..written.len() / 2], b"", &[&written[..200], b"x", &written[201..]].concat()] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(follow(Some(progress.clone()), 0.0, usize::MAX), (all.clone(), steps));
    }
    // The checksum of these files is right, but no pass ends below the layers that they name.
    let next = written.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for layer in [0, u64::from(written[next] ^ 1), u64::from(written[next] ^ 2)] {
        let mut forged = written[..written.len() - 8].to_vec();
        forged[next..next + 8].copy_from_slice(&layer.to_le_bytes());
        forged.extend(xxhash_rust::xxh3::xxh3_64(&forged).to_le_bytes());
        fs::write(&file, forged).unwrap();
        assert_eq!(follow(Some(progress.clone()), 0.0, usize::MAX), (all.clone(), steps), "layer {layer}");
    }
    // A blocking open of a FIFO would wait forever for a writer.
    fs::remove_file(&file).unwrap_or(());
    common::make_fifo(&file);
    assert_eq!(follow(Some(progress.clone()), 0.0, usize::MAX), (all.clone(), steps));
    // A pass with another cutoff neither uses the file nor deletes it.
    fs::write(&file, &written).unwrap();
    assert_eq!(follow(Some(progress.clone()), 1e-9, usize::MAX).1, steps);
    assert_eq!(fs::read(&file).unwrap(), written);
    fs::rename(&file, of_cutoff("1e-9")).unwrap();
    assert_eq!(follow(Some(progress), 1e-9, usize::MAX).1, steps, "of another cutoff");
}

/// Without finished games, there are no statistics. The program does not recreate a deleted run.
#[test]
fn statistics_of_nothing_and_of_a_deleted_run() {
    let solved = Solved::new("--board 2x2");
    let none = on_run(&solved.run(), "stats", &["--cutoff", "0.9", "--json"]).exits(0).json();
    assert!(none["last_layer"].is_null(), "{none}");
    let shown = on_run(&solved.run(), "stats", &["--cutoff", "0.9"]).exits(0);
    assert_section("statistics of no game", &shown.stdout);
    let (gone, run) = (solved.run().join("gone"), Run::open(&solved.run()).unwrap());
    let tuning = Tuning {
        limit_bytes: 1 << 30,
        heap: Heap::of(|| 0),
        dense_rows: Tuning::DENSE_ROWS,
        piece_bytes: Tuning::PIECE_BYTES,
    };
    let follower = play_follower(&run, tuning, None).unwrap();
    let found = StatisticsView::follow(&run, &*follower, 0.0, &mut |_| ()).unwrap();
    let kept = KeptStatistics::of_run(&gone.join("cones"), &run);
    assert!(kept.keep(&found).is_err() && !gone.exists());
    // The program makes no files in an empty folder in place of the run either.
    fs::create_dir(&gone).unwrap();
    assert!(kept.keep(&found).is_err());
    fs::remove_dir(&gone).unwrap();
}

#[test]
fn wrong_use_is_refused() {
    let run = Solved::new("--board 3x2 --keep 32");
    for (options, code, words) in
        [(&["--cutoff", "2"][..], 2, "from 0 to below 1"), (&["--memory", "1KiB"], 2, "--memory")]
    {
        on_run(&run.run(), "stats", options).exits(code).says(&[words]);
    }
    exact2048(["stats", "--run", "/no/such/run"]).exits(1).says(&["/no/such/run"]);
}
