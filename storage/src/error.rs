//! Errors of this crate. An error names the place of the fault, the fault and, where possible, the next step.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use exact2048_files::not_a_file;
use rustix::io::Errno;

use crate::{Place, RunId, ShardId};

/// Kind of an error. All errors with the same remedy have the same kind, so callers need not match each variant.
///
/// Crates that read or write runs through this crate also use these kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The requested run, bucket or shard does not exist.
    NotFound,
    /// Something else occupies the requested place.
    Occupied,
    /// Another process is writing the run. The same call may succeed after that process ends.
    Busy,
    /// Another process took over the run, so this process must stop.
    Fenced,
    /// A file of the run is damaged, foreign or missing. A shard can be recomputed; other files must be restored.
    DataLoss,
    /// The file needs a newer program.
    NewerVersion,
    /// The disk is full.
    Full,
    /// The run would exceed its disk limit.
    OverLimit,
    /// Temporary failure of the system or the store. The same call may succeed later.
    Unavailable,
    /// The caller must first change a setting, a permission or the place.
    Refused,
    /// The folder for copies of shards cannot be created, or other users can change it. Another folder must be
    /// chosen.
    UnsafeCache,
    /// The requested value is not computed, so the run must be resumed first.
    NotComputed,
    /// A bug in the program.
    Internal,
}

/// Remedy for a damaged file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// The file is a shard, which the solver recomputes.
    MakeAgain,
    /// The file is the manifest or a journal record, which cannot be recomputed.
    Restore,
    /// The file is the last journal record, and the run is readable without it.
    RestoreOrRemove,
}

impl Remedy {
    fn of(file: &Place) -> Self {
        if file.shard().is_some() { Self::MakeAgain } else { Self::Restore }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MakeAgain => "The shard is recomputed when the run resumes",
            Self::Restore => "Restore the file from a copy; the run cannot be read without it",
            Self::RestoreOrRemove => {
                "Restore the file from a copy. If there is no copy, remove the file while no process writes the run. \
                 It is the last record of the journal, and its work is recomputed when the run resumes"
            }
        })
    }
}

