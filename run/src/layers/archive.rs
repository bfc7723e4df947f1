//! What is worked out of a span of layers, beside what the run stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use exact2048_game::Layer;
use exact2048_solution::{Archive, ItemKind, ReadError, ShardArchive};
use exact2048_storage::{Frame, ItemKey, ScratchPlace, ShardKind, StorageError};
use parking_lot::{RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;

/// Compression level: the files are gone in minutes.
const LEVEL: i32 = 1;

/// Items, each in a frame of its own, as a frame is read anew for every item that is asked for.
pub type PackedItems = Vec<(ItemKey, Frame)>;

/// Packs some items.
pub fn packed(items: Vec<(ItemKey, Vec<u8>)>) -> Result<PackedItems, StorageError> {
    items.into_iter().map(|(key, item)| Ok((key, Frame::encode(&[(key, &item)], LEVEL)?))).collect()
}

/// The shards of a run, and in their place what was worked out of some layers: which states these have, or the best moves.
pub struct SpanArchive {
    run: Arc<ShardArchive>,
    scratch: ScratchPlace,
    layers: RwLock<Layers>,
}

/// Frames by layer and kind of the items.
type Layers = BTreeMap<(Layer, ShardKind), FxHashMap<ItemKey, Frame>>;

impl SpanArchive {
    /// Nothing is worked out yet; frames that are moved out of memory go to a folder.
    pub fn new(run: Arc<ShardArchive>, scratch: ScratchPlace) -> Self {
        Self { run, scratch, layers: RwLock::default() }
    }

    /// Adds all items that there are of a kind and a layer, in scratch files where `spill` is set.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn add(
        &self,
        kind: ShardKind,
        layer: Layer,
        items: Vec<PackedItems>,
        spill: bool,
    ) -> Result<(), StorageError> {
        let (keys, mut frames): (Vec<ItemKey>, Vec<Frame>) = items.into_iter().flatten().unzip();
        if spill && !frames.is_empty() {
            Frame::spill(&mut frames, &self.scratch)?;
        }
        let mut layers = self.layers.write();
        layers.insert((layer, kind), keys.into_iter().zip(frames).collect());
        Ok(())
    }

    /// The keys of what was added of a kind and a layer.
    pub fn keys(&self, kind: ShardKind, layer: Layer) -> Vec<ItemKey> {
        self.layers().get(&(layer, kind)).into_iter().flat_map(|items| items.keys().copied()).collect()
    }

    /// Forgets what was added for a layer.
    pub fn release(&self, layer: Layer) {
        let mut layers = self.layers.write();
        let released = [ShardKind::Reach, ShardKind::Values].map(|kind| layers.remove(&(layer, kind)));
        drop(layers);
        drop(released); // after the lock
    }

    /// Forgets all that was added.
    pub fn release_all(&self) {
        drop(std::mem::take(&mut *self.layers.write()));
    }

    fn layers(&self) -> RwLockReadGuard<'_, Layers> {
        self.layers.read()
    }
}

impl Archive for SpanArchive {
    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        let is_worked_out = kind == ShardKind::Reach || ItemKind::of(kind, key) == ItemKind::BestMoves;
        if is_worked_out && let Some(items) = self.layers().get(&(Layer(key.layer), kind)) {
            return Ok(items.get(&key).map(Frame::read).transpose()?);
        }
        self.run.read(kind, key)
    }
}
