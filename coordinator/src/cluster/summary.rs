//! Progress of a job. The queue stores it, because the run does not record retries or epochs.

use exact2048_solution::Phase;
use serde::{Deserialize, Serialize};

/// Committed progress of a job, as stored in the queue and shown while the run is not open.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JobSummary {
    /// The next pass; `None` when nothing is missing or known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// States done in that pass, or in the last one, up to symmetry.
    pub states_done: u64,
    /// Total states of that pass, if known: on the way down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_total: Option<u64>,
    /// Completed part of that pass, from 0 to 1.
    pub done: f64,
    /// Bytes of committed shards.
    pub bytes: u64,
    /// The fingerprint of a solved run.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "exact2048_solution::fingerprint_text")]
    pub fingerprint: Option<u128>,
    /// Failed epochs, under all coordinators. Older queues lack this and the following fields.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Started epochs, under all coordinators.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epochs: u64,
    /// Highest observed use of a disk limit, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peak_disk_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Part of a pass after which the progress is written to the queue again.
const NOTED_STEP: f64 = 0.05;

/// Counts up to this number are written to the queue at every change; larger ones after growth by one part in this
/// many.
const NOTED_COUNTS: u64 = 32;

impl JobSummary {
    /// Returns whether this progress deserves a record in a queue that holds `noted`.
    ///
    /// A starting coordinator reads the whole queue. So a job writes about twenty records per pass, and few for its
    /// epochs even if they fail continually. The end of a job has a separate record.
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

    /// Returns the error in a summary that was read from a queue.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let is_share = (0.0..=1.0).contains(&self.done);
        (!is_share).then(|| format!("expected a progress from 0 to 1, found {}", self.done))
    }
}