/// Any failure of this crate.
///
/// Each text states the expected and the found data and a remedy that fits any program. A program can also name the
/// command or option that helps, depending on [`kind`](StorageError::kind). A variant's [`io::Error`] is its `source()`
/// and is not repeated in the text, so print the whole chain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The place holds no run.
    #[error("{place} is not a run: {reason}; check the path or URL, or start a run there first")]
    NotARun {
        /// The place given.
        place: Place,
        /// The missing part.
        reason: &'static str,
    },

    /// The place of a new run already holds a run.
    #[error("{place} already holds a run; resume it, or choose another place")]
    AlreadyARun {
        /// The place given.
        place: Place,
    },

    /// The place of a new run holds other files.
    #[error("{place} cannot become a run because it holds {found}; choose an empty place")]
    NotEmpty {
        /// The place given.
        place: Place,
        /// The first unrelated entry.
        found: Place,
    },

    /// The place of a run is a file.
    #[error("expected a directory at {place}, found a file; choose another place")]
    NotADirectory {
        /// The place given.
        place: Place,
    },

    /// A folder of the run is replaced by something else.
    #[error(
        "expected a directory at {folder}, found {found}; restore the directory, or remove its replacement to see which \
         files are missing"
    )]
    NotAFolder {
        /// The folder.
        folder: Place,
        /// The thing that replaced it.
        found: &'static str,
    },

    /// The run that this process opened is no longer in its place.
    #[error(
        "expected the run {run} in {place}, found {found}; the run was moved or replaced, or its disk is not mounted. \
         Put the run back and try again"
    )]
    Away {
        /// Former place of the run.
        place: Place,
        /// Id of the run.
        run: RunId,
        /// Current contents of the place.
        found: &'static str,
    },

    /// The run has a journal or a shard, but no manifest to identify it.
    #[error(
        "{place} holds a run that lost its manifest.json but still has {found}. Restore manifest.json from a copy, or \
         choose another place"
    )]
    ManifestMissing {
        /// The run.
        place: Place,
        /// A file that only runs have.
        found: Place,
    },

    /// The bucket does not exist.
    #[error("there is no bucket {bucket} for {place}. Create it or correct the URL")]
    NoBucket {
        /// The place given.
        place: Place,
        /// The name of the bucket.
        bucket: String,
    },

    /// The folder for copies of shards cannot be created, or other users can change its contents.
    #[error("{folder} cannot hold copies of shards: {reason}; choose a folder that only you can change")]
    UnsafeCache {
        /// The folder.
        folder: Place,
        /// Reason why the folder cannot be created, or the users that can change it.
        reason: String,
    },

    /// Another process writes this run.
    #[error(
        "{place} is being written by {}; wait for it to end or stop it, then try again",
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The run.
        place: Place,
        /// The process that holds the lock, if its id could be read.
        pid: Option<u32>,
    },

    /// A later version of this program wrote the file.
    #[error("expected format version {supported} or older in {file}, found {found}; use a newer program")]
    NewerVersion {
        /// The manifest or shard.
        file: Place,
        /// The version in the file.
        found: u32,
        /// The newest version that this crate reads.
        supported: u32,
    },

    /// The system refuses this process write access.
    #[error("cannot write {place}; check its permissions and that its file system is not read-only")]
    NotWritable {
        /// The file or folder.
        place: Place,
        /// Error from the system.
        source: io::Error,
    },

    /// The run was opened with [`RunDir::open_read_only`](crate::RunDir::open_read_only), and a write was requested.
    #[error("the run {place} is open for reading only; open it for writing to change it")]
    ReadOnly {
        /// The run.
        place: Place,
    },

    /// The disk or the user's quota is full.
    #[error(
        "no space is left for {place}{}. Committed data is safe; free some space and start again to resume",
        needed.map_or_else(String::new, |bytes| format!(": writing {bytes} more bytes failed"))
    )]
    Full {
        /// The file being written.
        place: Place,
        /// Length in bytes of the failed write, if known.
        needed: Option<u64>,
        /// Error from the system.
        source: io::Error,
    },

    /// The run would exceed its disk limit.
    #[error(
        "{place} would exceed its disk limit of {limit} bytes: it uses {taken} and needs {needed} more. Committed \
         data is safe; raise the limit and start again to resume"
    )]
    OverLimit {
        /// The run.
        place: Place,
        /// Limit in bytes.
        limit: u64,
        /// Bytes in use.
        taken: u64,
        /// Bytes of the refused write.
        needed: u64,
    },

    /// The contents of a file violate its format.
    #[error("{file} is damaged at byte {offset}: expected {expected}, found {found}. {remedy}")]
    Damaged {
        /// The damaged file.
        file: Place,
        /// Position of the damage, in bytes from the start of the file.
        offset: u64,
        /// The expected data.
        expected: String,
        /// The data found.
        found: String,
        /// Remedy for the caller.
        remedy: Remedy,
    },

    /// A committed shard is missing.
    #[error("the shard {file} is missing. {}", Remedy::MakeAgain)]
    ShardMissing {
        /// Place of the shard.
        file: Place,
    },

    /// A file that was opened without its journal record is not a shard.
    #[error("{file} is not a shard: expected EX2048SH at its start, found {found}")]
    NotAShard {
        /// The file.
        file: Place,
        /// First bytes of the file.
        found: String,
    },

    /// A journal record is intact, but its type is unknown to the caller.
    #[error("cannot interpret {file}: {reason}; a newer program may have written it")]
    NotUnderstood {
        /// The file of the record.
        file: Place,
        /// Reason why the record cannot be interpreted.
        reason: String,
    },

    /// The file is intact but belongs elsewhere: to another run, board, rule set or place in the run.
    #[error(
        "{file} does not belong here: expected {field} {expected}, found {found}; put the right file in its place"
    )]
    Foreign {
        /// The file.
        file: Place,
        /// The field that differs.
        field: &'static str,
        /// Value of the field in this run.
        expected: String,
        /// Value of the field in the file.
        found: String,
    },

    /// Another process wrote a record although this process holds the lock.
    #[error(
        "{file} already exists: another process writes this run despite the lock (does this file system support locks?). \
         Stop that process and start again"
    )]
    Conflict {
        /// The record that this process meant to create.
        file: Place,
    },

    /// Another process opened the run for writing later, so this process may no longer write.
    #[error(
        "{place} was taken over by {by}, so this process must stop. Its commits are safe; to continue here, stop the \
         other process and start again"
    )]
    TakenOver {
        /// The run.
        place: Place,
        /// The process that took over.
        by: String,
    },

    /// The object store lacks a guarantee that commits require.
    #[error(
        "the store of {place} does not protect objects from being overwritten: {found}. Two processes could destroy each \
         other's work; use a server that supports If-None-Match on PUT, such as Amazon S3 or Ceph, or a directory"
    )]
    UnsafeStore {
        /// The run.
        place: Place,
        /// Result of the probe.
        found: &'static str,
    },

    /// An object store failed or refused a request.
    #[error(
        "{doing} {place} failed{after}. Check the address, the keys and their permissions, and that the store is up{}",
        if *doing == READING { "" } else { ". Committed data is safe; start again to resume" }
    )]
    Store {
        /// The object or the run.
        place: Place,
        /// The failed action.
        doing: &'static str,
        /// Duration of the retries; empty if there were none.
        after: String,
        /// Error from the store.
        source: io::Error,
    },

    /// The address of a run or a setting of its store is invalid.
    #[error("{url} cannot be used: {reason}")]
    Settings {
        /// The address as given, without secrets.
        url: String,
        /// The fault and its remedy.
        reason: String,
    },

    /// An earlier write through the same Rust value failed, so the state on disk is uncertain.
    #[error("an earlier write to {place} failed; open the run again to continue from the data on disk")]
    EarlierFailure {
        /// Target of the failed write.
        place: Place,
    },

    /// An object exceeds a limit of the format, on disk or in memory.
    #[error("{what} of {bytes} bytes exceeds the limit of {limit} bytes. {remedy}")]
    TooLarge {
        /// The object that is too large.
        what: &'static str,
        /// Size of the object.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// How to stay below the limit.
        remedy: &'static str,
    },

    /// The caller violated a documented precondition.
    #[error("{what}. This is a bug in the program; the files are not at fault")]
    InvalidInput {
        /// The violated precondition.
        what: String,
    },

    /// Any other error of the system.
    #[error("cannot {doing} {place}")]
    Io {
        /// The failed action, to complete "cannot ...".
        doing: &'static str,
        /// The file or folder.
        place: Place,
        /// Error from the system.
        source: io::Error,
    },
}

