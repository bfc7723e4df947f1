//! Opening committed shards in a directory or a store.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bytes::index;
use crate::home::{Home, RunPlace};
use crate::ids::member_of;
use crate::names::SHARDS;
use crate::shard::{Expected, HEAD_BYTES, Origin, StoredShard, Target, check_head};
use crate::store::{Cache, Head, Store};
use crate::{
    Attempt, Place, RunId, ShardId, ShardIdentity, ShardReader, ShardRecord, StorageError, WantedCopy,
};

/// The shards of a run. Cheap to clone, usable from any number of threads, and independent of the open run.
#[derive(Clone, Debug)]
pub struct Shards(pub(super) RunPlace);

impl Shards {
    pub(super) fn new(home: Home, run: RunId) -> Self {
        Self(RunPlace { home, run })
    }

    /// Id of the run that the shards belong to.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.0.run
    }

    /// Returns the target of a shard that this attempt writes.
    pub(crate) fn target(&self, identity: &ShardIdentity, attempt: Attempt) -> Target {
        self.target_of(identity.unique_name(attempt.opening, &attempt.which()))
    }

    /// Returns the target of a shard with this file name.
    pub(super) fn target_of(&self, file: String) -> Target {
        match &self.0.home {
            Home::Folder(run) => Target::Folder { folder: run.join(SHARDS), file, run: self.0.clone() },
            Home::Store(store, cache) => {
                let object = format!("{SHARDS}/{file}");
                Target::Store { store: store.clone(), cache: cache.clone(), file, object }
            }
        }
    }

    /// Returns the place of a shard, which need not exist.
    #[must_use]
    pub fn place(&self, shard: &ShardId) -> Place {
        let place = match &self.0.home {
            Home::Folder(run) => file_of(run, shard).into(),
            Home::Store(store, _) => store.place_of(&object_of(shard)),
        };
        place.of_shard(shard.clone())
    }

    /// Opens the shard of a record and verifies its header and index. The shard must match `expected`.
    ///
    /// Fetches a shard from a store unless the cache or a peer has a copy.
    ///
    /// # Errors
    ///
    /// As for [`ShardReader::open`]; [`StorageError::Foreign`] also if the shard differs from the record.
    pub fn open(&self, record: &ShardRecord, expected: &ShardIdentity) -> Result<ShardReader, StorageError> {
        let committed = Expected::Committed(record, expected);
        let opened = match &self.0.home {
            Home::Folder(run) => {
                let shard = record.id();
                ShardReader::open_file(&self.place(&shard), &file_of(run, &shard), committed)
            }
            Home::Store(store, cache) => {
                let stored = self.stored(store, cache, record);
                let wanted = self.wanted(record);
                let copy = stored.open_copy(&wanted, committed);
                match copy.or_else(|| stored.take_from_peers(&wanted, committed)) {
                    Some(reader) => Ok(reader),
                    None => stored.fetch(committed),
                }
            }
        };
        self.known(opened)
    }

    /// Attaches the run to an opened shard, or explains the error if the whole run is unavailable.
    fn known(&self, opened: Result<ShardReader, StorageError>) -> Result<ShardReader, StorageError> {
        opened.map(|reader| reader.of_run(self.0.clone())).map_err(|error| self.0.explain(error))
    }

    /// Opens the shard from the store, even if the cache has a copy.
    ///
    /// Verifies the shard itself rather than its copy.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_anew(
        &self,
        record: &ShardRecord,
        expected: &ShardIdentity,
    ) -> Result<ShardReader, StorageError> {
        match &self.0.home {
            Home::Folder(_) => self.open(record, expected),
            Home::Store(store, cache) => {
                self.known(self.stored(store, cache, record).fetch(Expected::Committed(record, expected)))
            }
        }
    }

    /// Checks that the shards of these records exist with the recorded length, header and identity. Returns the
    /// results in order.
    ///
    /// Data after the headers is not read. Reads 104 bytes per shard. In a store, costs a HEAD and a GET request per
    /// shard, and several requests run at the same time.
    ///
    /// # Errors
    ///
    /// For each shard: [`StorageError::ShardMissing`], [`StorageError::Damaged`], [`StorageError::Foreign`],
    /// [`StorageError::NewerVersion`] or an I/O or store error. For the whole call: an error that affects all shards.
    pub fn look(
        &self,
        shards: &[(&ShardRecord, ShardIdentity)],
    ) -> Result<Vec<Result<(), StorageError>>, StorageError> {
        let check = |(record, identity): &(&ShardRecord, ShardIdentity), head: &[u8], file_bytes| {
            check_head(&self.place(&record.id()), head, file_bytes, record, identity)
        };
        let looked: Vec<Result<(), StorageError>> = match &self.0.home {
            Home::Folder(run) => {
                let look = |shard: &(&ShardRecord, ShardIdentity)| {
                    let id = shard.0.id();
                    let failed = |e| StorageError::read_shard(&self.place(&id), 0, index(HEAD_BYTES), e);
                    let (head, file_bytes) = read_head(&file_of(run, &id)).map_err(failed)?;
                    check(shard, &head, file_bytes)
                };
                shards.iter().map(look).collect()
            }
            Home::Store(store, _) => {
                let objects = shards.iter().map(|(record, _)| object_of(&record.id()));
                let found = store.read_heads(objects.collect(), HEAD_BYTES.into())?;
                let look = |(shard, head): (&(&ShardRecord, ShardIdentity), Result<Option<Head>, _>)| {
                    let missing = || StorageError::ShardMissing { file: self.place(&shard.0.id()) };
                    let head = head?.ok_or_else(missing)?;
                    check(shard, &head.first, head.bytes)
                };
                shards.iter().zip(found).map(look).collect()
            }
        };
        // If the whole run is unavailable, none of its shards is lost.
        if looked.iter().any(|looked| looked.as_ref().is_err_and(|error| error.blames().is_some())) {
            self.0.require_run()?;
        }
        Ok(looked)
    }

    /// Verifies every byte of the shard in the directory or store, and keeps no copy in the cache or on the disk.
    ///
    /// For programs that check whole runs, because a run may be larger than their disk.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), and [`StorageError::Damaged`] with the position of the first damaged frame.
    pub fn check(&self, record: &ShardRecord, expected: &ShardIdentity) -> Result<(), StorageError> {
        match &self.0.home {
            Home::Folder(_) => self.open(record, expected)?.verify(),
            Home::Store(store, cache) => {
                let checked = self.stored(store, cache, record).check(Expected::Committed(record, expected));
                checked.map_err(|error| self.0.explain(error))
            }
        }
    }

    /// Returns the request to peers that may have a copy.
    fn wanted(&self, record: &ShardRecord) -> WantedCopy {
        let &ShardRecord { header_checksum, bytes, .. } = record;
        WantedCopy { run: self.0.run, header_checksum, bytes, writer: member_of(&record.file) }
    }

    fn stored(&self, store: &Arc<Store>, cache: &Arc<Cache>, record: &ShardRecord) -> StoredShard {
        let (place, object) = (self.place(&record.id()), object_of(&record.id()));
        let entry = cache.entry(self.0.run, record.header_checksum);
        StoredShard(Origin { store: Arc::clone(store), cache: Arc::clone(cache), place, object, entry })
    }
}

/// Returns the file of a shard in a directory.
fn file_of(run: &Path, shard: &ShardId) -> PathBuf {
    run.join(SHARDS).join(shard.file())
}

/// Returns the object name of a shard within the run.
fn object_of(shard: &ShardId) -> String {
    format!("{SHARDS}/{}", shard.file())
}

/// Reads the first bytes of a file and its length.
fn read_head(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let file = exact2048_files::open(path)?;
    let mut head = Vec::new();
    (&file).take(HEAD_BYTES.into()).read_to_end(&mut head)?;
    Ok((head, file.metadata()?.len()))
}
