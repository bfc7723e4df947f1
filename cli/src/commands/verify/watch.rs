//! Progress of a check on stderr.

use std::time::{Duration, Instant};

use exact2048_run::verify::CheckProgress;
use parking_lot::Mutex;

use crate::display::{self, ProgressLine};
use crate::units;

const INTERVAL: Duration = Duration::from_millis(100);

/// Progress display of a check.
#[derive(Default)]
pub struct Watch {
    pass: Mutex<Option<Pass>>,
}

/// One pass over the run.
struct Pass {
    total: u64,
    begun: Instant,
    /// Time of the next update.
    next: Duration,
    line: ProgressLine,
}

impl Watch {
    /// Begins a pass over `total` units.
    pub fn begin(&self, name: &'static str, total: u64) {
        let line = ProgressLine::new(name);
        *self.pass.lock() = Some(Pass { total, begun: Instant::now(), next: INTERVAL, line });
    }

    /// Shows the progress. Frequent calls are cheap.
    pub fn show(&self, at: CheckProgress) {
        // If the lock is taken, another thread is already updating the display.
        let Some(mut pass) = self.pass.try_lock() else { return };
        let Some(pass) = pass.as_mut() else { return };
        let elapsed = pass.begun.elapsed();
        if elapsed >= pass.next {
            pass.next = elapsed + INTERVAL;
            let total = if let CheckProgress::Sample { count, .. } = at { count } else { pass.total };
            let share = position(at) as f64 / total.max(1) as f64;
            pass.line.show(share.min(1.0), &describe(at, total, elapsed));
        }
    }

    /// Ends a pass.
    pub fn finish(&self) {
        if let Some(pass) = self.pass.lock().take() {
            pass.line.finish();
        }
    }
}

fn position(at: CheckProgress) -> u64 {
    match at {
        CheckProgress::Bytes(position)
        | CheckProgress::Sample { checked: position, .. }
        | CheckProgress::Layer(_, position) => position,
    }
}

/// The time left, the position and the rate, most important first.
fn describe(at: CheckProgress, total: u64, elapsed: Duration) -> Vec<String> {
    let (done, seconds) = (position(at) as f64, elapsed.as_secs_f64().max(1e-3));
    let known = done > 0.001 * total as f64 && seconds > 0.5;
    let left = Duration::try_from_secs_f64(seconds * (total as f64 - done).max(0.0) / done);
    let (at, rate) = match at {
        CheckProgress::Bytes(bytes) => {
            (units::size(bytes), format!("{}/s", units::size((done / seconds) as u64)))
        }
        // One value can take minutes, so the count of states shows the progress.
        CheckProgress::Sample { checked, count, states } => {
            let values = format!("{} of {} values", units::count(checked), units::count(count));
            (format!("{values}, {} states", units::count(states)), units::rate(states as f64 / seconds))
        }
        CheckProgress::Layer(layer, _) => {
            (format!("layer {}", units::count(layer.0)), units::rate(done / seconds))
        }
    };
    vec![display::eta(left.ok().filter(|_| known)), at, rate]
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Layer;

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let line = |at, seconds| describe(at, 100_000_000, Duration::from_secs(seconds)).join(", ");
        let layer = |states| CheckProgress::Layer(Layer(1204), states);
        assert_eq!(line(layer(25_000_000), 10), "ETA 30 s, layer 1,204, 2.5 M/s");
        assert_eq!(line(layer(0), 10), "ETA unknown, layer 1,204, 0/s");
        assert_eq!(line(layer(100_000_001), 10), "ETA 0 s, layer 1,204, 10.0 M/s");
        let sample = |checked| CheckProgress::Sample { checked, count: 100_000_000, states: 200_000_000 };
        assert_eq!(
            line(sample(50_000_000), 100),
            "ETA 1 min 40 s, 50,000,000 of 100,000,000 values, 200,000,000 states, 2.0 M/s"
        );
        assert_eq!(line(sample(0), 10), "ETA unknown, 0 of 100,000,000 values, 200,000,000 states, 20.0 M/s");
    }
}
