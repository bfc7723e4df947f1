//! The time of the latest call, and evidence that the coordinator itself was suspended or starved of CPU time.

use std::time::Duration;

/// Divisor of a lease that gives the longest normal gap between calls. A longer gap shows that the coordinator is
/// starved, because calls arrive at least every fifth of a lease.
const STARVED: u32 = 4;

#[derive(Debug)]
pub(super) struct Clock {
    lease: Duration,
    /// The time of the latest call.
    now: Duration,
    /// Time of the last call that was so late that this coordinator must have been starved.
    starved_at: Option<Duration>,
}

impl Clock {
    /// Starts a clock at this time. `lease` is the lease of workers.
    pub fn new(lease: Duration, now: Duration) -> Self {
        Self { lease, now, starved_at: None }
    }

    pub fn now(&self) -> Duration {
        self.now
    }

    /// Returns the time since an earlier moment.
    pub fn since(&self, moment: Duration) -> Duration {
        self.now.saturating_sub(moment)
    }

    /// Advances to the time of a call. If the coordinator was suspended before the call, returns for how long.
    pub fn advance(&mut self, now: Duration) -> Option<Duration> {
        let silence = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        if silence > self.lease / STARVED {
            self.starved_at = Some(self.now);
        }
        (silence > self.lease / 2).then_some(silence)
    }

    /// Returns whether the coordinator was starved within the last two leases. An expired lease is then no
    /// evidence against a worker, because the worker may have been starved too or its pull was processed late.
    pub fn is_starved(&self) -> bool {
        self.starved_at.is_some_and(|at| self.since(at) <= 2 * self.lease)
    }
}
