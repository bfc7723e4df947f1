//! Memory maps. Only this module contains `unsafe` code, and its safety invariants are private to the module.
//!
//! The contract of a map: **the mapped bytes neither change nor disappear while the map exists.** Only [`Scratch`]
//! files are mapped. A scratch file has no name, so no other process can open it. Data is only appended to the file,
//! and a map covers only bytes appended before the map was created. Files that other processes can open are read, not
//! mapped.
//!
//! A disk error while reading a mapped page ends the process with `SIGBUS`; committed data stays intact. The program
//! does not notice a disk that loses written data, such as a full thin volume. Scratch files are not synced. A sync
//! would write all data to the disk, although most files are deleted before that is necessary. Values computed from
//! lost pages are wrong, and `verify` finds them.

#![allow(unsafe_code, reason = "the one module that maps files")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

use crate::StorageError;
use crate::allowance::{Allowance, Taken};
use crate::publish::TempFile;

/// The bytes of a scratch file, mapped for reading. Can outlive its [`Scratch`].
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    /// Keeps the disk space counted while the map exists.
    _taken: Arc<Taken>,
}

impl MappedFile {
    /// # Safety
    ///
    /// The first `length` bytes of `file` exist, and do not change or disappear while the map exists.
    unsafe fn map(file: &File, path: &Path, length: u64, taken: Arc<Taken>) -> Result<Self, StorageError> {
        let too_long = |_| StorageError::read(path, io::ErrorKind::FileTooLarge.into());
        let length = usize::try_from(length).map_err(too_long)?;
        // SAFETY: the caller upholds the contract.
        let map = unsafe { MmapOptions::new().len(length).map(file) };
        map.map(|map| Self { map, _taken: taken }).map_err(|e| StorageError::read(path, e))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

/// A nameless local file for data that does not fit in memory.
///
/// Append-only. The system frees its space when the file and its maps are dropped, even if the process is killed.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    /// Former name of the file, for messages.
    path: PathBuf,
    length: u64,
    taken: Arc<Taken>,
}

impl Scratch {
    /// Creates a scratch file in `folder`.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn create(folder: &Path) -> Result<Self, StorageError> {
        Self::counted(folder, Taken::nothing(None))
    }

    /// Creates a scratch file and counts its space.
    pub(crate) fn counted(folder: &Path, taken: Taken) -> Result<Self, StorageError> {
        let temp = TempFile::create(folder, "scratch")?;
        let path = temp.path().to_path_buf();
        Ok(Self { file: temp.into_unnamed()?, path, length: 0, taken: Arc::new(taken) })
    }

    /// Appends `bytes` and returns the offset of the first byte.
    ///
    /// # Errors
    ///
    /// [`StorageError::Full`], [`StorageError::OverLimit`] or another I/O error. The scratch file stays usable, and
    /// earlier bytes are intact.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, StorageError> {
        let start = self.length;
        self.taken.grow_to(start + bytes.len() as u64)?;
        self.file.write_all_at(bytes, start).map_err(|e| StorageError::write(&self.path, bytes.len(), e))?;
        self.length += bytes.len() as u64;
        Ok(start)
    }

    /// Bytes appended so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Maps all bytes appended so far.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn map(&self) -> Result<MappedFile, StorageError> {
        // SAFETY: the first `length` bytes are completely written, and `append` writes only after them. This module
        // never shortens the file, and no other process can open a file without a name.
        unsafe { MappedFile::map(&self.file, &self.path, self.length, Arc::clone(&self.taken)) }
    }
}

/// A folder for scratch files and the allowance that they count towards.
#[derive(Clone, Debug)]
pub struct ScratchPlace {
    path: PathBuf,
    allowance: Option<Arc<Allowance>>,
}

impl ScratchPlace {
    /// Creates the scratch place of a run; its files count towards the allowance.
    #[must_use]
    pub fn within(path: PathBuf, allowance: Option<Arc<Allowance>>) -> Self {
        Self { path, allowance }
    }

    /// Folder of the scratch files.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a scratch file.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn create(&self) -> Result<Scratch, StorageError> {
        Scratch::counted(&self.path, Taken::nothing(self.allowance.clone()))
    }
}

impl From<PathBuf> for ScratchPlace {
    /// Creates a scratch place without an allowance.
    fn from(path: PathBuf) -> Self {
        Self { path, allowance: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_cost;

    #[test]
    fn scratch_files_count_for_as_long_as_they_are_mapped() {
        let place = tempfile::tempdir().unwrap();
        let allowance = Arc::new(Allowance::new(place.path().into(), 1 << 20, 10_000));
        let folder = ScratchPlace::within(place.path().into(), Some(Arc::clone(&allowance)));
        let mut scratch = folder.create().unwrap();
        scratch.append(&[7; 100_000]).unwrap();
        let map = scratch.map().unwrap();
        assert!(matches!(scratch.append(&vec![7; 1 << 20]), Err(StorageError::OverLimit { .. })));
        drop(scratch);
        assert_eq!(allowance.taken_bytes(), 10_000 + file_cost(100_000));
        drop(map);
        assert_eq!(allowance.taken_bytes(), 10_000);
    }
}
