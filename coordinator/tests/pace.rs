//! Compares estimated with actual remaining times. The traces are from whole runs on two threads of a machine with
//! two cores. Each line has the pass, the seconds since the run began, and the layer.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::time::Duration;

use exact2048_coordinator::{Pace, PassCost};
use exact2048_game::{Layer, Params};
use exact2048_solution::{Holdings, Recipe};

/// Fraction of the time after which estimates must be right.
const KNOWN: f64 = 0.1;

/// Allowed relative error of an estimate.
const OFF: f64 = 0.2;

/// Remaining fraction of the time below which estimates are not checked.
const LEAST_LEFT: f64 = 0.05;

/// A run: its board, its objective, and its default options.
struct Traced {
    board: &'static str,
    objective: &'static str,
    large: Option<u8>,
    dense_rows: usize,
    trace: &'static str,
}

/// Returns the fraction of the estimates with an error above [`OFF`], and the largest factor of error.
fn check(run: &Traced) -> (f64, f64) {
    let params = Params::usual(run.board, run.objective).large(run.large).build().unwrap();
    let cost = PassCost::new(&params, run.dense_rows);
    let segments = Recipe::new(&params, &Holdings::default()).steps();
    let samples = run.trace.lines().map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let segment = segments[usize::from(fields[0] == "BackUp")];
        (segment, fields[1].parse::<f64>().unwrap(), Layer(fields[2].parse().unwrap()))
    });
    let samples: Vec<_> = samples.collect();
    let took = samples.last().unwrap().1;
    let all: f64 = segments.iter().map(|&segment| cost.of(segment)).sum();
    let (mut pace, mut done) = (Pace::default(), 0.0);
    pace.resume(Duration::ZERO);
    let (mut estimates, mut wrong, mut worst) = (0, 0, 1.0_f64);
    for (segment, seconds, layer) in samples {
        let before = if segment == segments[0] { 0.0 } else { cost.of(segments[0]) };
        let (now, now_done) = (Duration::from_secs_f64(seconds), before + cost.of_finished(segment, layer));
        pace.add(now_done - done, now);
        done = now_done;
        let truth = took - seconds;
        if seconds < KNOWN * took || truth < LEAST_LEFT * took {
            continue;
        }
        let Some(left) = pace.time_for(all - done, now).map(|left| left.as_secs_f64()) else {
            assert!(seconds < 0.5, "{}: no estimate after {seconds} s", run.board);
            continue;
        };
        let off = left / truth;
        estimates += 1;
        wrong += usize::from(!(1.0 - OFF..=1.0 + OFF).contains(&off));
        worst = worst.max(off).max(1.0 / off.max(1e-9));
    }
    assert!(estimates > 10, "{}: {estimates} samples", run.board);
    (wrong as f64 / estimates as f64, worst)
}

/// After a tenth of the time, estimates are right within a fifth. This bound holds for all estimates of
/// small boards. It does not hold for all estimates of large boards, because the cost of their last layers is too high.
#[test]
fn remaining_times_are_right_within_a_fifth_after_a_tenth() {
    let small = |board, trace| Traced { board, objective: "score", large: None, dense_rows: 1 << 18, trace };
    let of_4x3 =
        |objective, large, dense_rows, trace| Traced { board: "4x3", objective, large, dense_rows, trace };
    let runs = [
        (small("3x3", include_str!("data/pace-3x3.txt")), 0.0, 1.2),
        (small("5x2", include_str!("data/pace-5x2.txt")), 0.0, 1.2),
        (of_4x3("reach:256", None, 1 << 18, include_str!("data/pace-4x3-reach256.txt")), 0.15, 1.35),
        (of_4x3("reach:512", Some(4), usize::MAX, include_str!("data/pace-4x3-reach512.txt")), 0.2, 1.7),
    ];
    for (run, most_wrong, most_off) in runs {
        let (wrong, worst) = check(&run);
        let (percent, name) = (100.0 * wrong, format!("{} {}", run.board, run.objective));
        println!("{name}: {percent:.0}% are off by more than a fifth, the worst by a factor of {worst:.2}");
        assert!(wrong <= most_wrong && worst <= most_off + 0.01, "{name}: {percent}% wrong, off by {worst}");
    }
}
