//! `exact2048 info`: what a run is, and how far it is.

use std::io::{self, Write};

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_coordinator::Phase;
use exact2048_game::Params;
use exact2048_run::{Run, kind_of};
use indicatif::HumanCount;
use serde::Serialize;

use crate::output;
use crate::place::RunPlace;

/// Options of `info`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 info --run runs/3x3
  exact2048 info --run runs/3x3 --json | jq .fingerprint")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Info<'a> {
    run_id: String,
    created_by: &'a str,
    params: &'a Params,
    progress: &'static str,
    passes: Vec<Pass>,
    states: u64,
    afterstates: u64,
    bytes_on_disk: u64,
    fingerprint: Option<String>,
}

/// How far one of the two passes is.
#[derive(Serialize)]
struct Pass {
    phase: Phase,
    /// Ranges of layers, first and last.
    committed: Vec<[u32; 2]>,
    missing: Vec<[u32; 2]>,
    shards: usize,
    bytes: u64,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let run = Run::open(args.place.location_to_read()?)?;
    let info = describe(&run)?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&info)?)?;
    } else {
        write_for_people(&mut out, &info)?;
    }
    Ok(())
}

fn describe(run: &Run) -> Result<Info<'_>> {
    let layers = run.layer_counts();
    let mut passes = vec![pass(run, Phase::Enumerate)];
    if run.params().until_layer.is_none() {
        passes.push(pass(run, Phase::BackUp));
    }
    Ok(Info {
        run_id: run.dir().run_id().to_string(),
        created_by: run.dir().created_by(),
        params: run.params(),
        progress: match (run.missing().is_empty(), run.is_solved()) {
            (_, true) => "solved",
            (true, false) => "enumerated",
            (false, false) => "unfinished",
        },
        passes,
        states: layers.iter().map(|counts| counts.states).sum(),
        afterstates: layers.iter().map(|counts| counts.afterstates).sum(),
        bytes_on_disk: run.dir().bytes_on_disk()?,
        fingerprint: run.fingerprint().map(|fingerprint| format!("{fingerprint:032x}")),
    })
}

fn pass(run: &Run, phase: Phase) -> Pass {
    let all = run.catalog().shards();
    let shards: Vec<_> = all.iter().filter(|shard| shard.commit.phase == phase).collect();
    let commits = run.catalog().commits();
    let committed = commits.iter().filter(|commit| commit.phase == phase);
    let missing = run.missing().into_iter().filter(|gap| gap.phase == phase);
    Pass {
        phase,
        committed: committed.map(|commit| [commit.first.0, commit.last.0]).collect(),
        missing: missing.map(|gap| [gap.first.0, gap.last.0]).collect(),
        shards: shards.len(),
        bytes: shards.iter().map(|shard| shard.record.bytes).sum(),
    }
}

fn write_for_people(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    let params = info.params;
    output::write_field(out, "run", &info.run_id)?;
    output::write_field(out, "created by", info.created_by)?;
    output::write_field(out, "board", params.board)?;
    output::write_field(out, "objective", params.objective)?;
    output::write_field(out, "spawn4", params.spawn4)?;
    output::write_field(out, "precision", format!("{} bits", u8::from(params.precision)))?;
    if let Some(layer) = params.until_layer {
        output::write_field(out, "until layer", layer)?;
    }
    output::write_field(out, "progress", info.progress)?;
    for pass in &info.passes {
        let bytes = ByteSize(pass.bytes).display().iec();
        let shards = format!("{} {} shards, {bytes}", HumanCount(pass.shards as u64), kind_of(pass.phase));
        let ranges = |of: &[[u32; 2]]| match of {
            [] => "none".to_owned(),
            of => of.iter().map(|[first, last]| format!("{first} to {last}")).collect::<Vec<_>>().join(", "),
        };
        output::write_field(out, pass.phase.name(), shards)?;
        output::write_field(out, "  committed", format!("layers {}", ranges(&pass.committed)))?;
        if !pass.missing.is_empty() {
            output::write_field(out, "  missing", format!("layers {}", ranges(&pass.missing)))?;
        }
    }
    output::write_field(out, "states", HumanCount(info.states))?;
    output::write_field(out, "afterstates", HumanCount(info.afterstates))?;
    output::write_field(out, "on disk", ByteSize(info.bytes_on_disk).display().iec())?;
    match &info.fingerprint {
        Some(fingerprint) => output::write_field(out, "fingerprint", fingerprint),
        None if info.progress == "unfinished" => {
            writeln!(out, "\nThe solve command that began this run resumes it.")
        }
        None => Ok(()),
    }
}
