//! A run: manifest, journal and shards, plus a lock in a directory or opening records in a store.

mod files;
mod journal;
mod lock;
mod opening;
mod shards;
mod writers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_files::not_a_folder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::journal::Journal;
use self::lock::{Lock, may_be_lock};
pub use self::shards::Shards;
use crate::allowance::Allowance;
use crate::home::{Home, RunPlace};
use crate::location::{Medium, StorePlace};
use crate::manifest::{Manifest, find_record};
use crate::names::{JOURNAL, LOCK, MANIFEST, SHARDS};
use crate::publish::{
    TempFile, create_folder, create_in_folder, list, parent_of, remove_temps, sync_folder, temp_target,
};
use crate::shard::Target;
use crate::store::Store;
use crate::{Location, Place, RunId, ShardIdentity, StorageError};

/// Largest number of objects listed to check that a prefix is unused. Leftovers of an interrupted check of the
/// store do not count as use.
const LOOKED_AT: usize = 100;

/// An open run with a journal of arbitrary JSON.
pub type RunDir = TypedRun<Value>;

/// An open run, in a directory or in a store, with a journal of records of type `R`.
///
/// Holds the records in memory until they are [taken](Self::take_records).
#[derive(Debug)]
pub struct TypedRun<R> {
    /// The directory, or the URL of the prefix.
    place: Place,
    home: Home,
    manifest: Manifest,
    journal: Journal<R>,
    /// Disk limit, if set.
    allowance: Option<Arc<Allowance>>,
    /// `None` if the run is open for reading only.
    writer: Option<Writer>,
}

/// Contents of a run's manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct RunInfo {
    /// Format version of manifest, journal and items.
    pub format_version: u32,
    /// The parameters given when the run was created.
    pub params: Value,
}

/// This process's right to write the run.
#[derive(Debug)]
struct Writer {
    /// Lock of a directory, held as long as this value exists.
    _lock: Option<Lock>,
    opening: Option<Opened>,
}

/// Number of this process's opening record, and number of shards begun since.
#[derive(Debug)]
struct Opened {
    number: u64,
    shards: AtomicU64,
}

impl Writer {
    fn locked(lock: Lock) -> Self {
        Self { _lock: Some(lock), opening: None }
    }
}

impl<R: Serialize + DeserializeOwned + Clone> TypedRun<R> {
    /// Creates a run with these immutable parameters in an empty place, and opens it for writing.
    ///
    /// Creates missing parent folders of a directory; a bucket must exist. If an earlier `create` in a directory was
    /// interrupted, completes it with these parameters.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyARun`], [`StorageError::NotEmpty`], [`StorageError::Locked`],
    /// [`StorageError::UnsafeStore`] or an I/O or store error.
    pub fn create(location: impl Into<Location>, params: &Value) -> Result<Self, StorageError> {
        match location.into().0 {
            Medium::Folder(path) => Self::create_folder(&path, params),
            Medium::Store(place) => Self::create_in_store(&place, params),
        }
    }

    fn create_folder(path: &Path, params: &Value) -> Result<Self, StorageError> {
        check_unused(path)?;
        create_folder(path)?;
        sync_folder(parent_of(path))?; // an interrupted `create` may have left the folder unsynced
        let lock = Lock::acquire(path)?;
        // Check again under the lock, because another process may have just created the run.
        check_unused(path)?;
        create_folder(&path.join(JOURNAL))?;
        create_folder(&path.join(SHARDS))?;
        let manifest = Manifest::publish(path, params)?;
        // Remove temporary files only after the manifest made this process the run's creator. If the lock was granted
        // twice, earlier temporary files may belong to another process.
        remove_temps(path)?;
        Self::in_folder(path, manifest, Some(Writer::locked(lock)))
    }

