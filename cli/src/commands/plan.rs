//! `exact2048 plan`: estimates the time, memory and disk of a solve.

mod formation;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use bytesize::ByteSize;
use exact2048_coordinator::{ForecastTotals, Knowledge, PassCost, Workload};
use exact2048_game::{KeptLayers, Objective, Params};
use exact2048_solution::Phase;
use exact2048_worker::Tuning;
use serde::Serialize;

use self::formation::FormationPlan;
use crate::choice::{Choices, LayerCost, candidates, choose};
use crate::job::JobArgs;
use crate::output::{write_field, write_fitting, write_sentence};
use crate::signals::stop_on_signals;
use crate::states_bound::states_at_most;
use crate::units::{self, SizeUnits};
use crate::{Failure, display, limits, temporary};

/// Options of `plan`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 plan --board 5x2
  exact2048 plan --board 4x3 --disk 60GB
  exact2048 plan --board 4x3 --threads 8 --json | jq .policies

The table has a row for each choice of kept layers, and one row with best moves. It shows the peak and final disk use \
of a solve, its time, and the time to query the value of a state halfway between kept layers. With less disk than the \
peak, layers are enumerated twice; the table shows the lowest possible --disk. The command estimates times from the \
speed at which it solves 3x3 on this machine, which takes a few seconds. On measured boards the estimated times were \
off by up to a third. For a board with stones, the command prints an upper bound on states and time.")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Print which layers a solve with this disk limit would keep, for example 60GB
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    disk: Option<ByteSize>,
    /// Check whether this much memory is enough [default: half of the memory of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    memory: Option<ByteSize>,
    /// Plan for this many compute threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The plan, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Plan {
    params: Params,
    threads: usize,
    /// Exact number of states, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<u64>,
    /// Estimated number of states, if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    states_about: Option<f64>,
    /// Lower and upper estimates of the number of states, if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    states_range: Option<[f64; 2]>,
    /// Upper bound on the number of states, from formulas. It is a string, because many readers round large numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    states_at_most: Option<String>,
    /// Whether a run with the same states was solved and measured.
    measured_before: bool,
    /// Factor by which the estimates of disk and hours can be too high or too low.
    off_by_at_most: f64,
    least_memory_bytes: u64,
    memory_bytes: u64,
    /// States of 3x3 per second on this machine, in the upward and in the downward pass.
    measured_states_per_second: [f64; 2],
    policies: Vec<Policy>,
    /// The policy that `--disk` allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    chosen: Option<String>,
}

/// Costs of one choice of kept layers.
#[derive(Debug, Serialize)]
struct Policy {
    keep: String,
    /// The stored items, in the form of `--values`.
    values: &'static str,
    peak_disk_bytes: u64,
    least_disk_bytes: u64,
    end_disk_bytes: u64,
    hours: f64,
    /// Hours with the smallest disk limit, where layers are enumerated twice.
    hours_at_least_disk: f64,
    /// Time to query the value of a state halfway between kept layers.
    query_seconds: f64,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let asked = args.job.params()?;
    if asked.game().from().is_some() {
        let what = "--from: expected a whole game, found a position, whose number of states no estimate knows; to count \
                    its lower layers, use solve --from with --until-layer (docs/from.md)";
        return Err(Failure::usage(what.to_owned()).into());
    }
    let threads = limits::useful_threads(args.threads, Some(asked.game().board()));
    if asked.game().board().has_stones() {
        return print_bounds(args, &asked, threads);
    }
    let memory_bytes = limits::memory_or_half(args.memory);
    let tuning = limits::worker_tuning(memory_bytes, threads);
    args.job.require_step(args.disk.is_some(), false)?;
    let mut params = if args.job.has_split() { asked.clone() } else { tuning.split(asked.clone()) };
    let scratch_bytes = tuning.scratch_bytes(&params);
    let limit_bytes = args.disk.map_or(u64::MAX, |disk| disk.as_u64());
    let keep = args.job.keep_of(&params);
    // Refuse before the measurement, which takes seconds.
    let open = (keep, args.job.has_open_step());
    let chosen = args.disk.map(|_| choose(&params, open, limit_bytes, scratch_bytes)).transpose()?;
    let chosen = chosen.map(|(_, choice)| choice);
    if let Some(step) = chosen.and_then(|choice| choice.step) {
        params = params.to_builder().value_step(step).build()?;
    }
    let choices = Choices::new(&params, limit_bytes, scratch_bytes);
    let stop = stop_on_signals("stopping; repeat the signal to stop at once")?;
    let rates = measure(threads, params.contents().stores_best_moves(), &stop)?;
    let seconds = rates.seconds(&PassCost::new(&params, tuning.for_run(&params).dense_rows));
    let workload = Workload::new(&params);
    let layer_cost = LayerCost::new(&params, &workload, seconds, threads);
    let policies = match keep {
        Some(kept) => policies(&params, &choices, [kept], &layer_cost),
        None => all_policies(&params, &choices, &layer_cost),
    };
    let (knowledge, states) = (Knowledge::of(&params), workload.whole_states());
    let factor = knowledge.states_factor();
    let is_known = factor <= 1.0;
    let plan = Plan {
        threads,
        states: is_known.then_some(states.round() as u64),
        states_about: (!is_known).then_some(states),
        states_range: (!is_known).then_some([states / factor, states * factor]),
        states_at_most: if is_known { None } else { states_at_most(&params).map(|most| most.to_string()) },
        measured_before: knowledge == Knowledge::Solved,
        off_by_at_most: knowledge.cost_factor(),
        least_memory_bytes: exact2048_worker::least_memory_bytes(&asked, threads),
        memory_bytes,
        measured_states_per_second: rates.seconds.map(|seconds| rates.states / seconds),
        policies,
        chosen: chosen.map(|choice| choice.kept.to_string()),
        params,
    };
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&plan)?)?;
    } else {
        plan.write(&mut out)?;
        if let Some(choice) = chosen {
            writeln!(out)?;
            write_sentence(&mut out, &choice.text(limit_bytes, &layer_cost))?;
        }
    }
    Ok(())
}

