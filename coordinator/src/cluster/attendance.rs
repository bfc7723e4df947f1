//! Detection of members that block an epoch because they have work and finish nothing.

use std::time::Duration;

use super::epoch::Epoch;
use super::messages::EpochStage;

/// Time for a member to open a run. It is long because a large journal in a distant store takes minutes to read.
const PREPARING: Duration = Duration::from_secs(180);

/// Last known activity of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attendance {
    /// The last reported stage; `None` before the member enters the epoch.
    stage: Option<EpochStage>,
    /// Time when the member last finished something or got work.
    moved: Duration,
}

impl Attendance {
    /// Creates the record of a member that gets the epoch at this time.
    pub fn new(now: Duration) -> Self {
        Self { stage: None, moved: now }
    }

    /// Records the stage that the member reports.
    pub fn record_stage(&mut self, stage: EpochStage, now: Duration) {
        if self.stage.replace(stage) != Some(stage) {
            self.moved = now;
        }
    }

    /// Records that the member has finished something.
    pub fn record_progress(&mut self, now: Duration) {
        self.moved = now;
    }
}

/// A member that blocks all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Culprit {
    pub member: usize,
    /// The step that the member has not completed.
    pub what: &'static str,
    /// The expired time limit of the step.
    pub limit: Duration,
    /// Whether the member was at work. Such a member may only be slow.
    pub at_work: bool,
}

impl Epoch {
    /// Returns the members that block all others. Entering the epoch may take the time `least`; finishing a layer
    /// or a shard may take `patience`. If members have not started to work, all of these are returned, so many
    /// such members cost only one epoch. Otherwise only the first blocking member is returned, because the others
    /// may be waiting for it.
    ///
    /// A member in the stage [`EpochStage::Waiting`] without a shard to write does not block the others. If no
    /// member has written its shard of the ordered range, no member is blamed, because the store is at fault.
    pub fn blocking_members(&self, least: Duration, patience: Duration, now: Duration) -> Vec<Culprit> {
        let none_has_written = (0..self.members.len()).all(|member| self.order_for(member).is_some());
        let wrong = |(at, member): (usize, &Attendance)| {
            let (limit, what) = match member.stage {
                None => (least, "has not started its share"),
                Some(EpochStage::Preparing) => (PREPARING.max(least), "has not opened the run"),
                Some(EpochStage::Working | EpochStage::Waiting)
                    if self.order_for(at).is_some() && !none_has_written =>
                {
                    (patience, "has not written its shard")
                }
                Some(EpochStage::Working) if self.is_last(at) => (patience, "has finished nothing"),
                Some(EpochStage::Working | EpochStage::Waiting) => return None,
            };
            let since =
                if self.order_for(at).is_some() { member.moved.max(self.ordered) } else { member.moved };
            let at_work = matches!(member.stage, Some(EpochStage::Working | EpochStage::Waiting));
            (now.saturating_sub(since) > limit).then_some(Culprit { member: at, what, limit, at_work })
        };
        let culprits = self.members.iter().enumerate().filter_map(wrong);
        let (at_work, absent): (Vec<Culprit>, Vec<Culprit>) = culprits.partition(|culprit| culprit.at_work);
        if absent.is_empty() { at_work.into_iter().take(1).collect() } else { absent }
    }
}