    /// Checks that a location is missing or empty, as [`create`](Self::create) requires. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyARun`], [`StorageError::NotEmpty`] or an I/O or store error.
    pub fn require_unused(location: impl Into<Location>) -> Result<(), StorageError> {
        match location.into().0 {
            Medium::Folder(path) => check_unused(&path),
            Medium::Store(place) => check_unused_in_store(&place.store),
        }
    }

    fn create_in_store(place: &StorePlace, params: &Value) -> Result<Self, StorageError> {
        let store = &place.store;
        check_unused_in_store(store)?;
        store.probe()?;
        let manifest = Manifest::publish_in_store(store, params)?;
        Self::in_store(place, manifest)?.opened()
    }

    /// Opens a run for writing.
    ///
    /// In a directory, holds the lock until the value is dropped or the process ends. Removes temporary records of
    /// interrupted processes. In a store, checks that the store does not overwrite objects, and appends an opening
    /// record. After that record, no process that opened the run earlier can commit.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotARun`], [`StorageError::Locked`], [`StorageError::NewerVersion`],
    /// [`StorageError::NotWritable`], [`StorageError::Damaged`], [`StorageError::Foreign`],
    /// [`StorageError::UnsafeStore`], [`StorageError::NotUnderstood`] for a record that is not of type `R`, or
    /// another I/O or store error.
    pub fn open_for_writing(location: impl Into<Location>) -> Result<Self, StorageError> {
        match location.into().0 {
            Medium::Folder(path) => Self::open_folder_for_writing(&path),
            Medium::Store(place) => {
                let manifest = Manifest::read_in_store(&place.store)?;
                place.store.probe()?;
                Self::in_store(&place, manifest)?.opened()
            }
        }
    }

    /// Opens the run as [`open_for_writing`](Self::open_for_writing) does, but only if its journal is as expected.
    ///
    /// `is_expected` receives the number of entries, including opening records, and the last entry unless it is an
    /// opening record. If `is_expected` returns `false`, the journal stays unchanged and other processes can still
    /// write.
    ///
    /// # Errors
    ///
    /// As for [`open_for_writing`](Self::open_for_writing), and [`StorageError::TakenOver`] if another process opened
    /// the run in a store at the same time.
    pub fn open_for_writing_if(
        location: impl Into<Location>,
        is_expected: &dyn Fn(u64, Option<&R>) -> bool,
    ) -> Result<Option<Self>, StorageError> {
        let is_expected = |run: &Self| is_expected(run.journal.next(), run.journal.last());
        match location.into().0 {
            Medium::Folder(path) => {
                let run = Self::open_folder_for_writing(&path)?;
                Ok(is_expected(&run).then_some(run))
            }
            Medium::Store(place) => {
                let manifest = Manifest::read_in_store(&place.store)?;
                place.store.probe()?;
                let mut run = Self::in_store(&place, manifest)?;
                if !is_expected(&run) {
                    return Ok(None);
                }
                let number = run.journal.open_as_it_is()?;
                Ok(Some(run.opened_at(number)))
            }
        }
    }

    fn open_folder_for_writing(path: &Path) -> Result<Self, StorageError> {
        // Read the manifest first, so no lock file appears in a folder without a run.
        let manifest = Manifest::read(path)?;
        require_folders(path)?;
        let lock = Lock::acquire(path)?;
        for folder in [JOURNAL, SHARDS] {
            // Copies of a run may lack empty folders. `create_in_folder` does not recreate a run that was just deleted.
            create_in_folder(&path.join(folder))?;
        }
        // Keep temporary shards, because members of a cluster may still be writing them.
        remove_temps(&path.join(JOURNAL))?;
        remove_temps(path)?;
        let run = Self::in_folder(path, manifest, Some(Writer::locked(lock)))?;
        // The last writer may have ended between naming its last file and syncing the folder. New commits must not
        // depend on a name that a power loss can still remove.
        sync_folder(&path.join(JOURNAL))?;
        sync_folder(path)?;
        Ok(run)
    }

