//! The memory that the workers of a machine may use, so that several of them do not exceed it.
//!
//! Memory that is free when a worker starts may be claimed: the worker beside it needs that memory later. So each
//! worker writes its claim to a file of the folder for the cache, and holds a lock on the file while it runs.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::identity::{make_folder, open};

/// The name of a claim, up to its number.
const NAME: &str = "memory-";

/// The file whose lock a worker holds while it reads the claims of others and writes its own.
const TURN: &str = "memory.lock";

/// A claim on memory, which others heed for as long as this lives.
#[derive(Debug)]
pub struct MemoryClaim {
    /// The claimed bytes.
    pub bytes: u64,
    _held: File,
}

impl MemoryClaim {
    /// Claims `asked` bytes; without that, three quarters of the memory that is free and that no other worker with
    /// this folder has claimed. `free_bytes` is free now; `resident` says how many bytes a process holds already, which
    /// are not free any more.
    ///
    /// # Errors
    ///
    /// Failures of the system.
    pub fn take(
        folder: &Path,
        asked: Option<u64>,
        free_bytes: u64,
        resident: &dyn Fn(u32) -> u64,
    ) -> Result<Self> {
        let failed = || format!("cannot use {}", folder.display());
        make_folder(folder)?;
        let turn = open(&folder.join(TURN)).with_context(failed)?;
        turn.lock().with_context(failed)?;
        let (claimed, place) = look(folder, resident).with_context(failed)?;
        let bytes = asked.unwrap_or_else(|| free_bytes.saturating_sub(claimed) / 4 * 3);
        let mut held = match place {
            Some(place) => place,
            None => new_place(folder).with_context(failed)?,
        };
        write(&mut held, bytes).with_context(failed)?;
        Ok(Self { bytes, _held: held })
    }
}

/// The bytes that others have claimed and do not hold yet, and the file of a claim that nobody has any more.
fn look(folder: &Path, resident: &dyn Fn(u32) -> u64) -> io::Result<(u64, Option<File>)> {
    let (mut claimed, mut place) = (0_u64, None);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if number_of(&entry.file_name().to_string_lossy()).is_none() {
            continue;
        }
        let mut file = open(&entry.path())?;
        match file.try_lock() {
            Ok(()) => place = Some(file),
            Err(TryLockError::WouldBlock) => {
                let (bytes, process) = read(&mut file)?;
                claimed = claimed.saturating_add(bytes.saturating_sub(resident(process)));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok((claimed, place))
}

/// A file for one claim more, locked.
fn new_place(folder: &Path) -> io::Result<File> {
    let numbers =
        fs::read_dir(folder)?.filter_map(|entry| number_of(&entry.ok()?.file_name().to_string_lossy()));
    let next = numbers.max().map_or(0, |number| number.saturating_add(1));
    let file = open(&folder.join(format!("{NAME}{next}")))?;
    file.lock()?;
    Ok(file)
}

fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// The bytes of a claim, and the process that has it. A file that was not written to its end claims nothing.
fn read(file: &mut File) -> io::Result<(u64, u32)> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
    let words = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
    let claim = words.and_then(|(bytes, process)| Some((bytes.parse().ok()?, process.parse().ok()?)));
    Ok(claim.unwrap_or((0, 0)))
}

fn write(file: &mut File, bytes: u64) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(format!("{bytes} {}\n", std::process::id()).as_bytes())
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
