//! `exact2048 layers`: how many states and afterstates each layer has.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_solution::{LayerCounts, Phase, Run};

use crate::place::RunPlace;
use crate::{display, output, units};

/// Options of `layers`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 layers --run runs/3x3
  exact2048 layers --run runs/3x3 --csv > layers.csv
  exact2048 layers --run runs/3x3 --json | jq .states

A layer is a tile sum. States and afterstates are counted up to rotation and reflection; layers without states are
left out. Of a run that is not finished, what is committed is shown.")]
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
        let layers = units::layers(&[[gap.first.0, gap.last.0]]);
        let next = match run.dir().held_by()? {
            Some(writer) => format!("{writer} is at work on the run"),
            None => "the solve command that began the run goes on with it".to_owned(),
        };
        display::say(&format!("note: layers {layers} are not enumerated yet: {next}"));
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
    let row = |name: String, states: u64, afterstates: u64| {
        vec![name, units::count(states), units::count(afterstates)]
    };
    let total = |of: fn(&LayerCounts) -> u64| layers.iter().map(of).sum();
    let rows = layers.iter().map(|c| row(units::count(c.layer.0), c.states, c.afterstates));
    let all = units::several(layers.len(), "layer");
    let total = row(format!("all {all}"), total(|c| c.states), total(|c| c.afterstates));
    output::write_table(out, &output::table(&["layer", "states", "afterstates"], &[], rows.chain([total])))
}