    /// Opens a run for reading, even while another process writes it. Reads the journal once, during this call.
    ///
    /// # Errors
    ///
    /// As for [`open_for_writing`](Self::open_for_writing), without the errors of locking and writing.
    pub fn open_read_only(location: impl Into<Location>) -> Result<Self, StorageError> {
        match location.into().0 {
            Medium::Folder(path) => {
                let manifest = Manifest::read(&path)?;
                require_folders(&path)?;
                Self::in_folder(&path, manifest, None)
            }
            Medium::Store(place) => Self::in_store(&place, Manifest::read_in_store(&place.store)?),
        }
    }

    /// Reads only the manifest of the run at a location; `None` if there is no run.
    ///
    /// # Errors
    ///
    /// As for [`open_read_only`](Self::open_read_only).
    pub fn find(location: impl Into<Location>) -> Result<Option<RunInfo>, StorageError> {
        let manifest = match location.into().0 {
            Medium::Folder(path) => Manifest::read(&path),
            Medium::Store(place) => Manifest::read_in_store(&place.store),
        };
        match manifest {
            Ok(Manifest { format_version, params, .. }) => Ok(Some(RunInfo { format_version, params })),
            Err(StorageError::NotARun { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks that a location holds the run with this id, as [`require_place`](Self::require_place) does for an open
    /// run.
    ///
    /// # Errors
    ///
    /// As for [`require_place`](Self::require_place).
    pub fn require_at(location: &Location, run: RunId) -> Result<(), StorageError> {
        let home = match &location.0 {
            Medium::Folder(path) => Home::Folder(path.clone()),
            Medium::Store(place) => Home::Store(Arc::clone(&place.store), place.open_cache()?),
        };
        RunPlace { home, run }.require_run()
    }

    fn in_folder(path: &Path, manifest: Manifest, writer: Option<Writer>) -> Result<Self, StorageError> {
        let journal = Journal::replay(path.join(JOURNAL), manifest.run_id)?;
        let (home, place) = (Home::Folder(path.to_path_buf()), path.into());
        Ok(Self { home, place, manifest, journal, allowance: None, writer })
    }

    /// Opens the run in a store for reading.
    fn in_store(place: &StorePlace, manifest: Manifest) -> Result<Self, StorageError> {
        let store = &place.store;
        let journal = Journal::replay_store(Arc::clone(store), manifest.run_id)?;
        let home = Home::Store(Arc::clone(store), place.open_cache()?);
        Ok(Self { place: store.place(), home, manifest, journal, allowance: None, writer: None })
    }

    /// Makes this process the writer of the run in a store.
    fn opened(mut self) -> Result<Self, StorageError> {
        let number = self.journal.open()?;
        Ok(self.opened_at(number))
    }

    /// Makes this process the writer of the run in a store, with this opening record.
    fn opened_at(mut self, number: u64) -> Self {
        let opening = Some(Opened { number, shards: AtomicU64::new(0) });
        self.writer = Some(Writer { _lock: None, opening });
        self
    }

    /// Lets other processes write shards for this process to commit, and returns the number of its opening record.
    ///
    /// The other processes name that number in their [`Attempt`](crate::Attempt)s. In a store the record already
    /// exists; in a directory this call appends it. The record fences off earlier writers even if a shared file system
    /// does not enforce the lock between machines.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn share(&mut self) -> Result<u64, StorageError> {
        if let Some(opened) = &self.writer()?.opening {
            return Ok(opened.number);
        }
        self.require_own_folder()?;
        let number = self.journal.open()?;
        if let Some(writer) = &mut self.writer {
            writer.opening = Some(Opened { number, shards: AtomicU64::new(0) });
        }
        Ok(number)
    }

    /// Place of the run, as the caller gave it.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Describes the process that has the run open for writing; `None` if there is no such process or it is unknown.
    ///
    /// The process is unknown in a store. It is also unknown if locks are local to a machine and the writer runs on
    /// another machine.
    ///
    /// # Errors
    ///
    /// An error if the lock is not a file. In that case no process can open the run for writing.
    pub fn held_by(&self) -> Result<Option<String>, StorageError> {
        match &self.home {
            Home::Folder(path) => lock::held_by(path),
            Home::Store(..) => Ok(None),
        }
    }

    /// Id drawn when the run was created.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.manifest.run_id
    }

    /// Format version of manifest, journal and items.
    #[must_use]
    pub fn format_version(&self) -> u32 {
        self.manifest.format_version
    }

    /// Parameters given when the run was created.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.manifest.params
    }

    /// Program and version that created the run.
    #[must_use]
    pub fn created_by(&self) -> &str {
        &self.manifest.created_by
    }

    /// Returns a handle that opens the shards of the run.
    #[must_use]
    pub fn shards(&self) -> Shards {
        Shards::new(self.home.clone(), self.manifest.run_id)
    }

    /// Returns a local folder for temporary files: the directory of the run, or the cache of its store.
    #[must_use]
    pub fn scratch_folder(&self) -> &Path {
        match &self.home {
            Home::Folder(path) => path,
            Home::Store(_, cache) => cache.folder(),
        }
    }

    /// Appends a record to the journal and returns its number. After this call, the record survives a power loss.
    ///
    /// Costs milliseconds: a sync of the record and one of its folder, or a request.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`], [`StorageError::Away`], [`StorageError::TooLarge`], [`StorageError::Full`],
    /// [`StorageError::Conflict`], [`StorageError::TakenOver`] or another I/O or store error. After an I/O or store
    /// error, the record may or may not exist. Every later call then fails with [`StorageError::EarlierFailure`] until
    /// the run is opened again.
    pub fn commit(&mut self, record: &R) -> Result<u64, StorageError> {
        self.require_own_folder()?;
        self.journal.append(record, self.allowance.as_deref())
    }

    /// Checks that this process may still write: the run is in place, and the journal has no later record.
    ///
    /// A record from this process's own failed [`commit`](Self::commit) counts as a record of another writer. Costs
    /// reading some files, or two requests.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`], [`StorageError::TakenOver`], [`StorageError::Conflict`]. [`StorageError::Away`] and
    /// I/O or store errors do not show whether this process may still write.
    pub fn confirm(&self) -> Result<(), StorageError> {
        self.writer()?;
        self.journal.confirm()?;
        match &self.home {
            Home::Folder(_) => self.require_own_folder(),
            Home::Store(..) => self.require_place(),
        }
    }

    /// Checks that the run's directory is writable, because its file system may have become read-only.
    ///
    /// Does nothing for a store.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotWritable`], [`StorageError::Full`] or another I/O error.
    pub fn require_writable(&self) -> Result<(), StorageError> {
        match &self.home {
            Home::Folder(path) => TempFile::create(path, LOCK).map(drop),
            Home::Store(..) => Ok(()),
        }
    }

    /// Reads the records that another process has committed since the last read.
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`], [`StorageError::Foreign`] or another I/O or store error.
    pub fn reread(&mut self) -> Result<(), StorageError> {
        self.journal.catch_up()
    }

    /// Checks that the opened run is still in its place, because it may have been moved, removed or replaced.
    ///
    /// Costs reading one file, or a request.
    ///
    /// # Errors
    ///
    /// [`StorageError::Away`], and errors of reading a manifest.
    pub fn require_place(&self) -> Result<(), StorageError> {
        self.shards().0.require_run()
    }

    /// Checks that the next write to a directory reaches this run, not another run, an older copy or an empty folder.
    ///
    /// A store needs no check because each object name is used only once.
    fn require_own_folder(&self) -> Result<(), StorageError> {
        self.writer()?;
        match &self.home {
            Home::Folder(_) => self.require_place().and_then(|()| self.journal.require_last()),
            Home::Store(..) => Ok(()),
        }
    }

    /// Committed records in order, starting with number 0. Includes records committed since opening, and omits
    /// [taken](Self::take_records) records.
    #[must_use]
    pub fn records(&self) -> &[R] {
        self.journal.records()
    }

    /// Removes the [`records`](Self::records) from memory and returns them with their numbers in the journal.
    pub fn take_records(&mut self) -> Vec<(u64, R)> {
        self.journal.take_records()
    }

    /// Number of journal entries, including opening records, before this process's opening record.
    ///
    /// If this process has no opening record, returns the number of entries read so far.
    #[must_use]
    pub fn records_before(&self) -> u64 {
        let opening = self.writer.as_ref().and_then(|writer| writer.opening.as_ref());
        opening.map_or(self.journal.next(), |opened| opened.number)
    }

    /// Returns the target of the next shard. If this process has an opening record, every call returns a different
    /// name.
    pub(crate) fn shard_target(&self, identity: &ShardIdentity) -> Result<Target, StorageError> {
        let file = match &self.writer()?.opening {
            Some(opened) => {
                let nth = opened.shards.fetch_add(1, Ordering::Relaxed);
                identity.unique_name(opened.number, &nth.to_string())
            }
            None => identity.file_name(),
        };
        Ok(self.shards().target_of(file))
    }

    fn writer(&self) -> Result<&Writer, StorageError> {
        self.writer.as_ref().ok_or_else(|| StorageError::ReadOnly { place: self.place.clone() })
    }
}

/// Checks that the folders of a run, if present, are directories. Copies of runs may lack empty folders.
fn require_folders(run: &Path) -> Result<(), StorageError> {
    for path in [JOURNAL, SHARDS].map(|name| run.join(name)) {
        if let Some(found) = not_a_folder(&path).map_err(|e| StorageError::read(&path, e))? {
            return Err(StorageError::NotAFolder { folder: path.into(), found });
        }
    }
    Ok(())
}

/// Checks that `path` is unused: it may contain only leftovers of an interrupted `create`.
fn check_unused(path: &Path) -> Result<(), StorageError> {
    if !path.try_exists().map_err(|e| StorageError::read(path, e))? {
        return Ok(());
    }
    let has_manifest = || path.join(MANIFEST).exists();
    let already_a_run = || Err(StorageError::AlreadyARun { place: path.into() });
    // Another process may create the run meanwhile. It writes the manifest before any record.
    let not_empty = |found: &Path| match has_manifest() {
        true => already_a_run(),
        false => Err(StorageError::NotEmpty { place: path.into(), found: found.into() }),
    };
    if !path.is_dir() {
        return Err(StorageError::NotADirectory { place: path.into() });
    }
    if has_manifest() {
        return already_a_run();
    }
    for entry in list(path)? {
        match entry.name.as_str() {
            LOCK if may_be_lock(&entry.path) => {}
            _ if entry.is_temp() => {}
            JOURNAL | SHARDS if entry.path.is_dir() => {
                if let Some(found) = find_record(path)? {
                    if has_manifest() {
                        return already_a_run();
                    }
                    return Err(StorageError::ManifestMissing { place: path.into(), found: found.into() });
                }
                if let Some(inside) = list(&entry.path)?.first() {
                    return not_empty(&inside.path);
                }
            }
            _ => return not_empty(&entry.path),
        }
    }
    Ok(())
}

/// Checks that a run can be created in a store.
fn check_unused_in_store(store: &Store) -> Result<(), StorageError> {
    let listed = store.list(None, Some(LOOKED_AT))?;
    let found = listed.iter().find(|object| temp_target(&object.name).is_none());
    // Read the manifest after the list, because another process may be creating the run and writes the manifest first.
    if store.read(MANIFEST)?.is_some() {
        return Err(StorageError::AlreadyARun { place: store.place() });
    }
    if let Some(object) = found {
        let (place, found) = (store.place(), store.place_of(&object.name));
        return Err(StorageError::NotEmpty { place, found });
    }
    Ok(())
}
