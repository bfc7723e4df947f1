//! One epoch: the progress of its members, and the range that they write.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::Layer;
use exact2048_solution::{Commit, Segment};

use super::attendance::{Attendance, Culprit, Duty, Limits};
use super::counts::PossibleCounts;
use super::ids::EpochId;
use super::layer_checks::LayerChecks;
use super::messages::{EpochProgress, EpochStage, LayerPart, MemberShard, Share, WriteShard};
use crate::ranges::{RangeOrder, RangePolicy, Ranges};
use crate::room;

/// The work of all members on one segment.
#[derive(Debug)]
pub(super) struct Epoch {
    pub share: Arc<Share>,
    pub started: Duration,
    /// Time when the last range was written or, before that, when the epoch started.
    counted: Duration,
    attendance: Attendance,
    /// Whether the epoch orders no further range. It then ends once the ordered range is committed.
    pub closing: bool,
    /// Number of layers that were finished when the job's cancellation was requested. These layers are ordered before
    /// the epoch closes.
    to_order: Option<u32>,
    ranges: Ranges,
    checks: LayerChecks,
    order: Order,
}

/// The order to write a range.
#[derive(Debug)]
struct Order {
    /// Time of the order.
    given: Duration,
    /// Journal records of the range's shards, by member.
    records: Vec<Option<String>>,
}

/// An invalid report of a layer.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ReportFault {
    /// The worker's own report is impossible.
    Report(String),
    /// The reports contradict each other, so any member may be wrong.
    Layer(String),
}

/// A range with all its shards in the store.
#[derive(Debug)]
pub(super) struct WrittenRange {
    pub commit: Commit,
    pub shards: Vec<MemberShard>,
}

impl Epoch {
    /// Begins an epoch. `possible` contains the possible counts of each layer of its segment, ascending.
    /// `disk_limit` is the run's disk limit.
    pub fn new(share: Share, possible: Vec<PossibleCounts>, disk_limit: Option<u64>, now: Duration) -> Self {
        let members = share.members.len();
        let ranges = Ranges::new(share.segment, *share.params.contents(), members, now);
        Self {
            attendance: Attendance::new(members, now),
            ranges: ranges.apart(room::least_apart(disk_limit)),
            checks: LayerChecks::new(share.segment.first, possible),
            order: Order { given: now, records: vec![None; members] },
            share: Arc::new(share),
            started: now,
            counted: now,
            closing: false,
            to_order: None,
        }
    }

    /// Returns the time since the last written range, or since the start of the epoch.
    pub fn took(&mut self, now: Duration) -> Duration {
        now.saturating_sub(std::mem::replace(&mut self.counted, now))
    }

    pub fn number(&self) -> EpochId {
        self.share.epoch
    }

    pub fn segment(&self) -> Segment {
        self.share.segment
    }

    /// Returns the number of layers of the segment.
    pub fn len(&self) -> u32 {
        self.segment().layers()
    }

    /// Returns whether the whole segment is written.
    pub fn is_written(&self) -> bool {
        self.ranges.is_written()
    }

    pub fn written(&self) -> u32 {
        self.ranges.written()
    }

    pub fn progress(&self) -> EpochProgress {
        let (finished_layers, written_layers) = (self.ranges.frontier(), self.ranges.written());
        EpochProgress { epoch: self.number(), finished_layers, written_layers }
    }

    /// Returns the first layer that some member has not finished, or the last layer.
    pub fn frontier_layer(&self) -> Layer {
        self.segment().layer(self.ranges.frontier().min(self.len() - 1))
    }

    /// Records the stage that a member reports.
    pub fn record_stage(&mut self, member: usize, stage: EpochStage, now: Duration) {
        self.attendance.record_stage(member, stage, now);
    }

    /// Returns the members that block all others.
    pub fn blocking_members(&self, limits: Limits, now: Duration) -> Vec<Culprit> {
        let duty = |at| Duty { must_write: self.order_for(at).is_some(), is_last: self.is_last(at) };
        let duties: Vec<Duty> = (0..self.share.members.len()).map(duty).collect();
        self.attendance.blocking_members(&duties, self.order.given, limits, now)
    }

    /// Returns the time when a member last finished a layer or a shard.
    pub fn progressed(&self) -> Duration {
        self.attendance.progressed()
    }

    /// Returns whether a member has work left and no other member has finished fewer layers.
    fn is_last(&self, member: usize) -> bool {
        let frontier = self.ranges.frontier();
        self.ranges.finished(member) == frontier && frontier < self.len()
    }

    /// Returns the layer that a member is working on.
    pub fn member_layer(&self, member: usize) -> Layer {
        self.segment().layer(self.ranges.finished(member).min(self.len() - 1))
    }

    /// Returns the number of states in layers that all members have finished but not written yet.
    pub fn states_ahead(&self) -> u64 {
        self.ranges.states_ahead()
    }

