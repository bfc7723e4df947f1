//! Comparison of estimates with recorded runs.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use exact2048_coordinator::{PassCost, Workload};
use exact2048_game::{KeptLayers, Params};
use exact2048_solution::{Holdings, Phase, Recipe};

use crate::choice::Choices;
use crate::limits;
use crate::plan::Needs;

const RECORDED: &str = include_str!("recorded-runs.csv");

/// Factor by which an estimate may be too high or too low.
const OFF: f64 = 1.3;

/// Estimated core seconds of the passes of a run, or of the upward pass if it only enumerates.
fn core_seconds(params: &Params, dense_rows: usize) -> f64 {
    let cost = PassCost::new(params, dense_rows);
    let down = if params.contents().enumerates_only() { 0.0 } else { cost.core_seconds(Phase::BackUp) };
    cost.core_seconds(Phase::Enumerate) + down
}

fn params(fields: &[&str]) -> Params {
    let [board, objective, until, bits, large, keep] = fields else { panic!("{fields:?}") };
    let precision = bits.parse::<u8>().unwrap().try_into().unwrap();
    let params = Params::usual(board, objective).precision(precision).until(until.parse::<u32>().ok());
    params.large(large.parse::<u8>().ok()).kept(keep.parse::<KeptLayers>().unwrap()).build().unwrap()
}

#[test]
fn estimates_are_within_thirty_percent_of_recorded_runs() {
    let sample = core_seconds(&params(&["3x3", "score", "", "32", "", "4"]), 1 << 18);
    let (mut compared, mut off) = (0, Vec::new());
    for row in RECORDED.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let (params, number) = (params(&fields[..6]), |field: usize| fields[field].parse::<f64>().ok());
        let tuning = limits::worker_tuning((number(6).unwrap() as u64) << 20, 2);
        let workload = Workload::new(&params);
        let (at_most, end) = if fields[7] == "yes" {
            let choices = Choices::new(&params, u64::MAX, tuning.scratch_bytes(&params));
            let takes = choices.takes(params.contents().kept());
            (takes.peak_bytes, takes.end_bytes)
        } else {
            let steps = Recipe::new(&params, &Holdings::default()).steps();
            let bytes = Needs::of(&params, &workload, &steps).disk_bytes;
            (bytes, bytes)
        };
        let core = core_seconds(&params, tuning.for_run(&params).dense_rows) / sample;
        let said = [workload.whole_states(), at_most as f64, end as f64, core];
        for ((what, said), came) in
            ["states", "at most", "end", "core"].into_iter().zip(said).zip((8..).map(number))
        {
            let Some(came) = came else { continue };
            compared += 1;
            if !(1.0 / OFF..=OFF).contains(&(said / came)) {
                off.push(format!("{row}: {what} {said:.4e}, {:.2} of the recorded value", said / came));
            }
        }
    }
    assert!(compared >= 50, "{compared}");
    assert!(off.is_empty(), "{}", off.join("\n"));
}
