//! `exact2048 bag`: the number of moves to a tile, if tiles lie in a bag instead of on a board.

mod steps;

use std::io::{self, Write};

use anyhow::Result;
use exact2048_bag::{
    Absorption, Arithmetic, Bag, BigRational, Bounded, Chain, Dot, Exact, Extremes, Floating, Moments, Times,
    absorption, extremes, moments, simulate, times_with,
};
use exact2048_game::Spawn4;
use serde_json::{Value, json};

use crate::units::{self, count};
use crate::{Failure, output};
use steps::Steps;

/// Options of `bag`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 bag --target 2048
  exact2048 bag --target 2048 --json | jq .moves.mean
  exact2048 bag --target 2048 --csv moves > moves.csv
  exact2048 bag --target 64 --exact
  exact2048 bag --target 2048 --simulate 1000000
  exact2048 bag --target 16 --dot | dot -Tsvg > bag.svg

Tiles lie in a bag. Each move merges every pair once and adds a 2 or a 4. The mean number of moves is a lower bound for
every player on every board. docs/bag.md has the definition, the formulas and the source.")]
pub struct Args {
    /// Set the tile to reach, a power of two from 8 to 8388608
    #[arg(long, value_name = "TILE")]
    target: u64,
    /// Set the probability that a spawned tile is a 4: a decimal or a fraction, stored exactly
    #[arg(long, default_value = "0.1", value_name = "P")]
    spawn4: Spawn4,
    /// Compute with exact fractions, not with f64 and an error bound; for targets up to 131072
    #[arg(long)]
    exact: bool,
    /// Also simulate this many random runs of the chain, as a check
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u64).range(2..=10_000_000_000))]
    simulate: Option<u64>,
    /// Set the seed of the random runs; the same seed gives the same runs
    #[arg(long, default_value_t = 1, requires = "simulate")]
    seed: u64,
    /// Print one JSON object
    #[arg(long, conflicts_with_all = ["csv", "dot"])]
    json: bool,
    /// Print a table as comma-separated values with a header
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["dot", "exact", "simulate"])]
    csv: Option<Table>,
    /// Print a small chain in the Graphviz language
    #[arg(long, conflicts_with_all = ["exact", "simulate"])]
    dot: bool,
}

/// A table to print.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Table {
    /// Print the probability that each tile first appears after each number of moves
    Moves,
    /// Print the probability that the chain ends at each tile sum
    Sums,
    /// Print the probability that the chain ends in each state
    States,
}

/// Largest number of states of a drawn chain.
const MOST_DRAWN: usize = 250;
/// Largest target for which fractions are allowed. Such fractions have hundreds of thousands of digits each.
const MOST_EXACT: u64 = 131_072;

/// Names of steps that several outputs share.
const ENDS: &str = "ends of the chain";
const TIMES: &str = "moves until each tile";

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    if args.exact && args.target > MOST_EXACT && !args.dot {
        return Err(Failure::usage(format!(
            "--exact: expected a target of at most {}, because fractions of larger targets take hours; omit \
             --exact for f64 with an error bound",
            count(MOST_EXACT)
        ))
        .into());
    }
    let all = if args.csv.is_some() { 2 } else { 4 + u32::from(args.simulate.is_some()) };
    let steps = Steps::new(all);
    steps.begin("finding the states");
    let chain =
        Chain::new(args.target, args.spawn4).map_err(|error| Failure::usage(format!("--target: {error}")))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.dot {
        drop(steps);
        write_picture(&mut out, &chain)?;
    } else if let Some(table) = args.csv {
        write_csv(&mut out, &chain, table, steps)?;
    } else if args.exact {
        write_answer(&mut out, args, &chain, &Exact::new(args.spawn4), steps)?;
    } else {
        write_answer(&mut out, args, &chain, &Floating::new(args.spawn4), steps)?;
    }
    out.flush()?;
    Ok(())
}

fn write_picture(out: &mut impl Write, chain: &Chain) -> Result<()> {
    let states = chain.states().len() + 1;
    if states > MOST_DRAWN {
        return Err(Failure::usage(format!(
            "--dot: expected at most {MOST_DRAWN} states, found {}; give a target up to 128",
            count(states)
        ))
        .into());
    }
    write!(out, "{}", Dot(chain))?;
    Ok(())
}

