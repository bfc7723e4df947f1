//! Summary of a run. `solve` and `status --watch` print it at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Result, bail};
use exact2048_game::{BoardSize, Discount, Layer, Objective, Spawn4, Spawner, ValueStep, certainty};
use exact2048_solution::{Oracle, PassTime, Phase, Run, StartValues};
use serde::Serialize;

use crate::display;
use crate::job::{from_text, rules_text};
use crate::output::write_field;
use crate::units::{self, SizeUnits};

/// The summary of a run, as `--json` prints it.
#[derive(Serialize)]
pub struct RunSummary {
    board: BoardSize,
    objective: Objective,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    spawn4: Spawn4,
    #[serde(skip_serializing_if = "is_default")]
    discount: Discount,
    #[serde(skip_serializing_if = "is_default")]
    spawner: Spawner,
    phase: &'static str,
    layers: usize,
    states: u64,
    afterstates: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Start>,
    /// Step to which stored values are rounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_step: Option<ValueStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    seconds: Seconds,
    bytes_on_disk: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_rss_bytes: Option<u64>,
    /// Peak disk use of the run under a limit. Only the process that computed the run knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_disk_bytes: Option<u64>,
    /// Units of the disk limit.
    #[serde(skip)]
    disk_units: SizeUnits,
    /// Value of the start in words.
    #[serde(skip)]
    start_text: Option<String>,
    #[serde(skip)]
    first_and_last: Option<[u32; 2]>,
    #[serde(skip)]
    passes: Vec<(Phase, PassTime)>,
}

/// Whether a choice is the default. The summary omits defaults.
fn is_default<T: Default + PartialEq>(choice: &T) -> bool {
    *choice == T::default()
}

/// Time that a run took, summed over all processes that worked on it.
#[derive(Serialize, Clone, Copy)]
struct Seconds {
    /// Time of the enumeration; `None` if not recorded.
    enumerate: Option<f64>,
    /// Time of the backup; `None` if not recorded.
    solve: Option<f64>,
    /// Total time, including opening and checking; `None` if neither recorded nor measured.
    total: Option<f64>,
}

#[derive(Serialize)]
struct Start {
    expected: f64,
    error_bound: f64,
    by_layer: BTreeMap<String, f64>,
}

/// Recorded computing time of a run in seconds; 0 without records.
pub fn recorded_seconds(run: &Run) -> f64 {
    let of = |phase| run.catalog().took(phase).map_or(0.0, |took| took.seconds);
    of(Phase::Enumerate) + of(Phase::BackUp)
}

/// Reports that a finished run exceeds its disk limit. Its files stay.
pub fn report_excess(taken: u64, limit: u64) {
    if taken > limit {
        display::print_note(&format!(
            "note: this run takes {}, more than the {} of --disk; nothing is removed because the run is finished",
            units::size(taken),
            units::size(limit),
        ));
    }
}

impl RunSummary {
    /// The summary of a finished run. Without `seconds`, the total time is the recorded time.
    ///
    /// # Errors
    ///
    /// If the run is not finished, or a shard cannot be read.
    pub fn new(run: &Run, seconds: Option<f64>, peak_rss_bytes: Option<u64>) -> Result<Self> {
        if !run.missing().is_empty() {
            bail!("the run is not finished");
        }
        let layers = run.layer_counts();
        let params = run.params();
        let start = if run.is_solved() { Some(start(&Oracle::new(run)?.starts()?)) } else { None };
        let last =
            layers.iter().rev().find(|counts| counts.states > 0).map_or(Layer(0), |counts| counts.layer);
        let start_text = start.as_ref().map(|start| {
            let proved = certainty::proved_of_starts(params.game(), start.expected, last);
            certainty::value_text(params.game(), start.expected, start.error_bound, proved)
        });
        let took = |phase| run.catalog().took(phase);
        let passes: Vec<(Phase, PassTime)> = [Phase::Enumerate, Phase::BackUp]
            .into_iter()
            .filter_map(|phase| took(phase).map(|took| (phase, took)))
            .collect();
        let wanted = if params.contents().enumerates_only() { 1 } else { 2 };
        let recorded = (passes.len() == wanted).then(|| recorded_seconds(run));
        let seconds_of = |phase| took(phase).map(|took| took.seconds);
        Ok(Self {
            board: params.game().board(),
            objective: params.game().objective(),
            from: from_text(params.game()),
            spawn4: params.game().spawn4(),
            discount: params.game().discount(),
            spawner: params.game().spawner(),
            phase: if params.contents().enumerates_only() { "enumerated" } else { "solved" },
            layers: layers.len(),
            states: layers.iter().map(|c| c.states).sum(),
            afterstates: layers.iter().map(|c| c.afterstates).sum(),
            start,
            start_text,
            value_step: params.contents().value_step(),
            fingerprint: run.fingerprint().map(|f| format!("{f:032x}")),
            seconds: Seconds {
                enumerate: seconds_of(Phase::Enumerate),
                solve: seconds_of(Phase::BackUp),
                total: seconds.or(recorded),
            },
            bytes_on_disk: run.dir().bytes_on_disk()?,
            peak_rss_bytes,
            peak_disk_bytes: run.dir().allowance().map(|allowance| allowance.peak_bytes()),
            disk_units: run
                .dir()
                .allowance()
                .map_or(SizeUnits::Binary, |held| SizeUnits::of(held.limit_bytes())),
            first_and_last: layers.first().zip(layers.last()).map(|(a, b)| [a.layer.0, b.layer.0]),
            passes,
        })
    }

