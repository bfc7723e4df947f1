//! Records of a run's journal.

use exact2048_game::Precision;
use exact2048_storage::ShardRecord;
use serde::{Deserialize, Serialize};

use crate::commit::Commit;
use crate::recipe::LayerRange;

/// A record of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JournalRecord {
    /// A finished range.
    Commit(Record),
    /// A range to be computed again.
    Retraction(Retraction),
    /// Changed parameters.
    Amendment(Amendment),
    /// Ranges of reach whose shards no longer count.
    Removal(Removal),
}

/// A journal record: a finished range of layers and the shards that hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The range, with its counts or its part of the fingerprint.
    pub commit: Commit,
    /// The shards: one, or one of each member of a cluster.
    pub shards: Vec<ShardRecord>,
    /// The codes of the lanes in each of several shards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Vec<u64>>,
    /// In older records, in place of the lanes: the number of threads of each member. A formula of these numbers
    /// determines which shard holds a lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<u32>,
    /// The checkpoint, in as many shards: the unrounded values of the range's two lowest layers. Only in runs that round
    /// values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoint: Vec<ShardRecord>,
    /// Duration of the work, if the writer stated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<WorkTime>,
}

/// The shards that a member wrote for a range.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenShards {
    /// The shard of the range.
    pub shard: ShardRecord,
    /// The shard of unrounded values, if a solve may resume from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<ShardRecord>,
}

impl Record {
    /// A record of one shard, which holds all lanes.
    pub fn new(commit: Commit, shards: Vec<ShardRecord>) -> Self {
        Self { commit, shards, lanes: Vec::new(), threads: Vec::new(), checkpoint: Vec::new(), took: None }
    }
}

/// Duration of the work of a commit, for human readers.
///
/// It begins with the end of the previous commit, or with the start of the work. It ends when the last shard is
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkTime {
    /// Seconds.
    pub seconds: f64,
    /// Number of computing threads, of all members together.
    pub threads: u32,
}

/// Largest number of seconds in a record: 300 years. The sum over a journal cannot overflow, and can be printed.
const MOST_SECONDS: f64 = 1e10;

impl WorkTime {
    /// Describes the fault of a duration from a journal.
    pub(crate) fn fault(self) -> Option<String> {
        let is_time = (0.0..=MOST_SECONDS).contains(&self.seconds);
        (!is_time).then(|| format!("expected 0 to {MOST_SECONDS:e} s of work, found {:e}", self.seconds))
    }
}

/// A journal record: a commit that no longer counts, because one of its shards was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retraction {
    /// The range, as it was committed.
    pub retracted: Commit,
}

/// A journal record: parameters that differ from the manifest. It precedes all commits of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amendment {
    /// Parameters that replace those of the manifest.
    pub amended: Amended,
}

/// Parameters that may change until values are committed, because states do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amended {
    /// Bits of a stored value.
    pub precision: Precision,
}

/// A journal record: the removal of the stored reach of some layers. The counts of these layers stay.
///
/// The reach is not needed, or can be enumerated again when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// The shards of each enumerated range within one of these ranges no longer count.
    pub removed: Vec<LayerRange>,
}
