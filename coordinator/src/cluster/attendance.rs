//! Which members hold an epoch up: those that have something to do, and finish nothing.

use std::time::Duration;

use super::epoch::Epoch;
use super::messages::EpochStage;

/// For how long a member may open a run: a large journal in a distant store takes minutes.
const PREPARING: Duration = Duration::from_secs(180);

/// What is known of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attendance {
    /// The stage that it reported last; `None` while it has not taken up the epoch.
    stage: Option<EpochStage>,
    /// When it last finished something, or came to have something to do.
    moved: Duration,
}

impl Attendance {
    /// A member that was given the epoch at this time.
    pub fn new(now: Duration) -> Self {
        Self { stage: None, moved: now }
    }

    /// Takes note of the stage that the member reports.
    pub fn says(&mut self, stage: EpochStage, now: Duration) {
        if self.stage.replace(stage) != Some(stage) {
            self.moved = now;
        }
    }

    /// It has finished something.
    pub fn moves(&mut self, now: Duration) {
        self.moved = now;
    }
}

/// A member that holds all others up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Culprit {
    pub member: usize,
    /// What it has not done.
    pub what: &'static str,
    /// The time that it had for this, and that is over.
    pub limit: Duration,
    /// Whether it has come to work: then it may be no more than slow.
    pub at_work: bool,
}

impl Epoch {
    /// The members that hold all others up. Taking up a share may take `least`, and computing or writing something
    /// `patience`. They are all that have not come to work, so that a crowd of them costs one epoch; else the first of
    /// those at work, as the others may wait for it.
    ///
    /// A member that has no shard to write and whose stage is [`EpochStage::Waiting`] is none of them: the one that it
    /// waits for is. Where no member has written its shard of what was ordered, none is blamed for that: then it is the
    /// store that takes nothing.
    pub fn held_up_by(&self, least: Duration, patience: Duration, now: Duration) -> Vec<Culprit> {
        let nobody_writes = (0..self.members.len()).all(|member| self.order_for(member).is_some());
        let wrong = |(at, member): (usize, &Attendance)| {
            let (limit, what) = match member.stage {
                None => (least, "has not taken up its share"),
                Some(EpochStage::Preparing) => (PREPARING.max(least), "has not opened the run"),
                Some(EpochStage::Working | EpochStage::Waiting)
                    if self.order_for(at).is_some() && !nobody_writes =>
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
