//! Sealing: the items of finished blocks become the frames of a shard.
//!
//! Which items share a frame depends on the items alone, so that the same layer gives the same bytes: a block
//! with a frame's worth of items is packed by itself, in its own task; what smaller blocks have is gathered in the
//! order of the lanes when their layer is sealed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};
use exact2048_solution::{ItemKind, Parts};
use exact2048_storage::{Frame, ItemKey, ShardKind, StorageError};
use rayon::prelude::*;

use crate::{Worker, WorkerError};

/// Item bytes that a frame takes at most, unless a single item is larger.
const FRAME_BYTES: usize = 256 << 10;

/// Compression levels, measured on a whole run: see `docs/dev/performance.md`.
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

/// What finished blocks of layers that are not sealed yet have for their shard.
#[derive(Debug, Default)]
pub struct Unsealed(Mutex<BTreeMap<(Layer, Lane), Packed>>);

/// What a block has for its shard.
#[derive(Debug)]
pub enum Packed {
    /// Less than a frame.
    Items(Vec<(ItemKey, Vec<u8>)>),
    /// At least a frame.
    Frames(Vec<Frame>),
}

impl Unsealed {
    /// Adds a block.
    pub fn add(&self, layer: Layer, lane: Lane, packed: Packed) {
        self.lock().insert((layer, lane), packed);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Takes the blocks of a layer out, in the order of the lanes.
    fn take(&self, layer: Layer) -> Vec<Packed> {
        let mut blocks = self.lock();
        let first = (layer, Lane::new(u8::MAX, 0));
        let mut of_layer = blocks.split_off(&first);
        let mut above = of_layer.split_off(&(Layer(layer.0 + 1), first.1));
        blocks.append(&mut above);
        of_layer.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Layer, Lane), Packed>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The items that a layer's part of a shard of a kind has, in their order.
fn kinds_in(shard: ShardKind) -> &'static [ItemKind] {
    match shard {
        ShardKind::Reach => &[ItemKind::Reach],
        ShardKind::Values => &[ItemKind::Values, ItemKind::BestMoves],
    }
}

fn level(kind: ItemKind) -> i32 {
    match kind {
        ItemKind::Reach => REACH_LEVEL,
        // Best moves are compressed already: what finds that out soonest is best.
        ItemKind::Values | ItemKind::BestMoves => VALUES_LEVEL,
    }
}

fn encode(items: &[(ItemKey, Vec<u8>)], level: i32) -> Result<Frame, StorageError> {
    let items: Vec<(ItemKey, &[u8])> = items.iter().map(|(key, item)| (*key, &**item)).collect();
    Frame::encode(&items, level)
}

/// The parts that share a frame, by the lengths of their items; parts without an item have length 0.
fn frames_of(lengths: &[usize]) -> Vec<Vec<u32>> {
    let (mut frames, mut bytes) = (Vec::<Vec<u32>>::new(), 0);
    for (part, &length) in lengths.iter().enumerate().filter(|&(_, &length)| length > 0) {
        match frames.last_mut() {
            Some(frame) if bytes + length <= FRAME_BYTES => frame.push(part as u32),
            _ => {
                frames.push(vec![part as u32]);
                bytes = 0;
            }
        }
        bytes += length;
    }
    frames
}

/// Puts items that come in order together into frames.
#[derive(Debug)]
struct Packer {
    level: i32,
    items: Vec<(ItemKey, Vec<u8>)>,
    bytes: usize,
    frames: Vec<Frame>,
}

impl Packer {
    /// For items of a kind.
    fn new(kind: ItemKind) -> Self {
        Self { level: level(kind), items: Vec::new(), bytes: 0, frames: Vec::new() }
    }

    /// Adds an item.
    fn push(&mut self, key: ItemKey, item: Vec<u8>) -> Result<(), StorageError> {
        if self.bytes + item.len() > FRAME_BYTES {
            self.close_frame()?;
        }
        self.bytes += item.len();
        self.items.push((key, item));
        Ok(())
    }

    fn add(&mut self, packed: Packed) -> Result<(), StorageError> {
        match packed {
            Packed::Items(items) => items.into_iter().try_for_each(|(key, item)| self.push(key, item)),
            Packed::Frames(frames) => {
                self.close_frame()?;
                self.frames.extend(frames);
                Ok(())
            }
        }
    }

    fn close_frame(&mut self) -> Result<(), StorageError> {
        if !self.items.is_empty() {
            self.frames.push(encode(&self.items, self.level)?);
            self.items.clear();
            self.bytes = 0;
        }
        Ok(())
    }
}

impl<V: Value> Worker<V> {
    /// Packs the items of a block's parts, whose lengths are given: none where that is 0.
    pub(crate) fn pack(
        &self,
        kind: ItemKind,
        layer: Layer,
        lane: Lane,
        lengths: &[usize],
        item: impl Fn(u32) -> Vec<u8> + Sync,
    ) -> Result<(), WorkerError> {
        let items = |parts: &[u32]| -> Vec<(ItemKey, Vec<u8>)> {
            parts.iter().map(|&part| (kind.key(Parts::key(layer, lane, part)), item(part))).collect()
        };
        let packed = match &frames_of(lengths)[..] {
            [] => return Ok(()),
            [one] => Packed::Items(items(one)),
            frames => {
                let pack = |parts: &Vec<u32>| encode(&items(parts), level(kind));
                let mut frames = frames.par_iter().map(pack).collect::<Result<Vec<Frame>, _>>()?;
                if !self.memory.fits(0) {
                    Frame::spill(&mut frames, self.memory.scratch())?;
                }
                Packed::Frames(frames)
            }
        };
        self.unsealed(kind).add(layer, lane, packed);
        Ok(())
    }

    /// Packs and compresses what the blocks of a finished layer have for their shard.
    ///
    /// # Errors
    ///
    /// What cannot be compressed.
    pub fn seal(&self, kind: ShardKind, layer: Layer) -> Result<Sealed, WorkerError> {
        let mut frames = Vec::new();
        for &kind in kinds_in(kind) {
            let mut packer = Packer::new(kind);
            for packed in self.unsealed(kind).take(layer) {
                packer.add(packed)?;
            }
            packer.close_frame()?;
            frames.append(&mut packer.frames);
        }
        if !self.memory.fits(0) {
            Frame::spill(&mut frames, self.memory.scratch())?;
        }
        Ok(Sealed { layer, frames })
    }
}
