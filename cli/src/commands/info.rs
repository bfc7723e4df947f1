//! `exact2048 info`: the parameters and the progress of a run.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_game::{Discount, Params, Spawner};
use exact2048_solution::{Commit, PassTime, Phase, ReachSource, Recipe, Run};
use exact2048_storage::FORMAT_VERSION;
use serde::Serialize;

use crate::job::{from_text, kept_text};
use crate::output::write_field;
use crate::place::RunPlace;
use crate::summary::pass_text;
use crate::units;

/// Options of `info`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 info --run runs/3x3
  exact2048 info --run runs/3x3 --json | jq .fingerprint

The command checks that every committed shard exists and has the recorded length; verify reads the contents.")]
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
    format_version: u32,
    params: &'a Params,
    /// The stored layers, in the form of `--keep`.
    keep: String,
    progress: &'static str,
    /// The process that has the run open for writing, if known.
    writer: Option<String>,
    passes: Vec<Pass>,
    states: u64,
    afterstates: u64,
    bytes_on_disk: u64,
    fingerprint: Option<String>,
}

/// Progress of one of the two passes.
#[derive(Serialize)]
struct Pass {
    phase: Phase,
    /// Committed ranges of layers, first and last.
    committed: Vec<[u32; 2]>,
    missing: Vec<[u32; 2]>,
    /// Committed ranges of layers with removed reach. The reach is no longer needed, or not yet needed again.
    removed: Vec<[u32; 2]>,
    /// Committed ranges of layers with a missing shard or a shard of a different length.
    lost: Vec<[u32; 2]>,
    shards: usize,
    bytes: u64,
    /// Computing time of the committed layers in seconds; `None` if not recorded.
    seconds: Option<f64>,
    #[serde(skip)]
    took: Option<PassTime>,
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
    let lost = run.absent()?;
    let mut passes = vec![pass(run, Phase::Enumerate, &lost)];
    if !run.params().contents().enumerates_only() {
        passes.push(pass(run, Phase::BackUp, &lost));
    }
    Ok(Info {
        run_id: run.dir().run_id().to_string(),
        created_by: run.dir().created_by(),
        format_version: run.format_version(),
        params: run.params(),
        keep: run.params().contents().kept().to_string(),
        progress: match (lost.is_empty(), run.missing().is_empty(), run.is_solved()) {
            (false, ..) => "damaged",
            (true, _, true) => "solved",
            (true, true, false) => "enumerated",
            (true, false, false) => "unfinished",
        },
        writer: run.dir().held_by()?,
        passes,
        states: layers.iter().map(|counts| counts.states).sum(),
        afterstates: layers.iter().map(|counts| counts.afterstates).sum(),
        bytes_on_disk: run.dir().bytes_on_disk()?,
        fingerprint: run.fingerprint().map(|fingerprint| format!("{fingerprint:032x}")),
    })
}

fn pass(run: &Run, phase: Phase, lost: &[Commit]) -> Pass {
    let all = run.catalog().shards();
    let shards: Vec<_> = all.iter().filter(|shard| shard.commit.phase == phase).collect();
    let ranges = |commits: &[Commit]| {
        let of_phase = commits.iter().filter(|commit| commit.phase == phase);
        units::joined(of_phase.map(|commit| [commit.first.0, commit.last.0]))
    };
    let holdings = run.holdings();
    let recipe = Recipe::new(run.params(), &holdings);
    let with_reach = |source: ReachSource| {
        units::joined(
            run.params().layers().filter(|&layer| recipe.reach(layer) == source).map(|layer| [layer.0; 2]),
        )
    };
    let (missing, removed) = match phase {
        Phase::Enumerate => (with_reach(ReachSource::Missing), with_reach(ReachSource::Recomputed)),
        Phase::BackUp => {
            let gaps = recipe.steps().into_iter().filter(|gap| gap.phase == phase);
            (units::joined(gaps.map(|gap| [gap.first.0, gap.last.0])), Vec::new())
        }
    };
    let took = run.catalog().took(phase);
    Pass {
        phase,
        committed: ranges(&run.catalog().commits()),
        missing,
        removed,
        lost: ranges(lost),
        shards: shards.len(),
        bytes: shards.iter().map(|shard| shard.record.bytes).sum(),
        seconds: took.map(|took| took.seconds),
        took,
    }
}

