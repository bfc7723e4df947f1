//! What can go wrong, said so that the reader knows which file, where, and what to do next.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use exact2048_files::not_a_file;
use rustix::io::Errno;

use crate::publish::full_folder;
use crate::{Place, RunId, ShardId};

/// What can be done about an error of this crate or of one that reads or writes runs by it, so that nobody has to take
/// nested variants apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for does not exist: a run, a bucket, a shard.
    NotFound,
    /// Something else is in the place that was asked for.
    Occupied,
    /// Another process is at work there. It may end.
    Busy,
    /// Another process took over: this one must stop.
    Fenced,
    /// A file of the run is damaged, foreign or missing. A shard can be made again, other files only restored.
    DataLoss,
    /// A newer program is needed.
    NewerVersion,
    /// No space is left.
    Full,
    /// The run would take more of the disk than it may.
    OverLimit,
    /// The system or the store does not do its part now. The same call may succeed later.
    Unavailable,
    /// A setting, a permission or a property of the place has to be changed first.
    Refused,
    /// The folder for copies of shards cannot be made, or other users can change it: another one has to be chosen.
    UnsafeCache,
    /// What was asked for is not computed: the run has to be continued first.
    NotComputed,
    /// A mistake in the program.
    Internal,
}

/// What to do about a damaged file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// It is a shard, which the solver makes again.
    MakeAgain,
    /// It is the manifest or a record of the journal, which nothing can make again.
    Restore,
    /// It is the last record of the journal: the run can do without it.
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
            Self::MakeAgain => "The shard is computed again when the run is continued",
            Self::Restore => "Restore the file from a copy: the run cannot be read without it",
            Self::RestoreOrRemove => {
                "Restore the file from a copy. If there is none, remove it while nobody writes the run: it is the last \
                 record of the journal, and what it stood for is computed again when the run is continued"
            }
        })
    }
}

