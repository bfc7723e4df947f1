//! One epoch: what its members have finished, and which range of it is written next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use exact2048_game::Layer;
use exact2048_solution::{Commit, LayerCounts, Phase, Segment, may_end_at};

use super::attendance::Member;
use super::counts::Possible;
use super::messages::{EpochStage, LayerPart, Progress, ShardRecord, Share, WriteShard};

/// So many times larger than wanted shards may be where many layers wait to be written.
const MOST_GROWTH: u64 = 8;

/// The work of all members on one segment. Layers are numbered in the direction of the phase; the number
/// is a *position*, as in the planner.
#[derive(Debug)]
pub(super) struct Epoch {
    pub share: Arc<Share>,
    pub started: Duration,
    /// Up to when its time is in commits.
    counted: Duration,
    /// When a member last finished a layer or a shard.
    pub progressed: Duration,
    /// When what is being written was ordered.
    pub ordered: Duration,
    /// What is known of each member.
    pub members: Vec<Member>,
    /// When a range was last completed, or the epoch began.
    pub last_range: Duration,
    /// No more ranges are ordered: the epoch ends once what is ordered is committed.
    pub closing: bool,
    /// Positions that each member has finished.
    finished: Vec<u32>,
    /// Sums over the members' parts, from position `written` on.
    sums: VecDeque<LayerSum>,
    /// Positions whose shards are all written.
    written: u32,
    /// Positions that every member has finished.
    frontier: u32,
    /// Bytes in the positions from `written` to `frontier`.
    ready_bytes: u64,
    order: Option<Order>,
    /// What can be counted in each layer, ascending.
    possible: Vec<Possible>,
}

/// What is wrong with a report of a layer.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    /// The worker that makes it says what cannot be.
    Report(String),
    /// What the members say together cannot be: any of them may be wrong.
    Layer(String),
}

#[derive(Clone, Copy, Default, Debug)]
struct LayerSum {
    members: u32,
    states: u64,
    afterstates: u64,
    fingerprint: u128,
    sealed_bytes: u64,
    sent: u64,
    received: u64,
}

/// A range that members are writing.
#[derive(Debug)]
struct Order {
    /// Position after its last.
    end: u32,
    shard: WriteShard,
    records: Vec<Option<String>>,
}

/// A range whose shards are all in the store.
#[derive(Debug)]
pub(super) struct WrittenRange {
    pub commit: Commit,
    pub shards: Vec<ShardRecord>,
}

impl Epoch {
    /// An epoch that begins. `possible` is what can be counted in each layer of its segment, ascending.
    pub fn new(share: Share, possible: Vec<Possible>, now: Duration) -> Self {
        Self {
            members: vec![Member::new(now); share.members.len()],
            finished: vec![0; share.members.len()],
            share: Arc::new(share),
            started: now,
            counted: now,
            progressed: now,
            ordered: now,
            last_range: now,
            closing: false,
            sums: VecDeque::new(),
            written: 0,
            frontier: 0,
            ready_bytes: 0,
            order: None,
            possible,
        }
    }

    /// Time since the commit before this one, or since the beginning.
    pub fn took(&mut self, now: Duration) -> Duration {
        now.saturating_sub(std::mem::replace(&mut self.counted, now))
    }

    pub fn number(&self) -> u64 {
        self.share.epoch
    }

    pub fn segment(&self) -> Segment {
        self.share.segment
    }

    /// Positions of the segment.
    pub fn len(&self) -> u32 {
        (self.segment().last.0 - self.segment().first.0) / 2 + 1
    }

    /// Whether all of the segment is written.
    pub fn is_written(&self) -> bool {
        self.written == self.len()
    }

    pub fn written(&self) -> u32 {
        self.written
    }

    pub fn progress(&self) -> Progress {
        Progress { epoch: self.number(), finished_layers: self.frontier, written_layers: self.written }
    }

    /// The layer that not every member has finished yet, or the last one.
    pub fn frontier_layer(&self) -> Layer {
        self.layer(self.frontier.min(self.len() - 1))
    }

    /// Takes in how far a member says that it is with the epoch.
    pub fn says(&mut self, member: usize, stage: EpochStage, now: Duration) {
        self.members[member].says(stage, now);
    }

    /// Whether a member has work left, and no other has finished fewer layers.
    pub fn is_last(&self, member: usize) -> bool {
        self.finished[member] == self.frontier && self.frontier < self.len()
    }

    /// The layer that a member is working on.
    pub fn member_layer(&self, member: usize) -> Layer {
        self.layer(self.finished[member].min(self.len() - 1))
    }

    /// States in layers that are finished by all and not written yet.
    pub fn states_ahead(&self) -> u64 {
        self.sums.iter().take((self.frontier - self.written) as usize).map(|sum| sum.states).sum()
    }

