//! The result of `verify`: the checked items on stdout, problems and missing data on stderr.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use exact2048_game::Layer;
use exact2048_run::verify::{CheckOutcome, Problem, Span};
use exact2048_solution::{Phase, ReachSource, Recipe, Run};
use serde::Serialize;

use super::Args;
use crate::display::{print_command, print_note};
use crate::output::write_field;
use crate::shell;
use crate::units::{self, count};
use exact2048_text::with_causes;

/// Outcome of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All requested data was checked and is right.
    Right,
    /// A problem was found.
    Wrong,
    /// No problem was found, but some requested data is not committed or no longer stored.
    Unfinished,
    /// The check was stopped before it found a problem.
    Interrupted,
    /// A file could not be read, and no problem was found.
    Unread,
}

/// The result, as `--json` prints it. `docs/verify.md` describes the fields.
#[derive(Debug, Serialize)]
pub struct Report {
    run: String,
    /// The run as the user typed it.
    #[serde(skip)]
    given: OsString,
    pub verdict: Verdict,
    /// The lowest and the highest completely checked layer.
    layers: Option<[u32; 2]>,
    shards: u64,
    bytes: u64,
    frames: u64,
    sampled: bool,
    states: u64,
    afterstates: u64,
    values: u64,
    /// Those of these values that were compared by their bounds only.
    #[serde(skip_serializing_if = "is_zero")]
    values_by_bound: u64,
    /// Step to which the run rounds values.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_step: Option<String>,
    values_left_out: u64,
    values_too_far: u64,
    best_moves: u64,
    best_moves_left_out: u64,
    answers: u64,
    fingerprints: u64,
    fingerprint: Option<String>,
    missing: Vec<Missing>,
    /// Layers that cannot be checked as a whole, because the data about their reachable states was removed; empty for a
    /// sample.
    removed: Vec<[u32; 2]>,
    problems: Vec<ProblemRow>,
    /// Reasons why possibly intact files could not be read.
    unread: Vec<String>,
    /// The unchecked layers after an interruption, for `--layers`.
    go_on_with: Option<String>,
    seconds: f64,
}

/// Name of the items that layers lack before they are enumerated.
const STATES: &str = "states";

/// Layers that are not committed.
#[derive(Debug, Serialize)]
struct Missing {
    of: &'static str,
    first: u32,
    last: u32,
}

/// A problem that the check found.
#[derive(Debug, Serialize)]
struct ProblemRow {
    /// Whether solving again repairs the problem.
    damage: bool,
    text: String,
}

impl Report {
    /// Combines the outcomes for the shards and for their contents.
    pub fn new(
        run: &Run,
        args: &Args,
        span: Span,
        shards: CheckOutcome,
        content: CheckOutcome,
        took: Duration,
    ) -> Self {
        let commits = run.catalog().commits();
        let sampled = args.sample.is_some();
        let (unread, problems): (Vec<&Problem>, Vec<&Problem>) =
            shards.problems.iter().chain(&content.problems).partition(|problem| problem.is_unread());
        let problems: Vec<ProblemRow> = problems.into_iter().map(reported).collect();
        let missing: Vec<Missing> = missing(run, span);
        let nothing = if sampled { content.checked.values == 0 } else { content.checked.layers == 0 };
        let removed = if sampled { Vec::new() } else { removed(run, span) };
        let is_whole = missing.is_empty() && removed.is_empty() || args.partial;
        let left_out = content.checked.values_left_out + content.checked.best_moves_left_out;
        let left_out = removed.is_empty() && left_out > 0;
        let too_far = content.checked.values_too_far > 0 && !args.partial;
        let enough = is_whole && !left_out && !too_far && !nothing;
        let verdict = match () {
            () if !problems.is_empty() => Verdict::Wrong,
            () if !unread.is_empty() => Verdict::Unread,
            () if content.stopped => Verdict::Interrupted,
            () if !enough => Verdict::Unfinished,
            () => Verdict::Right,
        };
        let left = match content.done_down_to {
            Some(layer) => span.left_below(layer, &commits),
            None => Some(span),
        };
        let first = left.map_or(span.first.0, |left| left.last.up(1).0);
        // States are committed from the first layer upward, so missing states extend to the last layer.
        let unknown = missing.iter().find(|gap| gap.of == STATES && gap.last == span.last.0);
        let last = unknown.map_or(span.last.0, |gap| gap.first - Layer::STEP);
        let was_checked = !sampled && content.checked.layers > 0 && first <= last;
        let go_on = left.filter(|_| verdict == Verdict::Interrupted && !sampled);
        Self {
            run: args.place.given().to_string_lossy().into_owned(),
            given: args.place.given().to_owned(),
            verdict,
            layers: was_checked.then_some([first, last]),
            shards: shards.checked.shards,
            bytes: shards.checked.bytes,
            frames: shards.checked.frames,
            sampled,
            states: content.checked.states,
            afterstates: content.checked.afterstates,
            values: content.checked.values,
            values_by_bound: content.checked.values_by_bound,
            value_step: run.params().contents().value_step().map(|step| step.to_string()),
            values_left_out: content.checked.values_left_out,
            values_too_far: content.checked.values_too_far,
            best_moves: content.checked.best_moves,
            best_moves_left_out: content.checked.best_moves_left_out,
            answers: content.checked.answers,
            fingerprints: content.checked.fingerprints,
            fingerprint: content.checked.fingerprint.map(|fingerprint| format!("{fingerprint:032x}")),
            missing,
            removed,
            problems,
            unread: unread.into_iter().map(|problem| with_causes(problem)).collect(),
            go_on_with: go_on.map(|left| format!("{}..{}", left.first, left.last)),
            seconds: took.as_secs_f64(),
        }
    }

