//! `exact2048 solve`: enumerate, back up, publish, on this machine.

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
use exact2048_solution::{Run, Segment, Unnamed};
use exact2048_storage::{Location, StorageError};
use exact2048_text::with_causes;
use exact2048_worker::Tuning;

use super::verify::Watch;
use crate::choice::{Choices, LayerCost};
use crate::job::JobArgs;
use crate::output::write_next;
use crate::place::RunPlace;
use crate::plan::{FreeRoom, Needs, free_disk, notes};
use crate::progress::{ProgressDisplay, unsolved};
use crate::signals::stop_on_signals;
use crate::summary::{RunSummary, recorded_seconds, say_what_is_over};
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

The run is made if there is none, and resumed if it is of the same job. The same command again resumes an \
interrupted run, and mends one whose shards are damaged. For runs in stores see docs/stores.md.

A layer is a tile sum: every board with that sum of tiles. What a large job takes of disk and memory is said before \
it begins, and with --disk how long it takes, about. Times are of the run, all processes that worked on it together.")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    place: RunPlace,
    /// Memory for blocks and tables, for example 8GiB; what is beyond it spills to disk [default: half of what there
    /// is]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    memory: Option<ByteSize>,
    /// Disk that the run may take, for example 60GB: never exceeded, scratch files and journal included. What is kept is
    /// chosen so that it fits, unless --keep says it; reach that is not needed is removed, and where room is short enumerated
    /// again. A run that is there already may be given any limit, or another one; of a finished run nothing is removed
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    disk: Option<ByteSize>,
    /// Compute threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Blocks with at most N rows hold all of them: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    dense_rows: Option<usize>,
    /// Threads share blocks of more bytes than N: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    piece_bytes: Option<usize>,
    /// Remove shards that no record of the journal names, however many: what they hold is computed again
    #[arg(long)]
    discard_shards: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let threads = limits::useful_threads(args.threads, Some(args.job.params()?.board));
    if let Some(asked) = args.threads.map(usize::from).filter(|&asked| asked > threads) {
        let (threads, asked) = (units::count(threads), units::several(asked, "thread"));
        display::say(&format!("note: {threads} of {asked} have work on this board and machine"));
    }
    let location = args.place.location()?;
    let params = params(args, &location, threads)?;
    let tuning = tuning(args, &params, threads);
    if let Err(refused) = &tuning
        && !is_finished(&location)?
    {
        // Before anything is made, or another process that works on the run is fenced off.
        return Err(refused.clone().into());
    }
    let unnamed = if args.discard_shards { Unnamed::Discard } else { Unnamed::Refuse };
    let mut run = Run::open_or_create(location, &params, unnamed)?;
    let stop = stop_on_signals("stopping after the running tasks; again to stop at once")?;
    if let Some(limit) = args.disk {
        run.limit_disk(limit.as_u64())?;
    }
    remove_lost_shards(&mut run, threads, &stop)?;
    let missing = run.missing();
    let before = recorded_seconds(&run);
    if missing.is_empty() {
        if let Some(allowance) = run.dir().allowance() {
            say_what_is_over(allowance.taken_bytes(), allowance.limit_bytes());
        }
    } else {
        let tuning = tuning?;
        say_what_it_takes(&run, &missing, memory_limit(args));
        let watch = ProgressDisplay::of(&run, tuning.dense_rows);
        let solved = alone::solve(&mut run, tuning, threads, &stop, &watch);
        solved.map_err(|error| unsolved(error, watch.to_be_repeated(&run)))?;
    }
    let seconds = before + begun.elapsed().as_secs_f64();
    let summary = RunSummary::new(&run, Some(seconds), Some(limits::peak_rss_bytes()))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    } else {
        if missing.is_empty() {
            writeln!(out, "This run was finished already; nothing was recomputed.\n")?;
        }
        summary.write(&mut out)?;
        if run.is_solved() {
            write_next(&mut out, args.place.given())?;
        }
    }
    Ok(())
}

/// Whether there is a run that lacks nothing: it may be asked for with any limit.
fn is_finished(location: &Location) -> Result<bool> {
    Ok(Run::exists(location) && Run::open(location.clone())?.missing().is_empty())
}

