//! Finds the shards that are lost or damaged. They follow from others, and are made again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use exact2048_solution::{Catalog, CatalogShard};
use exact2048_storage::StorageError;

/// Reads every committed shard, and returns those that are lost or damaged, so that they must be made again.
///
/// `read` reads the whole of one: [`CatalogShard::check`], or what keeps it open for later. `warn` is called
/// with each error of one that is lost or damaged. Once `is_stopped`, no further shard is read.
///
/// # Errors
///
/// What keeps a shard from being read that may be whole.
pub fn damaged_shards(
    catalog: &Catalog,
    threads: usize,
    read: fn(&CatalogShard) -> Result<(), StorageError>,
    is_stopped: &(dyn Fn() -> bool + Sync),
    warn: &(dyn Fn(&StorageError) + Sync),
) -> Result<Vec<Arc<CatalogShard>>, StorageError> {
    let shards = catalog.shards();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Ok(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(shards.len()) {
            scope.spawn(|| {
                while let Some(shard) = shards.get(next.fetch_add(1, Ordering::Relaxed))
                    && !is_stopped()
                {
                    let Err(error) = read(shard) else { continue };
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
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
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