fn write_csv(out: &mut impl Write, chain: &Chain, table: Table, steps: Steps) -> Result<()> {
    let floating = Floating::new(chain.spawn4());
    match table {
        Table::Moves => {
            steps.begin(TIMES);
            let times = times_with(chain, |share| steps.reach(share));
            drop(steps);
            writeln!(out, "tile,moves,probability")?;
            for time in &times.tiles {
                for (moves, p) in time.iter() {
                    writeln!(out, "{},{moves},{p:e}", 1u64 << time.exponent)?;
                }
            }
        }
        Table::Sums => {
            steps.begin(ENDS);
            let sums = absorption(chain, &floating).sums;
            drop(steps);
            writeln!(out, "sum,probability,error")?;
            for (sum, p) in sums {
                writeln!(out, "{sum},{:e},{:e}", p.value, p.error)?;
            }
        }
        Table::States => {
            steps.begin(ENDS);
            let states = absorption(chain, &floating).states;
            drop(steps);
            writeln!(out, "state,probability,error")?;
            for (bag, p) in states {
                writeln!(out, "\"{bag}\",{:e},{:e}", p.value, p.error)?;
            }
        }
    }
    Ok(())
}

/// All results of a chain, with numbers of one kind.
struct Answer<'a, T> {
    args: &'a Args,
    chain: &'a Chain,
    moments: Moments<T>,
    absorption: Absorption<T>,
    extremes: Extremes,
    times: Times,
    sample: Option<exact2048_bag::SampledCounts>,
}

fn write_answer<A: Arithmetic>(
    out: &mut impl Write,
    args: &Args,
    chain: &Chain,
    arithmetic: &A,
    steps: Steps,
) -> Result<()>
where
    A::Value: Shown,
{
    steps.begin("mean and variance");
    let moments = moments(chain, arithmetic);
    steps.begin(ENDS);
    let (absorption, extremes) = (absorption(chain, arithmetic), extremes(chain));
    steps.begin(TIMES);
    let times = times_with(chain, |share| steps.reach(share));
    let sample = args.simulate.map(|runs| {
        steps.begin("runs at random");
        simulate(chain.target(), args.spawn4, runs, args.seed)
    });
    drop(steps);
    let answer = Answer { args, chain, moments, absorption, extremes, times, sample };
    if args.json {
        writeln!(out, "{}", answer.json())?;
        Ok(())
    } else {
        answer.write(out)
    }
}

