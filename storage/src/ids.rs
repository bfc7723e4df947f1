//! What tells files apart: runs, kinds of shards, keys of items.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::StorageError;
use crate::bytes::as_hex64;

/// Bits that no other call in any process gives, but by a chance of 2^-128. Not fit for secrets.
///
/// The randomness is that of [`RandomState`], whose keys come from the operating system; process and time keep
/// apart two copies of a machine that would be given the same keys.
pub(crate) fn random_bits() -> u128 {
    let half = || RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    u128::from(half()) << 64 | u128::from(half())
}

/// Names one run, so that a file copied in from another run is noticed. Shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(pub [u8; 16]);

impl RunId {
    /// A new id. Unpredictable enough not to be drawn twice by chance, not fit for secrets.
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
    type Err = StorageError;

    /// Reads exactly what `Display` writes: 32 lower-case hex digits.
    fn from_str(text: &str) -> Result<Self, StorageError> {
        u128::from_str_radix(text, 16)
            .ok()
            .map(|number| Self(number.to_be_bytes()))
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| StorageError::InvalidInput {
                what: format!("a run id has 32 lower-case hex digits, not {text:?}"),
            })
    }
}

impl TryFrom<String> for RunId {
    type Error = StorageError;

    fn try_from(text: String) -> Result<Self, StorageError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

/// What the items of a shard hold. Lower-case in JSON and in file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum ShardKind {
    /// The states that can be reached.
    Reach = 1,
    /// Their values.
    Values = 2,
}

impl ShardKind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Reach, Self::Values].into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl fmt::Display for ShardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reach => "reach",
            Self::Values => "values",
        })
    }
}

/// The name of an item within its shard. Ordered by layer, then lane, then part; otherwise opaque here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// The layer; must lie within the layers of the shard.
    pub layer: u32,
    /// The lane within the layer.
    pub lane: u64,
    /// The part of the lane.
    pub part: u32,
}

/// What a shard is, as its header states it and as the reader demands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShardIdentity {
    /// The run it belongs to.
    pub run: RunId,
    /// What its items hold.
    pub kind: ShardKind,
    /// Rows of the board.
    pub rows: u8,
    /// Columns of the board.
    pub cols: u8,
    /// The lowest layer it may have items of.
    pub first_layer: u32,
    /// The highest layer it may have items of.
    pub last_layer: u32,
    /// Hash of the rules of the game, as 16 hex digits in JSON.
    #[serde(with = "as_hex64")]
    pub rule_hash: u64,
}

impl ShardIdentity {
    /// The name of the shard's file in a run directory, for example `reach-000004-000120.shard`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{:06}-{:06}.shard", self.kind, self.first_layer, self.last_layer)
    }

    /// The name of a shard that no other shard ever has: it says on behalf of which writer it was made, by the number
    /// of its opening record, and what tells it from others of that writer. For example
    /// `reach-000004-000120-000017-0.shard`.
    pub(crate) fn unique_name(&self, writer: u64, which: &str) -> String {
        format!("{}-{:06}-{:06}-{writer:06}-{which}.shard", self.kind, self.first_layer, self.last_layer)
    }

    /// The first field in which `found` differs from `self`: its name, our value, theirs.
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

/// Tells what one member of a cluster writes from what every other writes, and from what it wrote before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The number of the opening record of the writer that will commit the shard.
    pub opening: u64,
    /// The epoch that it belongs to: work that is given up is tried again under another number.
    pub epoch: u64,
    /// The member.
    pub member: u64,
}

impl Attempt {
    /// Whether a shard of this name was made by this member in this epoch, on behalf of any writer.
    #[must_use]
    pub fn has_made(file: &str, epoch: u64, member: u64) -> bool {
        let made = Self { opening: 0, epoch, member };
        writer_of(file).is_some() && file.ends_with(&format!("-{}.shard", made.which()))
    }

    pub(crate) fn which(&self) -> String {
        format!("{:x}.{:x}", self.epoch, self.member)
    }
}

/// What the name of a shard's file says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShardName {
    /// What its items hold.
    pub kind: ShardKind,
    /// The lowest layer it may have items of.
    pub first_layer: u32,
    /// The highest layer it may have items of.
    pub last_layer: u32,
    /// The number of its writer's opening record; `None` for names as in directories of one writer.
    pub writer: Option<u64>,
    /// The epoch of the cluster whose member made it, as in [`Attempt::epoch`].
    pub epoch: Option<u64>,
    /// That member, as in [`Attempt::member`].
    pub member: Option<u64>,
}

impl ShardName {
    /// Reads a name; `None` if it is not that of a shard.
    #[must_use]
    pub fn parse(file: &str) -> Option<Self> {
        let mut parts = file.strip_suffix(".shard")?.split('-');
        let kind = parts.next()?;
        let kind =
            [ShardKind::Reach, ShardKind::Values].into_iter().find(|known| known.to_string() == kind)?;
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

/// The writer that the name of a shard states; `None` for names as in directories of one writer.
pub(crate) fn writer_of(file: &str) -> Option<u64> {
    ShardName::parse(file)?.writer
}

/// The member of a cluster that the name of a shard states, as in [`Attempt::member`].
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