    /// Takes in a member's part of its next layer. The last part of a layer completes it: what was taken in of it has
    /// to be what was sent, and its counts have to be possible.
    pub fn layer_done(&mut self, member: usize, part: LayerPart, now: Duration) -> Result<(), Wrong> {
        let position = self.finished[member];
        let worker = self.share.members[member].worker;
        if position >= self.len() || part.layer != self.layer(position) {
            let expected = self.member_layer(member);
            let reported = part.layer;
            return Err(Wrong::Report(format!(
                "worker {worker} reports layer {reported}, expected {expected}"
            )));
        }
        let exceeded =
            self.possible(part.layer).and_then(|p| p.exceeded(part.layer, part.states, part.afterstates));
        if let Some(reason) = exceeded {
            return Err(Wrong::Report(format!("worker {worker}: {reason}")));
        }
        self.finished[member] += 1;
        self.members[member].moves(now);
        self.progressed = now;
        let at = (position - self.written) as usize;
        if at == self.sums.len() {
            self.sums.push_back(LayerSum::default());
        }
        let sum = &mut self.sums[at];
        sum.members += 1;
        sum.states += part.states;
        sum.afterstates += part.afterstates;
        sum.fingerprint = sum.fingerprint.wrapping_add(part.fingerprint);
        sum.sealed_bytes += part.sealed_bytes;
        sum.sent = sum.sent.wrapping_add(part.sent);
        sum.received = sum.received.wrapping_add(part.received);
        let sum = *sum;
        if sum.members as usize == self.finished.len() {
            self.check_layer(part.layer, sum).map_err(Wrong::Layer)?;
        }
        while let Some(sum) = self.sums.get((self.frontier - self.written) as usize)
            && sum.members as usize == self.finished.len()
        {
            self.ready_bytes += sum.sealed_bytes;
            self.frontier += 1;
        }
        Ok(())
    }

    /// Requires that what the members say of a layer fits together.
    fn check_layer(&self, layer: Layer, sum: LayerSum) -> Result<(), String> {
        if sum.sent != sum.received {
            return Err(format!(
                "what the members took in of layer {layer} is not what was sent to them: checksums {:016x} and {:016x}",
                sum.received, sum.sent
            ));
        }
        let refused = self.possible(layer).and_then(|p| p.refuse(layer, sum.states, sum.afterstates));
        refused.map_or(Ok(()), Err)
    }

    /// What can be counted in a layer of the segment.
    fn possible(&self, layer: Layer) -> Option<&Possible> {
        self.possible.get(((layer.0 - self.segment().first.0) / 2) as usize)
    }

    /// Orders the next range to be written, if one is ready: one with at least `least_bytes`, or the end of the segment, or,
    /// where `all` is set, whatever may be published.
    pub fn order(&mut self, least_bytes: u64, all: bool, now: Duration) {
        let worth_a_look = all || self.ready_bytes >= least_bytes || self.frontier == self.len();
        if self.order.is_some() || !worth_a_look {
            return;
        }
        // Where writing has fallen behind, fewer and larger shards let it catch up.
        let wanted = least_bytes.max((self.ready_bytes / 2).min(MOST_GROWTH * least_bytes));
        let (mut end, mut bytes) = (None, 0);
        for position in self.written..self.frontier {
            bytes += self.sums[(position - self.written) as usize].sealed_bytes;
            if may_end_at(self.segment().phase, self.layer(position), self.segment()) {
                if bytes >= wanted || position + 1 == self.len() {
                    end = Some(position + 1);
                    break;
                }
                end = if all { Some(position + 1) } else { None };
            }
        }
        let Some(end) = end else { return };
        let (a, b) = (self.layer(self.written), self.layer(end - 1));
        let shard = WriteShard { epoch: self.number(), first: a.min(b), last: a.max(b) };
        self.ordered = now;
        self.order = Some(Order { end, shard, records: vec![None; self.finished.len()] });
    }

    /// What is being written.
    pub fn ordered(&self) -> Option<WriteShard> {
        self.order.as_ref().map(|order| order.shard)
    }

    pub fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// What a member still has to write.
    pub fn order_for(&self, member: usize) -> Option<WriteShard> {
        self.order.as_ref().filter(|order| order.records[member].is_none()).map(|order| order.shard)
    }

    /// Takes in that a member has written its shard of the ordered range; once all have, what is to be committed.
    /// A range that is not ordered (any more) was asked for twice, by replies that crossed: that is no mistake.
    pub fn shard_written(
        &mut self,
        member: usize,
        shard: WriteShard,
        record: String,
        now: Duration,
    ) -> Option<WrittenRange> {
        let order = self.order.as_mut().filter(|order| order.shard == shard)?;
        self.progressed = now;
        self.members[member].moves(now);
        order.records[member] = Some(record);
        if order.records.iter().any(Option::is_none) {
            return None;
        }
        let order = self.order.take()?;
        let members = self.share.members.iter();
        let shards = members.zip(order.records.into_iter().flatten());
        let shards = shards.map(|(member, record)| ShardRecord {
            worker: member.worker,
            threads: member.threads,
            record,
        });
        let shards = shards.collect();
        self.last_range = now;
        let commit = self.take_commit(order.end, order.shard);
        Some(WrittenRange { commit, shards })
    }

