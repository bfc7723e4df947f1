//! `exact2048 stats`: statistics of perfect play, without sampling.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use bytesize::ByteSize;
use exact2048_game::{Params, position};
use exact2048_run::{PlayProgress, play_follower, span_bytes};
use exact2048_solution::{QueryError, Run};
use exact2048_stats::{FollowPlay, PlayStatistics, StatisticsView, StatsProgress};
use exact2048_storage::{Location, StorageError};
use exact2048_text::with_causes;
use exact2048_worker::Tuning;

use crate::cones::ConeOptions;
use crate::display::{self, ProgressLine};
use crate::job::{from_text, require_usual_rules};
use crate::place::RunPlace;
use crate::plan::free_disk;
use crate::signals::stop_on_signals;
use crate::units::{self, count};
use crate::{Failure, limits, output, temporary};

/// Options of `stats`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 stats --run runs/3x3
  exact2048 stats --run runs/3x3 --csv > last-layers.csv
  exact2048 stats --run runs/3x3 --from \"64 8 2 / 16 4 0 / 2 0 0\"
  exact2048 stats --run runs/5x2 --cutoff 1e-15 --json | jq .tiles

The command propagates the probability of each state upward through the layers, along the best moves.
Of equal moves the command follows the move that --values best-move would store. Nothing is sampled.
Probabilities below the cutoff are dropped and their sum is printed. For games that make these moves, no printed share
is off by more than this sum.

--csv prints a row for each layer. The row has the number of followed states, and the shares of games that
reach the layer, that end in it, and that end in it with each largest tile.

Repeat an interrupted command to resume it from its last checkpoint. The run keeps the statistics (see
--cone-cache), so the same command prints them at once the next time, and the explorer and report use
them. Statistics with a cutoff above the default are not kept.")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    #[command(flatten)]
    cone_options: ConeOptions,
    /// Drop boards that a game reaches with less than this probability; 0 drops none
    #[arg(long, value_name = "P", default_value = "1e-18", value_parser = chance, allow_negative_numbers = true)]
    cutoff: f64,
    /// Follow games from this board instead of the start. Rows are separated by /. Unless the run begins there, the command
    /// first solves all that follows from the board, in a temporary folder that it removes (docs/from.md)
    #[arg(long, value_name = "BOARD", allow_hyphen_values = true)]
    from: Option<String>,
    /// Follow the games again even if the run keeps statistics with this cutoff
    #[arg(long)]
    again: bool,
    /// Use this many threads [default: all]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory [default: half of the memory of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    memory: Option<ByteSize>,
    /// Store all rows of blocks with at most N rows: changes speed and the last bits of shares
    #[arg(long, value_name = "N", hide = true)]
    dense_rows: Option<usize>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values with a header, one row for each layer
    #[arg(long)]
    csv: bool,
}

/// Shares of games. For each share, the output has the layer by which this share of the games has ended.
const QUANTILES: [f64; 5] = [0.01, 0.1, 0.5, 0.9, 0.99];

/// Interval of checkpoints. An interruption loses at most this time and a span of layers.
const KEPT_EVERY: Duration = Duration::from_secs(60);

pub(super) fn chance(text: &str) -> Result<f64, String> {
    let chance = text.parse().ok().filter(|chance| (0.0..1.0).contains(chance));
    chance.ok_or_else(|| "expected a number from 0 to below 1, for example 1e-15".to_owned())
}

impl Args {
    /// The parameters of a run from the position of `--from`; `None` without the option.
    fn position(&self, run: &Run) -> Result<Option<Params>> {
        let Some(text) = &self.from else { return Ok(None) };
        let held = run.params();
        let params = position(text, held.game().board())
            .and_then(|board| held.to_builder().from(board).large(None).huge(None).best_moves(false).build());
        Ok(Some(params.map_err(|error| Failure::usage(format!("--from: {error}")))?))
    }

