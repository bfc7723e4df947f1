//! Progress on stderr: a live line on a terminal, a plain one every few seconds otherwise.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use exact2048_run::verify::Progress;
use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

const LIVE_INTERVAL: Duration = Duration::from_millis(100);
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Shows how far a check is.
#[derive(Default)]
pub struct Watch {
    pass: Mutex<Option<Pass>>,
}

/// One pass over the run.
struct Pass {
    name: &'static str,
    total: u64,
    begun: Instant,
    /// When to show something again.
    next: Duration,
    bar: ProgressBar,
    is_live: bool,
}

impl Watch {
    /// Begins a pass over so much.
    pub fn begin(&self, name: &'static str, total: u64) {
        let is_live = io::stderr().is_terminal();
        let target = if is_live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix:<7} [{bar:12}] {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name);
        let next = if is_live { LIVE_INTERVAL } else { PLAIN_INTERVAL };
        *self.lock() = Some(Pass { name, total, begun: Instant::now(), next, bar, is_live });
    }

    /// Takes in how far it is; may be called often.
    pub fn show(&self, at: Progress) {
        // Who finds it taken has nothing to add that the next one will not tell.
        let Ok(mut pass) = self.pass.try_lock() else { return };
        let Some(pass) = pass.as_mut() else { return };
        let elapsed = pass.begun.elapsed();
        if elapsed < pass.next {
            return;
        }
        let line = describe(at, pass.total, elapsed);
        if pass.is_live {
            pass.bar.set_position(position(at));
            pass.bar.set_message(line);
            pass.next = elapsed + LIVE_INTERVAL;
        } else {
            eprintln!("{}: {line}", pass.name);
            pass.next = elapsed + PLAIN_INTERVAL;
        }
    }

    /// Ends a pass.
    pub fn finish(&self) {
        if let Some(pass) = self.lock().take() {
            pass.bar.finish_and_clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Pass>> {
        self.pass.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn position(at: Progress) -> u64 {
    match at {
        Progress::Bytes(position) | Progress::Sample(position) | Progress::Layer(_, position) => position,
    }
}

/// A line like `layer 1,204, ETA 9 seconds, 31.2 M/s`: what matters most comes first, as terminals may be narrow.
fn describe(at: Progress, total: u64, elapsed: Duration) -> String {
    let (done, seconds) = (position(at) as f64, elapsed.as_secs_f64().max(1e-3));
    let left = Duration::try_from_secs_f64(seconds * (total as f64 - done).max(0.0) / done);
    let known = done > 0.001 * total as f64 && seconds > 0.5;
    let eta = match left {
        Ok(left) if known => HumanDuration(left).to_string(),
        _ => "unknown".to_owned(),
    };
    let rate = done / seconds;
    match at {
        Progress::Bytes(_) => {
            format!("{}, ETA {eta}, {}/s", HumanBytes(done as u64), HumanBytes(rate as u64))
        }
        Progress::Sample(_) => format!("{}, ETA {eta}, {:.0}/s", HumanCount(done as u64), rate),
        Progress::Layer(layer, _) => {
            format!("layer {}, ETA {eta}, {:.1} M/s", HumanCount(u64::from(layer.0)), rate / 1e6)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Layer;

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let line = |at, seconds| describe(at, 100_000_000, Duration::from_secs(seconds));
        let layer = |states| Progress::Layer(Layer(1204), states);
        assert_eq!(line(layer(25_000_000), 10), "layer 1,204, ETA 30 seconds, 2.5 M/s");
        assert_eq!(line(layer(0), 10), "layer 1,204, ETA unknown, 0.0 M/s");
        assert_eq!(line(layer(100_000_001), 10), "layer 1,204, ETA 0 seconds, 10.0 M/s");
        assert_eq!(line(Progress::Sample(50_000_000), 100), "50,000,000, ETA 2 minutes, 500000/s");
    }
}
