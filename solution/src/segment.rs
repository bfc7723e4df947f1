//! What is still to be done of a run.

use exact2048_game::{Layer, Params};

use crate::CUT_PERIOD;
use crate::commit::{Commit, Phase};

/// A range of layers that one pass has to go through; its inputs are published already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Which pass.
    pub phase: Phase,
    /// Lowest layer.
    pub first: Layer,
    /// Highest layer.
    pub last: Layer,
}

/// The segments that complete a run, in the order in which they must be done, given the commits
/// whose shards are whole. A run that lost a shard needs just that range again.
pub fn missing_segments(params: &Params, commits: &[Commit]) -> Vec<Segment> {
    let last = params.last_layer();
    let mut segments = gaps(Phase::Enumerate, last, commits);
    if params.until_layer.is_none() {
        let mut downward = gaps(Phase::BackUp, last, commits);
        downward.reverse();
        segments.extend(downward);
    }
    segments
}

/// The ranges of layers from 4 to `last` that no commit of the phase covers, ascending.
fn gaps(phase: Phase, last: Layer, commits: &[Commit]) -> Vec<Segment> {
    let mut covered: Vec<&Commit> = commits.iter().filter(|commit| commit.phase == phase).collect();
    covered.sort_by_key(|commit| commit.first);
    let mut gaps = Vec::new();
    let mut next = 4;
    for commit in covered {
        if commit.first.0 > next {
            gaps.push(Segment { phase, first: Layer(next), last: Layer(commit.first.0 - 2) });
        }
        next = next.max(commit.last.0 + 2);
    }
    if next <= last.0 {
        gaps.push(Segment { phase, first: Layer(next), last });
    }
    gaps
}

/// Whether a shard may end after `layer` in the direction of the phase: any layer on the way up; on
/// the way down only the lower layer of a cut, so that what is published always ends in one.
pub fn may_end_at(phase: Phase, layer: Layer, segment: Segment) -> bool {
    match phase {
        Phase::Enumerate => true,
        Phase::BackUp => layer.0.is_multiple_of(CUT_PERIOD) || layer == segment.first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Objective, Precision, Spawn4};

    fn commit(phase: Phase, first: u32, last: u32) -> Commit {
        Commit { phase, first: Layer(first), last: Layer(last), layers: vec![], fingerprint: None }
    }

    #[test]
    fn what_is_missing_is_planned_upward_then_downward() {
        let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let up = |first, last| Segment { phase: Phase::Enumerate, first: Layer(first), last: Layer(last) };
        let down = |first, last| Segment { phase: Phase::BackUp, first: Layer(first), last: Layer(last) };
        assert_eq!(missing_segments(&params, &[]), [up(4, 60), down(4, 60)]);
        let commits = [
            commit(Phase::Enumerate, 20, 30),
            commit(Phase::Enumerate, 4, 10),
            commit(Phase::BackUp, 48, 60),
            commit(Phase::BackUp, 16, 30),
        ];
        let wanted = [up(12, 18), up(32, 60), down(32, 46), down(4, 14)];
        assert_eq!(missing_segments(&params, &commits), wanted);
    }
}
