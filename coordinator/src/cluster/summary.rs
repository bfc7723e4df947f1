//! Progress of a job. The queue stores it, because the run does not record retries or epochs.

use exact2048_solution::Phase;
use serde::{Deserialize, Serialize};

/// Committed progress of a job, as stored in the queue and shown while the run is not open.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JobSummary {
    /// The next pass; `None` when nothing is missing or known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Number of states done in that pass, or in the last pass if nothing is missing, up to symmetry.
    pub states_done: u64,
    /// Total number of states in that pass; known only in the downward pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_total: Option<u64>,
    /// Completed part of that pass, from 0 to 1.
    pub done: f64,
    /// Total size of the committed shards in bytes.
    pub bytes: u64,
    /// The fingerprint of a solved run.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "exact2048_solution::fingerprint_text")]
    pub fingerprint: Option<u128>,
    /// Number of failed epochs, under all coordinators. Older queues lack this field and all later fields.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Number of started epochs, under all coordinators.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epochs: u64,
    /// Highest observed use of a disk limit, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peak_disk_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Fraction of a pass after which the progress is written to the queue again.
const NOTED_STEP: f64 = 0.05;

/// Largest count that is written to the queue at every change. Larger counts are written after growth by one part
/// in this number.
const NOTED_COUNTS: u64 = 32;

impl JobSummary {
    /// Returns whether this progress requires a new record in the queue. `noted` is the last recorded progress.
    ///
    /// A starting coordinator reads the whole queue. So a job writes about twenty records per pass, and few
    /// records for its epochs even if they fail continually. The end of a job has a separate record.
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

    /// Returns the error in a summary read from a queue, if any.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let is_share = (0.0..=1.0).contains(&self.done);
        (!is_share).then(|| format!("expected a progress from 0 to 1, found {}", self.done))
    }
}
