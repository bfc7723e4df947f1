//! `exact2048 solve`: enumerate, back up, publish, on this machine.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bytesize::ByteSize;
use exact2048_game::{BoardSize, Objective, Params, Precision, Spawn4};
use exact2048_run::{CatalogShard, Oracle, Run, StartValues, Unnamed, damaged_shards};
use exact2048_storage::StorageError;
use exact2048_worker::Tuning;
use indicatif::HumanCount;
use serde::Serialize;

use crate::embedded::{Seconds, solve};
use crate::failure::with_causes;
use crate::job::JobArgs;
use crate::output::write_field;
use crate::place::RunPlace;
use crate::{Failure, limits};

/// Options of `solve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 solve --board 3x3 --run runs/3x3
  exact2048 solve --board 3x3 --run runs/reach512 --objective reach:512
  exact2048 solve --board 4x3 --run runs/4x3-224 --until-layer 224 --memory 8GiB
  exact2048 solve --board 3x3 --run s3://bucket/3x3

The run is made if there is none, and resumed if it is of the same job. The same command again resumes an
interrupted run, and mends one whose shards are damaged. For runs in stores see docs/stores.md.")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    place: RunPlace,
    /// Memory for blocks and tables, for example 8GiB; what is beyond it spills to disk [default: half of what there is]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Compute threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
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

/// The summary of a run, as `--json` prints it.
#[derive(Serialize)]
struct Summary {
    board: BoardSize,
    objective: Objective,
    spawn4: Spawn4,
    phase: &'static str,
    layers: usize,
    states: u64,
    afterstates: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Start>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    seconds: Seconds,
    bytes_on_disk: u64,
    peak_rss_bytes: u64,
}

#[derive(Serialize)]
struct Start {
    expected: f64,
    error_bound: f64,
    by_layer: std::collections::BTreeMap<String, f64>,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let params = args.job.params()?;
    let threads = args.threads.map_or_else(limits::threads, usize::from);
    let tuning = tuning(args, &params, threads);
    let location = args.place.location()?;
    if !Run::exists(&location) {
        // Before anything is made; a run that is finished may still be asked for with any limit.
        tuning.as_ref().map_err(Failure::clone)?;
    }
    let unnamed = if args.discard_shards { Unnamed::Discard } else { Unnamed::Refuse };
    let mut run = Run::open_or_create(location, &params, unnamed)?;
    let stop = stop_on_signals()?;
    let warn = |error: &StorageError| eprintln!("warning: {}; recomputing it", with_causes(error));
    // It needs most of them afterwards.
    let read = |shard: &CatalogShard| shard.original()?.verify();
    for shard in damaged_shards(run.catalog(), threads, read, &|| stop.load(Ordering::Relaxed), &warn)? {
        run.catalog().remove(&shard.path);
    }
    let found_finished = run.missing().is_empty();
    let seconds = if found_finished {
        Seconds::default()
    } else {
        let tuning = tuning?;
        match run.params().precision {
            Precision::Bits32 => solve::<u32>(&mut run, tuning, threads, &stop)?,
            Precision::Bits64 => solve::<u64>(&mut run, tuning, threads, &stop)?,
        }
    };
    let seconds = Seconds { total: begun.elapsed().as_secs_f64(), ..seconds };
    let summary = summary(&run, seconds)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    } else {
        write_for_people(&mut out, &summary, &args.place.text(), found_finished)?;
    }
    Ok(())
}