    /// Sums up a written range and forgets its layers.
    fn take_commit(&mut self, end: u32, range: WriteShard) -> Commit {
        let mut layers = BTreeMap::new();
        let (mut fingerprint, mut sealed_bytes) = (0u128, 0);
        for position in self.written..end {
            let Some(sum) = self.sums.pop_front() else { break };
            let layer = self.layer(position);
            let counts = LayerCounts { layer, states: sum.states, afterstates: sum.afterstates };
            layers.insert(layer, counts);
            fingerprint = fingerprint.wrapping_add(sum.fingerprint);
            sealed_bytes += sum.sealed_bytes;
        }
        self.written = end;
        self.ready_bytes -= sealed_bytes;
        let phase = self.segment().phase;
        let enumerated = phase == Phase::Enumerate;
        Commit {
            phase,
            first: range.first,
            last: range.last,
            layers: if enumerated { layers.into_values().collect() } else { Vec::new() },
            fingerprint: (!enumerated).then_some(fingerprint),
        }
    }

    fn layer(&self, position: u32) -> Layer {
        match self.segment().phase {
            Phase::Enumerate => Layer(self.segment().first.0 + 2 * position),
            Phase::BackUp => Layer(self.segment().last.0 - 2 * position),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use exact2048_game::{Objective, Params, Precision, Spawn4};

    use super::super::{JobId, Member, Secret};
    use super::*;
    use crate::cluster::WorkerId;

    fn epoch(phase: Phase) -> Epoch {
        let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let segment = Segment { phase, first: Layer(4), last: params.last_layer() };
        let member = Member { worker: WorkerId(1), threads: 1, address: String::new() };
        let (job, members) = (JobId("job".to_owned()), vec![member]);
        let secret = Secret::new([0; 16]);
        let share = Share { job, params, epoch: 1, segment, members, window_layers: 4, secret };
        let possible = Possible { most: 10, states: None };
        Epoch::new(share, vec![possible; 29], Duration::ZERO)
    }

    fn part(layer: Layer) -> LayerPart {
        LayerPart { layer, states: 1, afterstates: 1, fingerprint: 1, sealed_bytes: 10, sent: 3, received: 3 }
    }

    /// What is ordered after layers of 10 bytes each are done.
    fn ordered(phase: Phase, layers: u32, least_bytes: u64, all: bool) -> Option<RangeInclusive<u32>> {
        let mut epoch = epoch(phase);
        for position in 0..layers {
            let layer = epoch.layer(position);
            epoch.layer_done(0, part(layer), Duration::ZERO).unwrap();
        }
        epoch.order(least_bytes, all, Duration::ZERO);
        epoch.order_for(0).map(|shard| shard.first.0..=shard.last.0)
    }

    #[test]
    fn reports_that_cannot_be_are_refused() {
        let good = part(Layer(4));
        let refused = |part| epoch(Phase::Enumerate).layer_done(0, part, Duration::ZERO).unwrap_err();
        for (wrong, word) in [
            (LayerPart { states: 11, ..good }, "cannot have 11 states"),
            (LayerPart { layer: Layer(6), ..good }, "layer 6, expected 4"),
        ] {
            let found = refused(wrong);
            assert!(matches!(&found, Wrong::Report(reason) if reason.contains(word)), "{found:?}");
        }
        let sums = refused(LayerPart { received: 2, ..good });
        assert!(matches!(&sums, Wrong::Layer(reason) if reason.contains("not what was sent")), "{sums:?}");
    }

    #[test]
    fn a_range_is_ordered_when_it_is_worth_its_shards() {
        assert_eq!(ordered(Phase::Enumerate, 2, 30, false), None);
        assert_eq!(ordered(Phase::Enumerate, 3, 30, false), Some(4..=8));
        assert_eq!(ordered(Phase::Enumerate, 2, 30, true), Some(4..=6));
        assert_eq!(ordered(Phase::Enumerate, 29, 1000, false), Some(4..=60), "the end of the segment");
    }

    #[test]
    fn on_the_way_down_a_range_ends_in_a_cut() {
        assert_eq!(ordered(Phase::BackUp, 2, 10, true), None);
        assert_eq!(ordered(Phase::BackUp, 3, 10, false), Some(56..=60));
        assert_eq!(ordered(Phase::BackUp, 6, 10, false), Some(56..=60));
    }

    #[test]
    fn shards_grow_where_many_layers_wait() {
        assert_eq!(ordered(Phase::Enumerate, 20, 30, false), Some(4..=22), "half of what waits");
        assert_eq!(ordered(Phase::Enumerate, 20, 10, false), Some(4..=18), "eight times as much as wanted");
    }
}
