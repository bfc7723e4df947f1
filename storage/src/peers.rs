//! Other processes that may have copies of committed shards. This process asks them before the store.

use std::fmt;
use std::io::Read;

use crate::{RunId, StorageError};

/// A committed shard that this process opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedCopy {
    /// Run of the shard.
    pub run: RunId,
    /// Checksum of its header, as in its [`ShardRecord`](crate::ShardRecord).
    pub header_checksum: u64,
    /// Length of the shard in bytes.
    pub bytes: u64,
    /// Member that wrote the shard, as in [`Attempt::member`](crate::Attempt::member); `None` if its name has no
    /// member.
    pub writer: Option<u64>,
}

/// Source of a shard.
#[derive(Debug)]
pub enum CopyOutcome<'a> {
    /// The cache had a copy, so no peer was asked.
    Cached,
    /// A peer's copy was intact and is in use.
    Taken,
    /// A peer's copy ended early or is not the shard.
    Refused(&'a StorageError),
    /// No peer had a copy, so the shard was fetched from the store.
    FromStore,
}

/// Processes that may have copies. Their data is untrusted and verified like data from the store.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Returns copies of a shard, the likeliest first. Each peer is asked only when the iterator reaches it.
    ///
    /// Reading a copy may block, but must end in bounded time.
    fn copies<'a>(&'a self, wanted: &WantedCopy) -> Box<dyn Iterator<Item = Box<dyn Read + 'a>> + 'a>;

    /// Receives the source of a wanted shard, and each refused copy.
    fn note(&self, wanted: &WantedCopy, outcome: CopyOutcome<'_>);
}
