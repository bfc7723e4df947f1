//! Shards that are lost or damaged: which they are. They are functions of others, and are made again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use exact2048_storage::{ShardKind, StorageError};
use exact2048_worker::WorkerError;

use crate::catalog::{Catalog, CatalogShard};
use crate::crew::CrewError;
use crate::run::RunError;

/// The shard that an error blames, where making it again can help.
pub fn blamed_shard(catalog: &Catalog, error: &CrewError) -> Option<Arc<CatalogShard>> {
    let shard_of = |error: &StorageError| {
        let file = error.damaged_file().or_else(|| error.missing_file())?;
        catalog.shards().into_iter().find(|shard| shard.path == file)
    };
    match error {
        CrewError::Worker(WorkerError::Storage(error))
        | CrewError::Storage(error)
        | CrewError::Run(RunError::Storage(error)) => shard_of(error),
        CrewError::Worker(WorkerError::ItemMissing(key)) => catalog.find(ShardKind::Values, *key),
        CrewError::Worker(WorkerError::Payload(_) | WorkerError::NotCovered { .. })
        | CrewError::Run(_)
        | CrewError::Threads { .. }
        | CrewError::Panicked => None,
    }
}

/// Checks every committed shard, and forgets those that are not whole, so that they are made again.
///
/// `warn` is told of each of them.
///
/// # Errors
///
/// What keeps a shard from being read that may be whole.
pub fn forget_damaged_shards(
    catalog: &Catalog,
    threads: usize,
    stop: &AtomicBool,
    warn: &(dyn Fn(&StorageError) + Sync),
) -> Result<(), StorageError> {
    let shards = catalog.shards();
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(shards.len()) {
            scope.spawn(|| {
                while let Some(shard) = shards.get(next.fetch_add(1, Ordering::Relaxed))
                    && !stop.load(Ordering::Relaxed)
                {
                    match shard.original().and_then(|reader| reader.verify()) {
                        Ok(()) => {}
                        Err(error) if is_lost(&error) => {
                            warn(&error);
                            catalog.remove(&shard.path);
                        }
                        // Perhaps whole, but not to be read now: making it again would be a waste.
                        Err(error) => {
                            let mut failure = failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                            failure.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Whether a shard must be made again: it is not there, or not what it should be.
fn is_lost(error: &StorageError) -> bool {
    error.missing_file().is_some() || error.damaged_file().is_some()
}
