//! Finds the shards that are lost or damaged. They follow from others, and are made again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use exact2048_solution::{Catalog, CatalogShard, Commit, JournalRecord, Run, RunError};
use exact2048_storage::StorageError;
use parking_lot::Mutex;

/// Removes the shards from a run's catalog that must be recomputed.
///
/// If the run lacks nothing, or its last record is a retraction, every byte is read, as by [`damaged_shards`]. The
/// commits of damaged shards are retracted in the journal.
///
/// Otherwise only absent shards are removed. The other shards are read when they are needed, so a run of days resumes at
/// once. An absent shard may return, so the journal does not mention it.
///
/// If `is_stopped` becomes true before everything is read, nothing is removed.
///
/// # Errors
///
/// If a shard that may be whole cannot be checked, and the errors of [`Run::retract`].
pub fn remove_lost(
    run: &mut Run,
    threads: usize,
    is_stopped: &(dyn Fn() -> bool + Sync),
    warn: &(dyn Fn(&StorageError) + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), RunError> {
    // The process that retracted the last commit may have ended before it retracted all damaged ones.
    let is_retracting = matches!(run.last_record(), Some(JournalRecord::Retraction(_)));
    let is_whole = run.missing().is_empty() || is_retracting;
    let damaged = if is_whole {
        damaged_shards(run.catalog(), threads, is_stopped, warn, progress)?
    } else {
        Vec::new()
    };
    if is_stopped() {
        return Ok(());
    }
    let mut absent = HashSet::new();
    for (shard, error) in run.absent_shards()? {
        if !is_whole {
            warn(&error);
        }
        run.catalog().remove(&shard);
        absent.insert(shard.serial);
    }
    let mut retracted = HashSet::new();
    for shard in damaged.iter().filter(|shard| !absent.contains(&shard.serial)) {
        if retracted.insert((shard.commit.phase, shard.commit.first)) {
            run.retract(Commit::clone(&shard.commit))?;
        }
    }
    Ok(())
}

/// Reads every byte of every committed shard, and returns the shards that are lost or damaged, so that they must be made
/// again. Nothing is kept of them, neither open nor in a cache.
///
/// `warn` is called with each error of one that is lost or damaged, and `progress` with the bytes that are done. Once
/// `is_stopped`, no further shard is read.
///
/// # Errors
///
/// If a shard that may be whole cannot be read.
pub fn damaged_shards(
    catalog: &Catalog,
    threads: usize,
    is_stopped: &(dyn Fn() -> bool + Sync),
    warn: &(dyn Fn(&StorageError) + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Arc<CatalogShard>>, StorageError> {
    let shards = catalog.shards();
    let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
    let found = Mutex::new(Ok(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(shards.len()) {
            scope.spawn(|| {
                while let Some(shard) = shards.get(next.fetch_add(1, Ordering::Relaxed))
                    && !is_stopped()
                {
                    let read = shard.check();
                    let of_shard = shard.record.bytes;
                    progress(bytes.fetch_add(of_shard, Ordering::Relaxed) + of_shard);
                    let Err(error) = read else { continue };
                    let mut found = found.lock();
                    match &mut *found {
                        Ok(damaged) if error.blames().is_some() => {
                            warn(&error);
                            damaged.push(Arc::clone(shard));
                        }
                        // Perhaps whole, but not to be read now: making it again would be a waste. The others are not read.
                        Ok(_) => {
                            *found = Err(error);
                            next.store(shards.len(), Ordering::Relaxed);
                        }
                        Err(_) => {}
                    }
                }
            });
        }
    });
    found.into_inner()
}
