//! `exact2048 report`: writes a report on one or more solved runs.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_report::{
    ReportError, ReportOptions, ReportProgress, ReportedValues, RunReport, figures, gather, page,
};
use exact2048_solution::Run;
use exact2048_stats::FollowerOfRun;
use serde_json::json;

use super::stats::{chance, follower_of};
use crate::cones::{ConeOptions, kernels};
use crate::display::ProgressLine;
use crate::output_file::{require_empty_folder, require_free, write_whole};
use crate::place::{StoreOptions, named};
use crate::units::{self, SizeUnits, count};
use crate::{Failure, limits, output};

/// Options of `report`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 report --run runs/3x3 -o 3x3.html
  exact2048 report --run runs/3x3 --run small=runs/4x2 -o both.html --svg figures
  exact2048 report --run runs/5x2 --values stored --no-play -o 5x2.html

The report is one HTML file without scripts that loads nothing. It has the certificate, states by layer, values,
empty cells, best moves and the ends of perfect games; with several runs it also compares them. The same runs give the
same bytes with any number of threads. Statistics of perfect play take most of the time unless the run keeps them
(exact2048 stats); --no-play omits them. docs/report.md explains every number.")]
pub struct Args {
    /// Report on the run at this location: a directory, file:///DIR, or s3://BUCKET/PREFIX (keys from the environment). Can
    /// be repeated; NAME is the name in the report
    #[arg(long = "run", value_name = "[NAME=]DIR|URL", required = true)]
    runs: Vec<OsString>,
    #[command(flatten)]
    store: StoreOptions,
    /// Write the report to this file, which must not exist yet
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = crate::parsing::local_path())]
    file: PathBuf,
    /// Also write each figure as an SVG file to this folder, which must be empty or not exist
    #[arg(long, value_name = "DIR", value_parser = crate::parsing::local_path())]
    svg: Option<PathBuf>,
    /// Choose the layers whose values are reported: all, those that the run stores, or none
    #[arg(long, value_name = "WHICH", value_enum, default_value = "all")]
    values: ReportedLayers,
    /// Omit the statistics of perfect play
    #[arg(long)]
    no_play: bool,
    /// Drop boards that a perfect game reaches with less than this probability; 0 drops none
    #[arg(long, value_name = "P", default_value = "1e-18", value_parser = chance, allow_negative_numbers = true,
          conflicts_with = "no_play")]
    cutoff: f64,
    /// Use this many threads [default: all]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory for layers, states and values [default: half of the memory of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    memory: Option<ByteSize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Choices of `--values`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ReportedLayers {
    /// Report all layers and compute values that are not stored
    All,
    /// Report the layers whose values the run stores
    Stored,
    /// Report no values
    None,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let runs = named(&args.runs)?;
    require_free(&args.file, "-o FILE")?;
    let runs = runs
        .into_iter()
        .map(|(name, place)| {
            let location = args.store.locate_to_read(&place)?;
            let run = Run::open(location.clone())?;
            let kept = ConeOptions::default().kept_statistics(&run, &location);
            Ok((name, run, kept))
        })
        .collect::<Result<Vec<_>>>()?;
    if let Some(folder) = &args.svg {
        require_empty_folder(folder, "--svg DIR")?;
    }
    let memory_bytes = limits::memory_or_half(args.memory);
    let options = ReportOptions {
        values: match args.values {
            ReportedLayers::All => ReportedValues::All,
            ReportedLayers::Stored => ReportedValues::Stored,
            ReportedLayers::None => ReportedValues::None,
        },
        perfect_play: (!args.no_play).then_some((follower_of as FollowerOfRun, args.cutoff)),
        memory_bytes,
        kernels: Some(kernels(memory_bytes)),
    };
    let pool = limits::pool(args.threads)?;
    let line = ProgressLine::new("report");
    let gathered: Result<Vec<RunReport>> = runs
        .iter()
        .map(|(name, run, kept)| {
            let last = run.params().last_layer();
            let show = |at: ReportProgress| {
                let layer = format!("layer {} of {}", count(at.layer.0), count(last.0));
                line.show(at.share, &[line.eta(at.share), format!("{name}: {}", at.what), layer]);
            };
            pool.install(|| gather(name, run, kept.as_ref(), &options, show)).map_err(failure)
        })
        .collect();
    line.finish();
    let gathered = gathered?;
    let figures = figures(&gathered);
    let page = page(&gathered, &figures);
    if let Some(folder) = &args.svg {
        for figure in &figures {
            write_whole(&folder.join(format!("{}.svg", figure.name)), &figure.svg_file())?;
        }
    }
    write_whole(&args.file, &page)?;
    print(args, (gathered.len(), figures.len(), page.len()), begun.elapsed().as_secs_f64())
}

fn failure(error: ReportError) -> anyhow::Error {
    match error {
        ReportError::Query(error) => error.into(),
        ReportError::Memory { needed_bytes, limit_bytes } => Failure::usage(format!(
            "summing up the largest layers takes up to {} of memory, the limit is {}; give more memory, or report values of \
             fewer layers (--memory SIZE, --values stored)",
            SizeUnits::of(limit_bytes).at_least(needed_bytes),
            SizeUnits::of(limit_bytes).size(limit_bytes),
        ))
        .into(),
        ReportError::Count { .. } => Failure::failed(error.to_string()).into(),
    }
}

fn print(args: &Args, (runs, figures, bytes): (usize, usize, usize), seconds: f64) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        let json = json!({
            "file": args.file.to_string_lossy(),
            "runs": runs,
            "figures": figures,
            "bytes": bytes,
            "seconds": seconds,
        });
        return Ok(writeln!(out, "{json}")?);
    }
    output::write_field(&mut out, "file", args.file.display())?;
    output::write_field(&mut out, "runs", count(runs))?;
    output::write_field(&mut out, "figures", count(figures))?;
    output::write_field(&mut out, "size", units::size(bytes as u64))?;
    Ok(output::write_field(&mut out, "time", units::time(seconds))?)
}
