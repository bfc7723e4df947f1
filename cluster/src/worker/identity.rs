//! Identity of a worker, which survives restarts. So the coordinator need not wait to see whether the earlier process
//! is alive.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::{Incarnation, WorkerId};
use exact2048_files::{OFlags, open_with};
use exact2048_storage::StorageError;
use rand::Rng;

use crate::random::generator;

/// Maximum number of workers that share one folder.
const MOST_WORKERS: u32 = 4096;

/// A worker's name, reserved while this value lives.
#[derive(Debug)]
pub struct Identity {
    /// The worker.
    pub id: WorkerId,
    /// Number of this start of the worker.
    pub incarnation: Incarnation,
    /// The lock on the name.
    _held: File,
}

impl Identity {
    /// Takes the first name in a folder that no running process holds, or creates a new one.
    ///
    /// # Errors
    ///
    /// Failures of the system, and a folder in which the maximum number of workers run.
    pub fn take(folder: &Path) -> Result<Self> {
        make_folder(folder)?;
        let explained = |error| explained(folder, error);
        for number in 0..MOST_WORKERS {
            let path = folder.join(format!("worker-{number}"));
            let failed = || format!("cannot use {}", path.display());
            let mut file = open(&path).map_err(explained).with_context(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
            let (id, incarnation) = match read(&mut file).with_context(failed)? {
                Some((id, incarnation)) => (id, incarnation.next()),
                None => (WorkerId(generator()?.random()), Incarnation::FIRST),
            };
            rewrite(&mut file, &format!("{id} {:x}\n", incarnation.0)).with_context(failed)?;
            file.sync_all().with_context(failed)?;
            return Ok(Self { id, incarnation, _held: file });
        }
        anyhow::bail!(
            "{MOST_WORKERS} workers already use the cache {}; choose another folder for the cache",
            folder.display()
        )
    }
}

/// Makes the folder of workers on this machine if it is missing.
///
/// # Errors
///
/// An I/O error. For a folder without access, the error suggests other places.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    let made = fs::create_dir_all(folder).map_err(|error| explained(folder, error));
    made.with_context(|| format!("cannot create {}", folder.display()))
}

fn explained(folder: &Path, error: io::Error) -> anyhow::Error {
    match StorageError::closed_cache(folder, &error) {
        Some(closed) => closed.into(),
        None => error.into(),
    }
}

/// Opens a file of a worker, and creates it if it is missing. A link is not followed.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    open_with(&mut options, OFlags::NOFOLLOW, path)
}

/// Reads the two words in a file of a worker; `None` if the file is new or unfinished.
///
/// # Errors
///
/// The file contains bytes that `is_ours` rejects. This program does not overwrite such a file.
pub(super) fn read_words(
    file: &mut File,
    content: &str,
    is_ours: fn(&u8) -> bool,
) -> io::Result<Option<(String, String)>> {
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).ok();
    let Some(text) = text.filter(|text| text.bytes().all(|byte| is_ours(&byte) || b" \n".contains(&byte)))
    else {
        let problem = format!(
            "expected {content}, found something else. Move it away, or choose another folder for the cache"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    };
    let words = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
    Ok(words.map(|(first, second)| (first.to_owned(), second.to_owned())))
}

/// Replaces the contents of a file of a worker.
pub(super) fn rewrite(file: &mut File, text: &str) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// Reads the id and the incarnation in a file; `None` if the file is new, unfinished or of another version.
fn read(file: &mut File) -> io::Result<Option<(WorkerId, Incarnation)>> {
    let words = read_words(file, "the id of a worker", u8::is_ascii_hexdigit)?;
    Ok(words.and_then(|(id, incarnation)| {
        let bits = u64::from_str_radix(&id, 16).ok().filter(|_| id.len() == 16)?;
        let incarnation = u64::from_str_radix(&incarnation, 16).ok()?;
        Some((WorkerId(bits), Incarnation(incarnation)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_worker_at_a_time_and_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = Identity::take(folder.path()).unwrap();
        let second = Identity::take(folder.path()).unwrap();
        assert_ne!(first.id, second.id);
        let id = first.id;
        drop(first);
        let again = Identity::take(folder.path()).unwrap();
        assert_eq!((again.id, again.incarnation), (id, Incarnation::FIRST.next()));
        // An unfinished file gets a new name, and so does a file with a secret of earlier versions.
        drop(again);
        let file = folder.path().join("worker-0");
        for unfinished in ["", "123", "123 4\n", "0011223344556677 1", "00112233445566778899aabbccddeeff 1\n"]
        {
            fs::write(&file, unfinished).unwrap();
            let anew = Identity::take(folder.path()).unwrap();
            assert_ne!(anew.id, id);
            assert_eq!(anew.incarnation, Incarnation::FIRST);
        }
    }

    /// A cache may be in a folder that holds other files.
    #[test]
    fn a_foreign_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worker-0");
        for other in [&b"notes on workers"[..], &[0xff; 8]] {
            fs::write(&file, other).unwrap();
            let refused = format!("{:#}", Identity::take(folder.path()).err().unwrap());
            assert!(refused.contains("worker-0") && refused.contains("Move it away"), "{refused}");
            assert_eq!(fs::read(&file).unwrap(), other);
        }
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("worker-0")).unwrap();
        let error = format!("{:#}", Identity::take(folder.path()).err().unwrap());
        assert!(error.contains("worker-0"), "{error}");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    }
}
