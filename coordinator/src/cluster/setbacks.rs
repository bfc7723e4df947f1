//! Failed epochs of a job, and how they change the times of its next epochs.

use std::time::Duration;

/// Maximum number of halvings of the time between commits: from 10 to 0.6 seconds.
const MOST_HASTE: u32 = 4;

/// Maximum number of doublings of a member's time for one step.
const MOST_SLOWNESS: u32 = 5;

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Setbacks {
    /// Number of failed epochs in a row without a commit.
    failures: u32,
    /// Time when the last of these failures was counted.
    failed_at: Duration,
    /// Number of halvings of the time between commits. Each followed a failed epoch.
    haste: u32,
    /// Number of doublings of a member's time for one step. Each followed an epoch that failed because a member
    /// took longer.
    slowness: u32,
}

impl Setbacks {
    /// Counts a failed epoch, and returns the number of failures in a row.
    ///
    /// Failures within one lease count once. If many workers die together, each of the following epochs discovers
    /// one death, until the leases are over.
    pub fn count(&mut self, lease: Duration, now: Duration) -> u32 {
        if self.failures == 0 || now >= self.failed_at + lease {
            self.failures += 1;
            self.failed_at = now;
        }
        self.haste = (self.haste + 1).min(MOST_HASTE);
        self.failures
    }

    /// Gives members more time for each step, because one of them took longer.
    pub fn slow_down(&mut self) {
        self.slowness = (self.slowness + 1).min(MOST_SLOWNESS);
    }

    /// Ends the row of failures after a commit.
    pub fn end_row(&mut self) {
        self.failures = 0;
    }

    /// Clears the failures at a client's request.
    pub fn pardon(&mut self) {
        (self.failures, self.slowness) = (0, 0);
    }

    /// Returns to the usual times step by step, after a commit of an epoch that has lasted this long.
    pub fn relax(&mut self, lasted: Duration, commit_interval: Duration, step: Duration) {
        // While failures continue, a single commit does not lengthen the interval again, because only the
        // shorter interval made that commit possible.
        if lasted >= commit_interval {
            self.haste = self.haste.saturating_sub(1);
        }
        if lasted >= step * (2 << self.slowness) {
            self.slowness = self.slowness.saturating_sub(1);
        }
    }

    /// Returns the time between commits. After failures it is shorter, because an epoch that fails before its first
    /// commit makes no progress.
    pub fn commit_interval(&self, usual: Duration) -> Duration {
        usual / (1 << self.haste)
    }

    /// Returns a member's time for one step.
    pub fn step(&self, usual: Duration) -> Duration {
        usual * (1 << self.slowness)
    }
}