/// Prints bounds for a board with stones.
fn print_bounds(args: &Args, params: &Params, threads: usize) -> Result<()> {
    if args.disk.is_some() {
        let what = "--disk: expected a board without stones, found locks or walls, for which no estimate of the disk exists; \
                    omit --disk here, and use solve --disk";
        return Err(Failure::usage(what.to_owned()).into());
    }
    let (plan, mut out) = (FormationPlan::new(params, threads), io::stdout().lock());
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&plan)?)?;
        return Ok(());
    }
    plan.write(&mut out)
}

/// Costs with every choice of kept layers. Also costs with best moves, if the job does not request best moves.
fn all_policies(params: &Params, choices: &Choices, layer_cost: &LayerCost) -> Vec<Policy> {
    let possible = |kept: &KeptLayers| params.to_builder().kept(*kept).build().is_ok();
    let kept = candidates().chain([KeptLayers::STARTS]).filter(possible);
    let mut all = policies(params, choices, kept, layer_cost);
    if !params.contents().stores_best_moves() {
        let params = params.with_all_contents();
        let choices = Choices::new(&params, u64::MAX, choices.scratch_bytes());
        all.extend(policies(
            &params,
            &choices,
            [KeptLayers::KEPT_WITH_BEST_MOVES],
            &layer_cost.with_best_moves(),
        ));
    }
    all
}

/// Costs with each of the given choices of kept layers.
fn policies(
    params: &Params,
    choices: &Choices,
    kept: impl IntoIterator<Item = KeptLayers>,
    layer_cost: &LayerCost,
) -> Vec<Policy> {
    let policy = |kept: KeptLayers| {
        let ForecastTotals { peak_bytes, least_bytes, end_bytes } = choices.takes(kept);
        Policy {
            keep: kept.to_string(),
            values: values(params),
            peak_disk_bytes: peak_bytes,
            least_disk_bytes: choices.needs(kept).least_bytes,
            end_disk_bytes: end_bytes,
            hours: layer_cost.solve_seconds(false) / 3600.0,
            hours_at_least_disk: layer_cost.solve_seconds(least_bytes < peak_bytes) / 3600.0,
            query_seconds: layer_cost.query_seconds(kept),
        }
    };
    kept.into_iter().map(policy).collect()
}

/// The stored items of a run, in the form of `--values`.
fn values(params: &Params) -> &'static str {
    if params.contents().stores_best_moves() { "best-move" } else { "layers" }
}

/// Measured speed of this machine.
struct Rates {
    /// Number of states of the sample, cost of its passes, and seconds of each pass.
    states: f64,
    cost: PassCost,
    seconds: [f64; 2],
}

impl Rates {
    /// Estimated seconds of the passes of a run on this machine.
    fn seconds(&self, cost: &PassCost) -> [f64; 2] {
        let of_phase = |phase, seconds| seconds * cost.core_seconds(phase) / self.cost.core_seconds(phase);
        [of_phase(Phase::Enumerate, self.seconds[0]), of_phase(Phase::BackUp, self.seconds[1])]
    }
}

/// Memory limit for the sample in bytes. It exceeds the use of 3x3.
const MEASURED_MEMORY: u64 = 1 << 30;

/// Number of measurements. The fastest one counts, because other load can only slow a measurement down.
const TIMES: usize = 2;

