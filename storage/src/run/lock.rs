//! The lock of a run: one process writes. The system releases it when the process ends, however it ends.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use exact2048_files::{OFlags, not_a_file, open, open_with};

use super::LOCK;
use crate::StorageError;

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the run directory `folder` and writes the id of this process into it.
    pub(super) fn acquire(folder: &Path) -> Result<Self, StorageError> {
        let path = folder.join(LOCK);
        let io = |e| StorageError::io("lock", &path, e);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = open_with(&mut options, OFlags::empty(), &path).map_err(|e| no_lock(&path, e))?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StorageError::Locked { place: folder.into(), pid: holder(&file) });
            }
            Err(TryLockError::Error(e)) => return Err(io(e)),
        }
        // Only for the message to others, hence neither synced nor needed: on a full disk a run can still be opened, if
        // only to remove what it does not need.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

/// Whether a file may be a lock that this program made, by what it holds: nothing, or the id of a process.
pub(super) fn may_be_lock(path: &Path) -> bool {
    let mut held = Vec::new();
    // Taking the lock refuses anything that is not a file.
    let Ok(file) = open(path) else { return true };
    let read = file.take(64).read_to_end(&mut held);
    read.is_ok() && held.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n')
}

/// Takes the lock; waits a moment for a process that only looks whether it is held ([`held_by`]).
fn try_lock(file: &File) -> Result<(), TryLockError> {
    // Tests play a file system that grants it to everybody.
    #[cfg(feature = "failpoints")]
    fail::fail_point!("lock.granted", |_| Ok(()));
    for _ in 0..5 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    file.try_lock()
}

/// Who holds the lock of the run directory `folder`, in words; `None` where nobody does, or where that is not known.
///
/// # Errors
///
/// Where what has the name of the lock is no file, so that nobody could ever hold it.
pub(super) fn held_by(folder: &Path) -> Result<Option<String>, StorageError> {
    let path = folder.join(LOCK);
    let file = match open(&path) {
        Ok(file) => file,
        Err(e) if not_a_file(&e).is_some() => return Err(no_lock(&path, e)),
        Err(_) => return Ok(None),
    };
    Ok(match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            Some(holder(&file).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}")))
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    })
}

/// Why the lock cannot be opened, and where it is no file, what to do about that.
fn no_lock(path: &Path, error: io::Error) -> StorageError {
    let told = not_a_file(&error).map(|found| {
        let advice = "Remove it while nobody writes the run: it holds nothing and is made again";
        io::Error::other(format!("expected a file, found {found}. {advice}"))
    });
    StorageError::io("lock", path, told.unwrap_or(error))
}

/// The process that wrote its id into the lock, if that can be read: it may be about to.
fn holder(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    // No more than an id has digits: the file may be anything.
    Read::by_ref(&mut file).take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
