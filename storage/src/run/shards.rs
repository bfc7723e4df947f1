//! Opening committed shards, wherever the run is.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SHARDS;
use super::manifest::Manifest;
use crate::bytes::index;
use crate::ids::member_of;
use crate::shard::{Expected, HEAD_BYTES, StoredShard, Target, check_head};
use crate::store::{Cache, Head, Store};
use crate::{
    Attempt, Place, RunId, ShardId, ShardIdentity, ShardReader, ShardRecord, StorageError, WantedCopy,
};

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
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Folder(path) => path.into(),
            Self::Store(store, _) => store.place(),
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

    /// Requires that the run is in its place. A folder may be moved, unmounted or replaced while it is open. Costs a look
    /// at one file, or a request.
    ///
    /// # Errors
    ///
    /// [`StorageError::Away`], and those of reading a manifest.
    pub(crate) fn require_run(&self) -> Result<(), StorageError> {
        let manifest = match &self.home {
            Home::Folder(path) => Manifest::read(path),
            Home::Store(store, _) => Manifest::read_in_store(store),
        };
        let found = match manifest {
            Ok(manifest) if manifest.run_id == self.run => return Ok(()),
            Ok(_) => "another run",
            Err(StorageError::NotARun { .. } | StorageError::NotADirectory { .. }) => "no run",
            Err(error) => return Err(error),
        };
        Err(StorageError::Away { place: self.home.place(), run: self.run, found })
    }

    /// The error, or the one that says why the whole run is out of reach: then no shard of it is lost. Costs a look at one
    /// file, or a request, where the error may come of that.
    pub(crate) fn explain(&self, error: StorageError) -> StorageError {
        if error.blames().is_none() && !matches!(error, StorageError::Io { .. }) {
            return error;
        }
        self.require_run().err().unwrap_or(error)
    }

    /// Where a shard that an attempt makes is to be published.
    pub(crate) fn target(&self, identity: &ShardIdentity, attempt: Attempt) -> Target {
        self.target_of(identity.unique_name(attempt.opening, &attempt.which()))
    }

    /// Where a shard of this name is to be published.
    pub(super) fn target_of(&self, file: String) -> Target {
        match &self.home {
            Home::Folder(run) => Target::Folder { folder: run.join(SHARDS), file, run: self.clone() },
            Home::Store(store, cache) => {
                let object = format!("{SHARDS}/{file}");
                Target::Store { store: store.clone(), cache: cache.clone(), file, object }
            }
        }
    }

    /// Where a shard is or would be.
    #[must_use]
    pub fn place(&self, shard: &ShardId) -> Place {
        let place = match &self.home {
            Home::Folder(run) => file_of(run, shard).into(),
            Home::Store(store, _) => store.place_of(&object_of(shard)),
        };
        place.of_shard(shard.clone())
    }

    /// Opens the shard that a record names, which must be the one `expected`, and verifies its header and index. A
    /// shard in a store is fetched from there, unless there is a copy of it in the cache, or a peer gives one.
    ///
    /// # Errors
    ///
    /// As for [`ShardReader::open`]; [`StorageError::Foreign`] also if it is another shard than the record says.
    pub fn open(&self, record: &ShardRecord, expected: &ShardIdentity) -> Result<ShardReader, StorageError> {
        let committed = Expected::Committed(record, expected);
        let opened = match &self.home {
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

    /// The outcome of opening a shard, explained if the whole run is away.
    fn known(&self, opened: Result<ShardReader, StorageError>) -> Result<ShardReader, StorageError> {
        opened.map(|reader| reader.of_run(self.clone())).map_err(|error| self.explain(error))
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
            Home::Store(store, cache) => {
                self.known(self.stored(store, cache, record).fetch(Expected::Committed(record, expected)))
            }
        }
    }

    /// Looks whether the shards that records name are there, each with the length and the header that its record says
    /// and with its identity, in their order. What follows the headers is not looked at. Costs 104 bytes each, in a
    /// store a HEAD and a GET, some at once.
    ///
    /// # Errors
    ///
    /// For each shard: [`StorageError::ShardMissing`], [`StorageError::Damaged`], [`StorageError::Foreign`],
    /// [`StorageError::NewerVersion`] or a failure of the system or the store. For all together: a failure that keeps
    /// any of them from being looked at.
    pub fn look(
        &self,
        shards: &[(&ShardRecord, ShardIdentity)],
    ) -> Result<Vec<Result<(), StorageError>>, StorageError> {
        let check = |(record, identity): &(&ShardRecord, ShardIdentity), head: &[u8], file_bytes| {
            check_head(&self.place(&record.id()), head, file_bytes, record, identity)
        };
        let looked: Vec<Result<(), StorageError>> = match &self.home {
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
        // Where the whole run is away, none of its shards is lost.
        if looked.iter().any(|looked| looked.as_ref().is_err_and(|error| error.blames().is_some())) {
            self.require_run()?;
        }
        Ok(looked)
    }

    /// Reads every byte of the shard as it is in the store now, and keeps nothing of it: neither a copy in the cache
    /// nor room on the disk. For programs that check whole runs, which are larger than their disks.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), and [`StorageError::Damaged`] with the place of the first damaged frame.
    pub fn check(&self, record: &ShardRecord, expected: &ShardIdentity) -> Result<(), StorageError> {
        match &self.home {
            Home::Folder(_) => self.open(record, expected)?.verify(),
            Home::Store(store, cache) => {
                let checked = self.stored(store, cache, record).check(Expected::Committed(record, expected));
                checked.map_err(|error| self.explain(error))
            }
        }
    }

    /// What is asked of peers that may have a copy.
    fn wanted(&self, record: &ShardRecord) -> WantedCopy {
        let &ShardRecord { header_checksum, bytes, .. } = record;
        WantedCopy { run: self.run, header_checksum, bytes, writer: member_of(&record.file) }
    }

    fn stored(&self, store: &Arc<Store>, cache: &Arc<Cache>, record: &ShardRecord) -> StoredShard {
        let (place, object) = (self.place(&record.id()), object_of(&record.id()));
        let entry = cache.entry(self.run, record.header_checksum);
        StoredShard { store: Arc::clone(store), cache: Arc::clone(cache), place, object, entry }
    }
}

/// The file of a shard in a directory.
fn file_of(run: &Path, shard: &ShardId) -> PathBuf {
    run.join(SHARDS).join(shard.file())
}

/// The name within the run of the object of a shard.
fn object_of(shard: &ShardId) -> String {
    format!("{SHARDS}/{}", shard.file())
}

/// The first bytes of a file, and its length.
fn read_head(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let file = exact2048_files::open(path)?;
    let mut head = Vec::new();
    (&file).take(HEAD_BYTES.into()).read_to_end(&mut head)?;
    Ok((head, file.metadata()?.len()))
}
