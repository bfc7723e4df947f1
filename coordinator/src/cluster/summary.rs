//! The progress of a job: the queue keeps it, since the run of the job knows neither retries nor epochs.

use exact2048_solution::Phase;
use serde::{Deserialize, Serialize};

/// The progress of a job, as the queue keeps it and as it is shown while the run is not open. Counts what is committed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JobSummary {
    /// The pass that comes next; `None` when nothing is missing, or nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// States done in that pass, or in the last one, up to symmetry.
    pub states_done: u64,
    /// States of that pass in all, where that is known: on the way down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_total: Option<u64>,
    /// Part of that pass's work that is done, from 0 to 1.
    pub done: f64,
    /// Bytes of committed shards.
    pub bytes: u64,
    /// The fingerprint of a solved run.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "exact2048_solution::fingerprint_text")]
    pub fingerprint: Option<u128>,
    /// Epochs that failed, under all coordinators. Queues of before have none of this and the following fields.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Epochs that began, under all coordinators.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epochs: u64,
    /// The most bytes that its run took of a limit, as far as that was seen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peak_disk_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The part of a pass after which the progress is written to the queue again.
const NOTED_STEP: f64 = 0.05;

/// Counts up to this number are written to the queue whenever they change; above it, when they have grown by one part
/// in so many.
const NOTED_COUNTS: u64 = 32;

impl JobSummary {
    /// Whether this progress is worth a record in the queue that holds `noted`.
    ///
    /// A queue is read as a whole when a coordinator starts. So a job writes some twenty records a pass, and few for
    /// its epochs even where these fail all the time. The end of a job has a record of its own.
    pub(super) fn is_news(&self, noted: &Self) -> bool {
        let has_grown = |now: u64, before: u64| now > before + before / NOTED_COUNTS;
        if self.phase.is_none() {
            return false;
        }
        self.phase != noted.phase
            || (self.done - noted.done).abs() >= NOTED_STEP
            || has_grown(self.epochs, noted.epochs)
            || has_grown(self.retries, noted.retries)
    }

    /// The fault of a summary that was read from a queue.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let is_share = (0.0..=1.0).contains(&self.done);
        (!is_share).then(|| format!("its progress is {}, expected a number from 0 to 1", self.done))
    }
}
