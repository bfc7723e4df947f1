//! What files or objects a run has, what they may take, and which of them go.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::shards::Home;
use super::{JOURNAL, SHARDS, TypedRun};
use crate::allowance::{Allowance, ScratchPlace, file_cost};
use crate::crash_points::crash_point;
use crate::ids::writer_of;
use crate::publish::{Listed, list, list_if_there};
use crate::{ShardName, ShardRecord, StorageError};

impl<R: Serialize + DeserializeOwned + Clone> TypedRun<R> {
    /// Limits what the run may take of the disk, or of its store, from now on: this value, the writers of shards that
    /// it makes, and the scratch files that count towards it write no more than that. Costs a list of the files.
    ///
    /// # Errors
    ///
    /// A failure of the system or the store.
    pub fn limit_disk(&mut self, limit_bytes: u64) -> Result<(), StorageError> {
        let taken = self.taken_bytes()?;
        self.allowance = Some(Arc::new(Allowance::new(self.place.clone(), limit_bytes, taken)));
        Ok(())
    }

    /// Bytes that the run takes of the disk or its store, with files that nothing refers to. Costs a list of the files.
    ///
    /// # Errors
    ///
    /// A failure of the system or the store.
    pub fn taken_bytes(&self) -> Result<u64, StorageError> {
        Ok(self.files()?.into_iter().map(file_cost).sum())
    }

    /// What the run may take of the disk, where that is limited.
    #[must_use]
    pub fn allowance(&self) -> Option<&Arc<Allowance>> {
        self.allowance.as_ref()
    }

    /// Counts shards that other processes have written towards what the run may take, where that is limited.
    pub fn count_shards(&self, shards: &[ShardRecord]) {
        if let Some(allowance) = &self.allowance {
            allowance.add(shards.iter().map(|shard| file_cost(shard.bytes)).sum());
        }
    }

    /// A folder for scratch files. They count towards what the run may take, unless that is in a store: they are on the
    /// disk of this machine.
    #[must_use]
    pub fn scratch(&self) -> ScratchPlace {
        let allowance = match &self.home {
            Home::Folder(_) => self.allowance.clone(),
            Home::Store(..) => None,
        };
        ScratchPlace::within(self.scratch_folder().to_path_buf(), allowance)
    }

    /// Bytes of all files or objects of the run, by their lengths. Costs a list of them.
    ///
    /// # Errors
    ///
    /// A failure of the system or the store.
    pub fn bytes_on_disk(&self) -> Result<u64, StorageError> {
        Ok(self.files()?.into_iter().fold(0, u64::saturating_add))
    }

    /// The lengths of all files or objects of the run.
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

    /// Removes shards that no record needs any more. A reader that has one of them open can read on.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] or a failure of the system or the store: then some of them are left, and are removed
    /// with what is not referenced.
    pub fn remove_needless_shards(&self, shards: &[ShardRecord]) -> Result<(), StorageError> {
        self.require_own_folder()?;
        crash_point!("removal.committed");
        let files = shards.iter().map(|shard| shard.id().file().to_owned());
        match &self.home {
            Home::Folder(path) => {
                for name in files {
                    let file = Listed { path: path.join(SHARDS).join(&name), name };
                    // One that was damaged may be shorter than its record says.
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

    /// Counts what a removed file took no longer.
    fn give_back(&self, taken: u64) {
        if let Some(allowance) = &self.allowance {
            allowance.give_back(taken);
        }
    }

    /// The shards that there are, committed or not, each with its bytes. Files with other names are none of them. Costs a
    /// list.
    ///
    /// # Errors
    ///
    /// A failure of the system or the store.
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

    /// Removes the shards whose file names are not in `referenced`, as interrupted or superseded work leaves
    /// them, and returns the bytes freed. Removes temporary files of shards as well. Other files are left alone.
    ///
    /// Where there are opening records it removes only what earlier writers made. So a process that has been fenced
    /// off and does not know it cannot remove the shards of its successor.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] or a failure of the system or the store.
    pub fn remove_unreferenced_shards(&self, referenced: &HashSet<String>) -> Result<u64, StorageError> {
        self.require_own_folder()?;
        let opening = self.writer()?.opening.as_ref().map(|opened| opened.number);
        let is_earlier =
            |file: &str| writer_of(file).is_none_or(|writer| opening.is_none_or(|opening| writer < opening));
        self.remove_shards(is_earlier, referenced)
    }

    /// As [`remove_unreferenced_shards`](Self::remove_unreferenced_shards), for shards of any writer: where opening
    /// records were lost, the numbers in the names of shards mean nothing. Only if nobody has opened the run since this
    /// process did.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm) and [`remove_unreferenced_shards`](Self::remove_unreferenced_shards).
    pub fn discard_unreferenced_shards(&self, referenced: &HashSet<String>) -> Result<u64, StorageError> {
        self.confirm()?;
        self.remove_shards(|_| true, referenced)
    }

    /// Removes shards that are not referenced and temporary files of shards, of the writers that `is_over` says by the names
    /// that the files have or were to have. Returns the bytes of the shards.
    fn remove_shards(
        &self,
        is_over: impl Fn(&str) -> bool,
        referenced: &HashSet<String>,
    ) -> Result<u64, StorageError> {
        // Names that are not those of shards are somebody else's.
        let is_garbage =
            |file: &str| ShardName::parse(file).is_some() && is_over(file) && !referenced.contains(file);
        // Also of a shard that is referenced: it was being written anew.
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
