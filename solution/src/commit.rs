//! Journal records of finished ranges of layers.

use std::collections::BTreeSet;

use exact2048_game::{Lane, Layer, Params};
use exact2048_storage::ShardKind;
use serde::{Deserialize, Serialize};

/// The two passes of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Upward: which states are reachable.
    Enumerate,
    /// Downward: the values of the states.
    BackUp,
}

impl Phase {
    /// The name of the phase, as shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enumerate => "enumerate",
            Self::BackUp => "back up",
        }
    }

    /// The kind of the shards that the phase writes.
    pub fn shard_kind(self) -> ShardKind {
        match self {
            Self::Enumerate => ShardKind::Reach,
            Self::BackUp => ShardKind::Values,
        }
    }

    /// The other lanes whose blocks this pass needs to compute the block of `lane` in the same layer. Some of these
    /// lanes may have no block in that layer.
    pub fn needs(self, lane: Lane, params: &Params) -> BTreeSet<Lane> {
        match self {
            Self::Enumerate => lane.source_lanes(params),
            Self::BackUp => lane.target_lanes(params),
        }
    }

    /// The other lanes whose blocks in the same layer need the block of `lane` in this pass. Some of these lanes may
    /// have no block in that layer.
    pub fn needed_by(self, lane: Lane, params: &Params) -> BTreeSet<Lane> {
        match self {
            Self::Enumerate => lane.target_lanes(params),
            Self::BackUp => lane.source_lanes(params),
        }
    }
}

/// States and afterstates of a layer, up to symmetry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The pass.
    pub phase: Phase,
    /// Lowest layer of the range.
    pub first: Layer,
    /// Highest layer of the range.
    pub last: Layer,
    /// Counts of the range's layers, ascending; only of an enumeration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerCounts>,
    /// Sum of the hashes of the range's states, 32 hex digits; only of a backup.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "fingerprint_text")]
    pub fingerprint: Option<u128>,
}

impl Commit {
    /// Whether the commit is of this phase and shares a layer with the range from `first` to `last`, both included.
    pub fn has_any_of(&self, phase: Phase, first: Layer, last: Layer) -> bool {
        self.phase == phase && self.first <= last && first <= self.last
    }
}

/// The fingerprint of a solved run with these commits: the sum of the fingerprints of its backups.
pub fn fingerprint_of<'a>(commits: impl IntoIterator<Item = &'a Commit>) -> u128 {
    let of_values = commits.into_iter().filter(|commit| commit.phase == Phase::BackUp);
    of_values.filter_map(|commit| commit.fingerprint).fold(0, u128::wrapping_add)
}

/// A fingerprint as text, for serde: 32 hex digits.
pub mod fingerprint_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes a fingerprint.
    pub fn serialize<S: Serializer>(value: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:032x}", value.unwrap_or_default()))
    }

    /// Reads a fingerprint.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u128>, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Some).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_round_trip_as_json() {
        let commit = |phase, fingerprint| Commit {
            phase,
            first: Layer(4),
            last: Layer(8),
            layers: vec![],
            fingerprint,
        };
        for commit in [commit(Phase::BackUp, Some(u128::MAX - 5)), commit(Phase::Enumerate, None)] {
            let text = serde_json::to_string(&commit).unwrap();
            assert_eq!(serde_json::from_str::<Commit>(&text).unwrap(), commit);
            let newer = text.replacen('{', r#"{"newer":1,"#, 1);
            assert!(serde_json::from_str::<Commit>(&newer).is_err(), "an unknown field may matter");
        }
    }
}
