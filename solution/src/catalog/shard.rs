//! A committed shard of the catalog.

use std::sync::Arc;

use exact2048_storage::{Place, ShardIdentity, ShardReader, ShardRecord, Shards, StorageError};

use super::open::{Handle, OpenShards};
use crate::commit::Commit;

/// A committed shard. It is opened at its first use.
#[derive(Debug)]
pub struct CatalogShard {
    /// The range that the shard holds completely or in part.
    pub commit: Arc<Commit>,
    /// Record of the shard in the journal.
    pub record: ShardRecord,
    /// Place of the shard.
    pub place: Place,
    /// Number of the shard, unique among all shards that the catalog has ever held.
    pub serial: u64,
    identity: ShardIdentity,
    shards: Arc<Shards>,
    handle: Arc<Handle>,
    open: Arc<OpenShards>,
}

impl CatalogShard {
    /// Describes a shard of a commit, by its record and its serial number. The shard is not opened.
    pub(super) fn new(
        (commit, record, serial): (&Arc<Commit>, ShardRecord, u64),
        identity: ShardIdentity,
        shards: &Arc<Shards>,
        open: &Arc<OpenShards>,
    ) -> Self {
        Self {
            commit: Arc::clone(commit),
            place: shards.place(&record.id()),
            record,
            serial,
            identity,
            shards: Arc::clone(shards),
            handle: Arc::default(),
            open: Arc::clone(open),
        }
    }

    /// Returns the open shard. It stays open for later calls until other shards need its memory.
    ///
    /// Opening verifies header and index.
    pub fn reader(&self) -> Result<Arc<ShardReader>, StorageError> {
        self.open.reader(&self.handle, &self.place, || self.shards.open(&self.record, &self.identity))
    }

    /// Opens the committed shard itself, even if a copy exists. Only the caller uses the returned reader.
    pub fn original(&self) -> Result<ShardReader, StorageError> {
        self.shards.open_anew(&self.record, &self.identity)
    }

    /// Verifies every byte of the committed shard. Leaves nothing open, and adds nothing to a cache.
    pub fn check(&self) -> Result<(), StorageError> {
        self.shards.check(&self.record, &self.identity)
    }

    /// The identity that the shard's header must have.
    pub fn identity(&self) -> &ShardIdentity {
        &self.identity
    }
}
