//! Throughput of work, and estimates of the remaining time.

use std::time::Duration;

/// Events per second, weighted exponentially by age.
///
/// The *memory* of a rate is the age at which an event has 1/e of the weight of a new event. Work begins slowly
/// because tables are computed first. So the memory is short at first and grows with the observed time.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rate {
    begun: Option<Duration>,
    /// End of the time that `events` and `seconds` cover.
    taken: Duration,
    /// Weighted events and seconds up to `taken`.
    events: f64,
    seconds: f64,
    /// Number of events since `taken`, and the times of the first and the last of them.
    fresh: f64,
    first: Duration,
    last: Duration,
}

/// Memory of a rate as a fraction of the observed time. The memory stays within the bounds `MEMORY_S`, in seconds.
const MEMORY: f64 = 1.0 / 3.0;
const MEMORY_S: (f64, f64) = (0.3, 20.0);

/// Longest duration of one batch of reports, as a fraction of the memory. The rate spreads the events of a batch evenly
/// over the time since the previous batch.
const TAKEN: f64 = 0.1;

/// Observed time in seconds that an estimate requires.
const SETTLED_S: f64 = 0.5;

impl Rate {
    /// Restarts the rate at `now`, without events.
    pub fn begin(&mut self, now: Duration) {
        *self = Self { begun: Some(now), taken: now, first: now, last: now, ..Self::default() };
    }

    /// Counts events, or fractions of an event, since the last call. The first call only starts the clock.
    pub fn add(&mut self, count: f64, now: Duration) {
        if self.begun.is_none() {
            return self.begin(now);
        }
        if now.saturating_sub(self.first).as_secs_f64() >= TAKEN * self.memory(now) {
            (self.events, self.seconds) = self.weighted(self.last);
            (self.taken, self.fresh, self.first) = (self.last, 0.0, now);
        }
        self.fresh += count;
        self.last = now;
    }

    /// Returns events per second, or 0 without events.
    pub fn per_second(&self, now: Duration) -> f64 {
        let (events, seconds) = self.weighted(now);
        if seconds > 0.0 { events / seconds } else { 0.0 }
    }

    fn memory(&self, now: Duration) -> f64 {
        let seen = now.saturating_sub(self.begun.unwrap_or(now)).as_secs_f64();
        (MEMORY * seen).clamp(MEMORY_S.0, MEMORY_S.1)
    }

    /// Returns weighted events and seconds up to now, with recent events spread evenly.
    fn weighted(&self, now: Duration) -> (f64, f64) {
        let (since, memory) = (now.saturating_sub(self.taken).as_secs_f64(), self.memory(now));
        if since <= 0.0 {
            return (self.events, self.seconds);
        }
        let fade = (-since / memory).exp();
        let seconds = memory * (1.0 - fade);
        (self.events * fade + self.fresh * seconds / since, self.seconds * fade + seconds)
    }
}

/// Fraction of the work that an estimate of the remaining time requires.
const KNOWN: f64 = 0.01;

/// Returns whether the finished work `done` is enough of the whole work `all` to estimate the remaining time.
pub fn is_enough(done: f64, all: f64) -> bool {
    all > 0.0 && done >= KNOWN * all
}

/// Speed of work, for estimating the remaining time.
///
/// The cost of each layer is an estimate ([`PassCost`](crate::PassCost)), too high for some layers and too low for
/// others. So all observed work counts, not only recent work. In a long run the last twenty minutes count most,
/// because the load of the machine may have changed.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pace {
    /// Work and seconds, weighted exponentially by age.
    work: f64,
    seconds: f64,
    /// End of the time that `seconds` covers; `None` before the start.
    taken: Option<Duration>,
}

/// Age in seconds at which work has 1/e of the weight of new work.
const PACE_MEMORY_S: f64 = 1200.0;

impl Pace {
    /// Starts or resumes the work. The time before `now` does not count.
    pub fn resume(&mut self, now: Duration) {
        self.taken = Some(now);
    }

    /// Adds work finished since the last call.
    pub fn add(&mut self, work: f64, now: Duration) {
        let (before, seconds) = self.weighted(now);
        (self.work, self.seconds, self.taken) = (before + work, seconds, Some(now));
    }

