//! Reading of items of committed shards, with a cache of decoded frames.

use std::sync::Arc;

use exact2048_game::{Lane, Layer, Params};
use exact2048_storage::{ItemKey, ShardKind, StorageError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, CatalogShard};
use crate::parts::{ItemKind, Parts};
use crate::read_error::ReadError;

/// A source of published items, such as the shards of a run.
pub trait Archive: Send + Sync {
    /// The item of a key; `None` if its shard lacks the item. Fails if no shard covers the key.
    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError>;

    /// Whether the source may have states of a block. `true` costs a read that finds none.
    fn may_have(&self, _layer: Layer, _lane: Lane) -> bool {
        true
    }

    /// Whether the source has items at all.
    fn has_items(&self) -> bool {
        true
    }
}

/// A source without items, for a worker that is given all its inputs.
#[derive(Debug)]
pub struct NoItems;

impl Archive for NoItems {
    fn read(&self, _: ShardKind, _: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(None)
    }

    fn has_items(&self) -> bool {
        false
    }
}

/// Largest size in bytes of the cached frames.
const BYTES_KEPT: usize = 12 << 20;

/// The items of the shards of a catalog.
#[derive(Debug)]
pub struct ShardArchive {
    catalog: Arc<Catalog>,
    frames: Mutex<FrameCache>,
}

/// The most recently used frames, by shard and number.
#[derive(Debug, Default)]
struct FrameCache {
    frames: FxHashMap<(u64, u32), CachedFrame>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct CachedFrame {
    frame: Arc<Vec<u8>>,
    /// Time of the last use, by the cache's clock.
    used: u64,
}

impl FrameCache {
    /// Adds a frame, and removes the least recently used frames to make space.
    ///
    /// Does not add a large frame, which would replace many frames. A large frame holds a single row of a very wide
    /// block.
    fn add(&mut self, key: (u64, u32), frame: CachedFrame) {
        let bytes = frame.frame.len();
        if bytes > BYTES_KEPT / 4 {
            return;
        }
        while self.bytes + bytes > BYTES_KEPT
            && let Some(oldest) =
                self.frames.iter().min_by_key(|(_, cached)| cached.used).map(|(key, _)| *key)
        {
            self.bytes -= self.frames.remove(&oldest).map_or(0, |old| old.frame.len());
        }
        self.bytes += bytes;
        // Another thread may have added the same frame.
        self.bytes -= self.frames.insert(key, frame).map_or(0, |old| old.frame.len());
    }
}

impl ShardArchive {
    /// An archive of the catalog's present and future shards.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, frames: Mutex::default() }
    }

    fn frame(&self, shard: &Arc<CatalogShard>, number: u32) -> Result<Arc<Vec<u8>>, StorageError> {
        let key = (shard.serial, number);
        let lock = || self.frames.lock();
        {
            let mut cache = lock();
            cache.clock += 1;
            let now = cache.clock;
            if let Some(cached) = cache.frames.get_mut(&key) {
                cached.used = now;
                return Ok(Arc::clone(&cached.frame));
            }
        }
        let frame = Arc::new(shard.reader()?.read_frame(number)?);
        let mut cache = lock();
        let used = cache.clock;
        cache.add(key, CachedFrame { frame: Arc::clone(&frame), used });
        Ok(frame)
    }
}

/// The items from which a solve resumes. If the run rounds values, these are the values of its checkpoint.
#[derive(Debug)]
pub struct ResumeArchive {
    shards: Arc<ShardArchive>,
    has_checkpoints: bool,
}

impl ResumeArchive {
    /// The archive for solving a run with these parameters and shards.
    pub fn new(params: &Params, shards: Arc<ShardArchive>) -> Self {
        Self { shards, has_checkpoints: params.contents().value_step().is_some() }
    }
}

impl Archive for ResumeArchive {
    fn may_have(&self, layer: Layer, lane: Lane) -> bool {
        self.shards.may_have(layer, lane)
    }

    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        match kind {
            ShardKind::Values if self.has_checkpoints => self.shards.read(ShardKind::Checkpoint, key),
            _ => self.shards.read(kind, key),
        }
    }
}

impl Archive for ShardArchive {
    fn may_have(&self, layer: Layer, lane: Lane) -> bool {
        let key = Parts::key(layer, lane, 0);
        let Some(shard) = self.catalog.find(ShardKind::Reach, key) else { return true };
        // A shard that cannot be read fails when it is read.
        let Ok(reader) = shard.reader() else { return true };
        let items = reader.items();
        let next = items.get(items.partition_point(|item| item.key < key));
        next.is_some_and(|item| (item.key.layer, item.key.lane) == (key.layer, key.lane))
    }

    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(shard) = self.catalog.find(kind, key) else {
            return Err(ReadError::NotCovered { kind, layer: key.layer });
        };
        let Some(entry) = shard.reader()?.find(key).copied() else { return Ok(None) };
        let frame = self.frame(&shard, entry.frame)?;
        let missing = || ReadError::ItemMissing { kind: ItemKind::of(kind, key), part: ItemKind::part(key) };
        let item = entry.slice(&frame).ok_or_else(missing)?;
        if item.len() < frame.len() {
            return Ok(Some(item.to_vec()));
        }
        // The item is the whole frame. It is copied only if another thread holds it.
        Ok(Some(Arc::try_unwrap(frame).unwrap_or_else(|frame| frame.to_vec())))
    }
}
