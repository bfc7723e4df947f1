//! `exact2048 verify`: checks a run with code that is independent of the solver.

mod report;
mod watch;

use std::ops::RangeInclusive;
use std::time::Instant;

use anyhow::{Context, Result};
use bytesize::ByteSize;
use exact2048_game::Layer;
use exact2048_run::verify::{CheckOutcome, Span, Verifier};
use exact2048_solution::Run;

use crate::place::RunPlace;
use crate::signals::stop_on_signals;
use crate::units::SizeUnits;
use crate::{Failure, limits};
use report::{Report, Verdict};
pub use watch::Watch;

/// Options of `verify`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 verify --run runs/3x3
  exact2048 verify --run runs/3x3 --json | jq .verdict
  exact2048 verify --run runs/5x2 --layers 2048..
  exact2048 verify --run runs/5x2 --sample 10000

The command first reads every byte of every shard. Then it checks all states from the highest layer down, or a \
sample of the stored values. It computes each value again from the values of its successors and compares both results \
bit for bit. Without --sample it also checks that queries find each state, and that the states are exactly those \
reached by moves and spawns. The counts must match the journal, and the fingerprint must match the states and values. \
If the run stores few layers (see solve --keep), one value of a sample can take minutes and gigabytes. Begin \
with --sample 5.

The command has its own implementation of the rules, symmetries, numbering, scale and rounding. It shares with the \
solver only the code that reads the manifest, the journal and the shards.

The exit code is 0 if everything in the requested part is right, 1 if anything is wrong or missing, 130 if interrupted. \
An unfinished run counts as missing data unless --partial is given.")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
    /// Check a sample of N stored values instead of all states. The sample is random but fixed for a run; it has all values
    /// if there are at most N
    #[arg(long, value_name = "N", conflicts_with = "layers", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Check only the layers A to B, inclusive, widened to whole committed ranges; A or B can be omitted
    #[arg(long, value_name = "A..B", value_parser = parse_layers)]
    layers: Option<RangeInclusive<u32>>,
    /// Accept missing layers, in a run that is unfinished or from which solve --disk has removed layers
    #[arg(long)]
    partial: bool,
    /// Use this many threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory, for example to 8GiB [default: half of the memory of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    memory: Option<ByteSize>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Parses `A..B`, `A..` or `..B`; both ends are included.
pub fn parse_layers(text: &str) -> Result<RangeInclusive<u32>, String> {
    let wrong = || format!("expected A..B, A.. or ..B with tile sums of at least 4, found {text:?}");
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    let layer =
        |text: &str, none: u32| if text.is_empty() { Ok(none) } else { text.parse().map_err(|_| wrong()) };
    let (first, last) = (layer(first, Layer::FIRST.0)?, layer(last.trim_start_matches('='), u32::MAX)?);
    if first > last || last < Layer::FIRST.0 { Err(wrong()) } else { Ok(first..=last) }
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let run = Run::open(args.place.location_to_read()?)?;
    let threads = limits::useful_threads(args.threads, None);
    limits::tune_allocator(usize::try_from(memory_limit(args)).unwrap_or(usize::MAX), threads);
    let stop = stop_on_signals("stopping after this layer; repeat the signal to stop at once")?;
    let watch = Watch::default();
    let show = |at| watch.show(at);
    let verifier = Verifier::new(&run, threads, &stop, &show).context("cannot start threads")?;
    let span = span(args, &run, &verifier)?;
    if args.sample.is_none() {
        check_memory(args, &verifier, span)?;
    }
    watch.begin("shards", verifier.known_bytes(span));
    let shards = verifier.shards(span);
    watch.finish();
    let content = if !shards.problems.is_empty() || shards.stopped {
        CheckOutcome { stopped: shards.stopped, ..CheckOutcome::default() }
    } else if let Some(count) = args.sample {
        watch.begin("values", count);
        verifier.sample(count, memory_limit(args))
    } else {
        watch.begin("states", verifier.known_states(span));
        verifier.all_states(span)
    };
    watch.finish();
    let report = Report::new(&run, args, span, shards, content, begun.elapsed());
    report.print(args.json)?;
    match report.verdict {
        Verdict::Right => Ok(()),
        Verdict::Interrupted => Err(Failure::reported(130).into()),
        Verdict::Wrong | Verdict::Unfinished | Verdict::Unread => Err(Failure::reported(1).into()),
    }
}

/// The requested layers, widened to whole committed ranges.
fn span(args: &Args, run: &Run, verifier: &Verifier<'_>) -> Result<Span, Failure> {
    let all = verifier.all_layers();
    let Some(layers) = &args.layers else { return Ok(all) };
    let first = Layer::at_least(*layers.start()).map(|first| first.max(all.first));
    let last = Layer::at_most(*layers.end()).map(|last| last.min(all.last));
    let Some((first, last)) = first.zip(last).filter(|(first, last)| first <= last) else {
        let end = if *layers.end() == u32::MAX { String::new() } else { layers.end().to_string() };
        let text = format!("--layers {}..{end} contains no layer", layers.start());
        let has = format!("this run has the even layers {} to {}", all.first, all.last);
        return Err(Failure::usage(format!("{text}: {has}")));
    };
    let asked = Span { first, last };
    Ok(asked.widened(&run.catalog().commits()))
}

/// Memory limit of the check in bytes.
fn memory_limit(args: &Args) -> u64 {
    limits::memory_or_half(args.memory)
}

fn check_memory(args: &Args, verifier: &Verifier<'_>, span: Span) -> Result<(), Failure> {
    let limit = memory_limit(args);
    let needed = verifier.memory_bytes(span);
    if needed <= limit {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--memory {} is too small: checking these layers takes about {}; give more memory, other --layers, or --sample N",
        SizeUnits::of(limit).size(limit),
        SizeUnits::of(limit).at_least(needed),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_layers() {
        assert_eq!(parse_layers("4..60"), Ok(4..=60));
        assert_eq!(parse_layers("100.."), Ok(100..=u32::MAX));
        assert_eq!(parse_layers("..60"), Ok(4..=60));
        assert_eq!(parse_layers("4..=60"), Ok(4..=60));
        for wrong in ["", "60", "60..4", "..2", "a..b", "4-60", "4...6", "-4..6"] {
            assert!(parse_layers(wrong).is_err(), "{wrong}");
        }
    }
}
