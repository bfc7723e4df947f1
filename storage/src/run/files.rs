//! Files and objects of a run: their sizes, their limit and their removal.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::TypedRun;
use crate::allowance::{Allowance, file_cost};
use crate::crash_points::crash_point;
use crate::home::Home;
use crate::ids::writer_of;
use crate::mapped::ScratchPlace;
use crate::names::{JOURNAL, SHARDS};
use crate::publish::{Listed, list, list_if_there};
use crate::{ShardName, ShardRecord, StorageError};

impl<R: Serialize + DeserializeOwned + Clone> TypedRun<R> {
    /// Limits the disk or store space of the run, starting with this call.
    ///
    /// The limit covers writes through this value, its shard writers and its counted scratch files. Costs one listing
    /// of the files.
    ///
    /// # Errors
    ///
    /// An I/O or store error.
    pub fn limit_disk(&mut self, limit_bytes: u64) -> Result<(), StorageError> {
        let taken = self.taken_bytes()?;
        self.allowance = Some(Arc::new(Allowance::new(self.place.clone(), limit_bytes, taken)));
        Ok(())
    }

    /// Disk or store space of the run, including unreferenced files. Costs one listing of the files.
    ///
    /// # Errors
    ///
    /// An I/O or store error.
    pub fn taken_bytes(&self) -> Result<u64, StorageError> {
        Ok(self.files()?.into_iter().map(file_cost).sum())
    }

    /// Disk limit of the run, if set.
    #[must_use]
    pub fn allowance(&self) -> Option<&Arc<Allowance>> {
        self.allowance.as_ref()
    }

    /// Counts shards written by other processes towards the disk limit, if set.
    pub fn count_shards(&self, shards: &[ShardRecord]) {
        if let Some(allowance) = &self.allowance {
            allowance.add(shards.iter().map(|shard| file_cost(shard.bytes)).sum());
        }
    }

    /// Returns a local folder for scratch files. They count towards the limit only if the run is in a directory.
    #[must_use]
    pub fn scratch(&self) -> ScratchPlace {
        let allowance = match &self.home {
            Home::Folder(_) => self.allowance.clone(),
            Home::Store(..) => None,
        };
        ScratchPlace::within(self.scratch_folder().to_path_buf(), allowance)
    }

    /// Total length in bytes of all files or objects of the run. Costs one listing.
    ///
    /// # Errors
    ///
    /// An I/O or store error.
    pub fn bytes_on_disk(&self) -> Result<u64, StorageError> {
        Ok(self.files()?.into_iter().fold(0, u64::saturating_add))
    }

    /// Lengths of all files or objects of the run.
    fn files(&self) -> Result<Vec<u64>, StorageError> {
        let mut files = Vec::new();
        match &self.home {
            Home::Folder(path) => {
                for folder in [path.clone(), path.join(JOURNAL), path.join(SHARDS)] {
                    for entry in list_if_there(&folder)? {
                        files.push(entry.file_bytes()?);
                    }
                }
            }
            Home::Store(store, _) => {
                files.extend(store.list(None, None)?.into_iter().map(|object| object.bytes));
            }
        }
        Ok(files)
    }

    /// Removes shards that no record needs any longer. A reader that holds the file open can still read the shard.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] or an I/O or store error. A later
    /// [`remove_unreferenced_shards`](Self::remove_unreferenced_shards) removes the remaining shards.
    pub fn remove_needless_shards(&self, shards: &[ShardRecord]) -> Result<(), StorageError> {
        self.require_own_folder()?;
        crash_point!("removal.committed");
        let files = shards.iter().map(|shard| shard.id().file().to_owned());
        match &self.home {
            Home::Folder(path) => {
                for name in files {
                    let file = Listed { path: path.join(SHARDS).join(&name), name };
                    // A damaged shard may be shorter than its record states.
                    let taken = file.cost()?;
                    file.remove()?;
                    self.give_back(taken);
                    crash_point!("removal.begun");
                }
            }
            Home::Store(store, _) => {
                let held = if self.allowance.is_some() { self.shard_files()? } else { HashMap::new() };
                store.remove(files.clone().map(|file| format!("{SHARDS}/{file}")))?;
                for file in files {
                    self.give_back(held.get(&file).map_or(0, |&bytes| file_cost(bytes)));
                    crash_point!("removal.begun");
                }
            }
        }
        Ok(())
    }

