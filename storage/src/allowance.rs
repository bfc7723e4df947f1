//! What a run may take of the disk: whatever is written is counted before it is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Place, Scratch, StorageError};

/// File systems give files whole blocks, usually of this many bytes.
const BLOCK_BYTES: u64 = 4096;

/// What the name of a file takes in its folder, about.
const NAME_BYTES: u64 = 256;

/// Bytes that only the journal may take: a removal of shards is recorded there first, also on a full disk.
const JOURNAL_BYTES: u64 = 128 << 10;

/// Bytes that the record of a removal takes, at most as a rule.
const REMOVAL_BYTES: u64 = 16 << 10;

/// What a file of this length takes of a disk, its name included.
#[must_use]
pub fn file_cost(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES) + NAME_BYTES
}

/// A number of bytes that a run may take of the disk, and how many it takes. Counted are manifest, journal, shards, and
/// scratch files; each before it grows, so that the limit holds at any time.
#[derive(Debug)]
pub struct Allowance {
    place: Place,
    limit_bytes: u64,
    /// How far the journal may go. Where so much is taken from the beginning that a removal cannot be recorded within the
    /// limit, beyond it: what has to go is recorded first.
    journal_limit_bytes: u64,
    taken: AtomicU64,
    peak: AtomicU64,
}

impl Allowance {
    /// The allowance of a run that takes `taken` bytes already.
    pub(crate) fn new(place: Place, limit_bytes: u64, taken: u64) -> Self {
        let beyond = taken + JOURNAL_BYTES;
        let journal_limit_bytes = if taken + REMOVAL_BYTES > limit_bytes { beyond } else { limit_bytes };
        Self { place, limit_bytes, journal_limit_bytes, taken: taken.into(), peak: taken.into() }
    }

    /// How much the run may take.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// How much it takes, files that are being written included.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The most that it took since it was opened, or as [`note_peak`](Self::note_peak) was given.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Counts what was there before the run was opened, files of killed processes included, towards the most that it took.
    pub fn note_peak(&self, taken_bytes: u64) {
        self.peak.fetch_max(taken_bytes, Ordering::Relaxed);
    }

    /// How much more shards and scratch files may take; negative where more is taken than may be.
    #[must_use]
    pub fn free_bytes(&self) -> i64 {
        let limit = i64::try_from(self.limit_bytes).unwrap_or(i64::MAX);
        limit.saturating_sub_unsigned(self.taken_bytes() + JOURNAL_BYTES)
    }

    /// Counts bytes that another process has written.
    pub(crate) fn add(&self, bytes: u64) {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
    }

    /// Counts bytes of the journal that are to be written.
    pub(crate) fn take_for_journal(&self, bytes: u64) -> Result<(), StorageError> {
        self.take_up_to(self.journal_limit_bytes, bytes)
    }

    fn take(&self, bytes: u64) -> Result<(), StorageError> {
        self.take_up_to(self.limit_bytes.saturating_sub(JOURNAL_BYTES), bytes)
    }