fn write_for_people(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    let params = info.params;
    write_field(out, "run", &info.run_id)?;
    write_field(out, "created by", info.created_by)?;
    write_field(out, "format", format!("version {}", info.format_version))?;
    write_field(out, "board", params.game().board())?;
    write_field(out, "objective", params.game().objective())?;
    if let Some(from) = from_text(params.game()) {
        write_field(out, "from", from)?;
    }
    write_field(out, "spawn4", params.game().spawn4())?;
    if params.game().discount() != Discount::NONE {
        write_field(out, "discount", params.game().discount())?;
    }
    if params.game().spawner() != Spawner::Random {
        write_field(out, "spawner", params.game().spawner())?;
    }
    write_field(out, "precision", format!("{} bits", u8::from(params.game().precision())))?;
    write_field(out, "large tiles", format!("from {} on", units::count(1u32 << params.split().large())))?;
    if let Some(layer) = params.contents().until() {
        write_field(out, "until layer", units::count(layer.0))?;
    }
    if !params.contents().enumerates_only() {
        write_field(
            out,
            "kept layers",
            kept_text(params.contents().kept(), params.contents().stores_best_moves()),
        )?;
        if let Some(step) = params.contents().value_step() {
            write_field(out, "value step", step)?;
        }
    }
    write_field(out, "progress", info.progress)?;
    if let Some(writer) = &info.writer {
        write_field(out, "at work", format!("{writer} has the run open for writing"))?;
    }
    for pass in &info.passes {
        write_pass(out, pass, info)?;
    }
    write_field(out, "states", units::count(info.states))?;
    write_field(out, "afterstates", units::count(info.afterstates))?;
    write_field(out, "on disk", units::size(info.bytes_on_disk))?;
    if let Some(fingerprint) = &info.fingerprint {
        write_field(out, "fingerprint", fingerprint)?;
    }
    write_advice(out, info)
}

fn write_pass(out: &mut impl Write, pass: &Pass, info: &Info<'_>) -> io::Result<()> {
    let shards = units::several(pass.shards, &format!("{} shard", pass.phase.shard_kind()));
    write_field(out, pass.phase.name(), format!("{shards}, {}", units::size(pass.bytes)))?;
    let layers = |ranges: &[[u32; 2]]| match ranges {
        [] => "none".to_owned(),
        ranges => format!("layers {}", units::layers(ranges)),
    };
    write_field(out, "  committed", layers(&pass.committed))?;
    if !pass.missing.is_empty() {
        write_field(out, "  missing", layers(&pass.missing))?;
    }
    if !pass.removed.is_empty() {
        write_field(out, "  removed", format!("{}, to free disk space", layers(&pass.removed)))?;
    }
    if !pass.lost.is_empty() {
        write_field(out, "  lost", format!("{}: a shard is missing or truncated", layers(&pass.lost)))?;
    }
    match pass.took {
        // The time per state is known only if all states are done.
        Some(took) => {
            write_field(out, "  time", pass_text(took, if pass.missing.is_empty() { info.states } else { 0 }))
        }
        None => Ok(()),
    }
}

fn write_advice(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    match (info.progress, &info.writer) {
        ("solved" | "enumerated", _) => Ok(()),
        (_, Some(writer)) => writeln!(out, "\nUnfinished: {writer} is working on the run."),
        _ if info.format_version != FORMAT_VERSION => writeln!(
            out,
            "\nThis program can read the run but not resume it. Finish the run with\n\
             version 0.1, or solve the board again in another directory."
        ),
        ("damaged", None) => writeln!(
            out,
            "\nRepeat the solve command of this run to recompute the lost shards. If a\n\
             cluster made the run, use exact2048 resume."
        ),
        (_, None) => writeln!(out, "\nRepeat the solve command of this run to resume it."),
    }
}
