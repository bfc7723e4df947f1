//! Memory maps. This is the only module with `unsafe` code, and what keeps that code sound is private to it.
//!
//! The contract of a map: **the mapped bytes do not change and do not vanish while the map lives.** Only a [`Scratch`]
//! file is mapped. It has no name, so that no other process can open it, and is only ever appended to; a map covers
//! what had been appended when it was made. Files that others can reach are read instead.
//!
//! A disk that cannot read a mapped page ends the process with `SIGBUS`: nothing committed is lost. One that loses what was
//! written, as a thin volume may that runs full, is not noticed: nobody asks for scratch files to be synced, since that
//! would have all of them written, and most are gone before. What is computed from such pages is wrong, and found by
//! `verify`.

#![allow(unsafe_code, reason = "the one module that maps files")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

use crate::StorageError;
use crate::allowance::Taken;
use crate::publish::TempFile;

/// The bytes of a scratch file, mapped for reading. Lives on when the file it came from is closed.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    /// Counts the space on the disk for as long as the map lives.
    _taken: Arc<Taken>,
}

impl MappedFile {
    /// # Safety
    ///
    /// The first `length` bytes of `file` exist, and do not change or vanish while the map lives.
    unsafe fn map(file: &File, path: &Path, length: u64, taken: Arc<Taken>) -> Result<Self, StorageError> {
        let too_long = |_| StorageError::read(path, io::ErrorKind::FileTooLarge.into());
        let length = usize::try_from(length).map_err(too_long)?;
        // SAFETY: passed on to the caller.
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

/// A file without a name for data that does not fit in memory, on the disk of the run.
///
/// Append-only. The system frees its space when it and its maps are dropped, however the process ends.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    /// The name it had, for messages.
    path: PathBuf,
    length: u64,
    taken: Arc<Taken>,
}

impl Scratch {
    /// Creates one in `folder`.
    ///
    /// # Errors
    ///
    /// A failure of the system.
    pub fn create(folder: &Path) -> Result<Self, StorageError> {
        Self::counted(folder, Taken::nothing(None))
    }

    /// The same, with what it takes counted.
    pub(crate) fn counted(folder: &Path, taken: Taken) -> Result<Self, StorageError> {
        let temp = TempFile::create(folder, "scratch")?;
        let path = temp.path().to_path_buf();
        Ok(Self { file: temp.into_unnamed()?, path, length: 0, taken: Arc::new(taken) })
    }

    /// Appends `bytes`, returns the offset in bytes at which they begin.
    ///
    /// # Errors
    ///
    /// [`StorageError::Full`], [`StorageError::OverLimit`] or another failure of the system. The scratch stays usable:
    /// what was appended before is unharmed.
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

    /// Maps what has been appended so far.
    ///
    /// # Errors
    ///
    /// A failure of the system.
    pub fn map(&self) -> Result<MappedFile, StorageError> {
        // SAFETY: the first `length` bytes were written completely, `append` writes only after them, nothing
        // here shortens the file, and without a name nobody else can open it.
        unsafe { MappedFile::map(&self.file, &self.path, self.length, Arc::clone(&self.taken)) }
    }
}