/// The `doing` of a [`StorageError::Store`] for requests that only read. The text of this error then omits advice to
/// resume.
pub(crate) const READING: &str = "reading";

impl StorageError {
    /// Returns the kind of the error, so the caller can choose its reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotARun { .. } | Self::NoBucket { .. } | Self::NotAShard { .. } => ErrorKind::NotFound,
            Self::AlreadyARun { .. } | Self::NotEmpty { .. } | Self::NotADirectory { .. } => {
                ErrorKind::Occupied
            }
            Self::Locked { .. } => ErrorKind::Busy,
            Self::TakenOver { .. } | Self::Conflict { .. } => ErrorKind::Fenced,
            Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::ShardMissing { .. }
            | Self::NotAFolder { .. }
            | Self::ManifestMissing { .. } => ErrorKind::DataLoss,
            Self::NewerVersion { .. } | Self::NotUnderstood { .. } => ErrorKind::NewerVersion,
            Self::Full { .. } => ErrorKind::Full,
            Self::OverLimit { .. } => ErrorKind::OverLimit,
            Self::Away { .. } | Self::Io { .. } | Self::Store { .. } | Self::EarlierFailure { .. } => {
                ErrorKind::Unavailable
            }
            Self::UnsafeCache { .. } => ErrorKind::UnsafeCache,
            Self::NotWritable { .. } | Self::UnsafeStore { .. } | Self::Settings { .. } => ErrorKind::Refused,
            Self::ReadOnly { .. } | Self::TooLarge { .. } | Self::InvalidInput { .. } => ErrorKind::Internal,
        }
    }

    /// Returns the error for a cache folder in which this user may create nothing; `None` for any other failure.
    #[must_use]
    pub fn closed_cache(folder: &Path, error: &io::Error) -> Option<Self> {
        use io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
        let is_closed = matches!(error.kind(), NotADirectory | PermissionDenied | ReadOnlyFilesystem);
        let reason = format!("cannot create files in it ({error})");
        (is_closed && error.raw_os_error().is_some())
            .then(|| Self::UnsafeCache { folder: folder.into(), reason })
    }

    /// Returns the damaged, foreign or missing shard, which can be recomputed.
    #[must_use]
    pub fn blames(&self) -> Option<&ShardId> {
        match self {
            Self::Damaged { file, .. } | Self::Foreign { file, .. } | Self::ShardMissing { file } => {
                file.shard()
            }
            _ => None,
        }
    }

    /// Maps a system error to [`NotWritable`](Self::NotWritable), [`Full`](Self::Full) or [`Io`](Self::Io).
    ///
    /// `doing` completes "cannot ... PLACE".
    pub fn io(doing: &'static str, place: impl Into<Place>, source: io::Error) -> Self {
        let place = place.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { place, source }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { place, needed: None, source }
            }
            _ => Self::Io { doing, place, source },
        }
    }

    /// Maps the error of a write as [`io`](Self::io) does, and adds the length of the write to [`Full`](Self::Full).
    pub(crate) fn write(place: impl Into<Place>, length: usize, source: io::Error) -> Self {
        match Self::io("write", place, source) {
            Self::Full { place, source, .. } => Self::Full { place, needed: Some(length as u64), source },
            other => other,
        }
    }

    /// Returns the error of a failed read: always [`Io`](Self::Io), because a missing read permission must not be
    /// reported as a missing write permission.
    pub(crate) fn read(place: impl Into<Place>, source: io::Error) -> Self {
        Self::Io { doing: "read", place: place.into(), source }
    }

    /// Returns the error of a failed shard read.
    ///
    /// Distinguishes a lost shard, which can be recomputed, from a shard that is temporarily unreadable.
    pub(crate) fn read_shard(file: &Place, offset: u64, length: usize, source: io::Error) -> Self {
        let damaged = |found: String| Self::damaged(file, offset, format!("{length} bytes"), found);
        // A recomputed shard replaces a file or an empty directory of its name. A directory with contents stays,
        // because the contents may belong to the user.
        let is_full = |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if file.as_path().is_some_and(is_full) {
            return Self::read(file, full_folder());
        }
        if let Some(found) = not_a_file(&source) {
            return Self::damaged(file, 0, "a file", found);
        }
        match source.kind() {
            // After another machine removes or replaces the file, processes that have it open see a stale handle.
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => {
                Self::ShardMissing { file: file.clone() }
            }
            io::ErrorKind::UnexpectedEof => damaged("the end of the file".to_owned()),
            // The disk has a bad sector. Rewriting the shard moves its data to another sector.
            _ if Errno::from_io_error(&source) == Some(Errno::IO) => damaged(source.to_string()),
            _ => Self::read(file, source),
        }
    }

    pub(crate) fn damaged(
        file: impl Into<Place>,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let file = file.into();
        let remedy = Remedy::of(&file);
        Self::Damaged { file, offset, expected: expected.into(), found: found.into(), remedy }
    }
}

