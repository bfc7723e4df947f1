//! Detection of members that block an epoch because they have work and finish nothing.

use std::time::Duration;

use super::messages::EpochStage;

/// Time for a member to open a run. It is long because a large journal in a distant store takes minutes to read.
const PREPARING: Duration = Duration::from_secs(180);

/// Last known activity of the members of an epoch.
#[derive(Debug)]
pub(super) struct Attendance {
    members: Vec<Presence>,
    /// Time when a member last finished a layer or a shard.
    progressed: Duration,
}

/// Last known activity of a member.
#[derive(Clone, Copy, Debug)]
struct Presence {
    /// The last reported stage; `None` before the member enters the epoch.
    stage: Option<EpochStage>,
    /// Time when the member last finished something or got work.
    moved: Duration,
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

/// Remaining work of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duty {
    /// Whether the member has not written its shard of the ordered range.
    pub must_write: bool,
    /// Whether the member has work left, and no other member has finished fewer layers.
    pub is_last: bool,
}

/// Time limits of a member's steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time for entering the epoch.
    pub least: Duration,
    /// Time for finishing a layer or a shard.
    pub patience: Duration,
}

impl Attendance {
    /// Creates the records of members that get their epoch at this time.
    pub fn new(members: usize, now: Duration) -> Self {
        Self { members: vec![Presence { stage: None, moved: now }; members], progressed: now }
    }

    /// Records the stage that a member reports.
    pub fn record_stage(&mut self, member: usize, stage: EpochStage, now: Duration) {
        let presence = &mut self.members[member];
        if presence.stage.replace(stage) != Some(stage) {
            presence.moved = now;
        }
    }

    /// Records that a member has finished a layer or a shard.
    pub fn record_progress(&mut self, member: usize, now: Duration) {
        (self.members[member].moved, self.progressed) = (now, now);
    }

    /// Returns the time when a member last finished a layer or a shard.
    pub fn progressed(&self) -> Duration {
        self.progressed
    }

    /// Returns the members that block all others. If members have not started to work, all of these are returned. So
    /// many such members cost only one epoch. Otherwise only the first blocking member is returned, because the others may be
    /// waiting for it. `ordered` is the time when the range being written was ordered.
    ///
    /// A member in the stage [`EpochStage::Waiting`] without a shard to write does not block the others. If no member has
    /// written its shard of the ordered range, no member is blamed, because the store is at fault.
    pub fn blocking_members(
        &self,
        duties: &[Duty],
        ordered: Duration,
        limits: Limits,
        now: Duration,
    ) -> Vec<Culprit> {
        let Limits { least, patience } = limits;
        let none_has_written = duties.iter().all(|duty| duty.must_write);
        let wrong = |(at, (member, duty)): (usize, (&Presence, &Duty))| {
            let (limit, what) = match member.stage {
                None => (least, "has not started its share"),
                Some(EpochStage::Preparing) => (PREPARING.max(least), "has not opened the run"),
                Some(EpochStage::Working | EpochStage::Waiting) if duty.must_write && !none_has_written => {
                    (patience, "has not written its shard")
                }
                Some(EpochStage::Working) if duty.is_last => (patience, "has finished nothing"),
                Some(EpochStage::Working | EpochStage::Waiting) => return None,
            };
            let since = if duty.must_write { member.moved.max(ordered) } else { member.moved };
            let at_work = matches!(member.stage, Some(EpochStage::Working | EpochStage::Waiting));
            (now.saturating_sub(since) > limit).then_some(Culprit { member: at, what, limit, at_work })
        };
        let culprits = self.members.iter().zip(duties).enumerate().filter_map(wrong);
        let (at_work, absent): (Vec<Culprit>, Vec<Culprit>) = culprits.partition(|culprit| culprit.at_work);
        if absent.is_empty() { at_work.into_iter().take(1).collect() } else { absent }
    }
}
