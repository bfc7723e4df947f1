//! Peers: other processes that may have copies of committed shards. This process asks its peers for a shard before it
//! asks the store.

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

/// Outcome of the request for a copy of a shard.
#[derive(Debug)]
pub enum CopyOutcome<'a> {
    /// The cache had a copy, so no peer was asked.
    Cached,
    /// A peer's copy was accepted and is in use.
    Taken,
    /// A peer's copy could not be received or is not the wanted shard.
    Refused(&'a StorageError),
    /// No peer had a copy, so the shard was fetched from the store.
    FromStore,
}

/// Processes that may have copies. Their data is untrusted and verified like data from the store.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Returns readers of the peers' copies of a shard. The first peers are those that most likely have a copy. Each
    /// peer is asked only when the iterator reaches it.
    ///
    /// Reading a copy may block, but must end in bounded time.
    fn copies<'a>(&'a self, wanted: &WantedCopy) -> Box<dyn Iterator<Item = Box<dyn Read + 'a>> + 'a>;

    /// Receives an outcome: each refused copy of a wanted shard, and the source that this process uses.
    fn note(&self, wanted: &WantedCopy, outcome: CopyOutcome<'_>);
}
