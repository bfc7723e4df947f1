//! Identity of a worker, which survives restarts. So the coordinator need not wait to see whether the earlier process
//! is alive.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::{Incarnation, Secret, WorkerId};
use exact2048_files::{OFlags, open_with};
use exact2048_storage::StorageError;
use rustix::process::geteuid;

use crate::random;
use crate::wire::worker_of;

/// How many workers may share one folder.
const MOST_WORKERS: u32 = 4096;

/// A worker's name, held for as long as this lives.
#[derive(Debug)]
pub struct Identity {
    /// The worker.
    pub id: WorkerId,
    /// Secret shown to the coordinator; the worker's id is derived from it.
    pub secret: Secret,
    /// Which start of a worker of this name it is.
    pub incarnation: Incarnation,
    /// The lock on the name.
    _held: File,
}

impl Identity {
    /// Takes the first name in a folder that no living process has, or a new one.
    ///
    /// # Errors
    ///
    /// Failures of the system; and where as many workers run in the folder as may.
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
            let (secret, incarnation) = match read(&mut file).with_context(failed)? {
                Some((secret, incarnation)) => (secret, incarnation.next()),
                None => (random::secret()?, Incarnation::FIRST),
            };
            write(&mut file, secret, incarnation).with_context(failed)?;
            return Ok(Self { id: worker_of(&secret), secret, incarnation, _held: file });
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
/// A failure of the system, which says where the folder may be instead.
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

/// Opens a file of a worker that only its owner may read.
///
/// If other users can write to the folder, the file may be their link, or a file whose secret they know. Such a file is
/// refused.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let file = open_with(&mut options, OFlags::NOFOLLOW, path)?;
    let owner = file.metadata()?.uid();
    if owner != geteuid().as_raw() {
        let user = geteuid().as_raw();
        let what = format!(
            "expected a file of user {user}, found one of user {owner}; remove it, or choose another folder for the \
             cache"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    // It may have been made by hand, or where files have no owners.
    if file.metadata()?.permissions().mode() & 0o077 != 0
        && let Err(error) = file.set_permissions(Permissions::from_mode(0o600))
    {
        let file = path.display();
        tracing::warn!(%file, %error, "cannot restrict access to a worker's file");
    }
    Ok(file)
}

/// Reads the two words in a file of a worker; `None` if the file is new or unfinished.
///
/// # Errors
///
/// If the file holds other bytes than `is_ours` accepts. This program does not overwrite such a file.
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

/// Reads the secret and the incarnation in a file.
fn read(file: &mut File) -> io::Result<Option<(Secret, Incarnation)>> {
    let words = read_words(file, "the secret of a worker", u8::is_ascii_hexdigit)?;
    Ok(words.and_then(|(secret, incarnation)| {
        let bits = u128::from_str_radix(&secret, 16).ok().filter(|_| secret.len() == 2 * Secret::BYTES)?;
        let incarnation = u64::from_str_radix(&incarnation, 16).ok()?;
        Some((Secret::new(bits.to_be_bytes()), Incarnation(incarnation)))
    }))
}

fn write(file: &mut File, secret: Secret, incarnation: Incarnation) -> io::Result<()> {
    let bits = u128::from_be_bytes(*secret.bytes());
    rewrite(file, &format!("{bits:032x} {:x}\n", incarnation.0))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_workers_at_a_time_and_taken_up_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = Identity::take(folder.path()).unwrap();
        let second = Identity::take(folder.path()).unwrap();
        assert_ne!(first.id, second.id);
        let (id, secret) = (first.id, first.secret);
        assert_eq!(id, worker_of(&secret));
        drop(first);
        let again = Identity::take(folder.path()).unwrap();
        assert_eq!((again.id, again.secret, again.incarnation), (id, secret, Incarnation::FIRST.next()));
        // A file that was not finished is a new name.
        drop(again);
        let file = folder.path().join("worker-0");
        for unfinished in ["", "123", "123 4\n", "00112233445566778899aabbccddeeff 1"] {
            fs::write(&file, unfinished).unwrap();
            let anew = Identity::take(folder.path()).unwrap();
            assert_ne!(anew.id, id);
            assert_eq!(anew.incarnation, Incarnation::FIRST);
        }
    }

    /// A cache may be in a folder that holds other files.
    #[test]
    fn a_file_of_another_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worker-0");
        for other in [&b"notes on workers"[..], &[0xff; 8]] {
            fs::write(&file, other).unwrap();
            let refused = format!("{:#}", Identity::take(folder.path()).err().unwrap());
            assert!(refused.contains("worker-0") && refused.contains("Move it away"), "{refused}");
            assert_eq!(fs::read(&file).unwrap(), other);
        }
    }

    /// Otherwise a user that can write to the folder could have a file of the worker's user overwritten.
    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("worker-0")).unwrap();
        let error = format!("{:#}", Identity::take(folder.path()).unwrap_err());
        assert!(error.contains("worker-0"), "{error}");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    }

    #[test]
    fn nobody_else_can_read_who_a_worker_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worker-0");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let identity = Identity::take(folder.path()).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let shown = format!("{identity:?}");
        let bits = format!("{:032x}", u128::from_be_bytes(*identity.secret.bytes()));
        assert!(fs::read_to_string(&file).unwrap().contains(&bits) && !shown.contains(&bits), "{shown}");
    }
}
