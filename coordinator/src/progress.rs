//! What a run has committed, and what is still to be done.

use exact2048_game::{Layer, Params};
use serde::{Deserialize, Serialize};

use crate::CUT_PERIOD;
use crate::task::Phase;

/// States and afterstates of a layer, up to symmetry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerCounts {
    /// The layer.
    pub layer: Layer,
    /// Its states.
    pub states: u64,
    /// Its afterstates.
    pub afterstates: u64,
}

/// A finished range of layers, as the journal records it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Commit {
    /// Which pass.
    pub phase: Phase,
    /// Lowest layer of the range.
    pub first: Layer,
    /// Highest layer of the range.
    pub last: Layer,
    /// Counts of the range's layers, ascending; only of an enumeration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerCounts>,
    /// Sum of the hashes of the range's states, 32 hex digits; only of a backup.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex")]
    pub fingerprint: Option<u128>,
}

pub(crate) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:032x}", value.unwrap_or_default()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u128>, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Some).map_err(D::Error::custom)
    }
}

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
pub(crate) fn may_end_at(phase: Phase, layer: Layer, segment: Segment) -> bool {
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

    #[test]
    fn commits_round_trip_as_json() {
        let mut with = commit(Phase::BackUp, 4, 6);
        with.fingerprint = Some(u128::MAX - 5);
        for commit in [with, commit(Phase::Enumerate, 4, 8)] {
            let text = serde_json::to_string(&commit).unwrap();
            assert_eq!(serde_json::from_str::<Commit>(&text).unwrap(), commit);
        }
    }
}
