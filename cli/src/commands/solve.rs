//! `exact2048 solve`: enumerates and backs up a board on this machine.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_coordinator::Workload;
use exact2048_game::Params;
use exact2048_run::alone::{self, disk};
use exact2048_run::remove_lost;
use exact2048_run::verify::CheckProgress;
use exact2048_solution::{Run, Segment, UnnamedPolicy};
use exact2048_storage::{Location, StorageError};
use exact2048_text::with_causes;
use exact2048_worker::Tuning;

use super::verify::Watch;
use crate::choice::{LayerCost, choose};
use crate::job::JobArgs;
use crate::output::write_next;
use crate::place::RunPlace;
use crate::plan::{FreeRoom, Needs, free_disk, notes};
use crate::progress::{ProgressDisplay, unsolved};
use crate::signals::stop_on_signals;
use crate::states_bound::{SECONDS_A_STATE, states_at_most};
use crate::summary::{RunSummary, recorded_seconds, report_excess};
use crate::{Failure, display, limits, units};

/// Options of `solve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 solve --board 3x3 --run runs/3x3
  exact2048 solve --board 3x3 --run runs/reach512 --objective reach:512
  exact2048 solve --board 4x3 --run runs/4x3 --disk 60GB
  exact2048 solve --board 4x3 --run runs/4x3-224 --until-layer 224 --memory 8GiB
  exact2048 solve --board 3x3 --run s3://bucket/3x3

solve creates the run, or resumes it if the run has the same parameters. Repeat the command to resume an interrupted \
run, or to repair a run with damaged shards. For runs in stores see docs/stores.md.

A layer is the set of all boards with the same tile sum. Before a large job the command estimates its disk and memory, \
and with --disk also its time. The printed times are those of the run, summed over all processes that worked on it.")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    place: RunPlace,
    /// Limit the memory, for example to 8GiB; blocks and tables that do not fit spill to disk [default: half of the memory
    /// of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    memory: Option<ByteSize>,
    /// Limit the size of the run on disk, for example to 60GB, including scratch files and the journal. The run never
    /// exceeds the limit. Without --keep, the run keeps as many layers as fit. It removes reachability data that it no
    /// longer needs. If space is short, it also removes needed data and enumerates the data again later. You can set or
    /// change the limit of an existing run; nothing of a finished run is removed
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    disk: Option<ByteSize>,
    /// Compute with this many threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Store all rows of blocks with at most N rows: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    dense_rows: Option<usize>,
    /// Share blocks of more than N bytes between threads: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    piece_bytes: Option<usize>,
    /// Remove any number of shards that no journal record names; their contents are computed again
    #[arg(long)]
    discard_shards: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let threads = limits::useful_threads(args.threads, Some(args.job.params()?.game().board()));
    if let Some(asked) = args.threads.map(usize::from).filter(|&asked| asked > threads) {
        let (threads, asked) = (units::count(threads), units::several(asked, "thread"));
        display::print_note(&format!(
            "note: only {threads} of {asked} can be used for this board on this machine"
        ));
    }
    let location = args.place.location()?;
    let params = params(args, &location, threads)?;
    let tuning = tuning(args, &params, threads);
    if let Err(refused) = &tuning
        && !is_finished(&location)?
    {
        // Refuse before creating anything or fencing off another process that works on the run.
        return Err(refused.clone().into());
    }
    let unnamed = if args.discard_shards { UnnamedPolicy::Discard } else { UnnamedPolicy::Refuse };
    let mut run = Run::open_or_create(location, &params, unnamed)?;
    let stop = stop_on_signals("stopping after the running tasks; repeat the signal to stop at once")?;
    if let Some(limit) = args.disk {
        run.limit_disk(limit.as_u64())?;
    }
    remove_lost_shards(&mut run, threads, &stop)?;
    let missing = run.missing();
    let before = recorded_seconds(&run);
    if missing.is_empty() {
        if let Some(allowance) = run.dir().allowance() {
            report_excess(allowance.taken_bytes(), allowance.limit_bytes());
        }
    } else {
        let tuning = tuning?;
        report_needs(&run, &missing, memory_limit(args));
        let watch = ProgressDisplay::of(&run, tuning.dense_rows);
        let solved = alone::solve(&mut run, tuning, threads, &stop, &watch);
        solved.map_err(|error| unsolved(error, watch.layers_to_repeat(&run)))?;
    }
    let seconds = before + begun.elapsed().as_secs_f64();
    let summary = RunSummary::new(&run, Some(seconds), Some(limits::peak_rss_bytes()))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    } else {
        if missing.is_empty() {
            writeln!(out, "This run was already finished; nothing was recomputed.\n")?;
        }
        summary.write(&mut out)?;
        if run.is_solved() {
            write_next(&mut out, args.place.given())?;
        }
    }
    Ok(())
}

/// Whether the run exists and is complete. A complete run accepts any limit.
fn is_finished(location: &Location) -> Result<bool> {
    Ok(Run::exists(location) && Run::open(location.clone())?.missing().is_empty())
}