    /// Adds a member's part of its next layer. The last part completes the layer. Then the received blocks must
    /// equal the sent blocks, and the counts must be possible.
    pub fn layer_done(&mut self, member: usize, part: LayerPart, now: Duration) -> Result<(), ReportFault> {
        let LayerPart { layer, totals, .. } = part;
        let position = self.ranges.finished(member);
        let worker = self.share.members[member].worker;
        if position >= self.len() || layer != self.segment().layer(position) {
            let expected = self.member_layer(member);
            return Err(ReportFault::Report(format!(
                "worker {worker}: expected layer {expected}, found {layer}"
            )));
        }
        if let Some(reason) = self.checks.exceeded(&part) {
            return Err(ReportFault::Report(format!("worker {worker}: {reason}")));
        }
        self.attendance.record_progress(member, now);
        self.checks.add((position - self.ranges.frontier()) as usize, &part);
        let Some(totals) = self.ranges.layer_done(member, totals) else { return Ok(()) };
        self.checks.complete(layer, totals).map_err(ReportFault::Layer)
    }

    /// Orders the next range to be written if a range is large enough or `all` is set.
    pub fn order(&mut self, policy: &RangePolicy, all: bool, now: Duration) -> RangeOrder {
        let ordered = self.ranges.order(policy, all, now);
        if let RangeOrder::Range(_) = ordered {
            self.order.given = now;
            self.order.records.fill(None);
        }
        ordered
    }

    /// Returns an upper bound on the bytes that members may leave without a commit if the epoch ends now.
    pub fn stray_bytes(&self) -> u64 {
        let beside_bytes = self.share.files() * room::BESIDE_FRAMES;
        if self.has_order() { self.ranges.ordered_bytes() + beside_bytes } else { 0 }
    }

    /// Orders the layers that were finished at the first call, and then closes the epoch. Leaves out layers at the end
    /// if no range may end in them, or if the disk limit leaves no space. Layers finished later are not written.
    pub fn order_last(&mut self, policy: &RangePolicy, now: Duration) {
        let to_order = *self.to_order.get_or_insert(self.ranges.frontier());
        self.order(policy, true, now);
        let ordered = self.ranges.ordered().map_or(0, |range| self.ranges.written() + range.layers());
        self.closing = !self.has_order() || ordered >= to_order;
    }

    /// Returns the order for the range being written.
    pub fn ordered(&self) -> Option<WriteShard> {
        let range = self.ranges.ordered()?;
        Some(WriteShard { epoch: self.number(), first: range.first, last: range.last })
    }

    pub fn has_order(&self) -> bool {
        self.ranges.ordered().is_some()
    }

    /// Returns the order that a member has not carried out yet.
    pub fn order_for(&self, member: usize) -> Option<WriteShard> {
        self.ordered().filter(|_| self.order.records[member].is_none())
    }

    /// Records that a member has written its shard of the ordered range. Returns the commit once all members have
    /// written theirs. Reports about another range are ignored, because they follow from repeated orders in late
    /// replies.
    pub fn shard_written(
        &mut self,
        member: usize,
        shard: WriteShard,
        record: String,
        now: Duration,
    ) -> Option<WrittenRange> {
        if self.ordered() != Some(shard) {
            return None;
        }
        self.attendance.record_progress(member, now);
        self.order.records[member] = Some(record);
        if self.order.records.iter().any(Option::is_none) {
            return None;
        }
        let commit = self.ranges.complete(now)?;
        let members = self.share.members.iter();
        let shards = members.zip(self.order.records.iter_mut().filter_map(Option::take));
        let shards = shards.map(|(member, record)| MemberShard {
            worker: member.worker,
            threads: member.threads,
            record,
        });
        Some(WrittenRange { commit, shards: shards.collect() })
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::Params;
    use exact2048_solution::Phase;

    use super::*;
    use crate::cluster::{EpochMember, JobId, Secret, WorkerId};
    use crate::task::Totals;

    fn epoch() -> Epoch {
        let params = Params::small("2x2");
        let segment = Segment { phase: Phase::Enumerate, first: Layer(4), last: params.last_layer() };
        let member = EpochMember { worker: WorkerId(1), threads: 1, address: String::new() };
        let (job, members) = (JobId("job".to_owned()), vec![member]);
        let secret = Secret::new([0; 16]);
        let share = Share { job, params, epoch: EpochId(1), segment, members, window_layers: 4, secret };
        let possible = PossibleCounts { most: 10, states: None, afterstates: None };
        Epoch::new(share, vec![possible; 29], None, Duration::ZERO)
    }

    #[test]
    fn impossible_reports_are_refused() {
        let totals = Totals { states: 1, afterstates: 1, fingerprint: 1, sealed_bytes: 10 };
        let good = LayerPart { layer: Layer(4), totals, sent: 3, received: 3 };
        let refused = |part| epoch().layer_done(0, part, Duration::ZERO).unwrap_err();
        for (wrong, word) in [
            (
                LayerPart { totals: Totals { states: 11, ..totals }, ..good },
                "at most 10 states in layer 4, found 11",
            ),
            (LayerPart { layer: Layer(6), ..good }, "expected layer 4, found 6"),
        ] {
            let found = refused(wrong);
            assert!(matches!(&found, ReportFault::Report(reason) if reason.contains(word)), "{found:?}");
        }
        let sums = refused(LayerPart { received: 2, ..good });
        assert!(matches!(&sums, ReportFault::Layer(reason) if reason.contains("that were sent")), "{sums:?}");
    }
}
