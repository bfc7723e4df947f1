//! A run: manifest, journal, shards. In a directory also a lock, in a store also opening records.

mod files;
mod journal;
mod lock;
mod manifest;
mod opening;
mod shards;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_files::not_a_folder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::journal::Journal;
use self::lock::{Lock, may_be_lock};
use self::manifest::{Manifest, find_record};
use self::shards::Home;
pub use self::shards::Shards;
use crate::allowance::Allowance;
use crate::location::{Medium, StorePlace};
use crate::publish::{
    TempFile, create_folder, create_in_folder, list, parent_of, remove_temps, sync_folder, temp_target,
};
use crate::shard::Target;
use crate::store::Store;
use crate::{Location, Place, RunId, ShardIdentity, StorageError};

pub(crate) const MANIFEST: &str = "manifest.json";
const JOURNAL: &str = "journal";
const SHARDS: &str = "shards";
const LOCK: &str = "lock";

/// Objects looked at to tell an unused prefix from a used one: what an interrupted probe leaves does not count.
const LOOKED_AT: usize = 100;

/// An open run whose journal holds any JSON.
pub type RunDir = TypedRun<Value>;

/// An open run, in a directory or in a store, whose journal holds records of type `R`. It holds them in memory until they
/// are [taken](Self::take_records).
#[derive(Debug)]
pub struct TypedRun<R> {
    /// The directory, or the URL of the prefix.
    place: Place,
    home: Home,
    manifest: Manifest,
    journal: Journal<R>,
    /// What it may take of the disk, where that is limited.
    allowance: Option<Arc<Allowance>>,
    /// `None` for a run opened for reading.
    writer: Option<Writer>,
}

/// What the manifest of a run says of its contents.
#[derive(Clone, PartialEq, Debug)]
pub struct RunInfo {
    /// The version of what manifest, journal and items mean.
    pub format_version: u32,
    /// The parameters given when the run was created.
    pub params: Value,
}

/// What makes this process the one that may write.
#[derive(Debug)]
struct Writer {
    /// The lock of a directory, for as long as this lives.
    _lock: Option<Lock>,
    opening: Option<Opened>,
}