    /// Prints the result on stdout, as one JSON object or for people, and problems on stderr.
    pub fn print(&self, json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(self)?)?;
        } else if !matches!(self.verdict, Verdict::Wrong | Verdict::Unread) {
            self.write_for_people(&mut out)?;
        }
        self.report_problems();
        Ok(())
    }

    fn write_for_people(&self, out: &mut impl Write) -> io::Result<()> {
        let bytes = units::size(self.bytes);
        let (shards, frames) = (units::several(self.shards, "shard"), units::several(self.frames, "frame"));
        let read = format!("{shards}, {bytes} in {frames}: all right");
        write_field(out, "checksums", read)?;
        if self.sampled {
            let drawn = match self.values {
                0 => "none were drawn".to_owned(),
                values => format!(
                    "{} stored values drawn, {} states examined for them: {}",
                    count(values),
                    count(self.states),
                    self.agreement()
                ),
            };
            write_field(out, "values", drawn)?;
            if self.values_too_far > 0 {
                let too_far = count(self.values_too_far);
                write_field(
                    out,
                    "left out",
                    format!("{too_far} more, which take more than --memory to check"),
                )?;
            }
            if self.answers > 0 {
                let answers = count(self.answers);
                write_field(
                    out,
                    "answers",
                    format!("{answers} states without stored values: queries give the same values"),
                )?;
            }
            if self.best_moves > 0 {
                write_field(
                    out,
                    "best moves",
                    format!("{}: no other move is better", count(self.best_moves)),
                )?;
            }
        } else if let Some([first, last]) = self.layers {
            let removed = self.removed.iter().flat_map(|&[first, last]| Layer(first).to(Layer(last)));
            let without = match removed.filter(|layer| (first..=last).contains(&layer.0)).count() {
                0 => String::new(),
                removed => format!(", without {} that were not checked", count(removed)),
            };
            write_field(out, "layers", format!("{} to {}{without}", count(first), count(last)))?;
            let states = format!("{}: exactly those reached by moves and spawns", count(self.states));
            write_field(out, "states", states)?;
            let afterstates = format!("{}: as many as in the journal", count(self.afterstates));
            write_field(out, "afterstates", afterstates)?;
            let values = match self.values {
                0 => "none are stored".to_owned(),
                n => format!("{} stored: {}", count(n), self.agreement()),
            };
            write_field(out, "values", values)?;
            if self.best_moves > 0 {
                let best_moves = format!("{}: each is the first of the best", count(self.best_moves));
                write_field(out, "best moves", best_moves)?;
            }
            if let Some(fingerprint) = &self.fingerprint {
                write_field(out, "fingerprint", format!("{fingerprint}, as in the journal"))?;
            } else if self.fingerprints > 0 {
                let ranges = format!("of {} committed ranges, as in the journal", count(self.fingerprints));
                write_field(out, "fingerprint", ranges)?;
            }
        }
        write_field(out, "time", units::time(self.seconds))?;
        if self.verdict == Verdict::Right {
            let all = self.missing.is_empty() && self.fingerprint.is_some();
            let what = match (self.sampled, self.layers) {
                (true, _) => "Nothing is wrong with the sample.".to_owned(),
                (false, _) if !self.removed.is_empty() => {
                    "Nothing is wrong with the layers that were checked.".to_owned()
                }
                (false, Some([first, last])) if !all => {
                    format!("Nothing is wrong in layers {} to {}.", count(first), count(last))
                }
                _ => "Nothing is wrong.".to_owned(),
            };
            writeln!(out, "\n{what}")?;
        }
        Ok(())
    }

    /// How the stored values agree with the computed ones.
    fn agreement(&self) -> String {
        match &self.value_step {
            None => "each follows from its successors".to_owned(),
            Some(step) if self.values_by_bound > 0 => {
                format!("each is within {step} of the value that follows from rounded values above")
            }
            Some(step) => format!("each follows from its successors, rounded to a multiple of {step}"),
        }
    }

    /// Reports problems and missing data on stderr, with remedies.
    fn report_problems(&self) {
        for problem in &self.problems {
            print_note(&format!("problem: {}", problem.text));
        }
        for unread in &self.unread {
            print_note(&format!("not checked: {unread}"));
        }
        let run = &self.run;
        if self.problems.iter().any(|problem| !problem.damage) {
            print_note(
                "do not use this run: its files are intact, but their contents are wrong. Solving or resuming the run \
                 would not detect this, and everything computed from the wrong part is wrong too. Solve the board again \
                 in another directory and verify the new run. If that fails too, the program has a bug: please report it \
                 with the lines above",
            );
        } else if !self.problems.is_empty() {
            print_note(&format!(
                "to repair {run}, repeat its solve command, which recomputes lost and damaged shards; if a cluster made \
                 the run, use exact2048 resume. Then verify the run again"
            ));
        }
        for Missing { of, first, last } in &self.missing {
            print_note(&format!("not checked because not committed: {of} of layers {first} to {last}"));
        }
        if !self.removed.is_empty() {
            let (layers, values) = (units::layers(&self.removed), count(self.values_left_out));
            print_note(&format!(
                "not checked: layers {layers}, whose reachable states are no longer stored, and {values} stored values \
                 that depend on these layers; --sample N can check values through such layers"
            ));
        } else if self.values_left_out > 0 {
            let values = count(self.values_left_out);
            print_note(&format!(
                "not checked: {values} stored values, because the values that they follow from are not committed"
            ));
        }
        if self.best_moves_left_out > 0 {
            let moves = count(self.best_moves_left_out);
            print_note(&format!(
                "not checked: {moves} best moves, because the values that they follow from are not committed"
            ));
        }
        match (self.verdict, &self.go_on_with) {
            (Verdict::Unfinished, _) if self.values_too_far > 0 => {
                let others = if self.values > 0 { ", or use --partial to accept the others" } else { "" };
                print_note(&format!(
                    "{} of {} values drawn were not checked because their successors take more memory than the limit. Give \
                     more --memory, check all states{others}",
                    count(self.values_too_far),
                    count(self.values + self.values_too_far)
                ));
            }
            (Verdict::Unfinished, _) if self.sampled && self.values == 0 => {
                print_note("the run has no values to sample, because it is not solved or keeps no values");
            }
            (Verdict::Unfinished, _) if self.shards == 0 => {
                print_note("nothing in the requested layers is committed yet");
            }
            (Verdict::Unfinished, _) if self.missing.is_empty() && !self.removed.is_empty() => {
                print_note("the checked part is right; use --partial to accept it");
            }
            (Verdict::Unfinished, _) => print_note(
                "the checked part is right, but the run is not finished. Repeat its solve command to resume it, or use \
                 --partial to accept the committed part",
            ),
            (Verdict::Interrupted, Some(left)) => {
                match self.layers {
                    Some([first, last]) => {
                        print_note(&format!("interrupted; layers {first} to {last} are right"))
                    }
                    None => print_note("interrupted before the first layers were checked"),
                }
                print_note("to continue:");
                let run = shell::quote(&self.given);
                print_command(&format!("  exact2048 verify --run {run} --layers {left}"));
            }
            (Verdict::Interrupted, None) => print_note("interrupted; the checked part is right"),
            (Verdict::Unread, _) => {
                print_note(
                    "the checked part is right, but a file could not be read; verify the run again when it is readable",
                );
            }
            _ => {}
        }
    }
}

fn reported(problem: &Problem) -> ProblemRow {
    ProblemRow { damage: matches!(problem, Problem::File(_)), text: with_causes(problem) }
}

/// Enumerated layers of a span that no longer have stored reach.
fn removed(run: &Run, span: Span) -> Vec<[u32; 2]> {
    let holdings = run.holdings();
    let recipe = Recipe::new(run.params(), &holdings);
    let layers = span.first.to(span.last).filter(|&layer| recipe.reach(layer) == ReachSource::Recomputed);
    units::joined(layers.map(|layer| [layer.0, layer.0]))
}

/// The uncommitted parts of a span.
fn missing(run: &Run, span: Span) -> Vec<Missing> {
    let gaps = run.missing().into_iter().filter(|gap| gap.first <= span.last && span.first <= gap.last);
    let missing = gaps.map(|gap| Missing {
        of: if gap.phase == Phase::Enumerate { STATES } else { "values" },
        first: gap.first.max(span.first).0,
        last: gap.last.min(span.last).0,
    });
    missing.collect()
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