impl<T: Shown> Answer<'_, T> {
    fn write(&self, out: &mut impl Write) -> Result<()> {
        let Extremes { min_moves, max_moves, min_cells, max_cells } = self.extremes;
        let states = count(self.chain.states().len() + 1);
        output::write_field(out, "target", count(self.args.target))?;
        output::write_field(out, "spawned 4s", self.args.spawn4)?;
        output::write_field(
            out,
            "states",
            format!("{states}, {} absorbing", count(self.chain.absorbing().count())),
        )?;
        output::write_field(out, "moves", format!("{} expected", self.moments.mean.shown()))?;
        output::write_field(out, "variance", self.moments.variance.shown())?;
        output::write_field(out, "deviation", self.moments.variance.root())?;
        output::write_field(
            out,
            "least, most",
            format!("{} to {} moves", count(min_moves), count(max_moves)),
        )?;
        output::write_field(out, "cells needed", format!("{min_cells} to {max_cells}"))?;
        if let Some(sample) = &self.sample {
            let (mean, variance) = (sample.mean(), sample.variance());
            let (runs, seed) = (count(sample.runs()), self.args.seed);
            writeln!(out)?;
            output::write_sentence(out, &format!("{runs} runs at random, seed {seed}, 95% confidence:"))?;
            for (name, of) in [("moves", mean), ("variance", variance)] {
                output::write_field(out, name, units::interval(of.value, of.half_width, 4))?;
            }
        }
        writeln!(out, "\nMoves until each tile first appears:")?;
        let tiles = self.times.tiles.iter().map(|time| {
            let quantile = |p| count(time.quantile(p));
            vec![
                count(1u64 << time.exponent),
                units::mean(time.mean(), 4),
                units::mean(time.standard_deviation(), 4),
                quantile(0.05),
                quantile(0.5),
                quantile(0.95),
            ]
        });
        let header = ["tile", "expected", "deviation", "5%", "50%", "95%"];
        output::write_all_columns(out, &header, &[], &tiles.collect::<Vec<_>>())?;
        writeln!(out, "\nTile sum at the end:")?;
        let rounded = |p: &T| units::probability(p.approximate());
        let sums = self.absorption.sums.iter().map(|(sum, p)| vec![count(*sum), rounded(p)]);
        output::write_all_columns(out, &["sum", "probability"], &[], &sums.collect::<Vec<_>>())?;
        let mut ends: Vec<&(Bag, T)> = self.absorption.states.iter().collect();
        ends.sort_by(|a, b| b.1.approximate().total_cmp(&a.1.approximate()));
        writeln!(out, "\nMost likely ends:")?;
        let ends = ends.into_iter().take(10).map(|(bag, p)| vec![bag.to_string(), rounded(p)]);
        Ok(output::write_all_columns(out, &["state", "probability"], &[0], &ends.collect::<Vec<_>>())?)
    }

    fn json(&self) -> Value {
        let tiles: Vec<Value> = self
            .times
            .tiles
            .iter()
            .map(|time| {
                json!({
                    "tile": 1u64 << time.exponent,
                    "mean": time.mean(),
                    "standard_deviation": time.standard_deviation(),
                    "first_moves": time.first,
                    "probabilities": time.probabilities,
                })
            })
            .collect();
        let sums: Vec<Value> = self
            .absorption
            .sums
            .iter()
            .map(|(sum, p)| json!({ "sum": sum, "probability": p.json() }))
            .collect();
        let ends: Vec<Value> = self
            .absorption
            .states
            .iter()
            .map(|(bag, p)| json!({ "tiles": bag.tiles().collect::<Vec<_>>(), "probability": p.json() }))
            .collect();
        let sample = self.sample.as_ref().map(|sample| {
            let estimate =
                |of: exact2048_bag::Estimate| json!({ "value": of.value, "half_width": of.half_width });
            json!({
                "runs": sample.runs(),
                "seed": self.args.seed,
                "mean": estimate(sample.mean()),
                "variance": estimate(sample.variance()),
            })
        });
        json!({
            "target": self.args.target,
            "spawn4": self.args.spawn4,
            "states": self.chain.states().len() + 1,
            "absorbing_states": self.chain.absorbing().count(),
            "moves": {
                "mean": self.moments.mean.json(),
                "variance": self.moments.variance.json(),
                "min": self.extremes.min_moves,
                "max": self.extremes.max_moves,
            },
            "cells": { "min": self.extremes.min_cells, "max": self.extremes.max_cells },
            "times": {
                "relative_error": self.times.relative_error,
                "left_out": self.times.left_out,
                "tiles": tiles,
            },
            "absorption": { "sums": sums, "states": ends },
            "simulation": sample,
        })
    }
}

/// A number in the output.
trait Shown {
    /// The number with all significant digits.
    fn shown(&self) -> String;
    /// The square root with all significant digits.
    fn root(&self) -> String;
    fn approximate(&self) -> f64;
    /// The number for `--json`: value and error, or a fraction in lowest terms.
    fn json(&self) -> Value;
}

impl Shown for Bounded {
    fn shown(&self) -> String {
        units::value_with_bound(self.value, self.error)
    }

    fn root(&self) -> String {
        self.sqrt().shown()
    }

    fn approximate(&self) -> f64 {
        self.value
    }

    fn json(&self) -> Value {
        json!({ "value": self.value, "error": self.error })
    }
}

/// Number of printed decimals of a fraction.
const DECIMALS: u32 = 30;

impl Shown for BigRational {
    fn shown(&self) -> String {
        let scaled = self.numer() * num_bigint::BigInt::from(10).pow(DECIMALS) / self.denom();
        let digits = format!("{scaled:0>width$}", width = DECIMALS as usize + 1);
        let (whole, decimals) = digits.split_at(digits.len() - DECIMALS as usize);
        units::with_separators(&format!("{whole}.{decimals}")) + "…"
    }

    fn root(&self) -> String {
        let scaled = self.numer() * num_bigint::BigInt::from(10).pow(2 * DECIMALS) / self.denom();
        BigRational::new_raw(scaled.sqrt(), num_bigint::BigInt::from(10).pow(DECIMALS)).shown()
    }

    fn approximate(&self) -> f64 {
        num_traits::ToPrimitive::to_f64(self).unwrap_or(f64::NAN)
    }

    fn json(&self) -> Value {
        json!({ "fraction": self.reduced().to_string(), "value": self.approximate() })
    }
}
