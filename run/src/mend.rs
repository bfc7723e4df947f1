//! Finds lost and damaged shards. A solve computes them again from other shards.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use exact2048_solution::{Catalog, CatalogShard, Commit, JournalRecord, Run, RunError};
use exact2048_storage::StorageError;
use parking_lot::Mutex;

/// Removes from a run's catalog the shards that must be computed again.
///
/// If the run lacks nothing, or its last record is a retraction, this function reads every byte, as [`damaged_shards`]
/// does. It retracts the commits of damaged shards in the journal.
///
/// Otherwise it removes only absent shards. The solve reads the other shards when it needs them, so a long run resumes
/// at once. The user may restore an absent shard, so the journal does not mention it.
///
/// If `is_stopped` becomes true before everything is read, nothing is removed.
///
/// # Errors
///
/// If a shard cannot be checked although it may be intact, and the errors of [`Run::retract`].
pub fn remove_lost(
    run: &mut Run,
    threads: usize,
    is_stopped: &(dyn Fn() -> bool + Sync),
    warn: &(dyn Fn(&StorageError) + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), RunError> {
    // The process that wrote this retraction may have ended before it retracted the commits of all damaged shards.
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

/// Reads every byte of every committed shard, and returns the lost and damaged shards.
///
/// The shards stay neither open nor in a cache. `warn` gets the error of each lost or damaged shard. `progress` gets
/// the number of bytes read so far. Once `is_stopped` returns true, no further shard is read.
///
/// # Errors
///
/// If a shard cannot be read although it may be intact.
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
                        // The shard may be intact and only unreadable now, so computing it again could be a waste. The
                        // check ends here.
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