/// The number of its opening record, and the shards begun so far.
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
    /// Makes a place that holds nothing a run with these immutable parameters, and opens it for writing. Folders
    /// above a directory are created as needed; a bucket must exist.
    ///
    /// What an earlier `create` that ended early left in a directory is completed, with the parameters now given.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyARun`], [`StorageError::NotEmpty`], [`StorageError::Locked`],
    /// [`StorageError::UnsafeStore`] or a failure of the system or the store.
    pub fn create(location: impl Into<Location>, params: &Value) -> Result<Self, StorageError> {
        match location.into().0 {
            Medium::Folder(path) => Self::create_folder(&path, params),
            Medium::Store(place) => Self::create_in_store(&place, params),
        }
    }

    fn create_folder(path: &Path, params: &Value) -> Result<Self, StorageError> {
        check_unused(path)?;
        create_folder(path)?;
        sync_folder(parent_of(path))?; // the folder may be there from a `create` that ended before this
        let lock = Lock::acquire(path)?;
        // Again, now that nobody else can: another process may have just created the run.
        check_unused(path)?;
        create_folder(&path.join(JOURNAL))?;
        create_folder(&path.join(SHARDS))?;
        let manifest = Manifest::publish(path, params)?;
        // Not before the manifest made this process the run's creator: where the lock is granted twice, the files may
        // be another's.
        remove_temps(path)?;
        Self::in_folder(path, manifest, Some(Writer::locked(lock)))
    }

    /// Requires that [`create`](Self::create) could make a run of a place: it is not there, or holds nothing. Changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyARun`], [`StorageError::NotEmpty`] or a failure of the system or the store.
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

    /// Opens a run for writing. In a directory that takes the lock, which lasts until the value is dropped or the
    /// process ends, and removes what processes that ended early left of records. In a store it checks that
    /// the store can be trusted and appends an opening record: no process that opened the run before can commit any
    /// more.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotARun`], [`StorageError::Locked`], [`StorageError::NewerVersion`],
    /// [`StorageError::NotWritable`], [`StorageError::Damaged`], [`StorageError::Foreign`],
    /// [`StorageError::UnsafeStore`], [`StorageError::NotUnderstood`] for a record that is not of type `R`, or another
    /// failure of the system or the store.
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

    /// As [`open_for_writing`](Self::open_for_writing), if the journal is as it is expected to be: `is_expected` is told how
    /// many entries it has, those of openings included, and the last one, if that is a record. Else nothing is changed, and
    /// nobody is kept from writing.
    ///
    /// # Errors
    ///
    /// As for [`open_for_writing`](Self::open_for_writing), and [`StorageError::TakenOver`] where somebody has opened the run
    /// in a store at the same time.
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
        // First, so that no lock file appears in a folder that is no run.
        let manifest = Manifest::read(path)?;
        require_folders(path)?;
        let lock = Lock::acquire(path)?;
        for folder in [JOURNAL, SHARDS] {
            // Copies of a run may lack empty folders. The run itself is not made again where it has just vanished.
            create_in_folder(&path.join(folder))?;
        }
        // Not those of shards: members of a cluster write them, and may be at it.
        remove_temps(&path.join(JOURNAL))?;
        remove_temps(path)?;
        let run = Self::in_folder(path, manifest, Some(Writer::locked(lock)))?;
        // The last writer may have ended between giving the last file its name and bringing that to the disk:
        // nothing may be built on a name that a loss of power could still take back.
        sync_folder(&path.join(JOURNAL))?;
        sync_folder(path)?;
        Ok(run)
    }

    /// Opens a run for reading, also while another process writes it. Shows the journal as it is now.
    ///
    /// # Errors
    ///
    /// As for [`open_for_writing`](Self::open_for_writing), without those of locking and writing.
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

    /// What the manifest of the run at a location says, `None` if there is no run. Reads nothing else.
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

    /// Requires that a place holds the run with this id, as [`require_place`](Self::require_place) does of an open run.
    ///
    /// # Errors
    ///
    /// As for [`require_place`](Self::require_place).
    pub fn require_at(location: &Location, run: RunId) -> Result<(), StorageError> {
        let home = match &location.0 {
            Medium::Folder(path) => Home::Folder(path.clone()),
            Medium::Store(place) => Home::Store(Arc::clone(&place.store), place.open_cache()?),
        };
        Shards::new(home, run).require_run()
    }

    fn in_folder(path: &Path, manifest: Manifest, writer: Option<Writer>) -> Result<Self, StorageError> {
        let journal = Journal::replay(path.join(JOURNAL), manifest.run_id)?;
        let (home, place) = (Home::Folder(path.to_path_buf()), path.into());
        Ok(Self { home, place, manifest, journal, allowance: None, writer })
    }

    /// The run in a store, for reading.
    fn in_store(place: &StorePlace, manifest: Manifest) -> Result<Self, StorageError> {
        let store = &place.store;
        let journal = Journal::replay_store(Arc::clone(store), manifest.run_id)?;
        let home = Home::Store(Arc::clone(store), place.open_cache()?);
        Ok(Self { place: store.place(), home, manifest, journal, allowance: None, writer: None })
    }

    /// The run of a store, for writing from now on.
    fn opened(mut self) -> Result<Self, StorageError> {
        let number = self.journal.open()?;
        Ok(self.opened_at(number))
    }

    /// The run of a store whose opening record has this number.
    fn opened_at(mut self, number: u64) -> Self {
        let opening = Some(Opened { number, shards: AtomicU64::new(0) });
        self.writer = Some(Writer { _lock: None, opening });
        self
    }

    /// Lets other processes make shards that this one commits, and returns the number of its opening record, which
    /// they name in their [`Attempt`](crate::Attempt)s.
    ///
    /// A store has that record already. In a directory it is appended now: besides the lock, which some shared file
    /// systems do not keep between machines, it fences earlier writers off.
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

    /// Where the run is, as it was given.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Who has the run open for writing at the moment, in words; `None` where nobody has, or where that is not known:
    /// in a store, or where locks are of one machine and the writer is on another.
    ///
    /// # Errors
    ///
    /// Where what has the name of the lock is no file: nobody could open the run for writing.
    pub fn held_by(&self) -> Result<Option<String>, StorageError> {
        match &self.home {
            Home::Folder(path) => lock::held_by(path),
            Home::Store(..) => Ok(None),
        }
    }

    /// The id drawn when the run was created.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.manifest.run_id
    }

    /// The version of what manifest, journal and items mean.
    #[must_use]
    pub fn format_version(&self) -> u32 {
        self.manifest.format_version
    }

    /// The parameters given when the run was created.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.manifest.params
    }

    /// The program and version that created the run.
    #[must_use]
    pub fn created_by(&self) -> &str {
        &self.manifest.created_by
    }

    /// The shards of the run, to open them.
    #[must_use]
    pub fn shards(&self) -> Shards {
        Shards::new(self.home.clone(), self.manifest.run_id)
    }

    /// A folder of this machine for files that need not outlive the process: the directory of the run, or the cache
    /// of its store.
    #[must_use]
    pub fn scratch_folder(&self) -> &Path {
        match &self.home {
            Home::Folder(path) => path,
            Home::Store(_, cache) => cache.folder(),
        }
    }

    /// Appends a record to the journal and returns its number. When this returns, it survives a loss of power.
    ///
    /// Costs a sync of the record and one of its folder, or a request: milliseconds.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`], [`StorageError::Away`], [`StorageError::TooLarge`], [`StorageError::Full`],
    /// [`StorageError::Conflict`], [`StorageError::TakenOver`] or another failure of the system or the store. After a
    /// failure of the last kind it is uncertain whether the record is there, and every later call fails with
    /// [`StorageError::EarlierFailure`]: open the run again.
    pub fn commit(&mut self, record: &R) -> Result<u64, StorageError> {
        self.require_own_folder()?;
        self.journal.append(record, self.allowance.as_deref())
    }

    /// Requires that this process is still the one that may write, as far as the journal says: it holds nothing that
    /// another has written since. What this process wrote itself in a call of [`commit`](Self::commit) that failed
    /// counts as another's. The run has to be in its place for that. Costs a look at some files, or two requests.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`], [`StorageError::TakenOver`], [`StorageError::Conflict`]; [`StorageError::Away`] or a
    /// failure of the system or the store, which says nothing of who may write.
    pub fn confirm(&self) -> Result<(), StorageError> {
        self.writer()?;
        self.journal.confirm()?;
        match &self.home {
            Home::Folder(_) => self.require_own_folder(),
            Home::Store(..) => self.require_place(),
        }
    }

    /// Requires that something can be written in the place of the run, as far as a directory lets that be tried: its file
    /// system may be read-only by now.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotWritable`], [`StorageError::Full`] or another failure of the system.
    pub fn require_writable(&self) -> Result<(), StorageError> {
        match &self.home {
            Home::Folder(path) => TempFile::create(path, LOCK).map(drop),
            Home::Store(..) => Ok(()),
        }
    }

    /// Reads what another process has committed since this was opened or read again.
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`], [`StorageError::Foreign`] or another failure of the system or the store.
    pub fn reread(&mut self) -> Result<(), StorageError> {
        self.journal.catch_up()
    }

    /// Requires that the run which was opened is still in its place: it may have been moved away or removed, and another
    /// one made there. Costs a look at one file, or a request.
    ///
    /// # Errors
    ///
    /// [`StorageError::Away`], and those of reading a manifest.
    pub fn require_place(&self) -> Result<(), StorageError> {
        self.shards().require_run()
    }

    /// Requires of a directory that what is about to be written there goes to this run: nothing is added to another run, to
    /// an older copy of this one, or to an empty folder. In a store each object has its name once.
    fn require_own_folder(&self) -> Result<(), StorageError> {
        self.writer()?;
        match &self.home {
            Home::Folder(_) => self.require_place().and_then(|()| self.journal.require_last()),
            Home::Store(..) => Ok(()),
        }
    }

    /// The committed records in order, number 0 first: those there were on opening and those committed since. Without
    /// those that were taken.
    #[must_use]
    pub fn records(&self) -> &[R] {
        self.journal.records()
    }

    /// The [`records`](Self::records) with the numbers that they have in the journal. This value holds them no longer.
    pub fn take_records(&mut self) -> Vec<(u64, R)> {
        self.journal.take_records()
    }

    /// How many records the journal had, those of openings included, before this process opened the run for writing or,
    /// where that takes no record, as far as it was read.
    #[must_use]
    pub fn records_before(&self) -> u64 {
        let opening = self.writer.as_ref().and_then(|writer| writer.opening.as_ref());
        opening.map_or(self.journal.next(), |opened| opened.number)
    }

    /// Where the next shard is to be published. Every call gives another name where there is an opening record.
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

/// Requires that the folders of a run are folders, as far as they are there: copies of runs may lack empty ones.
fn require_folders(run: &Path) -> Result<(), StorageError> {
    for path in [JOURNAL, SHARDS].map(|name| run.join(name)) {
        if let Some(found) = not_a_folder(&path).map_err(|e| StorageError::read(&path, e))? {
            return Err(StorageError::NotAFolder { folder: path.into(), found });
        }
    }
    Ok(())
}

/// Whether a run can be created at `path`: nothing is there but what a `create` that ended early leaves.
fn check_unused(path: &Path) -> Result<(), StorageError> {
    if !path.try_exists().map_err(|e| StorageError::read(path, e))? {
        return Ok(());
    }
    let not_empty = |found: &Path| Err(StorageError::NotEmpty { place: path.into(), found: found.into() });
    if !path.is_dir() {
        return Err(StorageError::NotADirectory { place: path.into() });
    }
    if path.join(MANIFEST).exists() {
        return Err(StorageError::AlreadyARun { place: path.into() });
    }
    for entry in list(path)? {
        match entry.name.as_str() {
            LOCK if may_be_lock(&entry.path) => {}
            _ if entry.is_temp() => {}
            JOURNAL | SHARDS if entry.path.is_dir() => {
                if let Some(found) = find_record(path)? {
                    // Another process may have created the run since: then its manifest was there before its records.
                    if path.join(MANIFEST).exists() {
                        return Err(StorageError::AlreadyARun { place: path.into() });
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

/// The same for a prefix of a store.
fn check_unused_in_store(store: &Store) -> Result<(), StorageError> {
    let listed = store.list(None, Some(LOOKED_AT))?;
    let found = listed.iter().find(|object| temp_target(&object.name).is_none());
    // In this order: another process may create the run in this moment, its manifest first.
    if store.read(MANIFEST)?.is_some() {
        return Err(StorageError::AlreadyARun { place: store.place() });
    }
    if let Some(object) = found {
        let (place, found) = (store.place(), store.place_of(&object.name));
        return Err(StorageError::NotEmpty { place, found });
    }
    Ok(())
}