/// Takes lost and damaged shards out of the run, so that they are computed once more, and shows how far that is.
fn remove_lost_shards(run: &mut Run, threads: usize, stop: &AtomicBool) -> Result<()> {
    let warn = |error: &StorageError| {
        display::say(&format!("warning: {}; recomputing it", with_causes(error)));
    };
    let watch = Watch::default();
    watch.begin("check", run.catalog().shards().iter().map(|shard| shard.record.bytes).sum());
    let is_stopped = || stop.load(Ordering::Relaxed);
    let progress = |bytes| watch.show(CheckProgress::Bytes(bytes));
    let removed = remove_lost(run, threads, &is_stopped, &warn, &progress);
    watch.finish();
    removed?;
    if is_stopped() {
        let what = "stopped before all shards were looked at; the same command goes on";
        return Err(Failure::interrupted(what.to_owned()).into());
    }
    Ok(())
}

/// What is to be computed: split as the run is already, or as suits the memory; where the disk is limited and it is not said
/// which layers are kept, those that the run keeps already, or as many as there is room for.
fn params(args: &Args, location: &Location, threads: usize) -> Result<Params> {
    let (mut params, held) = (args.job.params()?, Run::find_params(location)?);
    let tuning = limits::worker_tuning(memory_limit(args), threads);
    match &held {
        // The split of another job need not be one of this; that it is another is said later.
        Some(held) if (held.board, held.objective) == (params.board, params.objective) => {
            params = Params { large: held.large, huge: held.huge, ..params };
        }
        None if !args.job.has_split() => params = tuning.split(params),
        _ => {}
    }
    if let Some(held) = &held {
        params = args.job.going_on(params, held);
    }
    if let (Some(limit), None) = (args.disk.map(|limit| limit.as_u64()), &held) {
        // Those of a run in a store are on the disk of this machine.
        let scratch_bytes =
            if location.place().as_path().is_some() { tuning.scratch_bytes(&params) } else { 0 };
        let choices = Choices::new(&params, limit, scratch_bytes);
        let choice = choices.choose(args.job.keep_of(&params), params.board)?;
        let layer_cost = LayerCost::usual(&params, &Workload::new(&params), tuning, threads);
        display::say(&choice.text(limit, &layer_cost));
        params = params.with_kept(choice.kept);
    }
    Ok(params)
}

/// Says what the job takes of the disk and of memory, and what is there.
fn say_what_it_takes(run: &Run, missing: &[Segment], memory_limit: u64) {
    let needs = Needs::of(run.params(), &Workload::new(run.params()), missing);
    let left_bytes = run.dir().allowance().map(|allowance| allowance.free_bytes().max(0) as u64);
    // Reach goes as values come.
    let needs =
        left_bytes.map_or(needs, |left| needs.within(disk::still_needed(run).unwrap_or(left).min(left)));
    let disk_bytes = run.dir().place().as_path().and_then(free_disk);
    let room = FreeRoom { disk_bytes, memory_bytes: limits::free_memory_bytes() };
    for note in notes(&needs, memory_limit, &room) {
        display::say(&note);
    }
    if left_bytes.is_some() && disk::removable_bytes(run) > 0 {
        display::say(&format!(
            "note: with --disk, reach is removed once no value needs it: {} of what this run holds",
            units::size(disk::removable_bytes(run)),
        ));
    }
}

/// Bytes of memory that may be used.
fn memory_limit(args: &Args) -> u64 {
    limits::memory_or_half(args.memory)
}

/// How the run may use memory; refuses a limit that it cannot keep.
fn tuning(args: &Args, params: &Params, threads: usize) -> Result<Tuning, Failure> {
    let limit = memory_limit(args);
    limits::require_memory(limit, params, threads)?;
    let usual = limits::worker_tuning(limit, threads);
    limits::tune_allocator(usual.limit_bytes, threads);
    let dense_rows = args.dense_rows.unwrap_or_else(|| usual.for_run(params).dense_rows);
    let piece_bytes = args.piece_bytes.unwrap_or(usual.piece_bytes);
    Ok(Tuning { dense_rows, piece_bytes, ..usual })
}