/// Returns the cause of an error at a non-empty folder in the place of a file. Such a folder cannot be replaced.
pub(crate) fn full_folder() -> io::Error {
    let advice = "Move it away and try again";
    io::Error::other(format!("expected a file, found a directory that is not empty. {advice}"))
}

/// Returns the error of a location that cannot be used.
pub(crate) fn refused(url: &str, reason: impl Into<String>) -> StorageError {
    StorageError::Settings { url: url.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failed read reports a lost shard only if recomputing the shard helps, and otherwise an unavailable shard.
    #[test]
    fn a_failed_shard_read_is_either_lost_or_unavailable() {
        let place = Place::from(Path::new("x.shard")).of_lone_shard();
        let of = |error: io::Error| StorageError::read_shard(&place, 104, 50, error);
        let of_system = |errno: Errno| of(io::Error::from_raw_os_error(errno.raw_os_error()));
        for lost in [Errno::IO, Errno::STALE, Errno::NOENT] {
            let error = of_system(lost);
            assert_eq!(
                (error.kind(), error.blames()),
                (ErrorKind::DataLoss, Some(&ShardId::of("x.shard"))),
                "{error}"
            );
        }
        assert!(matches!(of_system(Errno::IO), StorageError::Damaged { offset: 104, .. }));
        assert!(matches!(of_system(Errno::STALE), StorageError::ShardMissing { .. }));
        for (errno, found) in [(Errno::ISDIR, "found a directory"), (Errno::LOOP, "leads to itself")] {
            let error = of_system(errno);
            assert!(error.blames().is_some() && error.to_string().contains(found), "{error}");
        }
        assert!(of(io::ErrorKind::UnexpectedEof.into()).to_string().contains("the end of the file"));
        for passing in [Errno::MFILE, Errno::ACCESS, Errno::TIMEDOUT] {
            let error = of_system(passing);
            assert_eq!((error.kind(), error.blames()), (ErrorKind::Unavailable, None), "{error}");
        }
    }
}
