//! How fast work goes, and how long the rest of it takes.

use std::time::Duration;

/// Events a second, with weights that fall off exponentially with age.
///
/// Work begins slowly, since tables are made first. So the memory is short at the beginning and grows with the time that
/// was seen.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rate {
    begun: Option<Duration>,
    /// Up to when events are in `events` and `seconds`.
    taken: Duration,
    /// Events up to then, and seconds, both with their weights.
    events: f64,
    seconds: f64,
    /// Events since then, and when the first and the last of them were.
    fresh: f64,
    first: Duration,
    last: Duration,
}

/// Age at which an event counts 1/e of a new one: this part of the time that was seen, and within these seconds.
const MEMORY: f64 = 1.0 / 3.0;
const MEMORY_S: (f64, f64) = (0.3, 20.0);

/// Events within this part of the memory are taken to be spread evenly from the events before them on: they may have been
/// reported all at once.
const TAKEN: f64 = 0.1;

/// Time after which a rate tells something, in seconds.
const SETTLED_S: f64 = 0.5;

impl Rate {
    /// Forgets everything; what is counted from now on happens after `now`.
    pub fn begin(&mut self, now: Duration) {
        *self = Self { begun: Some(now), taken: now, first: now, last: now, ..Self::default() };
    }

    /// Counts events, or parts of one, that happened since the last call. The first ones of all have no known time, and
    /// do not count.
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

    /// Events a second; 0 where nothing was seen.
    pub fn per_second(&self, now: Duration) -> f64 {
        let (events, seconds) = self.weighted(now);
        if seconds > 0.0 { events / seconds } else { 0.0 }
    }

    /// Whether it was looked at for long enough to tell something.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.begun.is_some_and(|begun| now.saturating_sub(begun).as_secs_f64() >= SETTLED_S)
    }

    fn memory(&self, now: Duration) -> f64 {
        let seen = now.saturating_sub(self.begun.unwrap_or(now)).as_secs_f64();
        (MEMORY * seen).clamp(MEMORY_S.0, MEMORY_S.1)
    }

    /// Events and seconds up to now with their weights. What is fresh is taken to be spread evenly.
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

/// Part of the work that has to be done before the time for the rest is told.
const KNOWN: f64 = 0.01;

/// Whether so much work, done of all, is enough to tell how long the rest takes.
pub fn is_enough(done: f64, all: f64) -> bool {
    all > 0.0 && done >= KNOWN * all
}

/// How long the rest of some work takes, by the speed with which it went.
///
/// What comes next goes on as fast as lately, for as long as "lately" is: some seconds. What comes after that goes as fast
/// as all did that was seen, so far as that is much of the work; for work begins slowly. The way down goes through all
/// layers again, and not only through those that the way up has just come to, which may be the fast ones.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    all: f64,
    done: f64,
    rate: Rate,
    /// Since when the speed is looked at, and what was done then.
    since: Duration,
    before: f64,
}

impl Pace {
    /// So much work, in any unit of which each takes about as long, that begins now.
    pub fn new(all: f64, now: Duration) -> Self {
        let mut rate = Rate::default();
        rate.begin(now);
        Self { all, done: 0.0, rate, since: now, before: 0.0 }
    }

    /// There is so much work in all, as it turns out.
    pub fn resize(&mut self, all: f64) {
        self.all = all;
    }

    /// What was done so far tells nothing of the speed of the rest.
    pub fn forget(&mut self, now: Duration) {
        self.rate.begin(now);
        (self.since, self.before) = (now, self.done);
    }

    /// So much of it is done by now.
    pub fn reach(&mut self, done: f64, now: Duration) {
        self.rate.add((done - self.done).max(0.0), now);
        self.done = self.done.max(done);
    }

    /// The part that is done, from 0 to 1.
    pub fn share(&self) -> f64 {
        if self.all > 0.0 { (self.done / self.all).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Time until everything is done; `None` where too little is done to tell.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        self.time_for(self.all - self.done, now)
    }

    /// Time for so much of the work; `None` where too little is done to tell.
    pub fn time_for(&self, work: f64, now: Duration) -> Option<Duration> {
        let known = is_enough(self.done, self.all) && self.rate.is_settled(now);
        let lately = known.then(|| self.rate.per_second(now)).filter(|rate| *rate > 0.0)?;
        let mean = (self.done - self.before) / now.saturating_sub(self.since).as_secs_f64();
        let near = work.clamp(0.0, lately * self.rate.memory(now));
        let later = lately + self.share() * (mean - lately);
        let seconds = near / lately + (work - near).max(0.0) / later;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_steady_rate_is_found_and_forgotten() {
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
    fn events_that_come_in_lumps_are_a_steady_rate() {
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
    fn a_slow_beginning_is_forgotten() {
        let mut rate = Rate::default();
        rate.begin(at(0.0));
        (1..=30).for_each(|step| rate.add(1.0, at(0.1 * f64::from(step))));
        (31..=90).for_each(|step| rate.add(100.0, at(0.1 * f64::from(step))));
        assert!((800.0..1000.0).contains(&rate.per_second(at(9.0))), "{}", rate.per_second(at(9.0)));
    }

    #[test]
    fn the_time_left_is_told_once_it_is_known() {
        let mut pace = Pace::new(1000.0, at(0.0));
        pace.reach(5.0, at(1.0));
        assert_eq!(pace.left(at(1.0)), None, "half a percent is done");
        pace.reach(20.0, at(4.0));
        let left = pace.left(at(4.0)).map(|left| left.as_secs_f64());
        assert!(left.is_some_and(|left| (180.0..205.0).contains(&left)), "{left:?}");
        assert_eq!(Pace::new(0.0, at(0.0)).left(at(9.0)), None);
        assert_eq!(Pace::new(0.0, at(0.0)).share(), 0.0);
    }
}
