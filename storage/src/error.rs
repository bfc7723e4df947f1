//! What can go wrong, said so that the reader knows which file, where, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Any failure of this crate.
///
/// An [`io::Error`] is the `source()` of the variants that have one and is not repeated in their text: print
/// the whole chain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// There is no run at this path.
    #[error("{} is no run: {reason}. Check the path or URL, or start a run there first", path.display())]
    NotARun {
        /// The path given.
        path: PathBuf,
        /// What is missing.
        reason: &'static str,
    },

    /// A new run was asked for where one exists.
    #[error("{} already holds a run. Resume it, or choose another place", path.display())]
    AlreadyARun {
        /// The path given.
        path: PathBuf,
    },

    /// A new run was asked for in a directory that holds something else.
    #[error(
        "{} cannot become a run: it holds {}, which no run put there. Choose an empty place",
        path.display(), found.display()
    )]
    NotEmpty {
        /// The path given.
        path: PathBuf,
        /// The first thing found in the way.
        found: PathBuf,
    },

    /// Another process writes this run.
    #[error(
        "{} is being written by {}. Wait for it to end, or stop it, and run the same command again",
        path.display(), pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// The process that holds the lock, when it could be read.
        pid: Option<u32>,
    },

    /// The file was written by a later version of this program.
    #[error(
        "{} has format version {found}, this program reads up to version {supported}. Use a newer program",
        file.display()
    )]
    NewerVersion {
        /// The manifest or shard.
        file: PathBuf,
        /// The version it states.
        found: u32,
        /// The newest version this crate reads.
        supported: u32,
    },

    /// The system does not let this process write here.
    #[error("{} cannot be written. Check its permissions and that its file system is not read-only", path.display())]
    NotWritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A write was asked for through [`RunDir::open_read_only`](crate::RunDir::open_read_only).
    #[error("the run {} was opened for reading only. Open it for writing to change it", path.display())]
    ReadOnly {
        /// The run directory.
        path: PathBuf,
    },

    /// The disk, or this user's share of it, is full.
    #[error(
        "no space is left for {}{}. What was committed is safe: free some space and run the same command \
         again, it resumes",
        path.display(), needed.map_or_else(String::new, |bytes| format!(": writing {bytes} more bytes failed"))
    )]
    Full {
        /// The file being written.
        path: PathBuf,
        /// Length in bytes of the write that failed, where known.
        needed: Option<u64>,
        /// What the system said.
        source: io::Error,
    },

    /// The bytes of a file are not what its format demands.
    #[error(
        "{} is damaged at byte {offset}: expected {expected}, found {found}. {}",
        file.display(), remedy(file)
    )]
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },

    /// The file is sound but belongs to something else: another run, board, rule set or place in the run.
    #[error(
        "{} does not belong here: its {field} is {found}, expected {expected}. Put the right file in its place",
        file.display()
    )]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The field that differs.
        field: &'static str,
        /// Its value in this run.
        expected: String,
        /// Its value in the file.
        found: String,
    },

    /// A journal record appeared that this process did not write, although it holds the lock.
    #[error(
        "{} exists already: another process writes this run in spite of the lock (does this file system \
         support locks?). Stop the other one and run the same command again",
        file.display()
    )]
    Conflict {
        /// The record that was to be created.
        file: PathBuf,
    },

    /// Another process opened the run for writing after this one did, so that this one may write no more.
    #[error(
        "{} was taken over by {by}: this process must stop. What it committed is safe; to go on here, stop the \
         other one and run the same command again",
        place.display()
    )]
    TakenOver {
        /// The run.
        place: PathBuf,
        /// Who wrote in this process's stead.
        by: String,
    },

    /// The object store does not keep the promise that commits rest on.
    #[error(
        "the store of {} does not keep objects from being overwritten: {found}. Two processes could destroy each \
         other's work: use a server that supports If-None-Match on PUT (docs/stores.md), or a directory",
        place.display()
    )]
    UnsafeStore {
        /// The run.
        place: PathBuf,
        /// What the probe found.
        found: &'static str,
    },

    /// An object store failed, or said no.
    #[error(
        "{doing} {} failed{after}. Check the address, the keys and their permissions, and that the store is up. \
         What was committed is safe: the same command resumes",
        object.display()
    )]
    Store {
        /// The object or the run.
        object: PathBuf,
        /// What was being done to it.
        doing: &'static str,
        /// How long it was tried; empty if once.
        after: String,
        /// What the store said.
        source: io::Error,
    },

    /// The address of a run, or a setting of its store, cannot be used.
    #[error("{url} cannot be used: {reason}")]
    Settings {
        /// The address as given, without secrets.
        url: String,
        /// What is wrong, and what to do.
        reason: String,
    },

    /// An earlier write through the same value failed, so what is on disk is uncertain.
    #[error("an earlier write to {} failed. Open the run again to go on from what is on disk", path.display())]
    EarlierFailure {
        /// What was being written.
        path: PathBuf,
    },

    /// A thing to be written, or to be held in memory, exceeds a limit of the format.
    #[error("{what} of {bytes} bytes exceeds the limit of {limit} bytes. {remedy}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// How to stay below.
        remedy: &'static str,
    },

    /// The caller broke a rule stated in the documentation of the function.
    #[error("{what}. This is a mistake in the program, not in the files")]
    InvalidInput {
        /// Which rule, and how.
        what: String,
    },

    /// Any other failure of the system.
    #[error("an operation on {} failed", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Shards can be computed again, the manifest and the journal cannot.
fn remedy(file: &Path) -> &'static str {
    if file.extension().is_some_and(|extension| extension == "shard") {
        "The command that made it computes the shard again: solve, or resume on a cluster"
    } else {
        "Restore the file from a copy: the run cannot be read without it"
    }
}

impl StorageError {
    /// The file whose content is at fault, where making that file again can help.
    #[must_use]
    pub fn damaged_file(&self) -> Option<&Path> {
        match self {
            Self::Damaged { file, .. } | Self::Foreign { file, .. } => Some(file),
            _ => None,
        }
    }

    /// The file that is not there although it has to be.
    #[must_use]
    pub fn missing_file(&self) -> Option<&Path> {
        match self {
            Self::Io { path, source } if source.kind() == io::ErrorKind::NotFound => Some(path),
            _ => None,
        }
    }

    /// Sorts an error of the system into [`NotWritable`](Self::NotWritable), [`Full`](Self::Full) or [`Io`](Self::Io).
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { path, source }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { path, needed: None, source }
            }
            _ => Self::Io { path, source },
        }
    }

    /// The same for a write of a known length in bytes.
    pub(crate) fn write(path: &Path, length: usize, source: io::Error) -> Self {
        match Self::io(path, source) {
            Self::Full { path, source, .. } => Self::Full { path, needed: Some(length as u64), source },
            other => other,
        }
    }

    /// The same for a read: a file that may not be read is not a file that cannot be written.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn damaged(
        file: &Path,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Damaged { file: file.to_path_buf(), offset, expected: expected.into(), found: found.into() }
    }
}
