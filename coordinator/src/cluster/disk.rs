//! The disk limit of a job's run.

use exact2048_text::numbers::SizeUnits;

use super::messages::JobId;
use crate::room;

/// Size of a run, as counted by the process that has it open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunBytes {
    /// Bytes of the committed shards.
    pub committed_bytes: u64,
    /// Use of the disk limit; `None` without a limit.
    pub disk: Option<DiskUse>,
}

/// Use of a run's disk limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskUse {
    /// The limit.
    pub limit_bytes: u64,
    /// Current use.
    pub taken_bytes: u64,
    /// Highest observed use.
    pub peak_bytes: u64,
    /// Bytes left for shards.
    pub free_bytes: u64,
}

/// Space of a job's run within its disk limit.
#[derive(Default, Debug)]
pub(super) struct JobDisk {
    pub limit: Option<u64>,
    /// Use of the disk limit as of the run's last opening or append.
    pub usage: Option<DiskUse>,
    /// Number of bytes that members of failed epochs may have written, or may still write, since the run was
    /// opened. No commit and no other count includes these bytes.
    stray_bytes: u64,
    /// Number of times in a row that the next range did not fit on the disk.
    short: u64,
    /// Whether the run must be opened again before the next epoch.
    is_stale: bool,
}

impl JobDisk {
    pub fn new(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Records that the run was opened. The opening deleted the files that no commit names.
    pub fn opened(&mut self) {
        (self.is_stale, self.stray_bytes) = (false, 0);
    }

    /// Records the end of an epoch that may leave this many bytes without a commit.
    pub fn epoch_ended(&mut self, stray_bytes: u64) {
        self.stray_bytes += stray_bytes;
        // After an order, members may still be writing shards. So the run is opened again only after the next
        // epoch, and that opening deletes such shards.
        self.is_stale = stray_bytes == 0;
    }

    /// Returns whether the run must be opened again before the next epoch. This deletes the files of failed epochs,
    /// which frees space for the remaining work.
    pub fn must_reopen(&self) -> bool {
        self.limit.is_some() && self.is_stale
    }

    /// Returns the bytes that a range of `files` files may take, if the run has a limit. The files also take space
    /// beside their frames.
    pub fn room_bytes(&self, files: u64) -> Option<u64> {
        let others_bytes = self.stray_bytes + files * room::BESIDE_FRAMES;
        self.usage.map(|usage| usage.free_bytes.saturating_sub(others_bytes))
    }

    /// Returns the multiple of the usual headroom that the next opening leaves free.
    pub fn times(&self) -> u64 {
        1 + self.short
    }

    /// Records that the next range does not fit, and returns how often in a row this has happened.
    pub fn run_short(&mut self) -> u64 {
        self.short += 1;
        self.short
    }

    /// Returns the limit if the next range has not fitted too often.
    pub fn hopeless_limit(&self) -> Option<u64> {
        self.usage.filter(|_| self.short > room::MOST_SHORT).map(|usage| usage.limit_bytes)
    }

    /// Returns the limit if an estimate of missing bytes is to be believed. The estimate may be wrong, so it counts
    /// only after an epoch has run out of space.
    pub fn exceeded_limit(&self, missing_bytes: u64) -> Option<u64> {
        self.usage.filter(|_| self.short > 0 && missing_bytes > 0).map(|usage| usage.limit_bytes)
    }

    /// Forgets earlier shortages, after a commit or at a client's request.
    pub fn forget_shortage(&mut self) {
        self.short = 0;
    }
}

/// Describes a disk limit that is too small, and the remedy. `missing_bytes` is 0 if the shortage is unknown.
pub(super) fn over_disk(id: &JobId, limit_bytes: u64, missing_bytes: u64) -> String {
    let units = SizeUnits::of(limit_bytes);
    let least = match missing_bytes {
        0 => String::new(),
        missing => format!("; the rest needs at least {}", units.at_least(limit_bytes + missing)),
    };
    format!(
        "the disk limit of {} is too small{least}. Committed work is safe. Forget the job and submit it again with \
         a higher limit, under the name {id}",
        units.at_most(limit_bytes)
    )
}
