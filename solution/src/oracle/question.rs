//! The limits and the cost of a question.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use exact2048_cone::{Limits, Progress};

use super::QueryError;

/// Whether the answer to a question is still wanted. Called for every part of the run that is read, and every few
/// thousand states of a cone.
pub type Wanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// The limits of a question, and its callbacks.
#[derive(Clone, Copy)]
pub struct QuestionLimits<'a> {
    /// Whether the answer is still wanted.
    pub wanted: Wanted<'a>,
    /// Receives the progress of cones and layers.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Most bytes of memory that a cone may take.
    pub cone_bytes: u64,
    /// The cost of the answer so far.
    pub spent: &'a CostSum,
    /// The time at which the answer is of no use any more.
    pub deadline: Option<Instant>,
}

impl<'a> QuestionLimits<'a> {
    /// Limits without a report of progress. The answer is wanted until `wanted` returns false. Each cone may take
    /// `cone_bytes` bytes.
    pub fn new(wanted: Wanted<'a>, cone_bytes: u64, spent: &'a CostSum) -> Self {
        Self { wanted, progress: &|_| (), cone_bytes, spent, deadline: None }
    }

    /// The limits of a cone.
    pub(super) fn limits(&self, bytes: u64) -> Limits<'a> {
        Limits { bytes, wanted: self.wanted, progress: self.progress }
    }

    /// Checks that the answer is still wanted.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        if (self.wanted)() { Ok(()) } else { Err(QueryError::GivenUp) }
    }
}

/// The cost of answers.
#[derive(Debug, Default)]
pub struct CostSum {
    computed: AtomicU64,
    stored: AtomicU64,
    found: AtomicU64,
}

impl CostSum {
    pub(super) fn add_computed(&self, states: u64) {
        self.computed.fetch_add(states, Ordering::Relaxed);
    }

    pub(super) fn add_stored(&self, states: u64) {
        self.stored.fetch_add(states, Ordering::Relaxed);
    }

    pub(super) fn add_found(&self, states: u64) {
        self.found.fetch_add(states, Ordering::Relaxed);
    }

    /// States whose values were computed.
    pub fn computed_states(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Stored values that were looked up.
    pub fn stored_states(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Values that were found in previously solved cones.
    pub fn found_states(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }
}
