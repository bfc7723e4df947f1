//! `exact2048 bag`: how many moves a win takes at least, without a board.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_bag::{
    Absorption, Arithmetic, Bag, BigRational, Bounded, Chain, Dot, Exact, Extremes, Floating, Moments, Times,
    absorption, extremes, moments, simulate, times,
};
use exact2048_game::Spawn4;
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::{Failure, output};

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

Tiles lie in a bag. Each move merges every pair once and adds a 2 or a 4. No player on any board needs fewer moves on
average. docs/bag.md has the definition, the formulas and the source.")]
pub struct Args {
    /// The tile to reach: a power of two from 8 to 8388608
    #[arg(long, value_name = "TILE")]
    target: u64,
    /// Chance that a spawned tile is a 4, kept exactly: a decimal or a fraction
    #[arg(long, default_value = "0.1", value_name = "P")]
    spawn4: Spawn4,
    /// Compute in fractions instead of f64 with a bound of the error; for targets up to 131072
    #[arg(long)]
    exact: bool,
    /// Also run the chain so often at random, as a check
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u64).range(2..=10_000_000_000))]
    simulate: Option<u64>,
    /// Seed of the random runs: the same seed gives the same runs
    #[arg(long, default_value_t = 1, requires = "simulate")]
    seed: u64,
    /// Print one JSON object
    #[arg(long, conflicts_with_all = ["csv", "dot"])]
    json: bool,
    /// Print a table as comma-separated values with a header
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["dot", "exact", "simulate"])]
    csv: Option<Table>,
    /// Print a small chain in the language of Graphviz
    #[arg(long, conflicts_with_all = ["exact", "simulate"])]
    dot: bool,
}

/// A table to print.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Table {
    /// How likely each tile is there first after each number of moves
    Moves,
    /// How likely the chain ends at each tile sum
    Sums,
    /// How likely the chain ends in each state
    States,
}

/// Most states of a chain that is drawn.
const MOST_DRAWN: usize = 250;
/// The largest target in fractions, of which each has hundreds of thousands of digits.
const MOST_EXACT: u64 = 131_072;

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let chain =
        Chain::new(args.target, args.spawn4).map_err(|error| Failure::usage(format!("--target: {error}")))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.dot {
        write_picture(&mut out, &chain)?;
    } else if let Some(table) = args.csv {
        write_csv(&mut out, &chain, table)?;
    } else if args.exact {
        if args.target > MOST_EXACT {
            return Err(Failure::usage(format!(
                "--exact: fractions of a target above {} take hours; leave --exact out for f64 with a bound of its error",
                HumanCount(MOST_EXACT)
            ))
            .into());
        }
        write_answer(&mut out, args, &chain, &Exact::new(args.spawn4))?;
    } else {
        write_answer(&mut out, args, &chain, &Floating::new(args.spawn4))?;
    }
    out.flush()?;
    Ok(())
}

fn write_picture(out: &mut impl Write, chain: &Chain) -> Result<()> {
    let states = chain.states().len() + 1;
    if states > MOST_DRAWN {
        return Err(Failure::usage(format!(
            "--dot: the chain has {} states, too many for a picture; expected at most {MOST_DRAWN}, a target up to 128",
            HumanCount(states as u64)
        ))
        .into());
    }
    write!(out, "{}", Dot(chain))?;
    Ok(())
}

fn write_csv(out: &mut impl Write, chain: &Chain, table: Table) -> Result<()> {
    let floating = Floating::new(chain.spawn4());
    match table {
        Table::Moves => {
            writeln!(out, "tile,moves,probability")?;
            for time in &times(chain).tiles {
                for (moves, p) in time.iter() {
                    writeln!(out, "{},{moves},{p:e}", 1u64 << time.exponent)?;
                }
            }
        }
        Table::Sums => {
            writeln!(out, "sum,probability,error")?;
            for (sum, p) in absorption(chain, &floating).sums {
                writeln!(out, "{sum},{:e},{:e}", p.value, p.error)?;
            }
        }
        Table::States => {
            writeln!(out, "state,probability,error")?;
            for (bag, p) in absorption(chain, &floating).states {
                writeln!(out, "\"{bag}\",{:e},{:e}", p.value, p.error)?;
            }
        }
    }
    Ok(())
}