/// How the run may use memory; refuses a limit that it cannot keep.
fn tuning(args: &Args, params: &Params, threads: usize) -> Result<Tuning, Failure> {
    let limit = args.memory.map_or_else(|| limits::memory_bytes() / 2, |size| size.as_u64());
    let least = exact2048_worker::least_memory_bytes(params, threads);
    if limit < least {
        return Err(Failure::usage(format!(
            "--memory {} is too small: a {} board with {} threads needs at least {}MiB; give more memory",
            ByteSize(limit).display().iec(),
            params.board,
            threads,
            least.div_ceil(1 << 20),
        )));
    }
    let limit_bytes = exact2048_worker::heap_limit_bytes(limit, threads);
    let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
    limits::tune_allocator(limit_bytes, threads);
    let dense_rows = args.dense_rows.unwrap_or(Tuning::DENSE_ROWS);
    let piece_bytes = args.piece_bytes.unwrap_or(Tuning::PIECE_BYTES);
    Ok(Tuning { limit_bytes, heap_bytes: limits::heap_bytes, dense_rows, piece_bytes })
}

fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            // Asked twice: what is committed is safe at any instant.
            std::process::exit(130);
        }
        eprintln!("stopping after the running tasks; again to stop at once");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

fn summary(run: &Run, seconds: Seconds) -> Result<Summary> {
    let layers = run.layer_counts();
    let params = run.params();
    let start = if run.is_solved() { Some(start(&Oracle::new(run)?.starts()?)) } else { None };
    if !run.missing().is_empty() {
        bail!("the run is not finished");
    }
    Ok(Summary {
        board: params.board,
        objective: params.objective,
        spawn4: params.spawn4,
        phase: if params.until_layer.is_some() { "enumerated" } else { "solved" },
        layers: layers.len(),
        states: layers.iter().map(|c| c.states).sum(),
        afterstates: layers.iter().map(|c| c.afterstates).sum(),
        start,
        fingerprint: run.fingerprint().map(|f| format!("{f:032x}")),
        seconds,
        bytes_on_disk: run.dir().bytes_on_disk()?,
        peak_rss_bytes: limits::peak_rss_bytes(),
    })
}

fn start(values: &StartValues) -> Start {
    Start {
        expected: values.expected,
        error_bound: values.error_bound,
        by_layer: values.by_layer.iter().map(|(layer, mean)| (layer.to_string(), *mean)).collect(),
    }
}

fn write_for_people(
    out: &mut impl Write,
    summary: &Summary,
    run: &str,
    found_finished: bool,
) -> std::io::Result<()> {
    if found_finished {
        writeln!(out, "This run was finished already; nothing was recomputed.\n")?;
    }
    let job = format!("{}, {}, 4s spawn with {}", summary.board, summary.objective, summary.spawn4);
    write_field(out, "board", job)?;
    write_field(out, "phase", summary.phase)?;
    write_field(out, "layers", HumanCount(summary.layers as u64))?;
    write_field(out, "states", HumanCount(summary.states))?;
    write_field(out, "afterstates", HumanCount(summary.afterstates))?;
    if let Some(start) = &summary.start {
        write_field(
            out,
            "start",
            format!("{:.6} (error at most {:.1e})", start.expected, start.error_bound),
        )?;
        for (layer, mean) in &start.by_layer {
            write_field(out, "", format!("{mean:.6} over the starts of layer {layer}"))?;
        }
    }
    if let Some(fingerprint) = &summary.fingerprint {
        write_field(out, "fingerprint", fingerprint)?;
    }
    let Seconds { enumerate, solve, total } = summary.seconds;
    write_field(out, "time", format!("{total:.2} s (enumerate {enumerate:.2} s, back up {solve:.2} s)"))?;
    if enumerate > 0.0 {
        let per_state = |seconds: f64| seconds * 1e9 / summary.states.max(1) as f64;
        let line = format!("{:.1} + {:.1} ns a state", per_state(enumerate), per_state(solve));
        write_field(out, "", line)?;
    }
    write_field(out, "on disk", ByteSize(summary.bytes_on_disk).display().iec())?;
    write_field(out, "peak memory", ByteSize(summary.peak_rss_bytes).display().iec())?;
    if summary.phase == "solved" {
        writeln!(out, "\nAsk for any state's value: exact2048 query --run {run} \"BOARD\"")?;
    }
    Ok(())
}
