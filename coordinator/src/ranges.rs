//! Tracks layers from their completion by all members to their commit, and chooses the next range to write.

use std::collections::VecDeque;
use std::time::Duration;

use exact2048_game::RunContents;
use exact2048_solution::{Commit, LayerCounts, Phase, Segment};

use crate::task::Totals;

/// Minimum size in bytes of a member's shard that justifies a file.
pub const SHARD_BYTES: u64 = 8 << 20;

/// Time after the last written range at which a range of any size is written. In the upward pass, an interruption
/// loses about this much work. In the downward pass, a range ends only in a cut (see [`Segment::may_end_at`]). So an
/// interruption also loses the work since the last cut.
pub const COMMIT_INTERVAL: Duration = Duration::from_secs(10);

/// Conditions under which a range is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangePolicy {
    /// Smallest target size of a range, in bytes.
    pub least_bytes: u64,
    /// Largest target size of a range, in bytes. While much unwritten data waits, the target grows up to this size,
    /// because fewer and larger shards are written faster. This size equals `least_bytes` if the computation waits
    /// for writes.
    pub most_bytes: u64,
    /// Time after the last written range at which any size suffices.
    pub interval: Duration,
    /// Available disk space in bytes; `None` without a limit.
    pub room_bytes: Option<u64>,
}

/// Result of a request for a range to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeOrder {
    /// Write this range.
    Range(Segment),
    /// A range is large enough, but the available disk space is too small.
    NoRoom,
    /// No range is large enough yet, or a range is being written.
    Nothing,
}

/// Finished but uncommitted layers of a segment, in the order of the pass. Only one range is written at a time, so
/// the committed layers are always a prefix of the segment.
///
/// A *position* is the number of a layer in the segment, in the order of the pass.
///
/// All times are relative to the same moment.
#[derive(Debug)]
pub struct Ranges {
    ends: RangeEnds,
    /// Number of positions that each member has finished.
    finished: Vec<u32>,
    /// Totals over the members by position, starting at `written`.
    sums: VecDeque<Sum>,
    /// Number of positions that every member has finished.
    frontier: u32,
    /// Bytes of the positions from `written` to `frontier`, including those being written.
    ready_bytes: u64,
    /// Number of written positions.
    written: u32,
    /// The range being written.
    ordered: Option<OrderedRange>,
    /// Time when the last range was written or, before that, when the segment started.
    last_written: Duration,
}

/// The positions of a segment in which a range may or should end.
#[derive(Debug)]
struct RangeEnds {
    segment: Segment,
    contents: RunContents,
    /// Minimum size at which removable reach gets separate shards; `None` if it never does.
    least_apart: Option<u64>,
}

/// A range from the first unwritten position to the position before `end`.
#[derive(Clone, Copy, Debug)]
struct OrderedRange {
    end: u32,
    bytes: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    members: usize,
    totals: Totals,
}

impl Ranges {
    /// Starts tracking a segment of `members` members, in a run with these contents.
    pub fn new(segment: Segment, contents: impl Into<RunContents>, members: usize, now: Duration) -> Self {
        Self {
            ends: RangeEnds { segment, contents: contents.into(), least_apart: None },
            finished: vec![0; members],
            sums: VecDeque::new(),
            frontier: 0,
            ready_bytes: 0,
            written: 0,
            ordered: None,
            last_written: now,
        }
    }

    /// Separates the shards of kept layers from the shards of other layers with at least `least_bytes` bytes of
    /// reach. The reason is that a shard can only be removed as a whole.
    #[must_use]
    pub fn apart(mut self, least_bytes: Option<u64>) -> Self {
        self.ends.least_apart = least_bytes;
        self
    }

    /// Returns the tracked segment.
    pub fn segment(&self) -> Segment {
        self.ends.segment
    }

    /// Returns whether all layers are written.
    pub fn is_written(&self) -> bool {
        self.written == self.segment().layers()
    }

    /// Returns the number of written layers.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// Returns the number of layers that all members have finished.
    pub fn frontier(&self) -> u32 {
        self.frontier
    }

    /// Returns the number of layers that a member has finished.
    pub fn finished(&self, member: usize) -> u32 {
        self.finished[member]
    }

