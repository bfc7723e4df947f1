//! Health of a worker: its failures, and the time without work that they cost.

use std::time::Duration;

use super::ids::EpochId;

/// Maximum number of doublings of a worker's back-off.
const MOST_DOUBLINGS: u32 = 6;

/// Number of complaints about peers that a worker may make without a commit. Further complaints blame the worker too.
const MOST_COMPLAINTS: u32 = 2;

/// Factor on the back-off of a hanging worker, because every hang costs the other workers up to a minute.
const HANG: u32 = 30;

#[derive(Debug)]
pub(super) struct Health {
    /// Time without work after the first failure.
    backoff: Duration,
    /// Reason why the worker cannot work, until it reports that it is well.
    pub unwell: Option<String>,
    /// Time before which the worker gets no work.
    pub not_before: Duration,
    /// Whether a peer could not reach the worker and the worker has not pulled since. Such a worker is probably
    /// dead although its lease is not over.
    doubted: bool,
    /// Epoch in which the worker hung, until it leaves that epoch.
    pub hangs_in: Option<EpochId>,
    /// Number of failures since the worker's last commit.
    failures: u32,
    /// Number of epochs that the worker ended by a complaint about a peer since its last commit.
    complaints: u32,
}

impl Health {
    /// Returns the health of a worker that has just registered.
    pub fn new(backoff: Duration, now: Duration) -> Self {
        Self {
            backoff,
            unwell: None,
            not_before: now,
            doubted: false,
            hangs_in: None,
            failures: 0,
            complaints: 0,
        }
    }

    /// Returns whether the worker may get work.
    pub fn is_good(&self, now: Duration) -> bool {
        self.unwell.is_none() && self.hangs_in.is_none() && !self.doubted && now >= self.not_before
    }

    /// Records a pull of the worker, which is in this epoch.
    pub fn pulled(&mut self, epoch: Option<EpochId>) {
        self.doubted = false;
        if epoch.is_none() {
            self.hangs_in = None;
        }
    }

    /// Suspends the worker for a limited time. The time doubles with each failure.
    pub fn back_off(&mut self, now: Duration) {
        self.suspend(self.backoff, now);
    }

    fn suspend(&mut self, base: Duration, now: Duration) {
        self.not_before = now + base * 2u32.pow(self.failures.min(MOST_DOUBLINGS));
        self.failures += 1;
    }

    /// Records that a peer's complaint about the worker ended their epoch.
    pub fn blame(&mut self, now: Duration) {
        self.back_off(now);
        self.doubted = true;
    }

    /// Records that the worker's complaint about a peer ended their epoch. The worker is blamed too if it complains
    /// repeatedly without a commit in between.
    pub fn note_complaint(&mut self, now: Duration) {
        self.complaints += 1;
        if self.complaints > MOST_COMPLAINTS {
            self.back_off(now);
        }
    }

    /// Records that the worker blocks an epoch. The worker gets no work for a long time, and none before it has left
    /// this epoch.
    pub fn note_hang(&mut self, epoch: EpochId, now: Duration) {
        self.suspend(HANG * self.backoff, now);
        self.hangs_in = Some(epoch);
    }

    /// Records a failure of the worker itself. The worker gets no work before it reports that it is well.
    pub fn note_failure(&mut self, failure: String, now: Duration) {
        self.back_off(now);
        self.unwell = Some(failure);
    }

    /// Clears the failures after a commit.
    pub fn forgive(&mut self) {
        (self.failures, self.complaints) = (0, 0);
    }
}
