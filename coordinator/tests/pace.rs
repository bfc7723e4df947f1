//! The time left that is told on the way, against the time that it took. The traces are of whole runs on two threads of a
//! machine that others used too: pass, seconds since its beginning, layer and states so far.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::time::Duration;

use exact2048_coordinator::{Pace, Workload};
use exact2048_game::{Layer, Params, Precision, Spawn4};
use exact2048_solution::{Holdings, Phase, Recipe, Segment};

struct Sample {
    segment: Segment,
    seconds: f64,
    layer: Layer,
    states: f64,
}

/// The samples of a run, with seconds since the beginning of the run.
fn samples(trace: &str, segments: &[Segment]) -> Vec<Sample> {
    let mut begun = 0.0;
    let mut samples: Vec<Sample> = Vec::new();
    for line in trace.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let segment = segments[usize::from(fields[0] == "BackUp")];
        if let Some(last) = samples.last().filter(|last| last.segment != segment) {
            begun = last.seconds;
        }
        let (seconds, layer) = (fields[1].parse::<f64>().unwrap(), Layer(fields[2].parse().unwrap()));
        samples.push(Sample { segment, seconds: begun + seconds, layer, states: fields[3].parse().unwrap() });
    }
    samples
}

/// Requires that what is told is off by no more than a factor, from a twentieth of the work on.
fn check(board: &str, objective: &str, trace: &str, factor: f64) {
    let (size, goal) = (board.parse().unwrap(), objective.parse().unwrap());
    let params = Params::new(size, goal, Spawn4::default(), Precision::Bits32, None).unwrap();
    let workload = Workload::new(&params);
    let segments = Recipe::new(&params, &Holdings::default()).steps();
    let samples = samples(trace, &segments);
    let (took, states) = samples.last().map(|last| (last.seconds, last.states)).unwrap();
    let all: f64 = segments.iter().map(|&segment| workload.cost(segment)).sum();
    let mut pace = Pace::new(all, Duration::ZERO);
    let (mut told, mut worst) = (0, 1.0_f64);
    for sample in &samples {
        let done = match sample.segment.phase {
            Phase::Enumerate => workload.entries(sample.segment.first, sample.layer),
            Phase::BackUp => {
                workload.cost(segments[0]) + workload.cost(sample.segment) * sample.states / states
            }
        };
        let now = Duration::from_secs_f64(sample.seconds);
        pace.reach(done, now);
        if sample.segment.phase == Phase::Enumerate && sample.layer <= workload.tables_end() {
            pace.forget(now);
        }
        let (left, truth) = (pace.left(now).map(|left| left.as_secs_f64()), took - sample.seconds);
        // From a twentieth on, as far as there is enough left to tell it from nothing.
        if pace.share() >= 0.05 && truth > 0.05 * took {
            let Some(left) = left else {
                assert!(sample.seconds < 1.0, "{board}: unknown after {:.2} s", sample.seconds);
                continue;
            };
            told += 1;
            worst = worst.max(left / truth).max(truth / left);
            assert!(
                (1.0 / factor..factor).contains(&(left / truth)),
                "{board}: {left:.2} s told at {:.3}, {truth:.2} s are left",
                pace.share()
            );
        }
    }
    assert!(told > 10, "{board}: {told} samples");
    println!("{board} {objective}: off by a factor of {worst:.2} at most");
}

#[test]
fn the_time_left_is_right_within_a_factor_of_two() {
    check("3x3", "score", include_str!("data/pace-3x3.txt"), 2.0);
    check("3x3", "reach:512", include_str!("data/pace-3x3-reach512.txt"), 2.0);
    // The upper layers go twice as fast as the lower ones, which come again on the way down.
    check("5x2", "score", include_str!("data/pace-5x2.txt"), 2.0);
}
