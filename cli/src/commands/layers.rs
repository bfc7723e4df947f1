//! `exact2048 layers`: counts of states, afterstates and dead states of each layer.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_solution::{DeadStates, LayerCounts, Phase, Run};
use serde::Serialize;

use crate::display::ProgressLine;
use crate::place::RunPlace;
use crate::{display, limits, output, units};

/// Options of `layers`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 layers --run runs/3x3
  exact2048 layers --run runs/3x3 --csv > layers.csv
  exact2048 layers --run runs/3x3 --json | jq .states
  exact2048 layers --run runs/3x3 --dead

A layer is a tile sum. States and afterstates are counted up to rotation and reflection. Layers without states are
omitted. For an unfinished run, the committed layers are listed. The states include dead states, in which no move is
legal. With --dead, the command reads all states of the run to count the dead states. This takes a few seconds for a few
hundred million states.")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    /// Also count the states in which no move is legal
    #[arg(long)]
    dead: bool,
    /// Count dead states with this many threads [default: all]
    #[arg(long, value_name = "N", requires = "dead", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Print one JSON object for each layer, one per line
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
            Some(writer) => format!("{writer} is working on the run"),
            None => "repeat the solve command of the run to resume it".to_owned(),
        };
        display::print_note(&format!("note: layers {layers} are not enumerated yet; {next}"));
    }
    let layers = counted(&run, args)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        for counts in &layers {
            writeln!(out, "{}", serde_json::to_string(counts)?)?;
        }
    } else if args.csv {
        writeln!(out, "layer,states,afterstates{}", if args.dead { ",dead" } else { "" })?;
        for Counted { counts: LayerCounts { layer, states, afterstates }, dead } in &layers {
            write!(out, "{layer},{states},{afterstates}")?;
            match dead {
                Some(Some(dead)) => writeln!(out, ",{dead}")?,
                Some(None) => writeln!(out, ",")?,
                None => writeln!(out)?,
            }
        }
    } else {
        write_table(&mut out, &layers, args.dead)?;
    }
    out.flush()?;
    Ok(())
}

/// The counts of one layer.
#[derive(Serialize)]
struct Counted {
    #[serde(flatten)]
    counts: LayerCounts,
    /// Number of states in which no move is legal, if requested. The inner `None` means that the layer's states are not
    /// stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Option<Option<u64>>,
}

/// The counts of all layers, with progress on stderr while dead states are counted.
fn counted(run: &Run, args: &Args) -> Result<Vec<Counted>> {
    let layers = run.layer_counts();
    if !args.dead {
        return Ok(layers.into_iter().map(|counts| Counted { counts, dead: None }).collect());
    }
    let pool = limits::pool(args.threads)?;
    let (line, mut dead_states) = (ProgressLine::new("layers"), DeadStates::new(run));
    let states: u64 = layers.iter().map(|counts| counts.states).sum();
    let mut looked_at = 0;
    let found: Result<Vec<Counted>> = pool.install(|| {
        let of_layer = |counts: LayerCounts| {
            let dead = dead_states.of_layer(counts.layer)?;
            looked_at += counts.states;
            let parts = [format!("layer {}", units::count(counts.layer.0))];
            line.show(looked_at as f64 / states as f64, &parts);
            Ok(Counted { counts, dead: Some(dead) })
        };
        layers.into_iter().map(of_layer).collect()
    });
    line.finish();
    let found = found?;
    let unknown = found.iter().filter(|counted| counted.dead == Some(None)).count();
    if unknown > 0 {
        let layers = units::several(unknown, "layer");
        display::print_note(&format!(
            "note: the dead states of {layers} are not counted, because the run no longer stores their states"
        ));
    }
    Ok(found)
}

fn write_table(out: &mut impl Write, layers: &[Counted], with_dead: bool) -> io::Result<()> {
    let row = |name: String, counts: [u64; 2], dead: Option<Option<u64>>| {
        let dead = dead.map(|dead| dead.map_or_else(|| "–".to_owned(), units::count));
        [name].into_iter().chain(counts.map(units::count)).chain(dead).collect()
    };
    let rows = layers
        .iter()
        .map(|c| row(units::count(c.counts.layer.0), [c.counts.states, c.counts.afterstates], c.dead));
    let sum = |of: fn(&Counted) -> u64| layers.iter().map(of).sum::<u64>();
    let name = format!("all {}", units::several(layers.len(), "layer"));
    let counts = [sum(|c| c.counts.states), sum(|c| c.counts.afterstates)];
    let total = row(name, counts, with_dead.then(|| layers.iter().map(|c| c.dead.flatten()).sum()));
    let header = ["layer", "states", "afterstates", "dead"];
    let header = if with_dead { &header[..] } else { &header[..3] };
    output::write_table(out, &output::table(header, &[], rows.chain([total])))
}
