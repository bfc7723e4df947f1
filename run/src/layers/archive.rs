//! Items computed for a span of layers, in addition to the items that the run stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use exact2048_game::Layer;
use exact2048_solution::{Archive, ItemKind, ReadError, ShardArchive};
use exact2048_storage::{Frame, ItemKey, ScratchPlace, ShardKind, StorageError};
use parking_lot::{RwLock, RwLockReadGuard};
use rustc_hash::FxHashMap;

/// Compression level, low because the frames are deleted after minutes.
const LEVEL: i32 = 1;

/// Items, each in a separate frame, because each read of an item decodes its whole frame.
pub type PackedItems = Vec<(ItemKey, Frame)>;

/// Packs items into frames.
pub fn packed(items: Vec<(ItemKey, Vec<u8>)>) -> Result<PackedItems, StorageError> {
    items.into_iter().map(|(key, item)| Ok((key, Frame::encode(&[(key, &item)], LEVEL)?))).collect()
}

/// The shards of a run, and the computed reach and best moves of some layers, which replace those of the shards.
pub struct SpanArchive {
    run: Arc<ShardArchive>,
    scratch: ScratchPlace,
    /// Most bytes of frames in memory. Tasks can spill blocks to free memory, but not frames.
    most_bytes: usize,
    layers: RwLock<Layers>,
}

/// Items by layer and kind.
type Layers = BTreeMap<(Layer, ShardKind), Items>;

struct Items {
    frames: FxHashMap<ItemKey, Frame>,
    /// Bytes of the frames that are in memory.
    heap_bytes: usize,
}

impl SpanArchive {
    /// An archive without computed items. At most `most_bytes` of frames stay in memory; `scratch` gets the others.
    pub fn new(run: Arc<ShardArchive>, scratch: ScratchPlace, most_bytes: usize) -> Self {
        Self { run, scratch, most_bytes, layers: RwLock::default() }
    }

    /// Adds all items of a kind and a layer.
    ///
    /// They are moved to a scratch file if `spill` is set, or if the frames in memory would exceed their limit.
    ///
    /// # Errors
    ///
    /// If the scratch file cannot be written.
    pub fn add(
        &self,
        kind: ShardKind,
        layer: Layer,
        items: Vec<PackedItems>,
        spill: bool,
    ) -> Result<(), StorageError> {
        let (keys, mut frames): (Vec<ItemKey>, Vec<Frame>) = items.into_iter().flatten().unzip();
        let mut heap_bytes = frames.iter().map(Frame::encoded_bytes).sum();
        if (spill || self.heap_bytes() + heap_bytes > self.most_bytes) && !frames.is_empty() {
            Frame::spill(&mut frames, &self.scratch)?;
            heap_bytes = 0;
        }
        let frames = keys.into_iter().zip(frames).collect();
        self.layers.write().insert((layer, kind), Items { frames, heap_bytes });
        Ok(())
    }

    /// Bytes of the frames that are in memory.
    fn heap_bytes(&self) -> usize {
        self.layers().values().map(|items| items.heap_bytes).sum()
    }

    /// The keys of the added items of a kind and a layer.
    pub fn keys(&self, kind: ShardKind, layer: Layer) -> Vec<ItemKey> {
        self.layers().get(&(layer, kind)).into_iter().flat_map(|items| items.frames.keys().copied()).collect()
    }

    /// Removes the added items of a layer.
    pub fn release(&self, layer: Layer) {
        let mut layers = self.layers.write();
        let released = [ShardKind::Reach, ShardKind::Values].map(|kind| layers.remove(&(layer, kind)));
        drop(layers);
        drop(released); // after the lock, so that no reader waits for it
    }

    /// Removes all added items.
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
            return Ok(items.frames.get(&key).map(Frame::read).transpose()?);
        }
        self.run.read(kind, key)
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::Params;
    use exact2048_solution::{Run, UnnamedPolicy};

    use super::*;

    #[test]
    fn few_frames_stay_in_memory() {
        let place = tempfile::tempdir().unwrap();
        let params = Params::small("2x2");
        let location = exact2048_storage::Location::from(&*place.path().join("run"));
        let run = Run::open_or_create(location, &params, UnnamedPolicy::Refuse).unwrap();
        let most_bytes = 10_000;
        let archive =
            SpanArchive::new(Arc::clone(run.archive()), place.path().to_path_buf().into(), most_bytes);
        let key = |layer: Layer| ItemKey { layer: layer.0, lane: 0, part: 0 };
        // The bytes look random, so a frame is about as long as its item.
        let item = |layer: Layer| -> Vec<u8> {
            let number =
                |i: u64| (i + u64::from(layer.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            (0..500).flat_map(|i| number(number(i)).to_le_bytes()).collect()
        };
        let layers = || Layer(4).to(Layer(40));
        for layer in layers() {
            let items = packed(vec![(key(layer), item(layer))]).unwrap();
            archive.add(ShardKind::Reach, layer, vec![items], false).unwrap();
            assert!(archive.heap_bytes() <= most_bytes, "{layer}");
        }
        assert!(archive.heap_bytes() > 0);
        for layer in layers() {
            assert_eq!(archive.read(ShardKind::Reach, key(layer)).unwrap(), Some(item(layer)));
        }
        layers().for_each(|layer| archive.release(layer));
        assert_eq!(archive.heap_bytes(), 0);
    }
}
