//! One epoch: what its members have finished, and what they are told to write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use exact2048_game::Layer;
use exact2048_solution::{Commit, Segment};

use super::attendance::Attendance;
use super::counts::Possible;
use super::ids::EpochId;
use super::messages::{EpochProgress, EpochStage, LayerPart, MemberShard, Share, WriteShard};
use crate::ranges::{Ordered, Ranges, Worth};
use crate::room;
use crate::task::Totals;

/// The work of all members on one segment.
#[derive(Debug)]
pub(super) struct Epoch {
    pub share: Arc<Share>,
    pub started: Duration,
    /// Up to when the epoch's time is counted in what its commits took.
    counted: Duration,
    /// When a member last finished a layer or a shard.
    pub progressed: Duration,
    /// When what is being written was ordered.
    pub ordered: Duration,
    /// What is known of each member.
    pub members: Vec<Attendance>,
    /// No more ranges are ordered: the epoch ends once what is ordered is committed.
    pub closing: bool,
    /// How many layers were finished when it was asked to end: they are ordered before it closes.
    to_order: Option<u32>,
    ranges: Ranges,
    /// What members say that they sent each other and took in, layer by layer, from the first that not all have
    /// finished on.
    exchanged: VecDeque<Exchanged>,
    /// What the journal is to say of the shards of the ordered range.
    records: Vec<Option<String>>,
    /// Which counts are possible in each layer, ascending.
    possible: Vec<Possible>,
}

/// What is wrong with a report of a layer.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    /// Its worker is wrong: it says what cannot be.
    Report(String),
    /// What the members say together cannot be: any of them may be wrong.
    Layer(String),
}

/// Sums over the members of [`LayerPart::sent`] and [`LayerPart::received`].
#[derive(Clone, Copy, Default, Debug)]
struct Exchanged {
    sent: u64,
    received: u64,
}

/// A range whose shards are all in the store.
#[derive(Debug)]
pub(super) struct WrittenRange {
    pub commit: Commit,
    pub shards: Vec<MemberShard>,
}

impl Epoch {
    /// An epoch that begins. `possible` says which counts are possible in each layer of its segment, ascending, and
    /// `disk_limit` how much its run may take of the disk.
    pub fn new(share: Share, possible: Vec<Possible>, disk_limit: Option<u64>, now: Duration) -> Self {
        let ranges = Ranges::new(share.segment, share.params.kept, share.members.len(), now);
        Self {
            members: vec![Attendance::new(now); share.members.len()],
            ranges: ranges.apart(room::least_apart(disk_limit)),
            records: vec![None; share.members.len()],
            share: Arc::new(share),
            started: now,
            counted: now,
            progressed: now,
            ordered: now,
            closing: false,
            to_order: None,
            exchanged: VecDeque::new(),
            possible,
        }
    }

    /// The time that the commit which is made now took: since the one before it, or since the beginning.
    pub fn took(&mut self, now: Duration) -> Duration {
        now.saturating_sub(std::mem::replace(&mut self.counted, now))
    }

    pub fn number(&self) -> EpochId {
        self.share.epoch
    }

    pub fn segment(&self) -> Segment {
        self.share.segment
    }

    /// Layers of the segment.
    pub fn len(&self) -> u32 {
        self.segment().layers()
    }

    /// Whether all of the segment is written.
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

    /// The layer that not every member has finished yet, or the last one.
    pub fn frontier_layer(&self) -> Layer {
        self.segment().layer(self.ranges.frontier().min(self.len() - 1))
    }

    /// Takes note of the stage that a member reports.
    pub fn says(&mut self, member: usize, stage: EpochStage, now: Duration) {
        self.members[member].says(stage, now);
    }

    /// Whether a member has work left, and no other has finished fewer layers.
    pub fn is_last(&self, member: usize) -> bool {
        let frontier = self.ranges.frontier();
        self.ranges.finished(member) == frontier && frontier < self.len()
    }

    /// The layer that a member is working on.
    pub fn member_layer(&self, member: usize) -> Layer {
        self.segment().layer(self.ranges.finished(member).min(self.len() - 1))
    }

    /// States in layers that are finished by all and not written yet.
    pub fn states_ahead(&self) -> u64 {
        self.ranges.states_ahead()
    }

    /// Adds a member's part of its next layer. The last member's part completes the layer: then what members took in of
    /// it has to be what was sent, and its counts have to be possible.
    pub fn layer_done(&mut self, member: usize, part: LayerPart, now: Duration) -> Result<(), Wrong> {
        let LayerPart { layer, totals, sent, received } = part;
        let position = self.ranges.finished(member);
        let worker = self.share.members[member].worker;
        if position >= self.len() || layer != self.segment().layer(position) {
            let expected = self.member_layer(member);
            return Err(Wrong::Report(format!("worker {worker} reports layer {layer}, expected {expected}")));
        }
        if let Some(reason) = self.possible(layer).and_then(|possible| possible.exceeded(layer, totals)) {
            return Err(Wrong::Report(format!("worker {worker}: {reason}")));
        }
        self.members[member].moves(now);
        self.progressed = now;
        let at = (position - self.ranges.frontier()) as usize;
        if at == self.exchanged.len() {
            self.exchanged.push_back(Exchanged::default());
        }
        let sum = &mut self.exchanged[at];
        sum.sent = sum.sent.wrapping_add(sent);
        sum.received = sum.received.wrapping_add(received);
        let Some(totals) = self.ranges.layer_done(member, totals) else { return Ok(()) };
        let exchanged = self.exchanged.pop_front().unwrap_or_default();
        self.check_layer(layer, totals, exchanged).map_err(Wrong::Layer)
    }