    /// Estimates the time for an amount of work; `None` if too little was observed.
    pub fn time_for(&self, work: f64, now: Duration) -> Option<Duration> {
        let (done, seconds) = self.weighted(now);
        let is_known = seconds >= SETTLED_S && done > 0.0;
        is_known.then(|| Duration::try_from_secs_f64(work.max(0.0) * seconds / done).ok())?
    }

    /// Returns weighted work and seconds up to now.
    fn weighted(&self, now: Duration) -> (f64, f64) {
        let since = self.taken.map_or(0.0, |taken| now.saturating_sub(taken).as_secs_f64());
        let fade = (-since / PACE_MEMORY_S).exp();
        (self.work * fade, self.seconds * fade + since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_steady_rate_is_measured_and_fades() {
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(Duration::ZERO), 0.0);
        for step in 0..600 {
            rate.add(10.0, at(0.1 * f64::from(step)));
            if step > 20 {
                let now = rate.per_second(at(0.1 * f64::from(step)));
                assert!((95.0..105.0).contains(&now), "{now} at step {step}");
            }
        }
        assert!(rate.per_second(at(400.0)) < 0.1);
    }

    #[test]
    fn events_in_batches_give_a_steady_rate() {
        let mut rate = Rate::default();
        rate.begin(at(0.0));
        // Ten workers report at once, every three seconds.
        for step in 1..30 {
            (0..10).for_each(|worker| rate.add(30.0, at(3.0 * f64::from(step) + 0.01 * f64::from(worker))));
            let now = rate.per_second(at(3.0 * f64::from(step) + 0.2));
            let known = step < 3 || (75.0..125.0).contains(&now);
            assert!(known, "{now} at step {step}");
        }
    }

    #[test]
    fn a_slow_start_fades() {
        let mut rate = Rate::default();
        rate.begin(at(0.0));
        (1..=30).for_each(|step| rate.add(1.0, at(0.1 * f64::from(step))));
        (31..=90).for_each(|step| rate.add(100.0, at(0.1 * f64::from(step))));
        assert!((800.0..1000.0).contains(&rate.per_second(at(9.0))), "{}", rate.per_second(at(9.0)));
    }

    #[test]
    fn the_remaining_time_is_estimated_after_some_work() {
        let mut pace = Pace::default();
        assert_eq!(pace.time_for(1.0, at(9.0)), None);
        pace.resume(at(9.0));
        pace.add(2.0, at(9.4));
        assert_eq!(pace.time_for(100.0, at(9.4)), None, "the observed time is too short");
        pace.add(3.0, at(10.0));
        let left = |pace: &Pace, work, now| pace.time_for(work, at(now)).map(|left| left.as_secs_f64());
        let close = |found: Option<f64>, wanted: f64| {
            assert!(
                found.is_some_and(|found| (found / wanted - 1.0).abs() < 0.01),
                "{found:?}, not {wanted}"
            );
        };
        close(left(&pace, 100.0, 10.0), 20.0);
        close(left(&pace, 100.0, 11.0), 40.0);
        // A pause does not count.
        pace.resume(at(100.0));
        pace.add(5.0, at(101.0));
        close(left(&pace, 100.0, 101.0), 20.0);
    }

    #[test]
    fn recent_speed_dominates_estimates_of_long_work() {
        let mut pace = Pace::default();
        pace.resume(at(0.0));
        let hours =
            |pace: &Pace, now: f64| pace.time_for(3600.0, at(now)).map(|left| left.as_secs_f64() / 3600.0);
        (1..=7200).for_each(|second| pace.add(1.0, at(f64::from(second))));
        assert!(hours(&pace, 7200.0).is_some_and(|hours| (hours - 1.0).abs() < 0.01));
        // After two hours, the work is half as fast.
        (7201..=7260).for_each(|second| pace.add(0.5, at(f64::from(second))));
        assert!(hours(&pace, 7260.0).is_some_and(|hours| hours < 1.03), "a minute changes little");
        (7261..=21_600).for_each(|second| pace.add(0.5, at(f64::from(second))));
        assert!(hours(&pace, 21_600.0).is_some_and(|hours| hours > 1.95));
    }
}