    /// The checkpoints of the pass, if the options allow checkpoints.
    fn progress(&self, location: &Location) -> Option<PlayProgress> {
        let files = self.cone_options.files(location);
        if files.is_none() {
            display::print_note(
                "note: an interruption loses all progress because no folder keeps it; see --cone-cache",
            );
        }
        let unkept = |error: &StorageError| {
            let why = with_causes(error);
            display::print_note(&format!(
                "warning: {why}; until checkpoints can be written, an interruption loses all progress"
            ));
        };
        files.map(|(folder, _)| PlayProgress { folder, interval: KEPT_EVERY, unkept })
    }
}

/// Warns if the temporary folder may be too full for the best moves of a span of layers.
fn warn_of_room(run: &Run, memory_bytes: u64) {
    let (folder, needed) = (std::env::temp_dir(), span_bytes(run));
    if let Some(free) = free_disk(&folder).filter(|free| free.saturating_add(memory_bytes / 2) < needed) {
        display::print_note(&format!(
            "warning: if memory is short, the command writes up to {} of best moves to {}, where {} are free. Set \
             TMPDIR to a folder with more free space",
            units::size(needed),
            folder.display(),
            units::size(free)
        ));
    }
}

/// Returns the follower of perfect play that runs the kernels within a memory limit.
pub fn follower_of(run: &Run, memory_bytes: u64) -> Result<Box<dyn FollowPlay>, QueryError> {
    play_follower(run, limits::worker_tuning(memory_bytes, rayon::current_num_threads()), None)
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let location = args.place.location_to_read()?;
    let run = Run::open(location.clone())?;
    require_usual_rules(run.params().game())?;
    let from = args.position(&run)?;
    if let Some(params) = from.filter(|params| params.game() != run.params().game()) {
        return from_position(args, &params);
    }
    let kept = args.cone_options.kept_statistics(&run, &location);
    let found = kept.as_ref().filter(|_| !args.again).and_then(|kept| kept.read_with(args.cutoff));
    let statistics = match found {
        Some(found) => {
            display::print_note(
                "note: these statistics are from an earlier command; --again computes them again",
            );
            found
        }
        None => {
            let found = follow(args, &run, &location)?;
            if let Some(Err(error)) = kept.map(|kept| kept.keep(&found)) {
                display::print_note(&format!("warning: cannot keep the statistics: {}", with_causes(&error)));
            }
            found
        }
    };
    write(args, run.params(), &statistics)
}

/// Solves all that follows from a position in a temporary folder, and prints the statistics of games from there.
fn from_position(args: &Args, params: &Params) -> Result<()> {
    let threads = limits::useful_threads(args.threads, Some(params.game().board()));
    let memory = limits::memory_or_half(args.memory);
    limits::require_memory(memory, params, threads)?;
    let folder = tempfile::Builder::new().prefix("exact2048-from-").tempdir();
    let folder = folder.context("cannot create a temporary folder for the run from the position")?;
    let location = Location::from(folder.path().join("run").as_path());
    let stop = stop_on_signals("stopping after the running tasks; repeat the signal to stop at once")?;
    let tuning = limits::worker_tuning(memory, threads).for_run(params);
    let stopped = "stopped before the position was solved; solve --from and stats --run of that run resume";
    drop(temporary::solve(&location, params, tuning, threads, &stop, stopped)?);
    let run = Run::open(location.clone())?;
    let statistics = follow(args, &run, &location)?;
    write(args, params, &statistics)
}

fn write(args: &Args, params: &Params, statistics: &StatisticsView) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        writeln!(out, "{}", serde_json::to_string(statistics)?)?;
    } else {
        let (perfect, seconds) = (statistics.perfect(), statistics.seconds());
        let report = Report { params, perfect, found: &statistics.statistics(), seconds };
        if args.csv { report.write_csv(&mut out)? } else { report.write(&mut out)? }
    }
    Ok(out.flush()?)
}