/// Any failure of this crate.
///
/// Texts say what was expected, what was found and what helps, in words that fit any program: which command or option
/// that is, a program adds by [`kind`](StorageError::kind). An [`io::Error`] is the `source()` of the variants that
/// have one and is not repeated in their text: print the whole chain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// There is no run at this place.
    #[error("{place} is no run: {reason}. Check the path or URL, or start a run there first")]
    NotARun {
        /// The place given.
        place: Place,
        /// What is missing.
        reason: &'static str,
    },

    /// A new run was asked for where one exists.
    #[error("{place} already holds a run. Resume it, or choose another place")]
    AlreadyARun {
        /// The place given.
        place: Place,
    },

    /// A new run was asked for in a directory that holds something else.
    #[error("{place} cannot become a run: it holds {found}, which no run put there. Choose an empty place")]
    NotEmpty {
        /// The place given.
        place: Place,
        /// The first thing found in the way.
        found: Place,
    },

    /// A run was asked for at the name of a file.
    #[error("{place} is a file, and a run is a directory. Choose another place")]
    NotADirectory {
        /// The place given.
        place: Place,
    },

    /// Something else has the name of a folder of the run.
    #[error(
        "{folder} is {found}, and a run has a folder there. Put the folder back in its place, or remove what is there: \
         what is missing shows then"
    )]
    NotAFolder {
        /// The folder.
        folder: Place,
        /// What has its name.
        found: &'static str,
    },

    /// The run that this process opened is not in its place any more.
    #[error(
        "expected the run {run} in {place}, found {found}: it was moved or replaced, or its disk is not mounted. Put it \
         back, and try again"
    )]
    Away {
        /// Where the run was.
        place: Place,
        /// Its id.
        run: RunId,
        /// What is in its place.
        found: &'static str,
    },

    /// There is a journal or a shard, but nothing that says of which run.
    #[error(
        "{place} holds a run that lost its manifest.json: {found} is there. Restore manifest.json from a copy, or choose \
         another place"
    )]
    ManifestMissing {
        /// The run.
        place: Place,
        /// A file that only runs have.
        found: Place,
    },

    /// There is no such bucket.
    #[error("there is no bucket {bucket}, which {place} is in. Create it, or correct the URL")]
    NoBucket {
        /// The place given.
        place: Place,
        /// The name of the bucket.
        bucket: String,
    },

    /// The folder for copies of shards cannot be made, or other users could change what is in it.
    #[error("{folder} cannot hold copies of shards: {reason}. Choose a folder that only you can change")]
    UnsafeCache {
        /// The folder.
        folder: Place,
        /// Why it cannot be made, or who could change it.
        reason: String,
    },

    /// Another process writes this run.
    #[error(
        "{place} is being written by {}. Wait for it to end, or stop it, and try again",
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The run.
        place: Place,
        /// The process that holds the lock, when it could be read.
        pid: Option<u32>,
    },

    /// The file was written by a later version of this program.
    #[error(
        "{file} has format version {found}, this program reads up to version {supported}. Use a newer program"
    )]
    NewerVersion {
        /// The manifest or shard.
        file: Place,
        /// The version it states.
        found: u32,
        /// The newest version this crate reads.
        supported: u32,
    },

    /// The system does not let this process write here.
    #[error("{place} cannot be written. Check its permissions and that its file system is not read-only")]
    NotWritable {
        /// The file or folder.
        place: Place,
        /// What the system said.
        source: io::Error,
    },

    /// A write was asked for through [`RunDir::open_read_only`](crate::RunDir::open_read_only).
    #[error("the run {place} was opened for reading only. Open it for writing to change it")]
    ReadOnly {
        /// The run.
        place: Place,
    },

    /// The disk, or this user's share of it, is full.
    #[error(
        "no space is left for {place}{}. What was committed is safe: free some space and start again, it resumes",
        needed.map_or_else(String::new, |bytes| format!(": writing {bytes} more bytes failed"))
    )]
    Full {
        /// The file being written.
        place: Place,
        /// Length in bytes of the write that failed, where known.
        needed: Option<u64>,
        /// What the system said.
        source: io::Error,
    },

    /// The run would take more of the disk than it may.
    #[error(
        "{place} would take more of the disk than it may: {needed} bytes beside the {taken} that it takes, and the limit is \
         {limit}. What was committed is safe: allow more and start again, it resumes"
    )]
    OverLimit {
        /// The run.
        place: Place,
        /// Bytes that it may take.
        limit: u64,
        /// Bytes that it takes.
        taken: u64,
        /// Bytes that were to be written.
        needed: u64,
    },

    /// The bytes of a file are not what its format demands.
    #[error("{file} is damaged at byte {offset}: expected {expected}, found {found}. {remedy}")]
    Damaged {
        /// The damaged file.
        file: Place,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
        /// What to do about it.
        remedy: Remedy,
    },

    /// A shard that is committed is not there.
    #[error("the shard {file} is missing. {}", Remedy::MakeAgain)]
    ShardMissing {
        /// Where it was.
        file: Place,
    },

    /// A file of which nothing is known is not a shard.
    #[error("{file} is no shard: a shard begins with EX2048SH, this begins with {found}")]
    NotAShard {
        /// The file.
        file: Place,
        /// Its first bytes.
        found: String,
    },

    /// A journal record is sound, but not one that the caller knows.
    #[error("{file} is not understood: {reason}. A newer program may have written it")]
    NotUnderstood {
        /// The file of the record.
        file: Place,
        /// What is wrong with it.
        reason: String,
    },

    /// The file is sound but belongs to something else: another run, board, rule set or place in the run.
    #[error(
        "{file} does not belong here: its {field} is {found}, expected {expected}. Put the right file in its place"
    )]
    Foreign {
        /// The file.
        file: Place,
        /// The field that differs.
        field: &'static str,
        /// Its value in this run.
        expected: String,
        /// Its value in the file.
        found: String,
    },

    /// A journal record appeared that this process did not write, although it holds the lock.
    #[error(
        "{file} exists already: another process writes this run in spite of the lock (does this file system support \
         locks?). Stop the other one and start again"
    )]
    Conflict {
        /// The record that was to be created.
        file: Place,
    },

    /// Another process opened the run for writing after this one did, so that this one may write no more.
    #[error(
        "{place} was taken over by {by}: this process must stop. What it committed is safe; to go on here, stop the \
         other one and start again"
    )]
    TakenOver {
        /// The run.
        place: Place,
        /// Who wrote in this process's stead.
        by: String,
    },

    /// The object store does not keep the promise that commits rest on.
    #[error(
        "the store of {place} does not keep objects from being overwritten: {found}. Two processes could destroy each \
         other's work: use a server that supports If-None-Match on PUT, as Amazon S3 and Ceph do, or a directory"
    )]
    UnsafeStore {
        /// The run.
        place: Place,
        /// What the probe found.
        found: &'static str,
    },

    /// An object store failed, or said no.
    #[error(
        "{doing} {place} failed{after}. Check the address, the keys and their permissions, and that the store is up{}",
        if *doing == READING { "" } else { ". What was committed is safe: start again, it resumes" }
    )]
    Store {
        /// The object or the run.
        place: Place,
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
    #[error("an earlier write to {place} failed. Open the run again to go on from what is on disk")]
    EarlierFailure {
        /// What was being written.
        place: Place,
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
    #[error("cannot {doing} {place}")]
    Io {
        /// What was being done, as in "cannot ...".
        doing: &'static str,
        /// The file or folder.
        place: Place,
        /// What the system said.
        source: io::Error,
    },
}

/// The `doing` of a [`StorageError::Store`] that changed nothing, so that there is nothing to resume.
pub(crate) const READING: &str = "reading";

impl StorageError {
    /// What a caller can do about it.
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

    /// The error of a folder for copies of shards in which this user may make nothing; `None` where the system failed for
    /// another reason.
    #[must_use]
    pub fn closed_cache(folder: &Path, error: &io::Error) -> Option<Self> {
        use io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
        let is_closed = matches!(error.kind(), NotADirectory | PermissionDenied | ReadOnlyFilesystem);
        let reason = format!("nothing can be made in it ({error})");
        (is_closed && error.raw_os_error().is_some())
            .then(|| Self::UnsafeCache { folder: folder.into(), reason })
    }

    /// The shard that is damaged, foreign or missing, so that making it again helps.
    #[must_use]
    pub fn blames(&self) -> Option<&ShardId> {
        match self {
            Self::Damaged { file, .. } | Self::Foreign { file, .. } | Self::ShardMissing { file } => {
                file.shard()
            }
            _ => None,
        }
    }

    /// Sorts an error of the system into [`NotWritable`](Self::NotWritable), [`Full`](Self::Full) or [`Io`](Self::Io).
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

    /// As [`io`](Self::io), for a write of a known length in bytes.
    pub(crate) fn write(place: impl Into<Place>, length: usize, source: io::Error) -> Self {
        match Self::io("write", place, source) {
            Self::Full { place, source, .. } => Self::Full { place, needed: Some(length as u64), source },
            other => other,
        }
    }

    /// The error of a failed read: always [`Io`](Self::Io), since a file that may not be read is not a file that cannot
    /// be written.
    pub(crate) fn read(place: impl Into<Place>, source: io::Error) -> Self {
        Self::Io { doing: "read", place: place.into(), source }
    }

    /// The error of a failed read of a shard: that the shard is lost, so that making it again can help, or only that it
    /// cannot be read now.
    pub(crate) fn read_shard(file: &Place, offset: u64, length: usize, source: io::Error) -> Self {
        let damaged = |found: String| Self::damaged(file, offset, format!("{length} bytes"), found);
        // When the shard is made again, it replaces whatever has its name, but for a directory that holds something:
        // that may be somebody's.
        let is_full = |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if file.as_path().is_some_and(is_full) {
            return Self::read(file, full_folder());
        }
        if let Some(found) = not_a_file(&source) {
            return Self::damaged(file, 0, "a file", found);
        }
        match source.kind() {
            // One that another machine removed or replaced is stale to processes that have it open.
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => {
                Self::ShardMissing { file: file.clone() }
            }
            io::ErrorKind::UnexpectedEof => damaged("the end of the file".to_owned()),
            // A bad place of the disk: written anew, the shard gets another one.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What reading a shard ends with: lost where making it again helps, and else only out of reach.
    #[test]
    fn a_shard_that_cannot_be_read_is_lost_or_out_of_reach() {
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
