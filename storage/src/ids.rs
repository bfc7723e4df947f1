//! Identifiers of runs, shards, members and items.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::bytes::as_hex64;

/// Returns random bits. Any two calls, even in different processes, return the same bits with probability 2^-128.
/// Unfit for secrets.
///
/// [`RandomState`] provides the randomness, with keys from the operating system. The process id and the time
/// distinguish clones of a machine, which may get the same keys.
pub(crate) fn random_bits() -> u128 {
    let half = || RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    u128::from(half()) << 64 | u128::from(half())
}

/// Id of a run. The id reveals files copied from another run. Displays as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(pub [u8; 16]);

impl RunId {
    /// Draws a random id. A repeated id is improbable, but the id is unfit for secrets.
    #[must_use]
    pub fn random() -> Self {
        Self(random_bits().to_be_bytes())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

impl FromStr for RunId {
    type Err = String;

    /// Parses exactly the output of `Display`: 32 lower-case hex digits.
    fn from_str(text: &str) -> Result<Self, String> {
        u128::from_str_radix(text, 16)
            .ok()
            .map(|number| Self(number.to_be_bytes()))
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| format!("expected a run id of 32 lower-case hex digits, found {text:?}"))
    }
}

impl TryFrom<String> for RunId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

/// Content of a shard's items. Lower-case in JSON and in file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum ShardKind {
    /// Reachable states.
    Reach = 1,
    /// Values of the reachable states.
    Values = 2,
    /// Values of two layers with all their bits, from which a solve resumes if the other values are rounded.
    Checkpoint = 3,
}

impl ShardKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Reach, Self::Values, Self::Checkpoint];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl fmt::Display for ShardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reach => "reach",
            Self::Values => "values",
            Self::Checkpoint => "checkpoint",
        })
    }
}

/// Key of an item within its shard. Ordered by layer, lane and part; otherwise opaque to this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// The layer; must lie within the layers of the shard.
    pub layer: u32,
    /// The lane within the layer.
    pub lane: u64,
    /// The part of the lane.
    pub part: u32,
}

/// Identity of a shard, stated in its header and required by its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShardIdentity {
    /// Run of the shard.
    pub run: RunId,
    /// Content of its items.
    pub kind: ShardKind,
    /// Rows of the board.
    pub rows: u8,
    /// Columns of the board.
    pub cols: u8,
    /// The lowest layer that its items may have.
    pub first_layer: u32,
    /// The highest layer that its items may have.
    pub last_layer: u32,
    /// Hash of the rules of the game, as 16 hex digits in JSON.
    #[serde(with = "as_hex64")]
    pub rule_hash: u64,
}

impl ShardIdentity {
    /// Returns the name of the shard's file in a run directory, for example `reach-000004-000120.shard`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{:06}-{:06}.shard", self.kind, self.first_layer, self.last_layer)
    }

    /// Returns a name that no other shard ever has, for example `reach-000004-000120-000017-0.shard`.
    ///
    /// The name contains the number of the writer's opening record and a suffix that the writer uses only once.
    pub(crate) fn unique_name(&self, writer: u64, which: &str) -> String {
        format!("{}-{:06}-{:06}-{writer:06}-{which}.shard", self.kind, self.first_layer, self.last_layer)
    }

    /// Returns the first field in which `found` differs from `self`: the field's name, the value in `self` and the
    /// value in `found`.
    pub(crate) fn difference(&self, found: &Self) -> Option<(&'static str, String, String)> {
        let field =
            |name, ours: &dyn ToString, theirs: &dyn ToString| (name, ours.to_string(), theirs.to_string());
        [
            field("run id", &self.run, &found.run),
            field("kind", &self.kind, &found.kind),
            field("number of rows", &self.rows, &found.rows),
            field("number of columns", &self.cols, &found.cols),
            field("first layer", &self.first_layer, &found.first_layer),
            field("last layer", &self.last_layer, &found.last_layer),
            field("rule hash", &self.rule_hash, &found.rule_hash),
        ]
        .into_iter()
        .find(|(_, ours, theirs)| ours != theirs)
    }
}

/// Identifies the shards that a cluster member makes in an epoch on behalf of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Number of the opening record of the writer that will commit the shard.
    pub opening: u64,
    /// The epoch of the work. Abandoned work is repeated in a new epoch.
    pub epoch: u64,
    /// The member.
    pub member: u64,
}

