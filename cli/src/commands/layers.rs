//! `exact2048 layers`: how many states and afterstates each layer has.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_coordinator::{LayerCounts, Phase};
use exact2048_run::Run;
use indicatif::HumanCount;

use crate::output;
use crate::place::RunPlace;

/// Options of `layers`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 layers --run runs/3x3
  exact2048 layers --run runs/3x3 --csv > layers.csv
  exact2048 layers --run runs/3x3 --json | jq .states

States and afterstates are counted up to rotation and reflection; layers without states are left out.
Of a run that is not finished, what is committed is shown.")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    /// Print one JSON object a layer, on a line of its own
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values with a header
    #[arg(long)]
    csv: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let run = Run::open(args.place.location_to_read()?)?;
    for gap in run.missing().iter().filter(|gap| gap.phase == Phase::Enumerate) {
        eprintln!(
            "note: layers {} to {} are not enumerated yet; run solve again to go on",
            gap.first, gap.last
        );
    }
    let layers = run.layer_counts();
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        for counts in &layers {
            writeln!(out, "{}", serde_json::to_string(counts)?)?;
        }
    } else if args.csv {
        writeln!(out, "layer,states,afterstates")?;
        for LayerCounts { layer, states, afterstates } in &layers {
            writeln!(out, "{layer},{states},{afterstates}")?;
        }
    } else {
        write_table(&mut out, &layers)?;
    }
    out.flush()?;
    Ok(())
}

fn write_table(out: &mut impl Write, layers: &[LayerCounts]) -> io::Result<()> {
    let row = |name: String, states, afterstates| {
        vec![name, HumanCount(states).to_string(), HumanCount(afterstates).to_string()]
    };
    let total = |of: fn(&LayerCounts) -> u64| layers.iter().map(of).sum();
    let rows = layers.iter().map(|c| row(HumanCount(c.layer.0.into()).to_string(), c.states, c.afterstates));
    let total = row("total".to_owned(), total(|c| c.states), total(|c| c.afterstates));
    output::write_table(out, &output::table(&["layer", "states", "afterstates"], 0, rows.chain([total])))
}
