//! Shards that are lost or damaged: which they are. They are functions of others, and are made again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use exact2048_solution::{Catalog, CatalogShard, ReadError, RunError};
use exact2048_storage::{ShardKind, StorageError};
use exact2048_worker::WorkerError;

use crate::member::CrewError;

/// The shard that an error blames, where making it again can help.
pub fn blamed_shard(catalog: &Catalog, error: &CrewError) -> Option<Arc<CatalogShard>> {
    let shard_of = |error: &StorageError| {
        let file = error.lost_file()?;
        catalog.shards().into_iter().find(|shard| shard.path == file)
    };
    match error {
        CrewError::Worker(WorkerError::Read(ReadError::Storage(error)) | WorkerError::Storage(error))
        | CrewError::Storage(error)
        | CrewError::Run(RunError::Storage(error)) => shard_of(error),
        CrewError::Worker(WorkerError::Read(ReadError::ItemMissing(key))) => {
            catalog.find(ShardKind::Values, *key)
        }
        CrewError::Worker(_) | CrewError::Run(_) | CrewError::Threads { .. } | CrewError::Panicked => None,
    }
}

/// Reads every committed shard, and returns those that are lost or damaged, so that they must be made again.
///
/// `read` reads the whole of one: [`CatalogShard::check`], or what keeps it open for those who need it next. `warn` is
/// told of each that is lost or damaged. Once `is_stopped`, no further shard is read.
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
                        Ok(damaged) if error.lost_file().is_some() => {
                            warn(&error);
                            damaged.push(Arc::clone(shard));
                        }
                        // Perhaps whole, but not to be read now: making it again would be a waste.
                        Ok(_) => *found = Err(error),
                        Err(_) => {}
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
