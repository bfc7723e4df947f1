//! The disk limit of a run: bytes are counted before they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Place, StorageError};

/// Usual block size of file systems, which allocate whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// Approximate space of a file's name in its folder.
const NAME_BYTES: u64 = 256;

/// Bytes reserved for the journal. Because of this reserve, the journal can record a removal when the run has reached
/// its limit.
const JOURNAL_BYTES: u64 = 128 << 10;

/// Usual upper bound on the bytes of a removal record.
const REMOVAL_BYTES: u64 = 16 << 10;

/// Returns the disk space of a file of this length, including its name.
#[must_use]
pub fn file_cost(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES) + NAME_BYTES
}

/// Disk limit of a run and the bytes in use.
///
/// Counts the manifest, journal, shards and scratch files. Bytes are counted before they are written, so no write of
/// this process exceeds the limit. The only exception is the record of a removal (`journal_limit_bytes`).
#[derive(Debug)]
pub struct Allowance {
    place: Place,
    limit_bytes: u64,
    /// Limit in bytes for the journal. It exceeds `limit_bytes` if the run was opened with too little free space to
    /// record a removal. A removal must be recorded before shards are deleted.
    journal_limit_bytes: u64,
    taken: AtomicU64,
    peak: AtomicU64,
}

impl Allowance {
    /// Creates the allowance of a run that already uses `taken` bytes.
    pub(crate) fn new(place: Place, limit_bytes: u64, taken: u64) -> Self {
        let beyond = taken + JOURNAL_BYTES;
        let journal_limit_bytes = if taken + REMOVAL_BYTES > limit_bytes { beyond } else { limit_bytes };
        Self { place, limit_bytes, journal_limit_bytes, taken: taken.into(), peak: taken.into() }
    }

    /// Bytes that the run may use.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Bytes in use, including files that are still being written.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Highest use since the run was opened, or the value given to [`note_peak`](Self::note_peak) if that value is
    /// higher.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Raises the peak to the disk use before the run was opened, including files of killed processes.
    pub fn note_peak(&self, taken_bytes: u64) {
        self.peak.fetch_max(taken_bytes, Ordering::Relaxed);
    }

    /// Bytes left for shards and scratch files; negative if the run is over its limit.
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

    /// Counts bytes about to be written to the journal.
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

    /// Subtracts the bytes of a deleted file.
    pub(crate) fn give_back(&self, bytes: u64) {
        let less = |taken: u64| Some(taken.saturating_sub(bytes));
        // Cannot fail: `less` always returns a value.
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Share of one file in an [`Allowance`]. Dropping the share gives its bytes back unless the file was kept.
#[derive(Debug)]
pub(crate) struct Taken {
    allowance: Option<Arc<Allowance>>,
    bytes: AtomicU64,
}

impl Taken {
    /// Starts with an empty file. Without an allowance nothing is counted.
    pub(crate) fn nothing(allowance: Option<Arc<Allowance>>) -> Self {
        Self { allowance, bytes: AtomicU64::new(0) }
    }

    /// Counts the growth of the file to this length. Only the single writer of the file calls this method.
    pub(crate) fn grow_to(&self, length: u64) -> Result<(), StorageError> {
        let Some(allowance) = &self.allowance else { return Ok(()) };
        let (cost, before) = (file_cost(length), self.bytes.load(Ordering::Relaxed));
        if cost > before {
            allowance.take(cost - before)?;
            self.bytes.store(cost, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Keeps the file counted, and gives back the bytes of the file that it replaces.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn allowance(limit: u64) -> Arc<Allowance> {
        Arc::new(Allowance::new(Path::new("run").into(), limit, 10_000))
    }

    #[test]
    fn a_refused_growth_is_not_counted() {
        let limit = JOURNAL_BYTES + 30_000;
        let allowance = allowance(limit);
        let file = Taken::nothing(Some(Arc::clone(&allowance)));
        file.grow_to(1).unwrap();
        assert_eq!(allowance.taken_bytes(), 10_000 + 4096 + 256);
        file.grow_to(4096).unwrap();
        assert_eq!(allowance.taken_bytes(), 10_000 + 4096 + 256, "the file is still in the same block");
        let refused = file.grow_to(20_000).unwrap_err();
        assert!(matches!(refused, StorageError::OverLimit { limit: l, .. } if l == limit), "{refused}");
        assert_eq!(allowance.taken_bytes(), 10_000 + 4096 + 256, "a refused growth is not counted");
        // The bytes reserved for the journal are still free.
        allowance.take_for_journal(JOURNAL_BYTES).unwrap();
        drop(file);
        let free = 20_000 - JOURNAL_BYTES.cast_signed();
        assert_eq!((allowance.taken_bytes(), allowance.free_bytes()), (10_000 + JOURNAL_BYTES, free));
        assert_eq!(allowance.peak_bytes(), 10_000 + 4096 + 256 + JOURNAL_BYTES);
    }

    /// Only the journal may grow above the limit, because a removal must be recorded before it frees space.
    #[test]
    fn a_limit_below_current_use_leaves_room_for_the_journal() {
        let allowance = allowance(8_000);
        assert!(matches!(allowance.take(1), Err(StorageError::OverLimit { .. })));
        allowance.take_for_journal(JOURNAL_BYTES).unwrap();
        assert!(matches!(allowance.take_for_journal(1), Err(StorageError::OverLimit { .. })));
        allowance.give_back(10_000);
        assert!(allowance.free_bytes() < 0);
    }

    /// A removal frees space, so the journal can record it under any limit.
    #[test]
    fn a_limit_near_current_use_leaves_room_for_a_removal() {
        for limit in [9_999, 10_000, 10_001, 10_000 + file_cost(4096) - 1, 10_000 + file_cost(8192)] {
            let allowance = allowance(limit);
            assert!(allowance.take(1).is_err());
            allowance.take_for_journal(file_cost(4096)).unwrap();
        }
        assert!(
            allowance(300_000).take_for_journal(300_000).is_err(),
            "with enough free space the limit holds"
        );
    }

    #[test]
    fn a_kept_file_replaces_the_bytes_of_another() {
        let allowance = allowance(1 << 20);
        let file = Taken::nothing(Some(Arc::clone(&allowance)));
        file.grow_to(100_000).unwrap();
        file.keep(file_cost(50_000));
        assert_eq!(allowance.taken_bytes(), 10_000 + file_cost(100_000) - file_cost(50_000));
        let unlimited = Taken::nothing(None);
        unlimited.grow_to(u64::MAX / 2).unwrap();
    }
}
