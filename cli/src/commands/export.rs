//! `exact2048 export`: exports tables of a run for other programs.

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_export::{
    ExportError, ExportOptions, ExportProgress, ExportTable, Exported, FileFormat, export,
};
use exact2048_game::{Layer, Params};
use exact2048_solution::{Oracle, OracleOptions, Run};
use serde_json::json;

use super::verify::parse_layers;
use crate::display::ProgressLine;
use crate::place::RunPlace;
use crate::units::{self, SizeUnits, count};
use crate::{Failure, cones, limits, output};

/// Options of `export`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 export --run runs/3x3 --what states -o 3x3-states
  exact2048 export --run runs/3x3 --what policy --layers 500..600 --format npy -o 3x3-policy
  exact2048 export --run runs/5x2 --what states --sample 1000000 --format csv -o 5x2-sample

The command writes files to the data/ folder of DIR. Each file has a range of layers, with a few million rows. A \
repeated command writes only files that are missing or damaged. Rows ascend by layer and by canonical board. A row has \
the board (packed, four bits per cell), its value, layer, largest tile and number of empty cells. With policy, a row \
also has the best moves as bits (left 1, right 2, up 4, down 8) and the value of each move. The value of an illegal move \
is missing (NULL, an empty field, or NaN with a mask). Values of layers that the run does not store are computed. \
docs/export.md describes the tables.")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    /// Choose the rows: states, afterstates (boards between move and spawn), or policy. A policy lists states with the
    /// value of each move, or with one best move if the run stores best moves
    #[arg(long, value_name = "WHAT", value_enum)]
    what: What,
    /// Export only the layers A to B, inclusive; A or B can be omitted
    #[arg(long, value_name = "A..B", value_parser = parse_layers)]
    layers: Option<RangeInclusive<u32>>,
    /// Export only N rows, spread evenly over all rows and the same each time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Choose the file format: parquet; npy, with one NumPy array per column; or csv
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    format: FileFormat,
    /// Write the files to this folder
    #[arg(short = 'o', long = "output", value_name = "DIR", value_parser = crate::parsing::local_path())]
    folder: PathBuf,
    /// Use this many threads [default: all]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory for layers [default: half of the memory of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    memory: Option<ByteSize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Choices of `--what`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum What {
    /// Export states with their values
    States,
    /// Export afterstates with their values
    Afterstates,
    /// Export states with their best moves and the value of each move
    Policy,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let run = Run::open(args.place.location_to_read()?)?;
    let memory = limits::memory_or_half(args.memory);
    let oracle = Oracle::with_options(&run, OracleOptions { cache_bytes: 0, ..cones::options(memory) })?;
    let options = ExportOptions {
        table: table(args.what, run.params()),
        layers: args.layers.clone().map(|layers| Layer(*layers.start())..=Layer(*layers.end())),
        sample: args.sample,
        format: args.format,
        folder: args.folder.clone(),
        memory_bytes: memory,
    };
    let pool = limits::pool(args.threads)?;
    let line = ProgressLine::new("export");
    let last = run.params().last_layer();
    let show = |at: ExportProgress| {
        let layer = format!("layer {} of {}", count(at.layer.0), count(last.0));
        let rows = format!("{} of {} rows", count(at.rows), count(at.all_rows));
        let share = at.rows as f64 / at.all_rows.max(1) as f64;
        line.show(share, &[line.eta(share), layer, rows]);
    };
    let exported = pool.install(|| export(&run, &oracle, &options, show));
    line.finish();
    print(args, &exported.map_err(failure)?, begun.elapsed().as_secs_f64())
}

/// The requested table of a run with these parameters.
fn table(what: What, params: &Params) -> ExportTable {
    match what {
        What::States => ExportTable::States,
        What::Afterstates => ExportTable::Afterstates,
        What::Policy if params.contents().stores_best_moves() => ExportTable::BestMoves,
        What::Policy => ExportTable::Policy,
    }
}

fn failure(error: ExportError) -> anyhow::Error {
    match error {
        ExportError::Query(error) => error.into(),
        ExportError::NoLayers { .. } => Failure::usage(format!("{error} (--layers A..B)")).into(),
        ExportError::Occupied { .. } | ExportError::Busy { .. } => {
            Failure::usage(format!("{error} (-o DIR)")).into()
        }
        ExportError::Io { error: ref cause, .. } if cause.kind() == io::ErrorKind::NotADirectory => {
            Failure::usage(format!("{error} (-o DIR)")).into()
        }
        ExportError::Memory { needed_bytes, limit_bytes } => Failure::usage(format!(
            "the largest exported layers take up to {} of memory, the limit is {}; give more memory, or export fewer \
             layers (--memory SIZE, --layers A..B)",
            SizeUnits::of(limit_bytes).at_least(needed_bytes),
            SizeUnits::of(limit_bytes).size(limit_bytes),
        ))
        .into(),
        ExportError::Count { .. } | ExportError::Io { .. } => Failure::failed(error.to_string()).into(),
    }
}

fn print(args: &Args, exported: &Exported, seconds: f64) -> Result<()> {
    let Exported { files, files_before, files_damaged, rows, bytes } = *exported;
    let mut out = io::stdout().lock();
    if args.json {
        let json = json!({
            "folder": args.folder.to_string_lossy(),
            "files": files,
            "files_before": files_before,
            "files_damaged": files_damaged,
            "rows": rows,
            "bytes": bytes,
            "seconds": seconds,
        });
        return Ok(writeln!(out, "{json}")?);
    }
    let mut written = count(files as u64);
    if files_before > 0 {
        written += &format!(", {} of them existed before", count(files_before as u64));
    }
    if files_damaged > 0 {
        written += &format!(", {} written again because of damage", count(files_damaged as u64));
    }
    output::write_field(&mut out, "folder", args.folder.join("data").display())?;
    output::write_field(&mut out, "files", written)?;
    output::write_field(&mut out, "rows", count(rows))?;
    let a_row = bytes as f64 / rows.max(1) as f64;
    output::write_field(&mut out, "on disk", format!("{}, {a_row:.1} bytes a row", units::size(bytes)))?;
    Ok(output::write_field(&mut out, "time", units::time(seconds))?)
}