impl Attempt {
    /// Returns whether this member made the shard `file` in this epoch, on behalf of any writer.
    #[must_use]
    pub fn has_made(file: &str, epoch: u64, member: u64) -> bool {
        let made = Self { opening: 0, epoch, member };
        writer_of(file).is_some() && file.ends_with(&format!("-{}.shard", made.which()))
    }

    pub(crate) fn which(&self) -> String {
        format!("{:x}.{:x}", self.epoch, self.member)
    }
}

/// Parts of a shard's file name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShardName {
    /// Content of its items.
    pub kind: ShardKind,
    /// The lowest layer that its items may have.
    pub first_layer: u32,
    /// The highest layer that its items may have.
    pub last_layer: u32,
    /// Number of the writer's opening record; `None` if the writer had no opening record.
    pub writer: Option<u64>,
    /// Cluster epoch in which the shard was made, as in [`Attempt::epoch`].
    pub epoch: Option<u64>,
    /// Member that made the shard, as in [`Attempt::member`].
    pub member: Option<u64>,
}

impl ShardName {
    /// Parses a file name; `None` if it does not name a shard.
    #[must_use]
    pub fn parse(file: &str) -> Option<Self> {
        let mut parts = file.strip_suffix(".shard")?.split('-');
        let kind = parts.next()?;
        let kind = ShardKind::ALL.into_iter().find(|known| known.to_string() == kind)?;
        let (first_layer, last_layer) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let plain = Self { kind, first_layer, last_layer, writer: None, epoch: None, member: None };
        let Some(writer) = parts.next() else { return Some(plain) };
        let (writer, which) = (Some(writer.parse().ok()?), parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        match which.split_once('.') {
            Some((epoch, member)) => {
                Some(Self { writer, epoch: Some(hex(epoch)?), member: Some(hex(member)?), ..plain })
            }
            None => which.parse::<u64>().ok().map(|_| Self { writer, ..plain }),
        }
    }
}

/// Returns the number of the writer's opening record in a shard's name; `None` if the writer had none.
pub(crate) fn writer_of(file: &str) -> Option<u64> {
    ShardName::parse(file)?.writer
}

/// Returns the cluster member in a shard's name, as in [`Attempt::member`].
pub(crate) fn member_of(file: &str) -> Option<u64> {
    ShardName::parse(file)?.member
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_differ_and_survive_text_and_json() {
        let id = RunId::random();
        assert_ne!(id, RunId::random());
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), id);
    }

    #[test]
    fn only_one_spelling_of_a_run_id_is_read() {
        let id = "00000000000000000000000000abcdef";
        assert!(id.parse::<RunId>().is_ok());
        for wrong in ["", "abcdef", &id.to_uppercase(), &format!("+{}", &id[1..]), &format!("0{id}")] {
            assert!(wrong.parse::<RunId>().is_err(), "{wrong:?} was read");
        }
    }

    #[test]
    fn the_file_name_follows_from_the_identity() {
        let identity = ShardIdentity {
            run: RunId([0; 16]),
            kind: ShardKind::Values,
            rows: 4,
            cols: 4,
            first_layer: 4,
            last_layer: 1_234_567,
            rule_hash: 0,
        };
        assert_eq!(identity.file_name(), "values-000004-1234567.shard");
        assert_eq!(identity.unique_name(17, "3"), "values-000004-1234567-000017-3.shard");
        assert_eq!(writer_of(&identity.unique_name(17, "3")), Some(17));
        let attempt = Attempt { opening: 9, epoch: 0x1_0000_0002, member: u64::MAX };
        let name = identity.unique_name(attempt.opening, &attempt.which());
        assert_eq!(name, "values-000004-1234567-000009-100000002.ffffffffffffffff.shard");
        assert_eq!((writer_of(&name), member_of(&name)), (Some(9), Some(u64::MAX)));
        assert!(Attempt::has_made(&name, attempt.epoch, attempt.member));
        assert!(!Attempt::has_made(&name, attempt.epoch, 7) && !Attempt::has_made(&name, 0x2, u64::MAX));
        assert!(!Attempt::has_made("100000002.ffffffffffffffff.shard", attempt.epoch, attempt.member));
        assert_eq!(member_of(&identity.unique_name(17, "3")), None);
        for other in [&identity.file_name(), "a-b-c-d-e.shard", "a-b-c-1-2-3.shard", "a-b-c-1.shard", "notes"]
        {
            assert_eq!((writer_of(other), member_of(other)), (None, None), "{other}");
        }
    }
}
