//! Sealing: a finished layer's items become the frames of a shard.

use exact2048_game::Layer;
use exact2048_storage::{Frame, ItemKey, ShardKind};

use crate::{Value, Worker, WorkerError};

/// Item bytes that a frame takes at most, unless a single item is larger.
const FRAME_BYTES: usize = 256 << 10;

/// Compression levels, measured on a whole run: see `docs/performance.md`.
const REACH_LEVEL: i32 = 1;
const VALUES_LEVEL: i32 = 1;

/// The frames of one layer, ready to be written.
#[derive(Debug)]
pub struct Sealed {
    /// The layer.
    pub layer: Layer,
    /// Its frames, in the order of their items.
    pub frames: Vec<Frame>,
}

impl Sealed {
    /// Bytes that the frames will take in a shard.
    pub fn encoded_bytes(&self) -> u64 {
        self.frames.iter().map(|frame| frame.encoded_bytes() as u64).sum()
    }
}

impl<V: Value> Worker<V> {
    /// Packs and compresses the items of a finished layer. Which items share a frame depends on the
    /// items alone, so that the same layer gives the same bytes.
    pub fn seal(&self, kind: ShardKind, layer: Layer) -> Result<Sealed, WorkerError> {
        let items = {
            let mut pending = self.pending(kind);
            let mut of_layer = pending.split_off(&ItemKey { layer: layer.0, lane: 0, part: 0 });
            pending.append(&mut of_layer.split_off(&ItemKey { layer: layer.0 + 1, lane: 0, part: 0 }));
            of_layer
        };
        let level = match kind {
            ShardKind::Reach => REACH_LEVEL,
            ShardKind::Values => VALUES_LEVEL,
        };
        let mut frames = Vec::new();
        let mut group: Vec<(ItemKey, &[u8])> = Vec::new();
        let mut bytes = 0;
        for (key, item) in &items {
            if bytes + item.len() > FRAME_BYTES && !group.is_empty() {
                frames.push(Frame::encode(&group, level)?);
                group.clear();
                bytes = 0;
            }
            bytes += item.len();
            group.push((*key, item));
        }
        if !group.is_empty() {
            frames.push(Frame::encode(&group, level)?);
        }
        Ok(Sealed { layer, frames })
    }
}
