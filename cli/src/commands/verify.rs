//! `exact2048 verify`: checks a run with code that the solver does not share.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_run::Run;
use exact2048_run::verify::{self, Checked, Outcome, Progress};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::place::RunPlace;
use crate::{Failure, limits, output};

const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Options of `verify`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 verify --run runs/3x3
  exact2048 verify --run runs/4x3 --sample 10000

Reads every byte of every shard first. Then it goes through all states, or a sample of the stored
ones: each value is computed again from those of its successors and compared bit for bit. Without
--sample it also checks that the states are exactly those that moves and spawns lead to, that the
counts are those of the journal, and that the fingerprint is that of the states and values.

The exit code is 0 if all is right and 1 if anything is not.")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    /// Check N stored values drawn by chance instead of all states; always the same ones of a run
    #[arg(long, value_name = "N")]
    sample: Option<u64>,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let run = Run::open(args.place.location_to_read()?)?;
    let threads = limits::threads();
    let bytes = run.catalog().shards().iter().map(|shard| shard.record.bytes).sum();
    let display = Display::new("shards", bytes);
    let whole = verify::shards(&run, threads, &|at| display.show(at));
    display.finish();
    fail_on_problems(&run, &whole)?;
    let content = match args.sample {
        Some(count) => {
            let display = Display::new("sample", count);
            let outcome = verify::sample(&run, count, threads, &|at| display.show(at))?;
            display.finish();
            outcome
        }
        None => {
            let display = Display::new("states", verify::known_states(&run));
            let outcome = verify::all_states(&run, threads, &|at| display.show(at));
            display.finish();
            outcome
        }
    };
    fail_on_problems(&run, &content)?;
    for gap in run.missing() {
        eprintln!(
            "note: layers {} to {} are not committed ({:?}) and were not checked",
            gap.first, gap.last, gap.phase
        );
    }
    print(&whole.checked, &content.checked, args.sample.is_some(), begun.elapsed())?;
    Ok(())
}

/// Tells the problems, if there are any, and what to do about them.
fn fail_on_problems(run: &Run, outcome: &Outcome) -> Result<()> {
    if outcome.problems.is_empty() {
        return Ok(());
    }
    let mut damaged = true;
    for problem in &outcome.problems {
        damaged &= matches!(problem, verify::Problem::File(_));
        let mut text = problem.to_string();
        let mut source = std::error::Error::source(problem);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        eprintln!("problem: {text}");
    }
    if damaged {
        eprintln!(
            "to mend it: the solve command that made {} computes lost and damaged shards again, and where a cluster made it, \
             exact2048 resume does",
            run.dir().path().display()
        );
    } else {
        eprintln!(
            "the file is as it was written, and what was written is wrong: remove it and give the solve command again, \
             which computes it again; if that brings the same problem, it is a mistake in the program"
        );
    }
    Err(Failure::told(1).into())
}

fn print(whole: &Checked, content: &Checked, sampled: bool, took: Duration) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let count = |n: u64| HumanCount(n).to_string();
    output::write_field(
        &mut out,
        "checksums",
        format!(
            "{} shards, {} in {} frames: all right",
            count(whole.shards),
            ByteSize(whole.bytes).display().iec(),
            count(whole.frames)
        ),
    )?;
    if sampled {
        output::write_field(
            &mut out,
            "values",
            format!(
                "{} stored values drawn, {} states looked at for them: each follows from its successors",
                count(content.values),
                count(content.states)
            ),
        )?;
    } else {
        output::write_field(
            &mut out,
            "states",
            format!(
                "{} in {} layers: exactly those that moves and spawns lead to",
                count(content.states),
                count(content.layers)
            ),
        )?;
        output::write_field(
            &mut out,
            "afterstates",
            format!("{}: as many as in the journal", count(content.afterstates)),
        )?;
        let values = match content.values {
            0 => "none are stored yet".to_owned(),
            n => format!("{} stored: each follows from its successors, bit for bit", count(n)),
        };
        output::write_field(&mut out, "values", values)?;
        if let Some(fingerprint) = content.fingerprint {
            let ranges = format!("{fingerprint:032x}: as in the journal, in each committed range");
            output::write_field(&mut out, "fingerprint", ranges)?;
        }
    }
    output::write_field(&mut out, "time", format!("{:.2} s", took.as_secs_f64()))?;
    writeln!(out, "\nNothing is wrong.")
}

/// Progress on stderr: a bar on a terminal, a line every few seconds otherwise.
struct Display {
    bar: ProgressBar,
    name: &'static str,
    next_line: Mutex<Instant>,
}

impl Display {
    fn new(name: &'static str, total: u64) -> Self {
        let bar = ProgressBar::new(total);
        let template = match name {
            "shards" => "{prefix:<8} [{bar:24}] {bytes} of {total_bytes}, ETA {eta}",
            _ => "{prefix:<8} [{bar:24}] {human_pos} of {human_len}{msg}, {per_sec}, ETA {eta}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name);
        Self { bar, name, next_line: Mutex::new(Instant::now() + PLAIN_INTERVAL) }
    }

    fn show(&self, at: Progress) {
        let position = match at {
            Progress::Bytes(position) | Progress::Sample(position) => position,
            Progress::Layer(layer, position) => {
                self.bar.set_message(format!(", layer {}", HumanCount(layer.0.into())));
                position
            }
        };
        self.bar.set_position(position);
        let mut next_line = self.next_line.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !io::stderr().is_terminal() && Instant::now() >= *next_line {
            let of = HumanCount(self.bar.length().unwrap_or(0));
            eprintln!("{}: {} of {of}{}", self.name, HumanCount(position), self.bar.message());
            *next_line = Instant::now() + PLAIN_INTERVAL;
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
