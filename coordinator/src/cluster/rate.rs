//! A smoothed rate.

use std::time::Duration;

/// Events a second, with weights that fall off exponentially with age.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rate {
    per_second: f64,
    since: Option<Duration>,
    last: Duration,
}

/// Age at which an event counts 1/e of a new one, in seconds.
const MEMORY_S: f64 = 20.0;

impl Rate {
    /// Counts events, or parts of one, that happened just now.
    pub fn add(&mut self, count: f64, now: Duration) {
        self.since.get_or_insert(now);
        self.per_second = self.decayed(now) + count / MEMORY_S;
        self.last = now;
    }

    /// Events a second. While few seconds have been seen, those that were count in full.
    pub fn per_second(&self, now: Duration) -> f64 {
        let Some(since) = self.since else { return 0.0 };
        let seen = now.saturating_sub(since).as_secs_f64().max(1.0);
        self.decayed(now) / (1.0 - (-seen / MEMORY_S).exp())
    }

    fn decayed(&self, now: Duration) -> f64 {
        self.per_second * (-now.saturating_sub(self.last).as_secs_f64() / MEMORY_S).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_found_and_forgotten() {
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(Duration::ZERO), 0.0);
        for step in 0..600 {
            rate.add(10.0, Duration::from_millis(100 * step));
            if step > 20 {
                let now = rate.per_second(Duration::from_millis(100 * step));
                assert!((90.0..130.0).contains(&now), "{now} at step {step}");
            }
        }
        assert!(rate.per_second(Duration::from_secs(400)) < 0.01);
    }
}
