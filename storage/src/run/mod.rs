//! A run directory: manifest, journal, shards, lock.

mod journal;
mod lock;
mod manifest;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::journal::Journal;
use self::lock::Lock;
use self::manifest::Manifest;
use crate::publish::{create_folder, list, parent_of, remove_temps, sync_folder};
use crate::{RunId, Scratch, StorageError};

const MANIFEST: &str = "manifest.json";
const JOURNAL: &str = "journal";
const SHARDS: &str = "shards";
const LOCK: &str = "lock";

/// An open run. Holds its journal in memory and, when opened for writing, its lock.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    manifest: Manifest,
    journal: Journal,
    /// `None` for a run opened for reading.
    lock: Option<Lock>,
}

impl RunDir {
    /// Makes `path`, which must not exist or be empty, a run with these immutable parameters, and opens it for
    /// writing. Folders above it are created as needed.
    ///
    /// What an earlier `create` left that ended early is completed, with the parameters now given.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyARun`], [`StorageError::NotEmpty`], [`StorageError::Locked`] or a failure of the
    /// system.
    pub fn create(path: &Path, params: &Value) -> Result<Self, StorageError> {
        check_unused(path)?;
        create_folder(path)?;
        sync_folder(parent_of(path))?; // the folder may be there from a `create` that ended before this
        let lock = Lock::acquire(path)?;
        // Again, now that nobody else can: another process may have just created the run.
        check_unused(path)?;
        remove_temps(path)?;
        create_folder(&path.join(JOURNAL))?;
        create_folder(&path.join(SHARDS))?;
        let manifest = Manifest::publish(path, params)?;
        let journal = Journal::replay(path.join(JOURNAL), manifest.run_id)?;
        Ok(Self { path: path.to_path_buf(), manifest, journal, lock: Some(lock) })
    }

    /// Opens the run at `path` for writing: takes the lock, reads the journal, and removes the temporary files of
    /// processes that ended early. The lock lasts until the value is dropped or the process ends.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotARun`], [`StorageError::Locked`], [`StorageError::NewerVersion`],
    /// [`StorageError::NotWritable`], [`StorageError::Damaged`], [`StorageError::Foreign`] or another failure of
    /// the system.
    pub fn open_for_writing(path: &Path) -> Result<Self, StorageError> {
        // First, so that no lock file appears in a folder that is no run.
        let manifest = Manifest::read(path)?;
        let lock = Lock::acquire(path)?;
        for folder in [JOURNAL, SHARDS] {
            create_folder(&path.join(folder))?; // copies of a run may lack empty folders
            remove_temps(&path.join(folder))?;
        }
        remove_temps(path)?;
        let journal = Journal::replay(path.join(JOURNAL), manifest.run_id)?;
        // The last writer may have ended between giving the last file its name and bringing that to the disk:
        // nothing may be built on a name that a loss of power could still take back.
        sync_folder(&path.join(JOURNAL))?;
        sync_folder(path)?;
        Ok(Self { path: path.to_path_buf(), manifest, journal, lock: Some(lock) })
    }

    /// Opens the run at `path` for reading, also while another process writes it. Shows the journal as it is now.
    ///
    /// # Errors
    ///
    /// As for [`open_for_writing`](Self::open_for_writing), without those of locking and writing.
    pub fn open_read_only(path: &Path) -> Result<Self, StorageError> {
        let manifest = Manifest::read(path)?;
        let journal = Journal::replay(path.join(JOURNAL), manifest.run_id)?;
        Ok(Self { path: path.to_path_buf(), manifest, journal, lock: None })
    }

    /// The directory, as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id drawn when the run was created.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.manifest.run_id
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

    /// Where the shard with this file name is or would be.
    #[must_use]
    pub fn shard_path(&self, file: &str) -> PathBuf {
        self.path.join(SHARDS).join(file)
    }

    /// Appends a record to the journal and returns its number. When this returns, it survives a loss of power.
    ///
    /// Costs a sync of the record and one of its folder: milliseconds.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`], [`StorageError::TooLarge`], [`StorageError::Full`],
    /// [`StorageError::Conflict`] or another failure of the system. After a failure it is uncertain whether the
    /// record is there, and every later call fails with [`StorageError::EarlierFailure`]: open the run again.
    pub fn commit(&mut self, record: &Value) -> Result<u64, StorageError> {
        self.check_writable()?;
        self.journal.append(record)
    }

    /// The committed records in order, number 0 first: those there were on opening and those committed since.
    #[must_use]
    pub fn records(&self) -> &[Value] {
        self.journal.records()
    }

    /// Bytes of all files of the run, by their lengths. Costs a listing of its folders.
    ///
    /// # Errors
    ///
    /// A failure of the system.
    pub fn bytes_on_disk(&self) -> Result<u64, StorageError> {
        let mut total = 0u64;
        for folder in [self.path.clone(), self.path.join(JOURNAL), self.path.join(SHARDS)] {
            for entry in list(&folder)? {
                total = total.saturating_add(entry.file_bytes()?);
            }
        }
        Ok(total)
    }

    /// Removes the shards whose file names are not in `referenced`, as interrupted or superseded work leaves
    /// them, and returns the bytes freed. Files that are not shards are left alone.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] or a failure of the system.
    pub fn remove_unreferenced_shards(&self, referenced: &HashSet<String>) -> Result<u64, StorageError> {
        let mut freed = 0u64;
        for entry in list(&self.writable_shards_folder()?)? {
            if entry.name.ends_with(".shard") && !entry.is_temp() && !referenced.contains(&entry.name) {
                freed = freed.saturating_add(entry.file_bytes()?);
                entry.remove()?;
            }
        }
        Ok(freed)
    }

    /// A file without a name on the disk of the run, for data that does not fit in memory.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] or a failure of the system.
    pub fn create_scratch(&self) -> Result<Scratch, StorageError> {
        self.check_writable()?;
        Scratch::create(&self.path)
    }

    pub(crate) fn writable_shards_folder(&self) -> Result<PathBuf, StorageError> {
        self.check_writable()?;
        Ok(self.path.join(SHARDS))
    }

    fn check_writable(&self) -> Result<(), StorageError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(StorageError::ReadOnly { path: self.path.clone() }),
        }
    }
}

/// Whether a run can be created at `path`: nothing is there but what a `create` that ended early leaves.
fn check_unused(path: &Path) -> Result<(), StorageError> {
    if !path.try_exists().map_err(|e| StorageError::read(path, e))? {
        return Ok(());
    }
    let not_empty =
        |found: &Path| Err(StorageError::NotEmpty { path: path.to_path_buf(), found: found.to_path_buf() });
    if !path.is_dir() {
        return not_empty(path);
    }
    if path.join(MANIFEST).exists() {
        return Err(StorageError::AlreadyARun { path: path.to_path_buf() });
    }
    for entry in list(path)? {
        match entry.name.as_str() {
            LOCK => {}
            _ if entry.is_temp() => {}
            JOURNAL | SHARDS if entry.path.is_dir() => {
                if let Some(inside) = list(&entry.path)?.first() {
                    return not_empty(&inside.path);
                }
            }
            _ => return not_empty(&entry.path),
        }
    }
    Ok(())
}
