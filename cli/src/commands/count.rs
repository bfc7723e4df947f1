//! `exact2048 count`: bounds the number of boards without enumerating them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;
use exact2048_count::{Bounds, Count, Counted};
use exact2048_game::BoardSize;
use exact2048_solution::Run;
use serde_json::{Value, json};

use crate::display::ProgressLine;
use crate::place::StoreOptions;
use crate::units::{self, count};
use crate::{Failure, output};

/// Options of `count`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true), after_help = "\
Examples:
  exact2048 count --board 4x4 --target 2048
  exact2048 count --board 4x3
  exact2048 count --board 3x3 --csv > layers.csv
  exact2048 count --run runs/3x3
  exact2048 count --run runs/3x3 --json | jq .totals

The counts are upper bounds from formulas; no board is enumerated. With --run, the command also prints which share of
the possible boards are states of the run. docs/count.md has the formulas and the source.")]
pub struct Args {
    /// Set the rows and columns, for example 4x4: 2 to 16 cells, sides of 1 to 8; with stones, 4x4:PICTURE
    #[arg(long, value_name = "RxC", group = "what")]
    board: Option<BoardSize>,
    /// Count boards whose tiles are all below this tile, a power of two from 8 to 131072 [default: no limit]
    #[arg(long, value_name = "TILE", conflicts_with = "run")]
    target: Option<u64>,
    /// Count for the board of this run and compare the counts with its states: a directory, file:///DIR, or
    /// s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR|URL", group = "what")]
    run: Option<OsString>,
    #[command(flatten)]
    store: StoreOptions,
    /// Print one JSON object with all layers
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the layers as comma-separated values with a header
    #[arg(long)]
    csv: bool,
}

/// Number of states of each layer of a run up to symmetry, by tile sum.
type States = BTreeMap<u64, u64>;

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let (size, target, states) = match (&args.run, args.board) {
        (Some(place), _) => {
            let run = Run::open(args.store.locate(place)?)?;
            let target = run.params().game().winning_exponent().map(|exponent| 1 << exponent);
            (run.params().game().board(), target, Some(states_of(&run)))
        }
        (None, Some(board)) => (board, args.target, None),
        (None, None) => return Err(Failure::usage("expected --board or --run".to_owned()).into()),
    };
    let bounds = bounds(size, target)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.csv {
        write_csv(&mut out, &bounds, states.as_ref())?;
    } else if args.json {
        writeln!(out, "{}", json(&bounds, states.as_ref()))?;
    } else {
        write_for_people(&mut out, &bounds, states.as_ref())?;
    }
    out.flush()?;
    Ok(())
}

/// Counts boards with progress on stderr, because counting with the largest tiles takes tens of seconds.
fn bounds(size: BoardSize, target: Option<u64>) -> Result<Bounds> {
    let (line, begun) = (ProgressLine::new("count"), Instant::now());
    let bounds = Bounds::new(size, target, |share| {
        line.show(share, &[format!("{} so far", units::about(begun.elapsed().as_secs_f64()))]);
    });
    line.finish();
    bounds.map_err(|error| Failure::usage(format!("--target: {error}")).into())
}

fn states_of(run: &Run) -> States {
    run.layer_counts().into_iter().map(|counts| (counts.layer.0.into(), counts.states)).collect()
}

fn write_for_people(out: &mut impl Write, bounds: &Bounds, states: Option<&States>) -> Result<()> {
    let target = bounds.target().map_or("none".to_owned(), |target| count(1u64 << target));
    output::write_field(out, "board", bounds.size())?;
    output::write_field(out, "target", target)?;
    writeln!(out)?;
    let row = |name: &str, kind| {
        let Count { boards, orbits } = bounds.total(kind);
        vec![
            name.to_owned(),
            count(boards),
            count(orbits),
            bounds.last_sum(kind).map_or(String::new(), count),
        ]
    };
    let mut rows = vec![
        row("all", Counted::All),
        row("in layers that can be reached", Counted::Reachable),
        row("within the tile bound", Counted::WithinTileBound),
    ];
    if let Some(states) = states {
        let total: u64 = states.values().sum();
        let last = states.keys().last().map_or(String::new(), |&sum| count(sum));
        rows.push(vec!["states of the run".to_owned(), String::new(), count(total), last]);
    }
    output::write_all_columns(out, &["boards", "each", "up to symmetry", "to tile sum"], &[0], &rows)?;
    if let Some(states) = states {
        let (found, possible) = shared(bounds, states);
        let share = if possible == 0 { 0.0 } else { found as f64 / possible as f64 };
        let share = units::share(share);
        let sentence =
            format!("Of the boards within the tile bound in the run's layers, {share} are states.");
        writeln!(out)?;
        output::write_sentence(out, &sentence)?;
    }
    if bounds.target().is_some() {
        writeln!(out, "\nAll won boards count as one.")?;
    }
    Ok(())
}

/// Numbers of states of a run, and of boards within the tile bound in the same layers. Both are up to symmetry.
fn shared(bounds: &Bounds, states: &States) -> (u128, u128) {
    let layers = bounds.layers().iter().filter_map(|layer| Some((states.get(&layer.sum)?, layer)));
    layers.fold((0, 0), |(found, possible), (&states, layer)| {
        (found + u128::from(states), possible + layer.within_tile_bound.orbits)
    })
}

fn write_csv(out: &mut impl Write, bounds: &Bounds, states: Option<&States>) -> io::Result<()> {
    let last = if states.is_some() { ",states" } else { "" };
    writeln!(out, "sum,boards,orbits,boards_within_tile_bound,orbits_within_tile_bound{last}")?;
    for layer in bounds.layers() {
        let (all, within) = (layer.all, layer.within_tile_bound);
        write!(out, "{},{},{},{},{}", layer.sum, all.boards, all.orbits, within.boards, within.orbits)?;
        match states {
            Some(states) => writeln!(out, ",{}", states.get(&layer.sum).unwrap_or(&0))?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// The counts as JSON strings, because many readers round numbers above 2^53.
fn json(bounds: &Bounds, states: Option<&States>) -> Value {
    let both =
        |count: Count| json!({ "boards": count.boards.to_string(), "orbits": count.orbits.to_string() });
    let total = |kind| {
        let mut total = both(bounds.total(kind));
        total["last_sum"] = json!(bounds.last_sum(kind));
        total
    };
    let layers: Vec<Value> = bounds
        .layers()
        .iter()
        .map(|layer| {
            json!({
                "sum": layer.sum,
                "all": both(layer.all),
                "within_tile_bound": both(layer.within_tile_bound),
                "states": states.map(|states| states.get(&layer.sum).unwrap_or(&0).to_string()),
            })
        })
        .collect();
    json!({
        "board": bounds.size().to_string(),
        "target": bounds.target().map(|target| 1u64 << target),
        "totals": {
            "all": total(Counted::All),
            "reachable_layers": total(Counted::Reachable),
            "within_tile_bound": total(Counted::WithinTileBound),
            "states": states.map(|states| states.values().sum::<u64>().to_string()),
        },
        "layers": layers,
    })
}
