//! The remaining work of a job.

use std::sync::Arc;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, Holdings, LayerRange, Phase, Recipe, Segment, fingerprint_of};
use rustc_hash::FxHashMap;

use super::summary::JobSummary;
use crate::pass_cost::{PassCost, RemainingCost};
use crate::workload::Workload;

/// Remaining work of a job with an open run.
#[derive(Debug)]
pub(super) struct Plan {
    params: Params,
    pub holdings: Holdings,
    pub workload: Arc<Workload>,
    pub cost: Arc<PassCost>,
    /// The next segment, regardless of pending commits.
    pub remaining: Option<Segment>,
    /// Fingerprint of the values, once all are committed.
    pub fingerprint: Option<u128>,
    /// Number of states in the committed layers of the upward pass.
    enumerated: u64,
    /// Number of those states with committed values.
    backed_up: u64,
    /// Cost of the uncommitted work.
    pub left: RemainingCost,
}

impl Plan {
    pub fn new(params: Params, holdings: Holdings, workload: Arc<Workload>, cost: Arc<PassCost>) -> Self {
        let mut plan = Self {
            params,
            holdings,
            workload,
            cost,
            remaining: None,
            fingerprint: None,
            enumerated: 0,
            backed_up: 0,
            left: RemainingCost::default(),
        };
        plan.renew();
        plan
    }

    /// Recomputes all data that follows from the commits. Cost: linear in the number of committed layers.
    fn renew(&mut self) {
        let missing = self.recipe().steps();
        self.remaining = missing.first().copied();
        self.left = self.cost.left(&missing);
        let counts = self.holdings.counts().into_values();
        let states: FxHashMap<Layer, u64> = counts.map(|counts| (counts.layer, counts.states)).collect();
        self.enumerated = states.values().sum();
        let downward = self.holdings.commits().filter(|commit| commit.phase == Phase::BackUp);
        let layers = downward.flat_map(|commit| commit.first.to(commit.last));
        self.backed_up = layers.filter_map(|layer| states.get(&layer)).sum();
        let is_solved = !self.params.contents().enumerates_only() && self.remaining.is_none();
        self.fingerprint = is_solved.then(|| fingerprint_of(self.holdings.commits()));
    }

    /// Returns the recipe for the missing work.
    pub fn recipe(&self) -> Recipe<'_> {
        Recipe::new(&self.params, &self.holdings)
    }

    /// Adds a commit that is now in the journal.
    pub fn add(&mut self, commit: Commit) {
        self.holdings.add(commit, self.params.contents());
        self.renew();
    }

    /// Records that the reach of these ranges is no longer stored.
    pub fn remove(&mut self, removed: &[LayerRange]) {
        self.holdings.remove(removed);
        self.renew();
    }

    /// Removes and returns the commits that satisfy `hit`.
    pub fn take(&mut self, hit: impl Fn(&Commit) -> bool) -> Vec<Commit> {
        let taken = self.holdings.take(hit);
        self.renew();
        taken
    }

    /// Returns the current or last pass.
    fn phase(&self) -> Phase {
        let last = if self.params.contents().enumerates_only() { Phase::Enumerate } else { Phase::BackUp };
        self.remaining.map_or(last, |segment| segment.phase)
    }

    /// Returns the job's progress. `work_ahead` and `states_ahead` count finished but uncommitted work. Fields
    /// that do not follow from the plan are copied from `known`.
    pub fn summary(&self, known: &JobSummary, work_ahead: f64, states_ahead: u64) -> JobSummary {
        let (left, whole) = self.work_left(work_ahead);
        let (states, total) = match self.phase() {
            Phase::Enumerate => (self.enumerated, None),
            Phase::BackUp => (self.backed_up, Some(self.enumerated)),
        };
        JobSummary {
            phase: self.remaining.map(|segment| segment.phase),
            states_done: states + states_ahead,
            states_total: total,
            done: if whole > 0.0 { (1.0 - left / whole).clamp(0.0, 1.0) } else { 1.0 },
            fingerprint: self.fingerprint,
            ..known.clone()
        }
    }

    /// Returns the remaining cost of the pass and the cost of the whole pass. `work_ahead` is the cost of finished
    /// but uncommitted work.
    pub fn work_left(&self, work_ahead: f64) -> (f64, f64) {
        ((self.left.of_pass - work_ahead).max(0.0), self.left.whole_pass)
    }
}
