//! Opening committed shards, wherever the run is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SHARDS;
use crate::ids::member_of;
use crate::shard::{StoredShard, Target};
use crate::store::{Cache, Store};
use crate::{Attempt, RunId, ShardIdentity, ShardReader, ShardRecord, StorageError, WantedCopy};

/// The shards of a run. Cheap to clone; it outlives the run it came from, and any number of threads may use it.
#[derive(Clone, Debug)]
pub struct Shards {
    home: Home,
    run: RunId,
}

#[derive(Clone, Debug)]
pub(super) enum Home {
    Folder(PathBuf),
    Store(Arc<Store>, Arc<Cache>),
}

impl Home {
    /// Where a shard of this name is to be published.
    pub(super) fn target(&self, file: String) -> Target {
        match self {
            Self::Folder(run) => Target::Folder { folder: run.join(SHARDS), file },
            Self::Store(store, cache) => {
                let object = format!("{SHARDS}/{file}");
                Target::Store { store: store.clone(), cache: cache.clone(), file, object }
            }
        }
    }
}

impl Shards {
    pub(super) fn new(home: Home, run: RunId) -> Self {
        Self { home, run }
    }

    /// The run whose shards these are.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// Where a shard that an attempt makes is to be published.
    pub(crate) fn target(&self, identity: &ShardIdentity, attempt: Attempt) -> Target {
        self.home.target(identity.unique_name(attempt.opening, &attempt.which()))
    }

    /// Where the shard with this file name is or would be: a path, or a URL in the form of a path.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        // A record may say anything, and must not lead to other folders.
        let file = Path::new(file).file_name().unwrap_or_default();
        match &self.home {
            Home::Folder(run) => run.join(SHARDS).join(file),
            Home::Store(store, _) => store.name(SHARDS).join(file),
        }
    }

    /// Opens the shard that a record names, which must be the one `expected`, and verifies its header and index. A
    /// shard in a store is fetched from there, unless there is a copy of it in the cache, or a peer gives one.
    ///
    /// # Errors
    ///
    /// As for [`ShardReader::open`]; [`StorageError::Foreign`] also if it is another shard than the record says. A
    /// shard that is missing is [`StorageError::Io`] with the kind `NotFound`, in a store as in a directory.
    pub fn open(&self, record: &ShardRecord, expected: &ShardIdentity) -> Result<ShardReader, StorageError> {
        match &self.home {
            Home::Folder(_) => of_record(ShardReader::open(&self.path(&record.file), expected)?, record),
            Home::Store(store, cache) => {
                let stored = self.stored(store, cache, record);
                let wanted = self.wanted(record);
                let copy = stored.open_copy(&wanted, expected, |copy| of_record(copy, record));
                let take = || stored.take_from_peers(&wanted, expected, |copy| of_record(copy, record));
                match copy.or_else(take) {
                    Some(reader) => Ok(reader),
                    None => self.fetch(&stored, record, expected),
                }
            }
        }
    }

    /// The same for the shard as it is in the store now, even if there is a copy of it in the cache: to check the
    /// shard, not the copy.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_anew(
        &self,
        record: &ShardRecord,
        expected: &ShardIdentity,
    ) -> Result<ShardReader, StorageError> {
        match &self.home {
            Home::Folder(_) => self.open(record, expected),
            Home::Store(store, cache) => self.fetch(&self.stored(store, cache, record), record, expected),
        }
    }

    /// What is asked of those who may have a copy.
    fn wanted(&self, record: &ShardRecord) -> WantedCopy {
        let &ShardRecord { header_checksum, bytes, .. } = record;
        WantedCopy { run: self.run, header_checksum, bytes, writer: member_of(&record.file) }
    }

    fn fetch(
        &self,
        stored: &StoredShard,
        record: &ShardRecord,
        expected: &ShardIdentity,
    ) -> Result<ShardReader, StorageError> {
        stored.fetch(expected, |reader| of_record(reader, record))
    }

    fn stored(&self, store: &Arc<Store>, cache: &Arc<Cache>, record: &ShardRecord) -> StoredShard {
        let name = self.path(&record.file);
        let file = name.file_name().unwrap_or_default().to_string_lossy();
        let object = format!("{SHARDS}/{file}");
        let entry = cache.entry(self.run, record.header_checksum);
        StoredShard { store: Arc::clone(store), cache: Arc::clone(cache), object, entry }
    }
}

/// Requires that a shard is the one of a record.
fn of_record(reader: ShardReader, record: &ShardRecord) -> Result<ShardReader, StorageError> {
    if reader.header_checksum() == record.header_checksum {
        return Ok(reader);
    }
    Err(StorageError::Foreign {
        file: reader.path().to_path_buf(),
        field: "header checksum",
        expected: format!("{:016x}", record.header_checksum),
        found: format!("{:016x}", reader.header_checksum()),
    })
}