/// All that is known of a chain, with numbers of one kind.
struct Answer<'a, T> {
    args: &'a Args,
    chain: &'a Chain,
    moments: Moments<T>,
    absorption: Absorption<T>,
    extremes: Extremes,
    times: Times,
    sample: Option<exact2048_bag::Sample>,
}

fn write_answer<A: Arithmetic>(out: &mut impl Write, args: &Args, chain: &Chain, arithmetic: &A) -> Result<()>
where
    A::Value: Shown,
{
    let answer = Answer {
        args,
        chain,
        moments: moments(chain, arithmetic),
        absorption: absorption(chain, arithmetic),
        extremes: extremes(chain),
        times: times(chain),
        sample: args.simulate.map(|runs| simulate(chain.target(), args.spawn4, runs, args.seed)),
    };
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
        let count = |n: u32| HumanCount(n.into()).to_string();
        let states = HumanCount(self.chain.states().len() as u64 + 1);
        output::write_field(out, "target", HumanCount(self.args.target))?;
        output::write_field(out, "spawned 4s", self.args.spawn4)?;
        output::write_field(
            out,
            "states",
            format!("{states}, {} absorbing", self.chain.absorbing().count()),
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
            writeln!(
                out,
                "\n{} runs at random, seed {}, 95% confidence:",
                HumanCount(sample.runs()),
                self.args.seed
            )?;
            output::write_field(out, "moves", format!("{:.4} ± {:.4}", mean.value, mean.half_width))?;
            output::write_field(
                out,
                "variance",
                format!("{:.4} ± {:.4}", variance.value, variance.half_width),
            )?;
        }
        writeln!(out, "\nMoves until a tile is there:")?;
        let tiles = self.times.tiles.iter().map(|time| {
            let quantile = |p| HumanCount(time.quantile(p).into()).to_string();
            vec![
                HumanCount(1 << time.exponent).to_string(),
                format!("{:.4}", time.mean()),
                format!("{:.4}", time.standard_deviation()),
                quantile(0.05),
                quantile(0.5),
                quantile(0.95),
            ]
        });
        let header = ["tile", "expected", "deviation", "5%", "50%", "95%"];
        output::write_table(out, &output::table(&header, 0, tiles))?;
        writeln!(out, "\nTile sum at the end:")?;
        let sums =
            self.absorption.sums.iter().map(|(sum, p)| vec![HumanCount(*sum).to_string(), p.rounded()]);
        output::write_table(out, &output::table(&["sum", "probability"], 0, sums))?;
        let mut ends: Vec<&(Bag, T)> = self.absorption.states.iter().collect();
        ends.sort_by(|a, b| b.1.approximate().total_cmp(&a.1.approximate()));
        writeln!(out, "\nMost likely ends:")?;
        let ends = ends.into_iter().take(10).map(|(bag, p)| vec![bag.to_string(), p.rounded()]);
        output::write_table(out, &output::table(&["state", "probability"], 1, ends))?;
        Ok(())
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

/// A number as it is shown.
trait Shown {
    /// With all digits that mean something.
    fn shown(&self) -> String;
    /// Its square root, likewise.
    fn root(&self) -> String;
    /// With six significant digits.
    fn rounded(&self) -> String {
        let value = self.approximate();
        if value >= 1e-4 || value == 0.0 { format!("{value:.6}") } else { format!("{value:.5e}") }
    }
    fn approximate(&self) -> f64;
    /// For `--json`: value and error, or a fraction in lowest terms.
    fn json(&self) -> Value;
}

impl Shown for Bounded {
    fn shown(&self) -> String {
        let decimals = if self.error > 0.0 { (-self.error.log10()).floor().clamp(0.0, 12.0) } else { 0.0 };
        format!("{:.*} (error at most {:.0e})", decimals as usize, self.value, self.error)
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

/// Decimals of a fraction on the screen.
const DECIMALS: u32 = 30;

impl Shown for BigRational {
    fn shown(&self) -> String {
        let scaled = self.numer() * num_bigint::BigInt::from(10).pow(DECIMALS) / self.denom();
        let digits = format!("{scaled:0>width$}", width = DECIMALS as usize + 1);
        let (whole, decimals) = digits.split_at(digits.len() - DECIMALS as usize);
        format!("{whole}.{decimals}…")
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
