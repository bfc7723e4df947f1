//! Progress on stderr: one live line on a terminal, a plain line every few seconds otherwise.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use exact2048_coordinator::{LayerCounts, Phase, Segment, Workload};
use exact2048_game::Layer;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

const LIVE_INTERVAL: Duration = Duration::from_millis(100);
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Counters that tasks add to, and the thread that shows them.
pub struct Progress {
    workload: Arc<Workload>,
    counters: Arc<Counters>,
    display: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Counters {
    states: AtomicU64,
    bytes: AtomicU64,
    layer: AtomicU32,
    finished: AtomicBool,
}

/// What there is to do.
struct Task {
    segment: Segment,
    work: Work,
}

/// By what it is told how much is done.
enum Work {
    /// On the way up, by entries.
    Entries {
        workload: Arc<Workload>,
        /// What the way down is worth.
        later: f64,
    },
    /// On the way down, by states; so many there are.
    States(u64),
}

impl Progress {
    /// Counters without a display yet, of a run of so much work.
    pub fn new(workload: Workload) -> Self {
        Self { workload: Arc::new(workload), counters: Arc::default(), display: Mutex::default() }
    }

    /// Adds finished states.
    pub fn add_states(&self, states: u64) {
        self.counters.states.fetch_add(states, Ordering::Relaxed);
    }

    /// Adds bytes written.
    pub fn add_bytes(&self, bytes: u64) {
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the layer that is worked on.
    pub fn set_layer(&self, layer: Layer) {
        self.counters.layer.store(layer.0, Ordering::Relaxed);
    }

    /// Shows a segment until [`Progress::finish`]. `later` are those that come after it; `states` has states of
    /// enumerated layers.
    pub fn start(&self, segment: Segment, later: &[Segment], states: &[LayerCounts]) {
        self.counters.states.store(0, Ordering::Relaxed);
        self.counters.finished.store(false, Ordering::Relaxed);
        let first = if segment.phase == Phase::Enumerate { segment.first } else { segment.last };
        self.set_layer(first);
        let counters = Arc::clone(&self.counters);
        let task = Task { segment, work: self.work(segment, later, states) };
        let thread = std::thread::spawn(move || show(&counters, &task));
        *self.display.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(thread);
    }

    fn work(&self, segment: Segment, later: &[Segment], states: &[LayerCounts]) -> Work {
        let workload = Arc::clone(&self.workload);
        match segment.phase {
            Phase::Enumerate => {
                let later = workload.to_back_up(later);
                Work::Entries { workload, later }
            }
            Phase::BackUp => {
                let layers = segment.first..=segment.last;
                let states = states.iter().filter(|counts| layers.contains(&counts.layer));
                Work::States(states.map(|counts| counts.states).sum())
            }
        }
    }

    /// Ends the display of a segment.
    pub fn finish(&self) {
        self.counters.finished.store(true, Ordering::Relaxed);
        let thread = self.display.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            // A display that panicked has nothing to show; the run goes on.
            let _ = thread.join();
        }
    }
}

fn show(counters: &Counters, task: &Task) {
    let start = Instant::now();
    let live = std::io::stderr().is_terminal();
    let bar = ProgressBar::with_draw_target(
        Some(1000),
        if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
    );
    if let Ok(style) = ProgressStyle::with_template("{prefix:<10} [{bar:24}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(task.segment.phase.name());
    let mut next_line = PLAIN_INTERVAL;
    loop {
        std::thread::park_timeout(LIVE_INTERVAL);
        let finished = counters.finished.load(Ordering::Relaxed);
        let (fraction, line) = describe(counters, task, start.elapsed());
        if live {
            bar.set_position((fraction * 1000.0) as u64);
            bar.set_message(line);
        } else if start.elapsed() >= next_line && !finished {
            eprintln!("{}: {line}", task.segment.phase.name());
            next_line = start.elapsed() + PLAIN_INTERVAL;
        }
        if finished {
            bar.finish_and_clear();
            return;
        }
    }
}

/// The done fraction and a line like `layer 1,204 of 2,044, ETA 9 seconds (3 seconds for this phase), 21,034,511 states, 31.2
/// M/s, 41.0 MiB written`: what matters most comes first, as terminals may be narrow.
fn describe(counters: &Counters, task: &Task, elapsed: Duration) -> (f64, String) {
    let segment = task.segment;
    let states = counters.states.load(Ordering::Relaxed);
    let layer = counters.layer.load(Ordering::Relaxed);
    let (done, all, later) = match &task.work {
        Work::Entries { workload, later } => {
            let done = workload.entries(segment.first, Layer(layer));
            (done, workload.of(segment), *later)
        }
        Work::States(all) => (states as f64, *all as f64, 0.0),
    };
    let fraction = if all > 0.0 { (done / all).clamp(0.0, 1.0) } else { 0.0 };
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let time = |work: f64| {
        let left = Duration::try_from_secs_f64(seconds * work / done).ok()?;
        Some(HumanDuration(left).to_string())
    };
    let known = fraction > 0.001 && seconds > 0.5;
    let eta = match (time(all - done), time(all - done + later)) {
        (Some(phase), Some(run)) if known && later > 0.0 => format!("{run} ({phase} for this phase)"),
        (Some(phase), _) if known => phase,
        _ => "unknown".to_owned(),
    };
    let line = format!(
        "layer {} of {}, ETA {eta}, {} states, {:.1} M/s, {} written",
        HumanCount(u64::from(layer)),
        HumanCount(u64::from(segment.last.0)),
        HumanCount(states),
        states as f64 / seconds / 1e6,
        ByteSize(counters.bytes.load(Ordering::Relaxed)).display().iec(),
    );
    (fraction, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_coordinator::missing_segments;
    use exact2048_game::{Objective, Params, Precision, Spawn4};

    #[test]
    fn the_time_left_is_that_of_the_work_that_is_left() {
        let (board, spawn4) = ("3x3".parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let segments = missing_segments(&params, &[]);
        let progress = Progress::new(Workload::new(&params));
        let states = [LayerCounts { layer: Layer(568), states: 4_000, afterstates: 1 }];
        let task = |segment, later| Task { segment, work: progress.work(segment, later, &states) };
        let say = |task: &Task, layer, states| {
            let counters = Counters::default();
            counters.layer.store(layer, Ordering::Relaxed);
            counters.states.store(states, Ordering::Relaxed);
            describe(&counters, task, Duration::from_secs(600))
        };
        let up = task(segments[0], &segments[1..]);
        assert!(say(&up, 4, 10).1.contains("ETA unknown, "));
        // Half of the entries are below layer 1196, and backing up takes twice as long as enumerating.
        let (fraction, line) = say(&up, 1196, 10);
        assert!((0.48..0.52).contains(&fraction), "{fraction}");
        assert!(line.contains("layer 1,196 of 2,044"), "{line}");
        assert!(line.contains("ETA 50 minutes (10 minutes for this phase), "), "{line}");
        let down = task(segments[1], &[]);
        let (fraction, line) = say(&down, 568, 3_000);
        assert_eq!(fraction, 0.75);
        assert!(line.contains("ETA 3 minutes, "), "{line}");
    }
}
