//! Shards that are lost or damaged: which they are. They are functions of others, and are made again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use exact2048_run::{CatalogShard, Run};
use exact2048_storage::{ShardKind, StorageError};
use exact2048_worker::WorkerError;

/// The shard that an error blames, where making it again can help.
pub fn blamed_shard(run: &Run, error: &anyhow::Error) -> Option<Arc<CatalogShard>> {
    let shard_of = |error: &StorageError| {
        let file = error.damaged_file()?;
        run.catalog().shards().into_iter().find(|shard| shard.path == file)
    };
    match error.downcast_ref::<WorkerError>() {
        Some(WorkerError::Storage(error)) => shard_of(error),
        Some(WorkerError::ItemMissing(key)) => run.catalog().find(ShardKind::Values, *key),
        Some(WorkerError::Payload(_) | WorkerError::NotCovered { .. }) => None,
        None => shard_of(error.downcast_ref::<StorageError>()?),
    }
}

/// Checks every committed shard, and forgets those that are not whole, so that they are made again.
pub fn forget_damaged_shards(run: &Run, threads: usize, stop: &AtomicBool) -> Result<()> {
    let shards = run.catalog().shards();
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
                            eprintln!("warning: {:#}; recomputing it", anyhow::Error::from(error));
                            run.catalog().remove(&shard.path);
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
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Whether a shard must be made again: it is not there, or not what it should be.
fn is_lost(error: &StorageError) -> bool {
    let gone =
        matches!(error, StorageError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    gone || error.damaged_file().is_some()
}
