//! Ranges of layers that one pass processes.

use exact2048_game::{Layer, RunContents};

use crate::commit::Phase;

/// A range of layers for one pass to process. Its inputs are published before the pass begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The pass.
    pub phase: Phase,
    /// Lowest layer.
    pub first: Layer,
    /// Highest layer.
    pub last: Layer,
}

/// Layers of a segment are numbered from 0 in the direction of its pass. This number is the *position* of a layer.
impl Segment {
    /// Number of layers of the segment.
    pub fn layers(self) -> u32 {
        self.last.number() - self.first.number() + 1
    }

    /// Whether the segment has a layer.
    pub fn contains(self, layer: Layer) -> bool {
        (self.first..=self.last).contains(&layer)
    }

    /// The layer at a position. The number of layers is also a valid position: that of the next layer beyond the
    /// segment.
    pub fn layer(self, position: u32) -> Layer {
        match self.phase {
            Phase::Enumerate => self.first.up(position),
            Phase::BackUp => Layer(self.last.0 - Layer::STEP * position),
        }
    }

    /// Number of layers of the segment that the pass processes before `layer`, which may lie outside the segment.
    pub fn position(self, layer: Layer) -> u32 {
        let passed = match self.phase {
            Phase::Enumerate => layer.0.saturating_sub(self.first.0),
            Phase::BackUp => self.last.0.saturating_sub(layer.0),
        };
        (passed / Layer::STEP).min(self.layers())
    }

    /// The range of layers at these positions; there must be at least one.
    pub fn range(self, positions: std::ops::Range<u32>) -> Self {
        let (a, b) = (self.layer(positions.start), self.layer(positions.end - 1));
        Self { phase: self.phase, first: a.min(b), last: a.max(b) }
    }

    /// Whether a shard may end with a layer.
    ///
    /// In the upward pass, any layer may end a shard. In the downward pass, the lower layer of a cut may if a solve can
    /// resume there, because all layers below follow from the cut. The last layer of the pass may too.
    pub fn may_end_at(self, layer: Layer, contents: &RunContents) -> bool {
        match self.phase {
            Phase::Enumerate => true,
            Phase::BackUp => contents.is_resumable(layer) || layer == self.first,
        }
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::KeptLayers;

    use super::*;

    /// The next range needs the last two layers of a range.
    #[test]
    fn a_downward_range_ends_in_a_cut() {
        let (first, last) = (Layer(10), Layer(60));
        for (kept, ends) in [
            (KeptLayers::TWO_IN_FOUR, vec![10, 16, 24, 32, 40, 48, 56]),
            (KeptLayers::new(8, 3).unwrap(), vec![10, 16, 18, 32, 34, 48, 50]),
            (KeptLayers::ALL, (10..=60).step_by(2).collect()),
        ] {
            let ends_of = |phase| {
                let segment = Segment { phase, first, last };
                let may_end = move |&sum: &u32| segment.may_end_at(Layer(sum), &kept.into());
                (10..=60).step_by(2).filter(may_end).collect::<Vec<_>>()
            };
            assert_eq!(ends_of(Phase::BackUp), ends, "{kept}");
            assert_eq!(ends_of(Phase::Enumerate).len(), 26);
        }
    }

    #[test]
    fn positions_follow_the_pass() {
        let up = Segment { phase: Phase::Enumerate, first: Layer(4), last: Layer(20) };
        let down = Segment { phase: Phase::BackUp, ..up };
        assert_eq!([up, down].map(Segment::layers), [9, 9]);
        assert_eq!([0, 8, 9].map(|position| up.layer(position).0), [4, 20, 22]);
        assert_eq!([0, 8, 9].map(|position| down.layer(position).0), [20, 4, 2]);
        for segment in [up, down] {
            assert!((0..=9).all(|position| segment.position(segment.layer(position)) == position));
            assert_eq!(segment.range(0..9), segment);
        }
        assert_eq!((up.position(Layer(2)), up.position(Layer(90))), (0, 9), "layers may lie outside");
        assert_eq!((down.position(Layer(90)), down.position(Layer(2))), (0, 9));
        assert_eq!(down.range(1..3), Segment { first: Layer(16), last: Layer(18), ..down });
        let ends = |segment: Segment| {
            (0..9)
                .filter(|&at| segment.may_end_at(segment.layer(at), &KeptLayers::TWO_IN_FOUR.into()))
                .count()
        };
        assert_eq!((ends(up), ends(down)), (9, 3), "at all layers; at 16, 8 and 4");
    }
}
