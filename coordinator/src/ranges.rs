//! Keeps count of the layers that all members have finished until they are committed, and decides which range of them
//! is written next.

use std::collections::VecDeque;
use std::time::Duration;

use exact2048_game::KeptLayers;
use exact2048_solution::{Commit, LayerCounts, Phase, Segment};

use crate::task::Totals;

/// Bytes of a member's shard from which on it is worth a file of its own.
pub const SHARD_BYTES: u64 = 8 << 20;

/// What is finished is committed at least this often, however little it is, wherever a range may end. Upward an interruption
/// costs no more than this; on the way down what was done since the last cut, see [`Segment::may_end_at`].
pub const COMMIT_INTERVAL: Duration = Duration::from_secs(10);

/// When a range is worth writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worth {
    /// From this many bytes on.
    pub least_bytes: u64,
    /// Where much waits to be written, ranges grow up to this many bytes: fewer and larger shards are written faster.
    /// The same as `least_bytes` where computing waits for the writing.
    pub most_bytes: u64,
    /// After this long without a written range, however few bytes there are.
    pub interval: Duration,
    /// The most that there is room for; `None` where there is no limit.
    pub room_bytes: Option<u64>,
}

/// What comes of asking for a range to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordered {
    /// This one is to be written.
    Range(Segment),
    /// One would be worth it, but there is no room for any.
    NoRoom,
    /// None is worth it yet, or one is being written.
    Nothing,
}

/// The layers of a segment that are finished and not committed yet, in the order of the pass. One range at a time is
/// being written; what is committed is always a prefix of the segment.
///
/// All times are since the same moment.
#[derive(Debug)]
pub struct Ranges {
    segment: Segment,
    kept: KeptLayers,
    /// From this many bytes on, reach that may be removed one day gets shards of its own; `None` where it never does.
    least_apart: Option<u64>,
    /// Positions that each member has finished.
    finished: Vec<u32>,
    /// Sums over the members, from position `written` on.
    sums: VecDeque<Sum>,
    /// Positions that every member has finished.
    frontier: u32,
    /// Bytes in the positions from `written` to `frontier`, and those of them that are being written.
    ready_bytes: u64,
    ordered_bytes: u64,
    /// Positions that are written.
    written: u32,
    /// Position after the last one that is being written.
    ordered: Option<u32>,
    /// When the last range was written; before that, when the segment began.
    last_written: Duration,
}

#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    members: usize,
    totals: Totals,
}

impl Ranges {
    /// The ranges of a segment that `members` members begin, in a run that keeps the layers of `kept`.
    pub fn new(segment: Segment, kept: KeptLayers, members: usize, now: Duration) -> Self {
        Self {
            segment,
            kept,
            least_apart: None,
            finished: vec![0; members],
            sums: VecDeque::new(),
            frontier: 0,
            ready_bytes: 0,
            ordered_bytes: 0,
            written: 0,
            ordered: None,
            last_written: now,
        }
    }

    /// Has the reach of kept layers written to other shards than that of the layers between them, where the latter has
    /// at least `least_bytes` bytes: a shard can only be removed as a whole.
    #[must_use]
    pub fn apart(self, least_bytes: Option<u64>) -> Self {
        Self { least_apart: least_bytes, ..self }
    }

    /// The segment.
    pub fn segment(&self) -> Segment {
        self.segment
    }

    /// Whether all of it is written.
    pub fn is_written(&self) -> bool {
        self.written == self.segment.layers()
    }

    /// How many layers are written.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// How many layers all members have finished.
    pub fn frontier(&self) -> u32 {
        self.frontier
    }

    /// How many layers a member has finished.
    pub fn finished(&self, member: usize) -> u32 {
        self.finished[member]
    }

    /// States in layers that are finished by all and not written yet.
    pub fn states_ahead(&self) -> u64 {
        self.sums.iter().take((self.frontier - self.written) as usize).map(|sum| sum.totals.states).sum()
    }

    /// Adds a member's part of its next layer. Returns what the whole layer comes to when the last member has finished
    /// it.
    ///
    /// # Panics
    ///
    /// Where the member has finished all layers already.
    pub fn layer_done(&mut self, member: usize, totals: Totals) -> Option<Totals> {
        assert!(self.finished[member] < self.segment.layers(), "no layer is left");
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
        // Each member finishes layers in order: so do all together.
        let totals = sum.totals;
        self.frontier += 1;
        self.ready_bytes += totals.sealed_bytes;
        Some(totals)
    }