    /// Subtracts the bytes of a removed file from the disk use.
    fn give_back(&self, taken: u64) {
        if let Some(allowance) = &self.allowance {
            allowance.give_back(taken);
        }
    }

    /// Returns all shards of the run, committed or not, with their lengths. Ignores other files. Costs one listing.
    ///
    /// # Errors
    ///
    /// An I/O or store error.
    pub fn shard_files(&self) -> Result<HashMap<String, u64>, StorageError> {
        let mut files = HashMap::new();
        match &self.home {
            Home::Folder(path) => {
                let entries = list_if_there(&path.join(SHARDS))?;
                for entry in entries.into_iter().filter(|entry| ShardName::parse(&entry.name).is_some()) {
                    let bytes = entry.file_bytes()?;
                    files.insert(entry.name, bytes);
                }
            }
            Home::Store(store, _) => {
                for object in store.list(Some(SHARDS), None)? {
                    let name = object.name.strip_prefix(SHARDS).and_then(|name| name.strip_prefix('/'));
                    let name = name.filter(|name| ShardName::parse(name).is_some());
                    files.extend(name.map(|name| (name.to_owned(), object.bytes)));
                }
            }
        }
        Ok(files)
    }

    /// Removes shards that are not in `referenced`, and returns the bytes freed.
    ///
    /// Interrupted or superseded work leaves such shards. Also removes temporary files of shards; other files stay. If
    /// this process has an opening record, removes only the shards of earlier writers. So a process that was fenced off
    /// without notice cannot remove its successor's shards.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] or an I/O or store error.
    pub fn remove_unreferenced_shards(&self, referenced: &HashSet<String>) -> Result<u64, StorageError> {
        self.require_own_folder()?;
        let opening = self.writer()?.opening.as_ref().map(|opened| opened.number);
        let is_earlier =
            |file: &str| writer_of(file).is_none_or(|writer| opening.is_none_or(|opening| writer < opening));
        self.remove_shards(is_earlier, referenced)
    }

    /// Removes unreferenced shards of all writers, as [`remove_unreferenced_shards`](Self::remove_unreferenced_shards)
    /// does for earlier writers.
    ///
    /// For a run that lost opening records, because its shard names then do not show which writers are earlier. Fails
    /// if another process has opened the run for writing after this process.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm) and [`remove_unreferenced_shards`](Self::remove_unreferenced_shards).
    pub fn discard_unreferenced_shards(&self, referenced: &HashSet<String>) -> Result<u64, StorageError> {
        self.confirm()?;
        self.remove_shards(|_| true, referenced)
    }

    /// Removes unreferenced shards and temporary files of shards, and returns the bytes of the shards.
    ///
    /// `is_over` receives the final name of a file and returns whether its writer has ended.
    fn remove_shards(
        &self,
        is_over: impl Fn(&str) -> bool,
        referenced: &HashSet<String>,
    ) -> Result<u64, StorageError> {
        // Files without a shard's name belong to other programs.
        let is_garbage =
            |file: &str| ShardName::parse(file).is_some() && is_over(file) && !referenced.contains(file);
        // Include temporary files of referenced shards, because such files are unfinished rewrites.
        let is_left = |file: &str| !file.ends_with(".shard") || is_over(file);
        let mut freed = 0u64;
        match &self.home {
            Home::Store(store, _) => {
                let mut garbage = Vec::new();
                for object in store.list(Some(SHARDS), None)? {
                    let file = object.name.strip_prefix(SHARDS).and_then(|name| name.strip_prefix('/'));
                    if file.is_some_and(is_garbage) {
                        freed = freed.saturating_add(object.bytes);
                        garbage.push(object.name);
                    }
                }
                store.remove(garbage)?;
            }
            Home::Folder(path) => {
                for entry in list(&path.join(SHARDS))? {
                    if is_garbage(&entry.name) {
                        freed = freed.saturating_add(entry.file_bytes()?);
                        entry.remove()?;
                    } else if entry.becomes().is_some_and(is_left) {
                        entry.remove()?;
                    }
                }
            }
        }
        Ok(freed)
    }
}