/// Removes lost and damaged shards from the run, so they are computed again. Shows progress on stderr.
fn remove_lost_shards(run: &mut Run, threads: usize, stop: &AtomicBool) -> Result<()> {
    let warn = |error: &StorageError| {
        display::print_note(&format!("warning: {}; recomputing it", with_causes(error)));
    };
    let watch = Watch::default();
    watch.begin("check", run.catalog().shards().iter().map(|shard| shard.record.bytes).sum());
    let is_stopped = || stop.load(Ordering::Relaxed);
    let progress = |bytes| watch.show(CheckProgress::Bytes(bytes));
    let removed = remove_lost(run, threads, &is_stopped, &warn, &progress);
    watch.finish();
    removed?;
    if is_stopped() {
        let what = "stopped before all shards were checked; repeat the command to resume";
        return Err(Failure::interrupted(what.to_owned()).into());
    }
    Ok(())
}

/// Returns the parameters of the job.
///
/// An existing run determines the kept layers and the split: the bounds of large and huge tiles. Options override both.
/// For a new run, the memory determines the split. A disk limit without `--keep` determines the kept layers.
fn params(args: &Args, location: &Location, threads: usize) -> Result<Params> {
    let (mut params, held) = (args.job.params()?, Run::find_params(location)?);
    let tuning = limits::worker_tuning(memory_limit(args), threads);
    match &held {
        // The split of a different job may not be valid for this job. A later check reports the difference.
        Some(held)
            if (held.game().board(), held.game().objective())
                == (params.game().board(), params.game().objective()) =>
        {
            params = params.to_builder().split(*held.split()).build()?;
        }
        None if !args.job.has_split() => params = tuning.split(params),
        _ => {}
    }
    if let Some(held) = &held {
        params = args.job.going_on(params, held);
    }
    args.job.require_step(args.disk.is_some(), held.is_some())?;
    // Estimates hold for whole games, so they choose nothing for a run from a position or with stones.
    let limit = args.disk.map(|limit| limit.as_u64()).filter(|_| params.game().is_whole());
    if let (Some(limit), None) = (limit, &held) {
        // The scratch files of a run in a store are on this machine, so the limit does not include them.
        let scratch_bytes =
            if location.place().as_path().is_some() { tuning.scratch_bytes(&params) } else { 0 };
        let choice;
        let keep = args.job.keep_of(&params);
        (params, choice) = choose(&params, (keep, args.job.has_open_step()), limit, scratch_bytes)?;
        let layer_cost = LayerCost::usual(&params, &Workload::new(&params), tuning, threads);
        display::print_note(&choice.text(limit, &layer_cost));
    }
    Ok(params)
}

/// Reports the disk and memory that the job needs and that are free.
fn report_needs(run: &Run, missing: &[Segment], memory_limit: u64) {
    if !run.params().game().is_whole() {
        // Estimates hold for whole games without stones. Of a formation, the number of boards is known.
        if run.params().game().board().has_stones() && run.params().game().from().is_none() {
            report_bound(run.params());
        }
        return;
    }
    let needs = Needs::of(run.params(), &Workload::new(run.params()), missing);
    let left_bytes = run.dir().allowance().map(|allowance| allowance.free_bytes().max(0) as u64);
    // Reachability data is removed as values are written.
    let needs =
        left_bytes.map_or(needs, |left| needs.within(disk::still_needed(run).unwrap_or(left).min(left)));
    let disk_bytes = run.dir().place().as_path().and_then(free_disk);
    let room = FreeRoom { disk_bytes, memory_bytes: limits::free_memory_bytes() };
    for note in notes(&needs, memory_limit, &room) {
        display::print_note(&note);
    }
    if left_bytes.is_some() && disk::removable_bytes(run) > 0 {
        display::print_note(&format!(
            "note: --disk removes reachability data once no value needs it, up to {} of this run",
            units::size(disk::removable_bytes(run)),
        ));
    }
}

/// Reports how many states a formation has at most, because nothing else is known before its upward pass ends.
fn report_bound(params: &Params) {
    if let Some(states) = states_at_most(params) {
        display::print_note(&format!(
            "note: this formation has at most {} states; each takes about {:.1} µs of a core and a byte of disk",
            units::rough(states as f64),
            1e6 * SECONDS_A_STATE
        ));
    }
}

/// Memory limit in bytes.
fn memory_limit(args: &Args) -> u64 {
    limits::memory_or_half(args.memory)
}

/// Returns the tuning for the memory limit.
///
/// # Errors
///
/// A usage error if the limit is too small for the job.
fn tuning(args: &Args, params: &Params, threads: usize) -> Result<Tuning, Failure> {
    let limit = memory_limit(args);
    limits::require_memory(limit, params, threads)?;
    let usual = limits::worker_tuning(limit, threads);
    limits::tune_allocator(usual.limit_bytes, threads);
    let dense_rows = args.dense_rows.unwrap_or_else(|| usual.for_run(params).dense_rows);
    let piece_bytes = args.piece_bytes.unwrap_or(usual.piece_bytes);
    Ok(Tuning { dense_rows, piece_bytes, ..usual })
}