    /// Orders the next range to be written: one that is worth it, or that ends the segment; with `all` set, any range
    /// will do. Where there is no room for all of it, what there is room for.
    pub fn order(&mut self, worth: &Worth, all: bool, now: Duration) -> Ordered {
        let layers = self.segment.layers();
        let all = all || now.saturating_sub(self.last_written) >= worth.interval;
        let worth_a_look = all
            || self.ready_bytes >= worth.least_bytes.min(self.least_apart.unwrap_or(u64::MAX))
            || self.frontier == layers;
        if self.ordered.is_some() || !worth_a_look {
            return Ordered::Nothing;
        }
        let wanted = (self.ready_bytes / 2).clamp(worth.least_bytes, worth.most_bytes);
        let room_bytes = worth.room_bytes.unwrap_or(u64::MAX);
        let (mut end, mut fitting, mut bytes) = (None, None, 0);
        for (position, sum) in (self.written..self.frontier).zip(&self.sums) {
            bytes += sum.totals.sealed_bytes;
            if self.segment.may_end_at(self.segment.layer(position), self.kept) {
                let is_worth_it =
                    bytes >= wanted || position + 1 == layers || self.ends_apart(position, bytes);
                let here = Some((position + 1, bytes));
                if bytes > room_bytes && (is_worth_it || all) {
                    let Some(fitting) = fitting else { return Ordered::NoRoom };
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
        let Some((end, bytes)) = end else { return Ordered::Nothing };
        (self.ordered, self.ordered_bytes) = (Some(end), bytes);
        self.ordered().map_or(Ordered::Nothing, Ordered::Range)
    }

    /// Whether a range of `bytes` bytes is to end after this position, so that kept layers get other shards than the
    /// rest.
    fn ends_apart(&self, position: u32, bytes: u64) -> bool {
        let keeps = |position| self.kept.keeps(self.segment.layer(position));
        let is_border = self.segment.phase == Phase::Enumerate && keeps(position) != keeps(position + 1);
        let Some(least_bytes) = self.least_apart.filter(|_| is_border) else { return false };
        // Either what comes before kept layers, or nothing but kept layers.
        if keeps(position) { (self.written..position).all(keeps) } else { bytes >= least_bytes }
    }

    /// The range that is being written.
    pub fn ordered(&self) -> Option<Segment> {
        self.ordered.map(|end| self.segment.range(self.written..end))
    }

    /// Bytes of the range that is being written; 0 where there is none.
    pub fn ordered_bytes(&self) -> u64 {
        self.ordered_bytes
    }

    /// Whether at least `ranges` more ranges, each of about the size of the one that is being written, wait for it.
    /// Never while none is being written: then there is nothing to wait for.
    pub fn is_behind(&self, ranges: u64, worth: &Worth) -> bool {
        let range_bytes = self.ordered_bytes.max(worth.least_bytes);
        self.ordered.is_some() && self.ready_bytes - self.ordered_bytes >= ranges * range_bytes
    }

    /// Notes that the ordered range is written, and returns what is to be committed; `None` if none was ordered.
    pub fn complete(&mut self, now: Duration) -> Option<Commit> {
        let Segment { phase, first, last } = self.ordered()?;
        let end = self.ordered.take()?;
        let sums = self.sums.drain(..(end - self.written) as usize).zip(self.written..);
        let (mut layers, mut whole) = (Vec::new(), Totals::default());
        for (Sum { totals, .. }, position) in sums {
            let Totals { states, afterstates, .. } = totals;
            layers.push(LayerCounts { layer: self.segment.layer(position), states, afterstates });
            whole += totals;
        }
        (self.written, self.last_written) = (end, now);
        self.ready_bytes -= whole.sealed_bytes;
        self.ordered_bytes = 0;
        Some(match phase {
            Phase::Enumerate => Commit { phase, first, last, layers, fingerprint: None },
            Phase::BackUp => {
                Commit { phase, first, last, layers: Vec::new(), fingerprint: Some(whole.fingerprint) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use proptest::prelude::*;

    use super::*;
    use exact2048_game::Layer;

    const NOW: Duration = Duration::ZERO;
    const KEPT: KeptLayers = KeptLayers::TWO_IN_FOUR;

    fn segment(phase: Phase) -> Segment {
        Segment { phase, first: Layer(4), last: Layer(60) }
    }

    fn worth(least_bytes: u64) -> Worth {
        Worth { least_bytes, most_bytes: 8 * least_bytes, interval: COMMIT_INTERVAL, room_bytes: None }
    }

    fn layer(sealed_bytes: u64) -> Totals {
        Totals { states: 1, afterstates: 2, fingerprint: u128::MAX, sealed_bytes }
    }

    fn range(ordered: Ordered) -> Option<Segment> {
        match ordered {
            Ordered::Range(range) => Some(range),
            Ordered::NoRoom | Ordered::Nothing => None,
        }
    }

    /// What is ordered after layers of 10 bytes each are done.
    fn ordered(phase: Phase, layers: u32, least_bytes: u64, all: bool) -> Option<RangeInclusive<u32>> {
        let mut ranges = Ranges::new(segment(phase), KEPT, 1, NOW);
        for _ in 0..layers {
            assert_eq!(ranges.layer_done(0, layer(10)), Some(layer(10)));
        }
        let ordered = range(ranges.order(&worth(least_bytes), all, NOW));
        assert_eq!(ranges.ordered(), ordered);
        assert!(ordered.is_none() || ranges.order(&worth(0), true, NOW) == Ordered::Nothing, "one at a time");
        ordered.map(|range| range.first.0..=range.last.0)
    }

    #[test]
    fn a_range_is_ordered_when_it_is_worth_its_shards() {
        assert_eq!(ordered(Phase::Enumerate, 2, 30, false), None);
        assert_eq!(ordered(Phase::Enumerate, 3, 30, false), Some(4..=8));
        assert_eq!(ordered(Phase::Enumerate, 2, 30, true), Some(4..=6));
        assert_eq!(ordered(Phase::Enumerate, 29, 1000, false), Some(4..=60), "the end of the segment");
    }

    /// Two layers in every eight are kept: 16 and 18, 32 and 34, 48 and 50, and the starts.
    #[test]
    fn kept_layers_have_shards_of_their_own_where_others_are_to_go() {
        let ranges_of = |least_apart, least_bytes| {
            let kept = KeptLayers::new(8, 2).unwrap();
            let mut ranges = Ranges::new(segment(Phase::Enumerate), kept, 1, NOW).apart(Some(least_apart));
            let mut ordered = Vec::new();
            for _ in 0..29 {
                ranges.layer_done(0, layer(10));
                while let Ordered::Range(range) = ranges.order(&worth(least_bytes), false, NOW) {
                    ordered.push((range.first.0, range.last.0));
                    assert!(ranges.complete(NOW).is_some());
                }
            }
            ordered
        };
        let apart = [(4, 8), (10, 14), (16, 18), (20, 30), (32, 34), (36, 46), (48, 50), (52, 60)];
        assert_eq!(ranges_of(25, 1000), apart);
        assert_eq!(ranges_of(50, 1000)[..3], [(4, 8), (10, 30), (32, 34)], "what is little is not worth it");
        let several = [(4, 8), (10, 14), (16, 18), (20, 24), (26, 30), (32, 34)];
        assert_eq!(ranges_of(25, 30)[..6], several, "large ranges are divided as ever");
        assert_eq!(ranges_of(500, 1000), [(4, 8), (10, 60)]);
    }

    /// Eight layers of 10 bytes each are done; on the way down a range may end every four layers.
    #[test]
    fn a_range_is_no_larger_than_there_is_room_for() {
        let ordered = |phase, room_bytes, least_bytes, all| {
            let mut ranges = Ranges::new(segment(phase), KEPT, 1, NOW);
            for _ in 0..8 {
                ranges.layer_done(0, layer(10));
            }
            match ranges.order(&Worth { room_bytes: Some(room_bytes), ..worth(least_bytes) }, all, NOW) {
                Ordered::Range(range) => Ok(range.layers()),
                nothing => Err(nothing),
            }
        };
        assert_eq!(
            [40, 39, 10].map(|room| ordered(Phase::Enumerate, room, 40, false)),
            [Ok(4), Ok(3), Ok(1)]
        );
        assert_eq!(ordered(Phase::Enumerate, 9, 40, false), Err(Ordered::NoRoom));
        assert_eq!(ordered(Phase::Enumerate, 9, 100, false), Err(Ordered::Nothing), "none is worth it yet");
        assert_eq!(ordered(Phase::Enumerate, 55, 100, true), Ok(5));
        assert_eq!(ordered(Phase::BackUp, 69, 70, false), Ok(3), "the cut below 48 and 50");
        assert_eq!(ordered(Phase::BackUp, 29, 70, false), Err(Ordered::NoRoom));
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

    #[test]
    fn after_a_time_any_range_is_worth_it() {
        let mut ranges = Ranges::new(segment(Phase::Enumerate), KEPT, 1, NOW);
        ranges.layer_done(0, layer(1));
        assert_eq!(
            ranges.order(&worth(9), false, COMMIT_INTERVAL - Duration::from_nanos(1)),
            Ordered::Nothing
        );
        assert!(range(ranges.order(&worth(9), false, COMMIT_INTERVAL)).is_some());
        assert!(ranges.complete(COMMIT_INTERVAL).is_some());
        ranges.layer_done(0, layer(1));
        assert_eq!(ranges.order(&worth(9), false, COMMIT_INTERVAL), Ordered::Nothing, "the time begins anew");
    }

    #[test]
    fn writing_is_behind_where_ranges_wait_for_one() {
        let mut ranges = Ranges::new(segment(Phase::Enumerate), KEPT, 1, NOW);
        let worth = Worth { most_bytes: 30, ..worth(30) };
        let finish = |ranges: &mut Ranges, bytes| {
            ranges.layer_done(0, layer(bytes));
            [1, 4].map(|many| ranges.is_behind(many, &worth))
        };
        assert_eq!(finish(&mut ranges, 300), [false, false], "nothing is being written");
        assert!(range(ranges.order(&worth, false, NOW)).is_some());
        assert_eq!(finish(&mut ranges, 290), [false, false], "less than is being written");
        assert_eq!(finish(&mut ranges, 10), [true, false]);
        assert_eq!(finish(&mut ranges, 900), [true, true]);
        assert!(ranges.complete(NOW).is_some());
        assert!(!ranges.is_behind(1, &worth));
    }

    #[test]
    fn a_layer_is_finished_when_all_have_it() {
        let mut ranges = Ranges::new(segment(Phase::Enumerate), KEPT, 2, NOW);
        assert_eq!(ranges.layer_done(1, layer(1)), None);
        assert_eq!(ranges.layer_done(1, layer(1)), None);
        assert_eq!((ranges.frontier(), ranges.finished(1)), (0, 2));
        let both = Totals { states: 2, afterstates: 4, fingerprint: u128::MAX - 1, sealed_bytes: 6 };
        assert_eq!(ranges.layer_done(0, layer(5)), Some(both));
        assert_eq!((ranges.frontier(), ranges.states_ahead()), (1, 2));
        let ordered = range(ranges.order(&worth(6), false, NOW));
        assert_eq!(ordered.map(|range| range.last), Some(Layer(4)));
    }

    proptest! {
        /// Whatever is finished and written when, commits have every layer once, in order and with its counts.
        #[test]
        fn commits_are_the_segment(
            up in any::<bool>(), all in any::<bool>(), members in 1usize..4, least in 1u64..200, growth in 1u64..9,
            events in prop::collection::vec((0usize..6, 0u64..50), 0..400),
        ) {
            let segment = segment(if up { Phase::Enumerate } else { Phase::BackUp });
            let kept = if all { KeptLayers::ALL } else { KEPT };
            let mut ranges = Ranges::new(segment, kept, members, NOW);
            let worth =
                Worth { least_bytes: least, most_bytes: growth * least, interval: Duration::MAX, room_bytes: None };
            let mut commits: Vec<Commit> = Vec::new();
            let mut begun = 0;
            let rest = (0..29).flat_map(|_| (0..6).map(|event| (event, 1)));
            for (event, bytes) in events.into_iter().chain(rest) {
                match event {
                    member if member < members && ranges.finished(member) < segment.layers() => {
                        ranges.layer_done(member, layer(bytes));
                    }
                    4 => begun += usize::from(range(ranges.order(&worth, bytes == 0, NOW)).is_some()),
                    5 => commits.extend(ranges.complete(NOW)),
                    _ => {}
                }
            }
            while !ranges.is_written() {
                begun += usize::from(range(ranges.order(&worth, true, NOW)).is_some());
                commits.push(ranges.complete(NOW).unwrap());
            }
            prop_assert_eq!(begun, commits.len());
            let mut written = 0;
            for commit in commits {
                let Commit { phase, first, last, layers, fingerprint } = commit;
                let range = Segment { phase, first, last };
                prop_assert_eq!(range, segment.range(written..written + range.layers()));
                let end = range.layer(range.layers() - 1);
                prop_assert!(segment.may_end_at(end, kept), "{:?}", range);
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
