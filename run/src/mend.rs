//! Finds the shards that are lost or damaged. They follow from others, and are made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use exact2048_solution::{Catalog, CatalogShard, Run, RunError};
use exact2048_storage::StorageError;
use parking_lot::Mutex;

/// Takes the shards out of a run that have to be made again. Of a run that lacks nothing, every byte is read, as
/// [`damaged_shards`] does. Of another one those go that are not there: the others are read when they are needed, and a run of
/// days goes on at once.
///
/// # Errors
///
/// What keeps a shard from being looked at that may be whole.
pub fn remove_lost(
    run: &Run,
    threads: usize,
    is_stopped: &(dyn Fn() -> bool + Sync),
    warn: &(dyn Fn(&StorageError) + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), RunError> {
    let catalog = run.catalog();
    if run.missing().is_empty() {
        let damaged = damaged_shards(catalog, threads, is_stopped, warn, progress)?;
        damaged.iter().for_each(|shard| catalog.remove(shard));
        return Ok(());
    }
    for (shard, error) in run.absent_shards()? {
        warn(&error);
        catalog.remove(&shard);
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
/// What keeps a shard from being read that may be whole.
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
