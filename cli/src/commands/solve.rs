//! `exact2048 solve`: enumerate, back up, publish, on this machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bytesize::ByteSize;
use exact2048_coordinator::{LayerCounts, Phase};
use exact2048_game::{BoardSize, Objective, Params, Precision, Spawn4};
use exact2048_run::{Oracle, Run, StartValues};
use exact2048_storage::StorageError;
use exact2048_worker::{Tuning, Value, Worker, WorkerError};
use indicatif::HumanCount;
use serde::Serialize;

use crate::embedded::{Ended, new_worker, run_segment};
use crate::output::write_field;
use crate::progress::Progress;
use crate::{Failure, limits};

/// Options of `solve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 solve --board 3x3 --run runs/3x3
  exact2048 solve --board 3x3 --run runs/reach512 --objective reach:512
  exact2048 solve --board 4x3 --run runs/4x3-224 --until-layer 224 --memory 8GiB

The same command again resumes an interrupted run, and mends one whose shards are damaged.")]
pub struct Args {
    /// Rows x columns, for example 3x3: 2 to 16 cells, sides of 1 to 8
    #[arg(long, value_name = "RxC")]
    board: BoardSize,
    /// Run directory: made if it does not exist, resumed if it holds this job
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// What to maximise: score, or reach:TILE for the probability of ever holding TILE
    #[arg(long, default_value = "score", value_name = "WHAT")]
    objective: Objective,
    /// Chance that a spawned tile is a 4, kept exactly: a decimal or a fraction
    #[arg(long, default_value = "0.1", value_name = "P")]
    spawn4: Spawn4,
    /// Only enumerate, up to this layer (tile sum): for boards too large to finish
    #[arg(long, value_name = "LAYER")]
    until_layer: Option<u32>,
    /// Memory for blocks and tables, for example 8GiB; what is beyond it spills to disk [default: half of what there is]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Compute threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Bits a stored value
    #[arg(long, default_value = "32", value_parser = ["32", "64"])]
    precision: String,
    /// Tiles of at least 2^N are kept apart from the rest of the board: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    large: Option<u8>,
    /// Blocks with at most N rows hold all of them: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    dense_rows: Option<usize>,
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

#[derive(Serialize, Default, Clone, Copy)]
struct Seconds {
    enumerate: f64,
    solve: f64,
    total: f64,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let params = params(args)?;
    let threads = args.threads.map_or_else(limits::threads, usize::from);
    let tuning = tuning(args, &params, threads)?;
    let mut run = Run::open_or_create(&args.run, &params)?;
    let stop = stop_on_signals()?;
    drop_damaged_shards(&run, threads, &stop)?;
    let found_finished = run.missing().is_empty();
    let seconds = match run.params().precision {
        Precision::Bits32 => finish::<u32>(&mut run, tuning, threads, &stop)?,
        Precision::Bits64 => finish::<u64>(&mut run, tuning, threads, &stop)?,
    };
    let seconds = Seconds { total: begun.elapsed().as_secs_f64(), ..seconds };
    let summary = summary(&run, seconds)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    } else {
        write_for_people(&mut out, &summary, &args.run, found_finished)?;
    }
    Ok(())
}

fn params(args: &Args) -> Result<Params> {
    let precision = if args.precision == "64" { Precision::Bits64 } else { Precision::Bits32 };
    let (board, objective, spawn4) = (args.board, args.objective, args.spawn4);
    let params = match args.large {
        Some(large) => Params::with_large(board, objective, spawn4, precision, args.until_layer, large),
        None => Params::new(board, objective, spawn4, precision, args.until_layer),
    };
    params.map_err(|error| Failure::usage(error.to_string()).into())
}