/// Solves 3x3 in temporary folders. The measurement takes some seconds and 100 MB of disk.
fn measure(threads: usize, best_moves: bool, stop: &Arc<AtomicBool>) -> Result<Rates> {
    display::print_note("note: measuring the speed of this machine by solving 3x3");
    // Uses a fresh folder, because the folder is removed at the end.
    let folder = tempfile::Builder::new().prefix("exact2048-plan-").tempdir();
    let folder = folder.context("cannot create a temporary folder for the measurement")?;
    let mut best: Option<Rates> = None;
    for time in 0..TIMES {
        let rates = solve_sample(&folder.path().join(format!("3x3-{time}")), threads, best_moves, stop)?;
        best = Some(match best {
            Some(best) => Rates {
                seconds: std::array::from_fn(|phase| best.seconds[phase].min(rates.seconds[phase])),
                ..rates
            },
            None => rates,
        });
    }
    best.context("nothing was measured")
}

fn solve_sample(folder: &Path, threads: usize, best_moves: bool, stop: &Arc<AtomicBool>) -> Result<Rates> {
    let params = Params::builder("3x3".parse()?, Objective::Score).kept(KeptLayers::default());
    let params = params.best_moves(best_moves).build()?;
    let tuning = limits::worker_tuning(MEASURED_MEMORY, threads);
    let stopped = "stopped before the measurement was finished";
    let run = temporary::solve(&folder.into(), &params, tuning, threads, stop, stopped)?;
    let took = |phase| run.catalog().took(phase).map(|took| took.seconds).context("no time was recorded");
    let seconds = [took(Phase::Enumerate)?, took(Phase::BackUp)?];
    let states = run.layer_counts().iter().map(|counts| counts.states as f64).sum();
    Ok(Rates { states, cost: PassCost::new(&params, Tuning::DENSE_ROWS), seconds })
}

impl Plan {
    /// The options for a policy. They name its kept layers, and its stored items if these differ from the job's.
    fn asked_by(&self, policy: &Policy) -> String {
        if policy.values == values(&self.params) {
            match self.params.contents().until() {
                Some(_) => "no values".to_owned(),
                None => policy.keep.clone(),
            }
        } else {
            format!("{} --values {}", policy.keep, policy.values)
        }
    }

    fn write(&self, out: &mut impl Write) -> Result<()> {
        write_field(out, "board", self.params.game().board())?;
        write_field(out, "objective", self.params.game().objective())?;
        let states = match (self.states, self.states_about) {
            (Some(states), _) => units::count(states),
            (None, Some(about)) => {
                let range = self.states_range.map_or(String::new(), |range| {
                    let [least, most] = range.map(units::rough);
                    format!(", {least} to {most}")
                });
                let most = self.states_at_most.as_deref().and_then(|most| most.parse().ok());
                let most =
                    most.map_or(String::new(), |most: f64| format!(", at most {}", units::rough(most)));
                format!("about {}{range}{most}", units::rough(about))
            }
            (None, None) => "unknown".to_owned(),
        };
        write_field(out, "states", states)?;
        let memory = format!(
            "at least {} with {}; the limit is {}",
            SizeUnits::of(self.memory_bytes).at_least(self.least_memory_bytes),
            units::several(self.threads, "thread"),
            SizeUnits::of(self.memory_bytes).size(self.memory_bytes)
        );
        write_field(out, "memory", memory)?;
        if self.params.contents().stores_best_moves() && !self.params.contents().enumerates_only() {
            write_field(out, "best moves", "of every state, included in disk and time")?;
        }
        let [up, down] = self.measured_states_per_second.map(units::rate);
        write_field(out, "measured", format!("3x3 at {up} upward and {down} downward"))?;
        writeln!(out)?;
        let rows: Vec<_> = self
            .policies
            .iter()
            .map(|policy| {
                vec![
                    self.asked_by(policy),
                    units::size(policy.peak_disk_bytes),
                    SizeUnits::Binary.at_least(policy.least_disk_bytes),
                    units::size(policy.end_disk_bytes),
                    units::about(policy.hours * 3600.0),
                    units::about(policy.hours_at_least_disk * 3600.0),
                    match self.params.contents().until() {
                        Some(_) => "–".to_owned(),
                        None => query_time(policy.query_seconds),
                    },
                ]
            })
            .collect();
        let header =
            ["--keep", "disk at most", "least --disk", "in the end", "solve", "solve, least", "query"];
        let left_out = write_fitting(out, &header, &[0], &rows, &[5, 3, 2])?;
        if !left_out.is_empty() {
            let sentence = format!(
                "Columns that do not fit this terminal: {}. Use --json to see all.",
                left_out.join("; ")
            );
            write_sentence(out, &sentence)?;
        }
        if !self.measured_before {
            let sentence = format!(
                "No run like this was measured, so disk and time may differ from the estimates by a factor of {}.",
                self.off_by_at_most
            );
            writeln!(out)?;
            write_sentence(out, &sentence)?;
        }
        if self.memory_bytes < self.least_memory_bytes {
            writeln!(out, "\nThe memory is too small: solve would refuse to start.")?;
        }
        Ok(())
    }
}

/// The estimated time of a query, as in `0.2 s`.
fn query_time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.05 => "< 0.1 s".to_owned(),
        seconds if seconds < 0.95 => format!("{seconds:.1} s"),
        seconds => units::about(seconds),
    }
}
