//! Progress of a job: its remaining work, its speed, and the progress that the queue knows.

use std::time::Duration;

use exact2048_game::Layer;
use exact2048_solution::Segment;

use super::plan::Plan;
use super::summary::JobSummary;
use crate::rate::{Pace, Rate};

#[derive(Debug)]
pub(super) struct Progress {
    /// The remaining work, while the job's run is open.
    pub plan: Option<Plan>,
    /// The progress as of the last record of the job's run.
    pub summary: JobSummary,
    /// The progress recorded in the queue.
    noted: JobSummary,
    /// Number of states that members finish per second.
    pub states_rate: Rate,
    /// Speed of all members together, in estimated cost per time.
    pub pace: Pace,
}

impl Progress {
    pub fn new(summary: JobSummary) -> Self {
        let (states_rate, pace) = (Rate::default(), Pace::default());
        Self { plan: None, noted: summary.clone(), summary, states_rate, pace }
    }

    /// Takes the plan of an open run.
    pub fn open(&mut self, plan: Plan) {
        self.plan = Some(plan);
        self.sum_up();
    }

    /// Drops the plan, because the run is no longer needed.
    pub fn close(&mut self) {
        self.sum_up();
        self.plan = None;
    }

    /// Returns the next segment, if the run is open and work remains.
    pub fn remaining(&self) -> Option<Segment> {
        self.plan.as_ref()?.remaining
    }

    /// Returns whether the run is open and no work remains.
    pub fn is_complete(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.remaining.is_none())
    }

    /// Counts an epoch that begins now.
    pub fn epoch_began(&mut self, now: Duration) {
        self.summary.epochs += 1;
        // Time without an epoch does not count towards the speed.
        self.states_rate.begin(now);
        self.pace.resume(now);
    }

    /// Counts the states of a member's layer. Since then, all members have finished the layers of the segment up to
    /// `frontier` instead of `before`.
    pub fn layer_done(
        &mut self,
        states: u64,
        segment: Segment,
        (before, frontier): (Layer, Layer),
        now: Duration,
    ) {
        self.states_rate.add(states as f64, now);
        if let Some(plan) = &self.plan {
            let finished = |at| plan.cost.of_finished(segment, at);
            self.pace.add(finished(frontier) - finished(before), now);
        }
    }

    /// Returns whether the queue should record the progress. If so, the progress counts as recorded.
    pub fn has_news(&mut self) -> bool {
        self.sum_up();
        let is_news = self.summary.is_news(&self.noted);
        if is_news {
            self.noted = self.summary.clone();
        }
        is_news
    }

    fn sum_up(&mut self) {
        if let Some(plan) = &self.plan {
            self.summary = plan.summary(&self.summary, 0.0, 0);
        }
    }
}
