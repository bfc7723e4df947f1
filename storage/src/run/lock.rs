//! The lock of a run, which admits one writer. The system releases the lock when the process ends, even if the process
//! is killed.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use exact2048_files::{OFlags, not_a_file, open, open_with};

use crate::StorageError;
use crate::names::LOCK;

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Acquires the lock of the run directory `folder` and writes this process's id into it.
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
        // Other processes use the id only in messages, so it is not synced and may be missing. Therefore a run on a
        // full disk can still be opened to remove needless files.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

/// Returns whether a file may be a lock. A lock is empty or contains a process id.
pub(super) fn may_be_lock(path: &Path) -> bool {
    let mut held = Vec::new();
    // Acquiring the lock later reports anything that is not a file.
    let Ok(file) = open(path) else { return true };
    let read = file.take(64).read_to_end(&mut held);
    read.is_ok() && held.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n')
}

/// Acquires the lock. Retries for 25 ms, because a process that calls [`held_by`] holds the lock for a moment.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    // Tests simulate a file system that grants the lock to every process.
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

/// Describes the process that holds the lock of `folder`; `None` if no process holds it or the holder is unknown.
///
/// # Errors
///
/// An error if the lock is not a file. In that case no process can hold the lock.
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

/// Error of opening the lock, with advice if it is not a file.
fn no_lock(path: &Path, error: io::Error) -> StorageError {
    let advised = not_a_file(&error).map(|found| {
        let advice = "Remove it while no process writes the run: the lock holds no data and is recreated";
        io::Error::other(format!("expected a file, found {found}. {advice}"))
    });
    StorageError::io("lock", path, advised.unwrap_or(error))
}

/// Reads the process id in the lock; `None` if it is unreadable or the holder has not written it.
fn holder(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    // Read only as many bytes as an id can have, because the file may have any contents.
    Read::by_ref(&mut file).take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
