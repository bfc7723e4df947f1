//! Source of a shard's bytes, and how to read it.
//!
//! Files are read rather than mapped. A disk error or a truncated file would end a process that maps the file, but a
//! failed read is only an error.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::origin::Origin;
use crate::bytes::index;

/// Largest number of shard files that this process keeps open.
///
/// Large runs have more shards than a process may have open files. Shards beyond this number are opened for each read
/// of a frame.
const MOST_HELD: usize = 256;

/// Largest buffer in bytes that a thread keeps for its next frame.
const BUFFER_KEPT: usize = 1 << 20;

static HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Buffer for the bytes of a frame.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Source of a shard's bytes.
#[derive(Debug)]
pub(super) enum Content {
    File(ShardFile),
    /// A copy of a shard in a store. The shard may be intact even if the copy is damaged.
    Copied(ShardFile, Origin),
    Owned(Vec<u8>),
}

impl Content {
    /// Length in bytes.
    pub(super) fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) | Self::Copied(file, _) => file.length(),
            Self::Owned(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Calls `then` with `length` bytes from `offset`. Fails with `UnexpectedEof` if fewer bytes exist.
    pub(super) fn with_bytes<T>(
        &self,
        offset: u64,
        length: usize,
        then: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        match self {
            Self::Owned(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let found = bytes.get(start..).and_then(|rest| rest.get(..length));
                found.map(then).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
            Self::File(file) | Self::Copied(file, _) => BUFFER.with_borrow_mut(|buffer| {
                buffer.clear();
                buffer.try_reserve_exact(length)?;
                buffer.resize(length, 0);
                let read = file.read_exact_at(buffer, offset).map(|()| then(buffer));
                if buffer.capacity() > BUFFER_KEPT {
                    *buffer = Vec::new();
                }
                read
            }),
        }
    }

    /// Closes the file if too many files are open; each read then opens the file again.
    pub(super) fn settle(&mut self) {
        if let Self::File(file) | Self::Copied(file, _) = self {
            file.settle();
        }
    }
}

/// A shard file that is read in pieces.
#[derive(Debug)]
pub(super) struct ShardFile {
    /// `None` for a nameless file, which cannot be opened again.
    path: Option<PathBuf>,
    file: Option<File>,
    /// True if the file counts towards [`MOST_HELD`].
    held: bool,
}

impl ShardFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(exact2048_files::open(path)?, path.to_path_buf()))
    }

    /// Wraps a file that has or will get this name.
    pub(super) fn of(file: File, path: PathBuf) -> Self {
        Self { path: Some(path), file: Some(file), held: false }
    }

    /// Wraps a file that no longer has a name.
    pub(super) fn unnamed(file: File) -> Self {
        Self { path: None, file: Some(file), held: false }
    }

    fn length(&self) -> io::Result<u64> {
        match &self.file {
            Some(file) => Ok(file.metadata()?.len()),
            None => Ok(self.open_again()?.metadata()?.len()),
        }
    }

    /// Fills `buffer`. The caller must check the bytes, because another file may now have this name.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.file.as_ref().map(|file| file.read_exact_at(buffer, offset)) {
            // Another machine has replaced or removed the file.
            Some(Err(e)) if e.kind() == io::ErrorKind::StaleNetworkFileHandle => {}
            Some(read) => return read,
            None => {}
        }
        self.open_again()?.read_exact_at(buffer, offset)
    }

    fn open_again(&self) -> io::Result<File> {
        self.path
            .as_ref()
            .map_or_else(|| Err(io::ErrorKind::NotFound.into()), |path| exact2048_files::open(path))
    }

    fn settle(&mut self) {
        let room = |held| (held < MOST_HELD).then_some(held + 1);
        self.held = self.held || HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if !self.held && self.path.is_some() {
            self.file = None;
        }
    }
}

impl Drop for ShardFile {
    fn drop(&mut self) {
        if self.held {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns the first `most` bytes of a file, or all bytes if it is shorter.
pub(super) fn head(content: &Content, most: u32) -> io::Result<Vec<u8>> {
    let length = content.length()?.min(u64::from(most));
    content.with_bytes(0, index(u32::try_from(length).unwrap_or(most)), <[u8]>::to_vec)
}