    /// Returns the number of states in layers that all members have finished but not written yet.
    pub fn states_ahead(&self) -> u64 {
        self.sums.iter().take((self.frontier - self.written) as usize).map(|sum| sum.totals.states).sum()
    }

    /// Adds a member's part of its next layer. Returns the totals of the layer once the last member has finished it.
    ///
    /// # Panics
    ///
    /// If the member has already finished all layers.
    pub fn layer_done(&mut self, member: usize, totals: Totals) -> Option<Totals> {
        assert!(self.finished[member] < self.segment().layers(), "no layer is left");
        let at = (self.finished[member] - self.written) as usize;
        self.finished[member] += 1;
        if at == self.sums.len() {
            self.sums.push_back(Sum::default());
        }
        let sum = &mut self.sums[at];
        sum.members += 1;
        sum.totals += totals;
        if sum.members < self.finished.len() {
            return None;
        }
        // Each member finishes layers in order, so the layers are also completed in order.
        let totals = sum.totals;
        self.frontier += 1;
        self.ready_bytes += totals.sealed_bytes;
        Some(totals)
    }

    /// Orders the next range to be written. The range must be large enough or end the segment, unless `all` is set
    /// or the policy's interval is over. A range that exceeds the available disk space is shortened to fit.
    pub fn order(&mut self, policy: &RangePolicy, all: bool, now: Duration) -> RangeOrder {
        let layers = self.segment().layers();
        let all = all || now.saturating_sub(self.last_written) >= policy.interval;
        let worth_a_look = all
            || self.ready_bytes >= policy.least_bytes.min(self.ends.least_apart.unwrap_or(u64::MAX))
            || self.frontier == layers;
        if self.ordered.is_some() || !worth_a_look {
            return RangeOrder::Nothing;
        }
        let wanted = (self.ready_bytes / 2).clamp(policy.least_bytes, policy.most_bytes);
        let room_bytes = policy.room_bytes.unwrap_or(u64::MAX);
        let (mut end, mut fitting, mut bytes) = (None, None, 0);
        for (position, sum) in (self.written..self.frontier).zip(&self.sums) {
            bytes += sum.totals.sealed_bytes;
            if self.ends.is_allowed(position) {
                let is_worth_it = bytes >= wanted
                    || position + 1 == layers
                    || self.ends.is_apart(self.written, position, bytes);
                let here = Some((position + 1, bytes));
                if bytes > room_bytes && (is_worth_it || all) {
                    let Some(fitting) = fitting else { return RangeOrder::NoRoom };
                    end = Some(fitting);
                    break;
                }
                end = here.filter(|_| is_worth_it || all);
                if is_worth_it {
                    break;
                }
                fitting = here.filter(|_| bytes <= room_bytes).or(fitting);
            }
        }
        let Some((end, bytes)) = end else { return RangeOrder::Nothing };
        self.ordered = Some(OrderedRange { end, bytes });
        self.ordered().map_or(RangeOrder::Nothing, RangeOrder::Range)
    }

    /// Returns the range being written.
    pub fn ordered(&self) -> Option<Segment> {
        self.ordered.map(|range| self.segment().range(self.written..range.end))
    }

    /// Returns the size in bytes of the range being written, or 0.
    pub fn ordered_bytes(&self) -> u64 {
        self.ordered.map_or(0, |range| range.bytes)
    }

    /// Returns whether the finished data after the range being written fills at least `ranges` more ranges of that
    /// size. Returns false while no range is being written.
    pub fn is_behind(&self, ranges: u64, policy: &RangePolicy) -> bool {
        self.ordered.is_some_and(|range| {
            self.ready_bytes - range.bytes >= ranges * range.bytes.max(policy.least_bytes)
        })
    }