/// Splits the memory limit into what tasks need at once and what finished blocks may take.
fn tuning(args: &Args, params: &Params, threads: usize) -> Result<Tuning> {
    let limit = args.memory.map_or_else(|| limits::memory_bytes() / 2, |size| size.as_u64());
    let needed = exact2048_worker::working_set_bytes(params, threads);
    if limit < needed {
        return Err(Failure::usage(format!(
            "--memory {} is too small: a {} board with {} threads needs at least {}MiB; give more memory or fewer --threads",
            ByteSize(limit).display().iec(),
            params.board,
            threads,
            needed.div_ceil(1 << 20),
        ))
        .into());
    }
    Ok(Tuning {
        // A quarter is left for what is not counted: see the limits in docs/architecture.md.
        budget_bytes: usize::try_from((limit - needed) / 4 * 3).unwrap_or(usize::MAX),
        dense_rows: args.dense_rows.unwrap_or(Tuning::DENSE_ROWS),
    })
}

/// Runs what is missing; a shard that turns out to be damaged on the way is recomputed.
fn finish<V: Value>(run: &mut Run, tuning: Tuning, threads: usize, stop: &AtomicBool) -> Result<Seconds> {
    let worker: Worker<V> = new_worker(run, tuning);
    let progress = Progress::new();
    let mut seconds = Seconds::default();
    while let Some(&segment) = run.missing().first() {
        let total = (segment.phase == Phase::BackUp).then(|| {
            let in_segment = |c: &&LayerCounts| (segment.first..=segment.last).contains(&c.layer);
            run.layer_counts().iter().filter(in_segment).map(|c| c.states).sum()
        });
        progress.start(segment, total);
        let begun = Instant::now();
        let ended = run_segment(&worker, run, segment, threads, stop, &progress);
        progress.finish();
        let took = begun.elapsed().as_secs_f64();
        match segment.phase {
            Phase::Enumerate => seconds.enumerate += took,
            Phase::BackUp => seconds.solve += took,
        }
        match ended {
            Ok(Ended::Done) => {}
            Ok(Ended::Stopped) => {
                return Err(Failure::interrupted(format!(
                    "stopped; {} is intact, and the same command resumes it",
                    run.dir().path().display()
                ))
                .into());
            }
            Err(error) => match damaged_file(&error) {
                Some(file) => {
                    eprintln!("warning: {error:#}; recomputing it");
                    worker.release_all();
                    run.catalog().remove(&file);
                }
                None => return Err(error),
            },
        }
        worker.release_all();
    }
    Ok(seconds)
}

/// The shard that an error blames, where recomputing it can help.
fn damaged_file(error: &anyhow::Error) -> Option<PathBuf> {
    let storage =
        error.downcast_ref::<StorageError>().or_else(|| match error.downcast_ref::<WorkerError>() {
            Some(WorkerError::Storage(error)) => Some(error),
            _ => None,
        });
    storage.and_then(StorageError::damaged_file).map(PathBuf::from)
}

/// Whether a shard must be made again: it is not there, or not what it should be.
fn is_lost(error: &StorageError) -> bool {
    let gone =
        matches!(error, StorageError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    gone || error.damaged_file().is_some()
}

/// Checks every committed shard, and forgets those that are not whole, so that they are recomputed.
fn drop_damaged_shards(run: &Run, threads: usize, stop: &AtomicBool) -> Result<()> {
    let shards = run.catalog().shards();
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(shards.len()) {
            scope.spawn(|| {
                while let Some(shard) = shards.get(next.fetch_add(1, Ordering::Relaxed))
                    && !stop.load(Ordering::Relaxed)
                {
                    match shard.reader().and_then(|reader| reader.verify()) {
                        Ok(()) => {}
                        Err(error) if is_lost(&error) => {
                            eprintln!("warning: {:#}; recomputing it", anyhow::Error::from(error));
                            run.catalog().remove(&shard.path);
                        }
                        // Perhaps whole, but not to be read now: making it again would be a waste.
                        Err(error) => {
                            let mut failure = failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                            failure.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
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
    run: &Path,
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
        writeln!(out, "\nAsk for any state's value: exact2048 query --run {} \"BOARD\"", run.display())?;
    }
    Ok(())
}
