//! Other processes that may have copies of committed shards, asked before the store is.

use std::fmt;
use std::io::Read;

use crate::{RunId, StorageError};

/// A committed shard that this process opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedCopy {
    /// The run it belongs to.
    pub run: RunId,
    /// Checksum of its header, as in its [`ShardRecord`](crate::ShardRecord).
    pub header_checksum: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Who wrote it, as in [`Attempt::member`](crate::Attempt::member); `None` where its name does not say so.
    pub writer: Option<u64>,
}

/// Where a shard came from.
#[derive(Debug)]
pub enum CopyOutcome<'a> {
    /// There is a copy in the cache: nobody was asked.
    Cached,
    /// A copy of a peer was sound, and was taken.
    Taken,
    /// A copy of a peer ended early, or is not the shard.
    Refused(&'a StorageError),
    /// No peer had it: it was fetched from the store.
    FromStore,
}

/// Others who may have copies. What they give is not trusted: it is verified as what the store gives is.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Copies of a shard that others may have, the likeliest first. Nobody is asked before the iterator comes to them.
    /// To read one may block, and must end in time.
    fn copies<'a>(&'a self, wanted: &WantedCopy) -> Box<dyn Iterator<Item = Box<dyn Read + 'a>> + 'a>;

    /// Called with where a wanted shard came from, and with each copy that was refused.
    fn note(&self, wanted: &WantedCopy, outcome: CopyOutcome<'_>);
}