    /// Records that the ordered range is written, and returns its commit; `None` if no range was ordered.
    pub fn complete(&mut self, now: Duration) -> Option<Commit> {
        let Segment { phase, first, last } = self.ordered()?;
        let end = self.ordered.take()?.end;
        let sums = self.sums.drain(..(end - self.written) as usize).zip(self.written..);
        let (mut layers, mut whole) = (Vec::new(), Totals::default());
        for (Sum { totals, .. }, position) in sums {
            let Totals { states, afterstates, .. } = totals;
            layers.push(LayerCounts { layer: self.ends.segment.layer(position), states, afterstates });
            whole += totals;
        }
        (self.written, self.last_written) = (end, now);
        self.ready_bytes -= whole.sealed_bytes;
        Some(match phase {
            Phase::Enumerate => Commit { phase, first, last, layers, fingerprint: None },
            Phase::BackUp => {
                Commit { phase, first, last, layers: Vec::new(), fingerprint: Some(whole.fingerprint) }
            }
        })
    }
}

impl RangeEnds {
    /// Returns whether a range may end after this position.
    fn is_allowed(&self, position: u32) -> bool {
        self.segment.may_end_at(self.segment.layer(position), &self.contents)
    }

    /// Returns whether a range of `bytes` bytes from `first` on must end after this position so that kept layers get
    /// separate shards.
    fn is_apart(&self, first: u32, position: u32, bytes: u64) -> bool {
        let keeps = |position| self.contents.kept().keeps(self.segment.layer(position));
        let is_border = self.segment.phase == Phase::Enumerate && keeps(position) != keeps(position + 1);
        let Some(least_bytes) = self.least_apart.filter(|_| is_border) else { return false };
        // The range contains only kept layers, or enough bytes of the layers before kept layers.
        if keeps(position) { (first..position).all(keeps) } else { bytes >= least_bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use proptest::prelude::*;

    use super::*;
    use exact2048_game::{KeptLayers, Layer};

    const NOW: Duration = Duration::ZERO;
    const KEPT: KeptLayers = KeptLayers::TWO_IN_FOUR;

    fn segment(phase: Phase) -> Segment {
        Segment { phase, first: Layer(4), last: Layer(60) }
    }

    fn policy(least_bytes: u64) -> RangePolicy {
        RangePolicy { least_bytes, most_bytes: 8 * least_bytes, interval: COMMIT_INTERVAL, room_bytes: None }
    }

    fn layer(sealed_bytes: u64) -> Totals {
        Totals { states: 1, afterstates: 2, fingerprint: u128::MAX, sealed_bytes }
    }

    fn range(ordered: RangeOrder) -> Option<Segment> {
        match ordered {
            RangeOrder::Range(range) => Some(range),
            RangeOrder::NoRoom | RangeOrder::Nothing => None,
        }
    }

    /// Returns the range ordered after layers of 10 bytes each.
    fn ordered(phase: Phase, layers: u32, least_bytes: u64, all: bool) -> Option<RangeInclusive<u32>> {
        let mut ranges = Ranges::new(segment(phase), KEPT, 1, NOW);
        for _ in 0..layers {
            assert_eq!(ranges.layer_done(0, layer(10)), Some(layer(10)));
        }
        let ordered = range(ranges.order(&policy(least_bytes), all, NOW));
        assert_eq!(ranges.ordered(), ordered);
        assert!(
            ordered.is_none() || ranges.order(&policy(0), true, NOW) == RangeOrder::Nothing,
            "one at a time"
        );
        ordered.map(|range| range.first.0..=range.last.0)
    }

    #[test]
    fn a_range_is_ordered_once_it_is_large_enough() {
        assert_eq!(ordered(Phase::Enumerate, 2, 30, false), None);
        assert_eq!(ordered(Phase::Enumerate, 3, 30, false), Some(4..=8));
        assert_eq!(ordered(Phase::Enumerate, 2, 30, true), Some(4..=6));
        assert_eq!(ordered(Phase::Enumerate, 29, 1000, false), Some(4..=60), "the end of the segment");
    }

    /// The run keeps two layers in every eight (16 and 18, 32 and 34, 48 and 50) and the starts.
    #[test]
    fn kept_layers_have_separate_shards_if_others_are_removable() {
        let ranges_of = |least_apart, least_bytes| {
            let kept = KeptLayers::new(8, 2).unwrap();
            let mut ranges = Ranges::new(segment(Phase::Enumerate), kept, 1, NOW).apart(Some(least_apart));
            let mut ordered = Vec::new();
            for _ in 0..29 {
                ranges.layer_done(0, layer(10));
                while let RangeOrder::Range(range) = ranges.order(&policy(least_bytes), false, NOW) {
                    ordered.push((range.first.0, range.last.0));
                    assert!(ranges.complete(NOW).is_some());
                }
            }
            ordered
        };
        let apart = [(4, 8), (10, 14), (16, 18), (20, 30), (32, 34), (36, 46), (48, 50), (52, 60)];
        assert_eq!(ranges_of(25, 1000), apart);
        assert_eq!(ranges_of(50, 1000)[..3], [(4, 8), (10, 30), (32, 34)], "small ranges are not separated");
        let several = [(4, 8), (10, 14), (16, 18), (20, 24), (26, 30), (32, 34)];
        assert_eq!(ranges_of(25, 30)[..6], several, "large ranges are divided as usual");
        assert_eq!(ranges_of(500, 1000), [(4, 8), (10, 60)]);
    }

    /// Eight layers of 10 bytes each are done. In the downward pass, a range may end only in 56 or 48.
    #[test]
    fn a_range_fits_into_the_available_space() {
        let ordered = |phase, room_bytes, least_bytes, all| {
            let mut ranges = Ranges::new(segment(phase), KEPT, 1, NOW);
            for _ in 0..8 {
                ranges.layer_done(0, layer(10));
            }
            match ranges.order(&RangePolicy { room_bytes: Some(room_bytes), ..policy(least_bytes) }, all, NOW)
            {
                RangeOrder::Range(range) => Ok(range.layers()),
                nothing => Err(nothing),
            }
        };
        assert_eq!(
            [40, 39, 10].map(|room| ordered(Phase::Enumerate, room, 40, false)),
            [Ok(4), Ok(3), Ok(1)]
        );
        assert_eq!(ordered(Phase::Enumerate, 9, 40, false), Err(RangeOrder::NoRoom));
        assert_eq!(
            ordered(Phase::Enumerate, 9, 100, false),
            Err(RangeOrder::Nothing),
            "no range is large enough yet"
        );
        assert_eq!(ordered(Phase::Enumerate, 55, 100, true), Ok(5));
        assert_eq!(
            ordered(Phase::BackUp, 69, 70, false),
            Ok(3),
            "the range ends in 56, because seven layers do not fit"
        );
        assert_eq!(ordered(Phase::BackUp, 29, 70, false), Err(RangeOrder::NoRoom));
    }

    #[test]
    fn ranges_of_the_downward_pass_end_in_a_cut() {
        assert_eq!(ordered(Phase::BackUp, 2, 10, true), None);
        assert_eq!(ordered(Phase::BackUp, 3, 10, false), Some(56..=60));
        assert_eq!(ordered(Phase::BackUp, 6, 10, false), Some(56..=60));
    }

    #[test]
    fn shards_grow_while_many_layers_wait() {
        assert_eq!(ordered(Phase::Enumerate, 20, 30, false), Some(4..=22), "half of the waiting bytes");
        assert_eq!(ordered(Phase::Enumerate, 20, 10, false), Some(4..=18), "eight times the smallest size");
    }

    #[test]
    fn any_range_suffices_after_the_interval() {
        let mut ranges = Ranges::new(segment(Phase::Enumerate), KEPT, 1, NOW);
        ranges.layer_done(0, layer(1));
        assert_eq!(
            ranges.order(&policy(9), false, COMMIT_INTERVAL - Duration::from_nanos(1)),
            RangeOrder::Nothing
        );
        assert!(range(ranges.order(&policy(9), false, COMMIT_INTERVAL)).is_some());
        assert!(ranges.complete(COMMIT_INTERVAL).is_some());
        ranges.layer_done(0, layer(1));
        assert_eq!(
            ranges.order(&policy(9), false, COMMIT_INTERVAL),
            RangeOrder::Nothing,
            "the interval starts again"
        );
    }

    #[test]
    fn writing_is_behind_while_ranges_wait() {
        let mut ranges = Ranges::new(segment(Phase::Enumerate), KEPT, 1, NOW);
        let policy = RangePolicy { most_bytes: 30, ..policy(30) };
        let finish = |ranges: &mut Ranges, bytes| {
            ranges.layer_done(0, layer(bytes));
            [1, 4].map(|many| ranges.is_behind(many, &policy))
        };
        assert_eq!(finish(&mut ranges, 300), [false, false], "nothing is being written");
        assert!(range(ranges.order(&policy, false, NOW)).is_some());
        assert_eq!(finish(&mut ranges, 290), [false, false], "fewer bytes wait than are being written");
        assert_eq!(finish(&mut ranges, 10), [true, false]);
        assert_eq!(finish(&mut ranges, 900), [true, true]);
        assert!(ranges.complete(NOW).is_some());
        assert!(!ranges.is_behind(1, &policy));
    }

    #[test]
    fn a_layer_is_finished_when_all_members_have_it() {
        let mut ranges = Ranges::new(segment(Phase::Enumerate), KEPT, 2, NOW);
        assert_eq!(ranges.layer_done(1, layer(1)), None);
        assert_eq!(ranges.layer_done(1, layer(1)), None);
        assert_eq!((ranges.frontier(), ranges.finished(1)), (0, 2));
        let both = Totals { states: 2, afterstates: 4, fingerprint: u128::MAX - 1, sealed_bytes: 6 };
        assert_eq!(ranges.layer_done(0, layer(5)), Some(both));
        assert_eq!((ranges.frontier(), ranges.states_ahead()), (1, 2));
        let ordered = range(ranges.order(&policy(6), false, NOW));
        assert_eq!(ordered.map(|range| range.last), Some(Layer(4)));
    }

    proptest! {
        /// Commits contain every layer once, in order and with its counts, for any order of finishing and writing.
        #[test]
        fn commits_are_the_segment(
            up in any::<bool>(), all in any::<bool>(), members in 1usize..4, least in 1u64..200, growth in 1u64..9,
            events in prop::collection::vec((0usize..6, 0u64..50), 0..400),
        ) {
            let segment = segment(if up { Phase::Enumerate } else { Phase::BackUp });
            let kept = if all { KeptLayers::ALL } else { KEPT };
            let mut ranges = Ranges::new(segment, kept, members, NOW);
            let policy =
                RangePolicy { least_bytes: least, most_bytes: growth * least, interval: Duration::MAX, room_bytes: None };
            let mut commits: Vec<Commit> = Vec::new();
            let mut begun = 0;
            let rest = (0..29).flat_map(|_| (0..6).map(|event| (event, 1)));
            for (event, bytes) in events.into_iter().chain(rest) {
                match event {
                    member if member < members && ranges.finished(member) < segment.layers() => {
                        ranges.layer_done(member, layer(bytes));
                    }
                    4 => begun += usize::from(range(ranges.order(&policy, bytes == 0, NOW)).is_some()),
                    5 => commits.extend(ranges.complete(NOW)),
                    _ => {}
                }
            }
            while !ranges.is_written() {
                begun += usize::from(range(ranges.order(&policy, true, NOW)).is_some());
                commits.push(ranges.complete(NOW).unwrap());
            }
            prop_assert_eq!(begun, commits.len());
            let mut written = 0;
            for commit in commits {
                let Commit { phase, first, last, layers, fingerprint } = commit;
                let range = Segment { phase, first, last };
                prop_assert_eq!(range, segment.range(written..written + range.layers()));
                let end = range.layer(range.layers() - 1);
                prop_assert!(segment.may_end_at(end, &kept.into()), "{:?}", range);
                written += range.layers();
                let (states, afterstates) = (members as u64, 2 * members as u64);
                let sum = u128::from(range.layers()) * states as u128;
                if up {
                    let counts = (0..range.layers()).map(|at| LayerCounts { layer: range.layer(at), states, afterstates });
                    prop_assert_eq!((layers, fingerprint), (counts.collect::<Vec<_>>(), None));
                } else {
                    prop_assert_eq!((layers.len(), fingerprint), (0, Some(sum.wrapping_neg())));
                }
            }
            prop_assert_eq!(written, segment.layers());
        }
    }
}
