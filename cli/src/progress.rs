//! Progress on stderr: one live line on a terminal, a plain line every few seconds otherwise.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use exact2048_coordinator::{Phase, Segment};
use exact2048_game::Layer;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

const LIVE_INTERVAL: Duration = Duration::from_millis(100);
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Counters that tasks add to, and the thread that shows them.
pub struct Progress {
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

impl Progress {
    /// Counters without a display yet.
    pub fn new() -> Self {
        Self { counters: Arc::default(), display: Mutex::default() }
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

    /// Shows a segment until [`Progress::finish`]. `total_states` is known on the way down.
    pub fn start(&self, segment: Segment, total_states: Option<u64>) {
        self.counters.states.store(0, Ordering::Relaxed);
        self.counters.finished.store(false, Ordering::Relaxed);
        let first = if segment.phase == Phase::Enumerate { segment.first } else { segment.last };
        self.set_layer(first);
        let counters = Arc::clone(&self.counters);
        let thread = std::thread::spawn(move || show(&counters, segment, total_states));
        *self.display.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(thread);
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

fn show(counters: &Counters, segment: Segment, total_states: Option<u64>) {
    let start = Instant::now();
    let live = std::io::stderr().is_terminal();
    let bar = ProgressBar::with_draw_target(
        Some(1000),
        if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
    );
    if let Ok(style) = ProgressStyle::with_template("{prefix:<10} [{bar:24}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(segment.phase.name());
    let mut next_line = PLAIN_INTERVAL;
    loop {
        std::thread::park_timeout(LIVE_INTERVAL);
        let finished = counters.finished.load(Ordering::Relaxed);
        let (fraction, line) = describe(counters, segment, total_states, start.elapsed());
        if live {
            bar.set_position((fraction * 1000.0) as u64);
            bar.set_message(line);
        } else if start.elapsed() >= next_line && !finished {
            eprintln!("{}: {line}", segment.phase.name());
            next_line = start.elapsed() + PLAIN_INTERVAL;
        }
        if finished {
            bar.finish_and_clear();
            return;
        }
    }
}

/// The done fraction and a line like `layer 1,204 of 2,044, 21,034,511 states, 31.2 M/s, 41.0 MiB, ETA 3 s`.
fn describe(
    counters: &Counters,
    segment: Segment,
    total_states: Option<u64>,
    elapsed: Duration,
) -> (f64, String) {
    let states = counters.states.load(Ordering::Relaxed);
    let layer = counters.layer.load(Ordering::Relaxed);
    let span = f64::from(segment.last.0 - segment.first.0 + 2);
    let by_layers = match segment.phase {
        Phase::Enumerate => f64::from(layer.saturating_sub(segment.first.0)) / span,
        Phase::BackUp => f64::from(segment.last.0.saturating_sub(layer)) / span,
    };
    let fraction =
        total_states.map_or(by_layers, |total| states as f64 / total.max(1) as f64).clamp(0.0, 1.0);
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let eta = if fraction > 0.001 && seconds > 0.5 {
        HumanDuration(Duration::from_secs_f64(seconds * (1.0 - fraction) / fraction)).to_string()
    } else {
        "unknown".to_owned()
    };
    let line = format!(
        "layer {} of {}, {} states, {:.1} M/s, {} written, ETA {eta}",
        HumanCount(u64::from(layer)),
        HumanCount(u64::from(segment.last.0)),
        HumanCount(states),
        states as f64 / seconds / 1e6,
        ByteSize(counters.bytes.load(Ordering::Relaxed)).display().iec(),
    );
    (fraction, line)
}
