//! Who a worker is: the same after it was started again, so that the coordinator need not wait to see whether the
//! one before is still there.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::WorkerId;

/// Workers that may have one folder for their caches.
const MOST_WORKERS: u32 = 4096;

/// A worker's name, held for as long as this lives.
#[derive(Debug)]
pub struct Identity {
    /// The worker.
    pub id: WorkerId,
    /// How often a worker of this name was started before.
    pub incarnation: u64,
    /// The lock on the name.
    _held: File,
}

impl Identity {
    /// Takes the first name in a folder that no living process has, or a new one.
    ///
    /// # Errors
    ///
    /// Failures of the system, and as many workers as there may be in the folder.
    pub fn take(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for number in 0..MOST_WORKERS {
            let path = folder.join(format!("worker-{number}"));
            let failed = || format!("cannot use {}", path.display());
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
                .with_context(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
            let (id, incarnation) = match read(&mut file).with_context(failed)? {
                Some((id, incarnation)) => (id, incarnation + 1),
                None => (rand::random(), 0),
            };
            write(&mut file, id, incarnation).with_context(failed)?;
            return Ok(Self { id: WorkerId(id), incarnation, _held: file });
        }
        anyhow::bail!("{MOST_WORKERS} workers run with the cache {} already", folder.display())
    }
}

/// The name and the incarnation in a file; `None` where it is new, or a process ended while it wrote.
fn read(file: &mut File) -> io::Result<Option<(u64, u64)>> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
    let number = |text: Option<&str>| u64::from_str_radix(text?, 16).ok();
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    Ok(number(words.next()).zip(number(words.next())).filter(|_| text.ends_with('\n')))
}

fn write(file: &mut File, id: u64, incarnation: u64) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(format!("{id:016x} {incarnation:x}\n").as_bytes())?;
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
        let id = first.id;
        drop(first);
        let again = Identity::take(folder.path()).unwrap();
        assert_eq!((again.id, again.incarnation), (id, 1));
        // A file that was not finished is a new name.
        drop(again);
        fs::write(folder.path().join("worker-0"), "123").unwrap();
        let anew = Identity::take(folder.path()).unwrap();
        assert_ne!(anew.id, id);
        assert_eq!(anew.incarnation, 0);
    }
}
