//! Memory that each worker of a machine may use, so that several workers together do not exceed it.
//!
//! Free memory may already be claimed: another worker will need it later. So each worker writes its claim to a file in
//! the folder of the cache, and holds a lock on the file while it runs.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::identity::{make_folder, open, read_words, rewrite};

/// Prefix of the name of a claim; a number follows.
const NAME: &str = "memory-";

/// File that a worker locks while it reads the claims of others and writes its own.
const TURN: &str = "memory.lock";

/// Longest wait for the turn. A worker holds it for milliseconds.
const MOST_WAIT: Duration = Duration::from_secs(30);

/// Pause between two attempts to lock the turn.
const PAUSE: Duration = Duration::from_millis(20);

/// A claim on memory. Other workers respect it while this value lives.
#[derive(Debug)]
pub struct MemoryClaim {
    /// The claimed bytes.
    pub bytes: u64,
    _held: File,
}

impl MemoryClaim {
    /// Claims `asked` bytes, or three quarters of the free memory that no other worker of this folder has claimed.
    ///
    /// `free_bytes` is the memory that is free now. `resident` returns the bytes that a process already holds; these
    /// are no longer free.
    ///
    /// # Errors
    ///
    /// An I/O error, a file that has the name of a claim but other contents, or a process that holds the turn too long.
    pub fn take(
        folder: &Path,
        asked: Option<u64>,
        free_bytes: u64,
        resident: &dyn Fn(u32) -> u64,
    ) -> Result<Self> {
        make_folder(folder)?;
        let _turn = wait_for_turn(&folder.join(TURN))?;
        let (claimed, place) = read_claims(folder, resident)?;
        let bytes = asked.unwrap_or_else(|| free_bytes.saturating_sub(claimed) / 4 * 3);
        let (path, mut held) = match place {
            Some(place) => place,
            None => new_place(folder)?,
        };
        rewrite(&mut held, &format!("{bytes} {}\n", std::process::id()))
            .with_context(|| cannot_use(&path))?;
        Ok(Self { bytes, _held: held })
    }
}

fn cannot_use(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

/// Locks the file of the turn.
fn wait_for_turn(path: &Path) -> Result<File> {
    let turn = open(path).with_context(|| cannot_use(path))?;
    let begun = Instant::now();
    loop {
        match turn.try_lock() {
            Ok(()) => return Ok(turn),
            Err(TryLockError::WouldBlock) if begun.elapsed() < MOST_WAIT => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => bail!(
                "another process has locked {} for {} s; end it, or choose another folder for the cache",
                path.display(),
                MOST_WAIT.as_secs()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| cannot_use(path)),
        }
    }
}

/// Returns the bytes that other workers have claimed and do not hold yet. Also locks and returns a claim file that no
/// worker uses, if there is one.
fn read_claims(folder: &Path, resident: &dyn Fn(u32) -> u64) -> Result<(u64, Option<(PathBuf, File)>)> {
    let (mut claimed, mut place) = (0_u64, None);
    for entry in fs::read_dir(folder).with_context(|| cannot_use(folder))? {
        let path = entry.with_context(|| cannot_use(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.strip_prefix(NAME).is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        let mut file = open(&path).with_context(|| cannot_use(&path))?;
        let (bytes, process) = read(&mut file).with_context(|| cannot_use(&path))?;
        match file.try_lock() {
            Ok(()) => place = Some((path, file)),
            Err(TryLockError::WouldBlock) => {
                claimed = claimed.saturating_add(bytes.saturating_sub(resident(process)));
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| cannot_use(&path)),
        }
    }
    Ok((claimed, place))
}

/// Creates and locks a file for one more claim. The file gets the first unused number.
fn new_place(folder: &Path) -> Result<(PathBuf, File)> {
    let path = (0_u32..).map(|number| folder.join(format!("{NAME}{number}"))).find(|path| !path.exists());
    let path = path.context("expected a free number for a claim, found none")?;
    let file = open(&path).with_context(|| cannot_use(&path))?;
    file.try_lock().map_err(io::Error::from).with_context(|| cannot_use(&path))?;
    Ok((path, file))
}

/// Reads the bytes of a claim and the id of its process. An unfinished file claims nothing.
fn read(file: &mut File) -> io::Result<(u64, u32)> {
    let words = read_words(file, "a worker's claim on memory", u8::is_ascii_digit)?;
    let claim = words.and_then(|(bytes, process)| Some((bytes.parse().ok()?, process.parse().ok()?)));
    Ok(claim.unwrap_or((0, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(folder: &Path, asked: Option<u64>, free: u64, resident: u64) -> MemoryClaim {
        MemoryClaim::take(folder, asked, free, &|_| resident).unwrap()
    }

    /// Workers that start together find the same memory free.
    #[test]
    fn workers_together_claim_no_more_than_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<MemoryClaim> = (0..4).map(|_| claim(folder.path(), None, 16_000, 0)).collect();
        let bytes: Vec<u64> = all.iter().map(|claim| claim.bytes).collect();
        assert_eq!(bytes, [12_000, 3_000, 750, 186]);
        drop(all);
        assert_eq!(claim(folder.path(), None, 16_000, 0).bytes, 12_000, "claims end with their processes");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "and files are used again");
    }

    #[test]
    fn a_foreign_file_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("memory-3");
        fs::write(&notes, "my notes").unwrap();
        let error = MemoryClaim::take(folder.path(), None, 16_000, &|_| 0).unwrap_err();
        assert!(format!("{error:#}").contains("memory-3"), "{error:#}");
        assert_eq!(fs::read_to_string(&notes).unwrap(), "my notes");
    }

    /// A process that holds the file with the largest number must not stop all later workers.
    #[test]
    fn a_claim_takes_the_first_free_number() {
        let folder = tempfile::tempdir().unwrap();
        let largest = folder.path().join(format!("{NAME}{}", u32::MAX));
        fs::write(&largest, "1000 1\n").unwrap();
        let held = File::open(&largest).unwrap();
        held.lock().unwrap();
        assert_eq!(claim(folder.path(), None, 16_000, 0).bytes, 11_250);
        assert!(folder.path().join("memory-0").exists());
    }

    /// Memory that a worker holds is not free, and must not count twice.
    #[test]
    fn memory_that_others_hold_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let _first = claim(folder.path(), Some(8_000), 16_000, 0);
        assert_eq!(claim(folder.path(), None, 16_000, 0).bytes, 6_000);
        assert_eq!(claim(folder.path(), None, 10_000, 6_000).bytes, 6_000);
        assert_eq!(claim(folder.path(), None, 4_000, 9_000).bytes, 3_000, "it holds more than it claimed");
        assert_eq!(claim(folder.path(), None, 4_000, 0).bytes, 0, "more is claimed than is free");
        assert_eq!(claim(folder.path(), Some(9_000), 4_000, 0).bytes, 9_000, "the user decides");
    }
}