/// Follows the games of a run with progress on stderr.
fn follow(args: &Args, run: &Run, location: &Location) -> Result<StatisticsView> {
    let memory = limits::memory_or_half(args.memory);
    let threads = limits::useful_threads(args.threads, None);
    let usual = limits::worker_tuning(memory, threads);
    let tuning = Tuning { dense_rows: args.dense_rows.unwrap_or(usual.dense_rows), ..usual };
    limits::require_memory_of_statistics(memory, run.params(), tuning, threads)?;
    limits::tune_allocator(tuning.limit_bytes, threads);
    let progress = args.progress(location);
    warn_of_room(run, memory);
    let follower = play_follower(run, tuning, progress)?;
    let pool = limits::pool(args.threads)?;
    let line = ProgressLine::new("stats");
    let mut show = |at: StatsProgress| {
        let layer = format!("layer {} of {}", count(at.layer), count(at.last_layer));
        let states = format!("{} states", count(at.states));
        line.show(at.share, &[line.eta(at.share), layer, states]);
    };
    let found = pool.install(|| StatisticsView::follow(run, &*follower, args.cutoff, &mut show));
    line.finish();
    Ok(found?)
}

struct Report<'a> {
    params: &'a Params,
    /// The value of the start in the run, and its error bound.
    perfect: (f64, f64),
    found: &'a PlayStatistics,
    seconds: f64,
}

impl Report<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let found = self.found;
        output::write_field(
            out,
            "board",
            format!("{}, {}", self.params.game().board(), self.params.game().objective()),
        )?;
        if let Some(from) = from_text(self.params.game()) {
            output::write_field(out, "from", from)?;
        }
        output::write_field(out, "perfect", units::value_with_bound(self.perfect.0, self.perfect.1))?;
        if let Some(step) = self.params.contents().value_step() {
            let text = format!("moves follow from values rounded to multiples of {step}");
            output::write_field(out, "value step", text)?;
        }
        output::write_field(out, "by chances", units::value_with_bound(found.value, found.value_error))?;
        output::write_field(
            out,
            "moves",
            units::value_with_bound(found.moves, found.moves_error) + " a game",
        )?;
        let last = found.last_layer().map_or_else(
            || "unknown because no game was followed to its end; use a smaller --cutoff".to_owned(),
            |(mean, deviation)| {
                [mean, deviation].map(|layer| units::mean(layer, 1)).join(", standard deviation ")
            },
        );
        output::write_field(out, "last layer", last)?;
        output::write_field(out, "states", format!("{}, up to symmetry", count(found.states())))?;
        let left_out = if found.dropped > 0.0 {
            format!("{:.1e} of all games that make these moves: no share is off by more", found.dropped)
        } else {
            "nothing".to_owned()
        };
        output::write_field(out, "left out", left_out)?;
        writeln!(out)?;
        let tile = |(exponent, ended, reached): (u8, f64, f64)| {
            vec![count(1u32 << exponent), units::probability(ended), units::probability(reached)]
        };
        let rows: Vec<_> = found.tiles().into_iter().map(tile).collect();
        output::write_all_columns(out, &["tile", "largest at the end", "reached"], &[], &rows)?;
        writeln!(out)?;
        let quantile =
            |share: f64| Some(vec![format!("{}%", 100.0 * share), units::count(found.ended_by(share)?)]);
        let rows: Vec<_> = QUANTILES.into_iter().filter_map(quantile).collect();
        output::write_all_columns(out, &["games", "ended by layer"], &[], &rows)?;
        writeln!(out)?;
        output::write_field(out, "time", units::time(self.seconds))
    }

    /// The exponents of all largest tiles of ended games, ascending.
    fn exponents(&self) -> Vec<u8> {
        self.found.tiles().into_iter().map(|(exponent, ..)| exponent).rev().collect()
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let exponents = self.exponents();
        let tiles: String = exponents.iter().map(|&e| format!(",ended_with_{}", 1u32 << e)).collect();
        writeln!(out, "layer,states,reached,ended{tiles}")?;
        for of in &self.found.layers {
            write!(out, "{},{},{:e},{:e}", of.layer, of.states, of.reached, of.ended_in_all())?;
            for &exponent in &exponents {
                write!(out, ",{:e}", of.ended[usize::from(exponent)])?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
