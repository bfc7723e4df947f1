//! `exact2048 combo solve`: the expected length of combos.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_combo4w::Draw;
use serde_json::{Value, json};

use super::setting::{SolvedArgs, SolvedCombo};
use crate::{limits, output, units};

/// Options of `combo solve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 combo solve
  exact2048 combo solve --hold --previews 5
  exact2048 combo solve --hold --previews 4 --draw bag
  exact2048 combo solve --cells 6 --hold --previews 2 --drops hard
  exact2048 combo solve --hold --previews 3 --json | jq .mean

The value of a state is the expected number of further placements under the best policy. A state is the position \
before the next piece is drawn. Each value has an interval that contains the true value.")]
pub struct Args {
    #[command(flatten)]
    solved: SolvedArgs,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let solved = args.solved.solved()?;
    let mut out = io::stdout().lock();
    if args.solved.json {
        writeln!(out, "{}", solved.json())?
    } else {
        solved.write(&mut out)?
    }
    Ok(())
}

impl SolvedCombo {
    fn write(&self, out: &mut impl Write) -> Result<()> {
        let (space, solution) = (&self.space, &self.solution);
        let problem = space.problem();
        output::write_field(out, "first field", problem.first)?;
        let pieces = match problem.draw {
            Draw::Random => "random",
            Draw::Bag => "from bags",
        };
        let hold = if problem.hold { "hold" } else { "no hold" };
        let rules = format!("{pieces}, {}, {hold}", units::several(problem.previews, "preview"));
        output::write_field(out, "pieces", rules)?;
        let moves = space.moves();
        let fields = format!(
            "{}, {}",
            units::count(moves.fields().len()),
            units::several(moves.placements(), "placement")
        );
        output::write_field(out, "fields", fields)?;
        output::write_field(out, "states", units::count(space.len()))?;
        let time = format!("{} in {}", units::several(solution.sweeps(), "sweep"), units::time(self.seconds));
        output::write_field(out, "solved", time)?;
        writeln!(out, "\nExpected further placements:")?;
        let (all, first) = (solution.summary(), solution.first_field(space));
        let row = |name: &str, value: f64, rounding: f64| {
            let (value, bound) = units::value_and_bound(value, self.error(value, rounding));
            vec![name.to_owned(), value, bound.unwrap_or_else(|| "0".to_owned())]
        };
        let rows = [
            row("mean of all states", all.mean, all.mean_rounding),
            row("largest", all.max, 0.0),
            row("mean with the first field", first.mean, first.mean_rounding),
            row("largest with the first field", first.max, 0.0),
        ];
        output::write_table(out, &output::table(&["", "value", "error at most"], &[0], rows))?;
        Ok(())
    }

    fn json(&self) -> Value {
        let (space, solution) = (&self.space, &self.solution);
        let problem = space.problem();
        let (all, first) = (solution.summary(), solution.first_field(space));
        let (low, high) = solution.changes();
        json!({
            "first_field": problem.first.to_string(),
            "drops": format!("{:?}", problem.drops).to_lowercase(),
            "draw": format!("{:?}", problem.draw).to_lowercase(),
            "hold": problem.hold,
            "previews": problem.previews,
            "fields": space.moves().fields().len(),
            "placements": space.moves().placements(),
            "outlooks": space.sequences().len(),
            "states": space.len(),
            "mean": self.value_json(all.mean, all.mean_rounding),
            "max": self.value_json(all.max, 0.0),
            "first_mean": self.value_json(first.mean, first.mean_rounding),
            "first_max": self.value_json(first.max, 0.0),
            "change": { "low": low, "high": high },
            "sweeps": solution.sweeps(),
            "seconds": self.seconds,
            "peak_rss_bytes": limits::peak_rss_bytes(),
        })
    }

    /// A value with the interval of the true value; for `rounding` see [`exact2048_combo4w::Solution::interval`].
    pub fn value_json(&self, value: f64, rounding: f64) -> Value {
        let (low, high) = self.solution.interval(value, rounding);
        json!({ "value": value, "low": low, "high": high })
    }

    /// Error bound of a value.
    pub fn error(&self, value: f64, rounding: f64) -> f64 {
        let (low, high) = self.solution.interval(value, rounding);
        (high - value).max(value - low).next_up()
    }
}