    fn take_up_to(&self, most: u64, bytes: u64) -> Result<(), StorageError> {
        let add = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= most);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(taken) => Err(StorageError::OverLimit {
                place: self.place.clone(),
                limit: self.limit_bytes,
                taken,
                needed: bytes,
            }),
        }
    }

    /// Counts bytes no longer, because their file is gone.
    pub(crate) fn give_back(&self, bytes: u64) {
        let less = |taken: u64| Some(taken.saturating_sub(bytes));
        // Never fails: there is always a new number.
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// The part of an [`Allowance`] that one file takes; given back when this is dropped, unless the file stays.
#[derive(Debug)]
pub(crate) struct Taken {
    allowance: Option<Arc<Allowance>>,
    bytes: AtomicU64,
}

impl Taken {
    /// For a file that is empty so far; without an allowance nothing is counted.
    pub(crate) fn nothing(allowance: Option<Arc<Allowance>>) -> Self {
        Self { allowance, bytes: AtomicU64::new(0) }
    }

    /// The file is to grow to this length. Called by its one writer.
    pub(crate) fn grow_to(&self, length: u64) -> Result<(), StorageError> {
        let Some(allowance) = &self.allowance else { return Ok(()) };
        let (cost, before) = (file_cost(length), self.bytes.load(Ordering::Relaxed));
        if cost > before {
            allowance.take(cost - before)?;
            self.bytes.store(cost, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The file stays, in the place of one that took `replaced` bytes of the disk.
    pub(crate) fn keep(self, replaced: u64) {
        if let Some(allowance) = &self.allowance {
            allowance.give_back(replaced);
        }
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(allowance) = &self.allowance {
            allowance.give_back(self.bytes.load(Ordering::Relaxed));
        }
    }
}

/// Where scratch files go, and what they count towards.
#[derive(Clone, Debug)]
pub struct ScratchPlace {
    path: PathBuf,
    allowance: Option<Arc<Allowance>>,
}

impl ScratchPlace {
    /// A folder whose scratch files count as part of a run.
    #[must_use]
    pub fn within(path: PathBuf, allowance: Option<Arc<Allowance>>) -> Self {
        Self { path, allowance }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a scratch file.
    ///
    /// # Errors
    ///
    /// A failure of the system.
    pub fn create(&self) -> Result<Scratch, StorageError> {
        Scratch::counted(&self.path, Taken::nothing(self.allowance.clone()))
    }
}

impl From<PathBuf> for ScratchPlace {
    /// A folder whose scratch files count towards no allowance.
    fn from(path: PathBuf) -> Self {
        Self { path, allowance: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(limit: u64) -> Arc<Allowance> {
        Arc::new(Allowance::new(Path::new("run").into(), limit, 10_000))
    }

    #[test]
    fn nothing_is_taken_that_is_not_there() {
        let limit = JOURNAL_BYTES + 30_000;
        let allowance = allowance(limit);
        let file = Taken::nothing(Some(Arc::clone(&allowance)));
        file.grow_to(1).unwrap();
        assert_eq!(allowance.taken_bytes(), 10_000 + 4096 + 256);
        file.grow_to(4096).unwrap();
        assert_eq!(allowance.taken_bytes(), 10_000 + 4096 + 256, "it is the same block");
        let refused = file.grow_to(20_000).unwrap_err();
        assert!(matches!(refused, StorageError::OverLimit { limit: l, .. } if l == limit), "{refused}");
        assert_eq!(allowance.taken_bytes(), 10_000 + 4096 + 256, "what is refused is not taken");
        // The journal has room that nothing else takes.
        allowance.take_for_journal(JOURNAL_BYTES).unwrap();
        drop(file);
        let free = 20_000 - JOURNAL_BYTES.cast_signed();
        assert_eq!((allowance.taken_bytes(), allowance.free_bytes()), (10_000 + JOURNAL_BYTES, free));
        assert_eq!(allowance.peak_bytes(), 10_000 + 4096 + 256 + JOURNAL_BYTES);
    }

    /// What has to go is recorded first; nothing else is written.
    #[test]
    fn a_limit_below_what_is_there_leaves_the_journal_room() {
        let allowance = allowance(8_000);
        assert!(matches!(allowance.take(1), Err(StorageError::OverLimit { .. })));
        allowance.take_for_journal(JOURNAL_BYTES).unwrap();
        assert!(matches!(allowance.take_for_journal(1), Err(StorageError::OverLimit { .. })));
        allowance.give_back(10_000);
        assert!(allowance.free_bytes() < 0);
    }

    /// A removal, which is what makes room, is recorded with any limit.
    #[test]
    fn a_limit_of_just_what_is_there_leaves_room_for_a_removal() {
        for limit in [9_999, 10_000, 10_001, 10_000 + file_cost(4096) - 1, 10_000 + file_cost(8192)] {
            let allowance = allowance(limit);
            assert!(allowance.take(1).is_err());
            allowance.take_for_journal(file_cost(4096)).unwrap();
        }
        assert!(allowance(300_000).take_for_journal(300_000).is_err(), "elsewhere the limit holds");
    }

    #[test]
    fn a_file_that_stays_takes_the_place_of_another() {
        let allowance = allowance(1 << 20);
        let file = Taken::nothing(Some(Arc::clone(&allowance)));
        file.grow_to(100_000).unwrap();
        file.keep(file_cost(50_000));
        assert_eq!(allowance.taken_bytes(), 10_000 + file_cost(100_000) - file_cost(50_000));
        let unlimited = Taken::nothing(None);
        unlimited.grow_to(u64::MAX / 2).unwrap();
    }

    #[test]
    fn scratch_files_count_for_as_long_as_they_are_mapped() {
        let place = tempfile::tempdir().unwrap();
        let allowance = allowance(1 << 20);
        let folder = ScratchPlace::within(place.path().into(), Some(Arc::clone(&allowance)));
        let mut scratch = folder.create().unwrap();
        scratch.append(&[7; 100_000]).unwrap();
        let map = scratch.map().unwrap();
        assert!(matches!(scratch.append(&vec![7; 1 << 20]), Err(StorageError::OverLimit { .. })));
        drop(scratch);
        assert_eq!(allowance.taken_bytes(), 10_000 + file_cost(100_000));
        drop(map);
        assert_eq!(allowance.taken_bytes(), 10_000);
    }
}