    /// Requires that what the members say of a layer fits together.
    fn check_layer(&self, layer: Layer, totals: Totals, exchanged: Exchanged) -> Result<(), String> {
        let Exchanged { sent, received } = exchanged;
        if sent != received {
            return Err(format!(
                "what the members took in of layer {layer} is not what was sent to them: checksums {received:016x} and \
                 {sent:016x}"
            ));
        }
        let refused = self.possible(layer).and_then(|possible| possible.refuse(layer, totals));
        refused.map_or(Ok(()), Err)
    }

    /// Which counts are possible in a layer of the segment.
    fn possible(&self, layer: Layer) -> Option<&Possible> {
        self.possible.get((layer.number() - self.segment().first.number()) as usize)
    }

    /// Orders the next range to be written, if one is worth it, or `all` is set.
    pub fn order(&mut self, worth: &Worth, all: bool, now: Duration) -> Ordered {
        let ordered = self.ranges.order(worth, all, now);
        if let Ordered::Range(_) = ordered {
            self.ordered = now;
            self.records.fill(None);
        }
        ordered
    }

    /// What the range that is being written takes at most, without what is beside the frames of its shards.
    pub fn ordered_bytes(&self) -> Option<u64> {
        self.has_order().then(|| self.ranges.ordered_bytes())
    }

    /// Orders what was finished when this was first called, where a range may end there and there is room, and closes after
    /// that: what members finish meanwhile is not waited for.
    pub fn order_last(&mut self, worth: &Worth, now: Duration) {
        let to_order = *self.to_order.get_or_insert(self.ranges.frontier());
        self.order(worth, true, now);
        let ordered = self.ranges.ordered().map_or(0, |range| self.ranges.written() + range.layers());
        self.closing = !self.has_order() || ordered >= to_order;
    }

    /// What is being written.
    pub fn ordered(&self) -> Option<WriteShard> {
        let range = self.ranges.ordered()?;
        Some(WriteShard { epoch: self.number(), first: range.first, last: range.last })
    }

    pub fn has_order(&self) -> bool {
        self.ranges.ordered().is_some()
    }

    /// What a member still has to write.
    pub fn order_for(&self, member: usize) -> Option<WriteShard> {
        self.ordered().filter(|_| self.records[member].is_none())
    }

    /// Notes that a member has written its shard of the ordered range. Once all have, returns what is to be committed.
    /// A range that is not ordered (any more) was asked for twice, by replies that crossed: that is no mistake.
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
        self.progressed = now;
        self.members[member].moves(now);
        self.records[member] = Some(record);
        if self.records.iter().any(Option::is_none) {
            return None;
        }
        let commit = self.ranges.complete(now)?;
        let members = self.share.members.iter();
        let shards = members.zip(self.records.iter_mut().filter_map(Option::take));
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
    use exact2048_game::{Objective, Params, Precision, Spawn4};
    use exact2048_solution::Phase;

    use super::super::{EpochMember, JobId, Secret};
    use super::*;
    use crate::cluster::WorkerId;

    fn epoch() -> Epoch {
        let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let segment = Segment { phase: Phase::Enumerate, first: Layer(4), last: params.last_layer() };
        let member = EpochMember { worker: WorkerId(1), threads: 1, address: String::new() };
        let (job, members) = (JobId("job".to_owned()), vec![member]);
        let secret = Secret::new([0; 16]);
        let share = Share { job, params, epoch: EpochId(1), segment, members, window_layers: 4, secret };
        let possible = Possible { most: 10, states: None, afterstates: None };
        Epoch::new(share, vec![possible; 29], None, Duration::ZERO)
    }

    #[test]
    fn reports_that_cannot_be_are_refused() {
        let totals = Totals { states: 1, afterstates: 1, fingerprint: 1, sealed_bytes: 10 };
        let good = LayerPart { layer: Layer(4), totals, sent: 3, received: 3 };
        let refused = |part| epoch().layer_done(0, part, Duration::ZERO).unwrap_err();
        for (wrong, word) in [
            (LayerPart { totals: Totals { states: 11, ..totals }, ..good }, "cannot have 11 states"),
            (LayerPart { layer: Layer(6), ..good }, "layer 6, expected 4"),
        ] {
            let found = refused(wrong);
            assert!(matches!(&found, Wrong::Report(reason) if reason.contains(word)), "{found:?}");
        }
        let sums = refused(LayerPart { received: 2, ..good });
        assert!(matches!(&sums, Wrong::Layer(reason) if reason.contains("not what was sent")), "{sums:?}");
    }
}