    /// Writes the summary for people.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let rules = rules_text(&self.spawn4.to_string(), self.discount, self.spawner);
        let job = format!("{}, {}, {rules}", self.board, self.objective);
        write_field(out, "board", job)?;
        if let Some(from) = &self.from {
            write_field(out, "from", from)?;
        }
        write_field(out, "phase", self.phase)?;
        self.write_counts(out)?;
        self.write_results(out)?;
        let most = self.peak_disk_bytes.map(|bytes| format!(", peak {}", self.disk_units.size(bytes)));
        write_field(out, "on disk", self.disk_units.size(self.bytes_on_disk) + &most.unwrap_or_default())?;
        match self.peak_rss_bytes {
            Some(bytes) => write_field(out, "peak memory", units::size(bytes)),
            None => Ok(()),
        }
    }

    fn write_counts(&self, out: &mut impl Write) -> io::Result<()> {
        let [first, last] = self.first_and_last.unwrap_or_default().map(units::count);
        write_field(out, "layers", format!("{}, tile sums {first} to {last}", units::count(self.layers)))?;
        write_field(out, "states", units::count(self.states))?;
        write_field(out, "afterstates", units::count(self.afterstates))
    }

    /// Writes the value of the start, the fingerprint and the time.
    pub fn write_results(&self, out: &mut impl Write) -> io::Result<()> {
        if let (Some(start), Some(text)) = (&self.start, &self.start_text) {
            write_field(out, "start", text)?;
            // A run from a position has one start.
            let layers = if self.from.is_some() { Vec::new() } else { start.layers(self.spawn4) };
            for (layer, text) in layers {
                write_field(out, &format!("  layer {layer}"), text)?;
            }
        }
        if let Some(step) = self.value_step {
            write_field(out, "value step", format!("{step}, which the errors include"))?;
        }
        if let Some(fingerprint) = &self.fingerprint {
            write_field(out, "fingerprint", fingerprint)?;
        }
        if let Some(seconds) = self.seconds.total {
            write_field(out, "time", units::time(seconds))?;
        }
        for (phase, took) in &self.passes {
            write_field(out, &format!("  {}", phase.name()), pass_text(*took, self.states))?;
        }
        Ok(())
    }
}

/// Smallest number of states for a meaningful time per state. With fewer states, startup dominates.
const MANY_STATES: u64 = 1_000_000;

/// Time of a pass, and time per state if meaningful.
pub fn pass_text(took: PassTime, states: u64) -> String {
    let time = units::time(took.seconds);
    match took.threads {
        Some(threads) if states >= MANY_STATES => {
            let nanoseconds = took.seconds * 1e9 / states as f64;
            format!("{time}, {nanoseconds:.1} ns a state with {}", units::several(threads, "thread"))
        }
        _ => time,
    }
}

fn start(values: &StartValues) -> Start {
    Start {
        expected: values.expected,
        error_bound: values.error_bound,
        by_layer: values.by_layer.iter().map(|(layer, mean)| (layer.to_string(), *mean)).collect(),
    }
}

impl Start {
    /// The layers of starts with their values in words.
    fn layers(&self, spawn4: Spawn4) -> Vec<(&str, String)> {
        let said = self.by_layer.iter().map(|(layer, &mean)| match occurs(layer, spawn4) {
            true => (layer.as_str(), units::value(mean, self.error_bound)),
            false => (layer.as_str(), "does not occur: such tiles do not spawn".to_owned()),
        });
        said.collect()
    }
}

/// Whether a game can start in a layer: 4 for two 2s, 6 for a 2 and a 4, 8 for two 4s.
fn occurs(layer: &str, spawn4: Spawn4) -> bool {
    match layer {
        "4" => spawn4.weight2() > 0,
        "8" => spawn4.weight4() > 0,
        _ => spawn4.weight2() > 0 && spawn4.weight4() > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(means: [f64; 3], error_bound: f64, spawn4: &str) -> Vec<String> {
        let by_layer = ["4", "6", "8"].into_iter().zip(means).map(|(layer, mean)| (layer.to_owned(), mean));
        let start = Start { expected: means[0], error_bound, by_layer: by_layer.collect() };
        let spawn4 = spawn4.parse().unwrap_or_default();
        start.layers(spawn4).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn starts_differ_by_no_less_than_the_error() {
        let all = said([5_469.214_066, 5_465.577_698, 5_461.941_338], 3.5e-3, "0.1");
        assert_eq!(all, ["5,469.214", "5,465.578", "5,461.941"]);
        let near = said([0.736_774_1, 0.736_774_1 - 3e-10, 0.736_774_1], 1.1e-7, "0.1");
        assert_eq!(near, ["0.7367741"; 3]);
    }

    #[test]
    fn impossible_starts_are_reported() {
        assert!(said([68.0, 64.0, 60.0], 8e-7, "0")[1].contains("does not occur"));
        assert!(said([68.0, 64.0, 60.0], 8e-7, "1")[0].contains("does not occur"));
        assert!(said([68.0, 64.0, 60.0], 8e-7, "1")[2].starts_with("60.0"));
    }

    #[test]
    fn times_per_state_are_shown_if_meaningful() {
        let took = PassTime { seconds: 2.17, threads: Some(2) };
        assert_eq!(pass_text(took, 48_713_519), "2.17 s, 44.5 ns a state with 2 threads");
        assert_eq!(pass_text(took, 110), "2.17 s");
        assert_eq!(pass_text(PassTime { threads: None, ..took }, 48_713_519), "2.17 s");
    }
}
