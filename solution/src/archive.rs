//! Reads items of committed shards, and keeps the frames read last decoded.

use std::sync::Arc;

use exact2048_storage::{ErrorKind, ItemKey, ShardId, ShardKind, StorageError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, CatalogShard};
use crate::parts::{ItemKind, PayloadError};

/// The shard to blame for an error: making it again helps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Blame {
    /// This shard.
    Shard(ShardId),
    /// The shard that has this item, or should have it.
    Item(ShardKind, ItemKey),
}

/// Why published data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A shard cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An item that does not parse.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// An item that must be there is not.
    #[error(
        "expected {} of lane {:#x}, part {}, in the {} shard that covers layer {}, found none; remove the shard and \
         resume the run to recompute it",
        .kind, .part.lane, .part.part, .kind.shard(), .part.layer
    )]
    ItemMissing {
        /// The kind of the missing item.
        kind: ItemKind,
        /// The part that the item would belong to.
        part: ItemKey,
    },
    /// A state that others lead to is not among those that are reachable.
    #[error(
        "expected all reachable states of lane {:#x}, part {}, in the reach shard that covers layer {}, found one \
         missing; remove the shard and resume the run to recompute it",
        .0.lane, .0.part, .0.layer
    )]
    StateMissing(ItemKey),
    /// No shard covers the layer.
    #[error("no {kind} shard covers layer {layer}; resume the run to compute it")]
    NotCovered {
        /// Kind of shard.
        kind: ShardKind,
        /// The layer.
        layer: u32,
    },
}

impl ReadError {
    /// The error that the values of a part, or some of them, are missing.
    #[must_use]
    pub fn no_values(part: ItemKey) -> Self {
        Self::ItemMissing { kind: ItemKind::Values, part }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Payload(_) | Self::ItemMissing { .. } | Self::StateMissing(_) => ErrorKind::DataLoss,
            Self::NotCovered { .. } => ErrorKind::NotComputed,
        }
    }

    /// The shard or item to blame. An item that does not parse blames nothing: its shard is whole, and would
    /// be made the same again.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            Self::ItemMissing { kind, part } => Some(Blame::Item(kind.shard(), kind.key(*part))),
            Self::StateMissing(key) => Some(Blame::Item(ShardKind::Reach, *key)),
            Self::Payload(_) | Self::NotCovered { .. } => None,
        }
    }
}

/// A source of published items: the shards of the run.
pub trait Archive: Send + Sync {
    /// The item of a key; `None` where its shard has none, an error where no shard covers it.
    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError>;
}

/// Bytes of decoded frames that are kept.
const BYTES_KEPT: usize = 12 << 20;

/// Reads items through the catalog.
#[derive(Debug)]
pub struct ShardArchive {
    catalog: Arc<Catalog>,
    frames: Mutex<FrameCache>,
}

/// The frames used last, by shard and number.
#[derive(Debug, Default)]
struct FrameCache {
    frames: FxHashMap<(u64, u32), CachedFrame>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct CachedFrame {
    frame: Arc<Vec<u8>>,
    /// The cache's clock when it was last asked for.
    used: u64,
}

impl FrameCache {
    /// Keeps a frame, in place of those that were not asked for for longest. One that would take the place of many is
    /// not kept: it is the single row of a very wide block.
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
        // Two threads may have read the same frame.
        self.bytes -= self.frames.insert(key, frame).map_or(0, |old| old.frame.len());
    }
}

impl ShardArchive {
    /// An archive of the catalog's shards, those that are added later included.
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

impl Archive for ShardArchive {
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
        // The item is the whole frame, which is not copied if no other thread holds it.
        Ok(Some(Arc::try_unwrap(frame).unwrap_or_else(|frame| frame.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Making that shard again is what helps, and its part is named as people know it.
    #[test]
    fn what_is_missing_is_missed_in_its_own_shard() {
        let part = ItemKey { layer: 8, lane: 2, part: 3 };
        for (kind, shard, word) in [
            (ItemKind::Reach, ShardKind::Reach, "expected states"),
            (ItemKind::Values, ShardKind::Values, "expected values"),
            (ItemKind::BestMoves, ShardKind::Values, "expected best moves"),
        ] {
            let error = ReadError::ItemMissing { kind, part };
            assert_eq!(error.blames(), Some(Blame::Item(shard, kind.key(part))));
            assert_eq!(ItemKind::part(kind.key(part)), part);
            let text = error.to_string();
            assert!(text.contains(&format!("the {shard} shard")) && text.contains(word), "{text}");
            assert!(text.contains("part 3,"), "{text}");
        }
    }
}
