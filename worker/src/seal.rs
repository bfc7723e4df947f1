//! Sealing: the items of finished blocks become the frames of a shard.
//!
//! The items alone decide which of them share a frame, so the same layer gives the same bytes. If the items of a block
//! need several frames, the task of the block packs them, and they share no frame with other blocks. Sealing a layer
//! gathers the items of smaller blocks in the order of the lanes.

use std::collections::BTreeMap;
use std::sync::Arc;

use exact2048_game::{Game, Lane, Layer, Objective, Precision};
use exact2048_solution::{ItemKind, Parts};
use exact2048_storage::{Frame, ItemKey, Packing, ShardKind, StorageError};
use parking_lot::Mutex;
use rayon::prelude::*;

use crate::error::WorkerError;
use crate::memory::Memory;

/// Largest number of item bytes in a frame, unless a single item is larger.
const FRAME_BYTES: usize = 256 << 10;

/// Compression level, measured on a whole run: see `docs/dev/performance-archive.md`.
const LEVEL: i32 = 1;

/// The packing of the values of a game. Many scores repeat. Of 64-bit values and probabilities, level 1 finds as many
/// repetitions.
pub fn packing_of_values(game: &Game) -> Packing {
    let packing = match (game.objective(), game.precision()) {
        (Objective::Score, Precision::Bits32) => Packing::repeats(),
        _ => LEVEL.into(),
    };
    packing.of_integers(game.precision().bytes() as usize)
}

/// The frames of one layer, ready to be written.
#[derive(Debug)]
pub struct Sealed {
    /// The layer.
    pub layer: Layer,
    /// Its frames, in the order of their items.
    pub frames: Vec<Frame>,
}

impl Sealed {
    /// The most bytes that the frames occupy in a shard, with their entries in its index.
    pub fn most_bytes(&self) -> u64 {
        self.frames.iter().map(|frame| frame.most_bytes() as u64).sum()
    }
}

/// Seals the layers of a run, and holds the items of finished blocks until then.
#[derive(Debug)]
pub struct Sealer {
    memory: Arc<Memory>,
    /// The packing of values.
    values_packing: Packing,
    reach: Unsealed,
    values: Unsealed,
    best_moves: Unsealed,
    checkpoints: Unsealed,
}

/// Items of one kind, of finished blocks in layers that are not sealed yet.
#[derive(Debug, Default)]
struct Unsealed(Mutex<BTreeMap<(Layer, Lane), Packed>>);

/// The items of a block.
#[derive(Debug)]
enum Packed {
    /// Items that fit one frame.
    Items(Vec<(ItemKey, Vec<u8>)>),
    /// At least two frames.
    Frames(Vec<Frame>),
}

impl Unsealed {
    /// Adds a block.
    fn add(&self, layer: Layer, lane: Lane, packed: Packed) {
        self.0.lock().insert((layer, lane), packed);
    }

    /// Forgets all blocks.
    fn clear(&self) {
        self.0.lock().clear();
    }

    /// Removes the blocks of a layer, in the order of the lanes.
    fn take(&self, layer: Layer) -> Vec<Packed> {
        let mut blocks = self.0.lock();
        let first = (layer, Lane::new(u8::MAX, 0));
        let mut of_layer = blocks.split_off(&first);
        let mut above = of_layer.split_off(&(Layer(layer.0 + 1), first.1));
        blocks.append(&mut above);
        of_layer.into_values().collect()
    }
}

/// The kinds of items of a shard, in their order.
fn kinds_in(shard: ShardKind) -> &'static [ItemKind] {
    match shard {
        ShardKind::Reach => &[ItemKind::Reach],
        ShardKind::Values => &[ItemKind::Values, ItemKind::BestMoves],
        ShardKind::Checkpoint => &[ItemKind::Checkpoint],
    }
}

fn encode(items: &[(ItemKey, Vec<u8>)], packing: Packing) -> Result<Frame, StorageError> {
    let items: Vec<(ItemKey, &[u8])> = items.iter().map(|(key, item)| (*key, &**item)).collect();
    Frame::encode(&items, packing)
}

/// The parts in each frame, from the lengths of their items. A part without an item has length 0.
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

/// Combines items, given in order, into frames.
#[derive(Debug)]
struct Packer {
    packing: Packing,
    items: Vec<(ItemKey, Vec<u8>)>,
    bytes: usize,
    frames: Vec<Frame>,
}

impl Packer {
    /// A packer without items.
    fn new(packing: Packing) -> Self {
        Self { packing, items: Vec::new(), bytes: 0, frames: Vec::new() }
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
            self.frames.push(encode(&self.items, self.packing)?);
            self.items.clear();
            self.bytes = 0;
        }
        Ok(())
    }
}

impl Sealer {
    /// A sealer without items, and the packing of its values.
    pub fn new(memory: Arc<Memory>, values_packing: Packing) -> Self {
        let (reach, values, best_moves, checkpoints) = Default::default();
        Self { memory, values_packing, reach, values, best_moves, checkpoints }
    }

    /// Packs the items of a block's parts. `lengths` has the length of each part's item; a part with length 0 has no
    /// item.
    ///
    /// # Errors
    ///
    /// If data cannot be compressed, or cannot be written to a scratch file.
    pub fn pack(
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
                let pack = |parts: &Vec<u32>| encode(&items(parts), self.packing(kind));
                let mut frames = frames.par_iter().map(pack).collect::<Result<Vec<Frame>, _>>()?;
                self.spill_if_short(&mut frames)?;
                Packed::Frames(frames)
            }
        };
        self.unsealed(kind).add(layer, lane, packed);
        Ok(())
    }

    /// Packs and compresses the items of a finished layer for its shard.
    ///
    /// # Errors
    ///
    /// If data cannot be compressed, or cannot be written to a scratch file.
    pub fn seal(&self, kind: ShardKind, layer: Layer) -> Result<Sealed, WorkerError> {
        let mut frames = Vec::new();
        for &kind in kinds_in(kind) {
            let mut packer = Packer::new(self.packing(kind));
            for packed in self.unsealed(kind).take(layer) {
                packer.add(packed)?;
            }
            packer.close_frame()?;
            frames.append(&mut packer.frames);
        }
        self.spill_if_short(&mut frames)?;
        Ok(Sealed { layer, frames })
    }

    /// Forgets all items that were not sealed.
    pub fn clear(&self) {
        [&self.reach, &self.values, &self.best_moves, &self.checkpoints]
            .into_iter()
            .for_each(Unsealed::clear);
    }

    fn packing(&self, kind: ItemKind) -> Packing {
        match kind {
            ItemKind::Values | ItemKind::Checkpoint => self.values_packing,
            // Best moves are already compressed. The level that detects this soonest is best.
            ItemKind::Reach | ItemKind::BestMoves => LEVEL.into(),
        }
    }

    fn unsealed(&self, kind: ItemKind) -> &Unsealed {
        match kind {
            ItemKind::Reach => &self.reach,
            ItemKind::Values => &self.values,
            ItemKind::BestMoves => &self.best_moves,
            ItemKind::Checkpoint => &self.checkpoints,
        }
    }

    fn spill_if_short(&self, frames: &mut [Frame]) -> Result<(), StorageError> {
        if !self.memory.fits(0) {
            Frame::spill(frames, self.memory.scratch())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use exact2048_storage::{RunDir, ShardIdentity, ShardWriter};
    use proptest::prelude::*;

    use super::*;
    use crate::tuning::Heap;

    const LAYER: Layer = Layer(8);

    /// Lanes, in their order.
    const LANES: [Lane; 5] =
        [Lane::new(0, 0), Lane::new(1, 8), Lane::new(2, 16), Lane::new(1, 16), Lane::new(3, 24)];

    type Items = Vec<(ItemKey, Vec<u8>)>;

    /// A sealer in a process whose heap has 1000 bytes. A lower limit makes its memory short.
    fn sealer(limit_bytes: usize) -> Sealer {
        let memory = Memory::new(limit_bytes, Heap::of(|| 1000), std::env::temp_dir().into());
        Sealer::new(Arc::new(memory), Packing::repeats().of_integers(4))
    }

    /// Bytes that differ between items.
    fn content(key: ItemKey, length: usize) -> Vec<u8> {
        let number = key.lane ^ u64::from(key.part) << 20 ^ u64::from(key.layer) << 40;
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        (0..length).map(|i| mixed[i % 8] ^ (i / 8) as u8).collect()
    }

    /// The items of a block, whose lengths are given.
    fn items(kind: ItemKind, layer: Layer, lane: Lane, lengths: &[usize]) -> Items {
        let parts = (0u32..).zip(lengths).filter(|&(_, &length)| length > 0);
        let keys = parts.map(|(part, &length)| (kind.key(Parts::key(layer, lane, part)), length));
        keys.map(|(key, length)| (key, content(key, length))).collect()
    }

    fn pack(sealer: &Sealer, kind: ItemKind, layer: Layer, lane: Lane, lengths: &[usize]) {
        let item = |part: u32| content(kind.key(Parts::key(layer, lane, part)), lengths[part as usize]);
        sealer.pack(kind, layer, lane, lengths, item).unwrap();
    }

    /// The contents of a layer's frames, one after the other.
    fn sealed(sealer: &Sealer, kind: ShardKind, layer: Layer) -> Vec<u8> {
        let sealed = sealer.seal(kind, layer).unwrap();
        assert_eq!(sealed.layer, layer);
        sealed.frames.iter().flat_map(|frame| frame.read().unwrap()).collect()
    }

    /// Writes the frames of a layer as a shard of values. Returns the items of each frame, read from the shard, and its
    /// checksum.
    fn written(run: &RunDir, sealed: Sealed) -> (Vec<Items>, u64) {
        let identity = ShardIdentity {
            run: run.run_id(),
            kind: ShardKind::Values,
            rows: 2,
            cols: 2,
            first_layer: sealed.layer.0,
            last_layer: sealed.layer.0,
            rule_hash: 0,
        };
        let mut writer = ShardWriter::create(run, identity).unwrap();
        sealed.frames.into_iter().for_each(|frame| writer.push(frame).unwrap());
        let reader = run.shards().open(&writer.finish().unwrap(), &identity).unwrap();
        let mut entries = reader.items().to_vec();
        entries.sort_by_key(|entry| (entry.frame, entry.offset));
        let frames = entries.chunk_by(|a, b| a.frame == b.frame).map(|of_frame| {
            let frame = reader.read_frame(of_frame[0].frame).unwrap();
            let items = of_frame.iter().map(|entry| (entry.key, entry.slice(&frame).unwrap().to_vec()));
            items.collect::<Items>()
        });
        (frames.collect(), reader.header_checksum())
    }

    /// Lengths of items: none, short ones, and some about as long as a frame.
    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![
            3 => Just(0usize),
            4 => 1usize..2000,
            3 => 1..FRAME_BYTES,
            1 => FRAME_BYTES - 1..=FRAME_BYTES + 1,
            1 => FRAME_BYTES..2 * FRAME_BYTES,
        ]
    }

    fn cases(cases: u32) -> ProptestConfig {
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
    }

    proptest! {
        #![proptest_config(cases(512))]

        /// Every part that has an item is in one frame, in its order. No frame exceeds the limit, or ends while the
        /// next item fits.
        #[test]
        fn parts_share_frames_in_their_order(lengths in prop::collection::vec(length(), 0..60)) {
            let frames = frames_of(&lengths);
            let wanted: Vec<u32> =
                (0u32..).zip(&lengths).filter(|&(_, &length)| length > 0).map(|(part, _)| part).collect();
            prop_assert_eq!(frames.concat(), wanted);
            let bytes = |parts: &[u32]| parts.iter().map(|&part| lengths[part as usize]).sum::<usize>();
            for frame in &frames {
                prop_assert!(frame.len() == 1 || bytes(frame) <= FRAME_BYTES, "{frame:?} of {lengths:?}");
            }
            for (frame, next) in frames.iter().zip(frames.iter().skip(1)) {
                prop_assert!(bytes(frame) + bytes(&next[..1]) > FRAME_BYTES, "{frame:?} of {lengths:?}");
            }
        }
    }

    #[test]
    fn frames_are_as_full_as_possible() {
        let no_frames: [Vec<u32>; 0] = [];
        assert_eq!(frames_of(&[]), no_frames);
        assert_eq!(frames_of(&[0, 0]), no_frames);
        assert_eq!(frames_of(&[0, 7, 0, 8]), [[1, 3]]);
        assert_eq!(frames_of(&[FRAME_BYTES - 8, 0, 8]), [[0, 2]]);
        assert_eq!(frames_of(&[FRAME_BYTES - 8, 9]), [[0], [1]]);
        assert_eq!(frames_of(&[7, 3 * FRAME_BYTES, 7]), [[0], [1], [2]]);
    }

    /// A shard has every item once: values before best moves, and those of a lane before those of the next. Its bytes
    /// do not depend on the order of the blocks, nor on whether waiting frames are in memory or in a scratch file.
    #[test]
    fn a_shard_follows_from_its_items() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::create(&place.path().join("run"), &serde_json::json!({})).unwrap();
        let (sealer, full) = (sealer(1 << 30), sealer(999));
        assert!(sealer.memory.fits(0) && !full.memory.fits(0));
        let blocks = prop::collection::btree_map(
            (0usize..2, 0..LANES.len()),
            prop::collection::vec(length(), 0..8),
            0..8,
        );
        proptest!(cases(24), |(blocks in blocks, turn in 0usize..8)| {
            sealer.clear();
            full.clear();
            let kinds = [ItemKind::Values, ItemKind::BestMoves];
            let named = blocks.into_iter().map(|((kind, lane), lengths)| (kinds[kind], LANES[lane], lengths));
            let mut blocks: Vec<(ItemKind, Lane, Vec<usize>)> = named.collect();
            let wanted: Items =
                blocks.iter().flat_map(|(kind, lane, lengths)| items(*kind, LAYER, *lane, lengths)).collect();
            let kind_of = |key: ItemKey| ItemKind::of(ShardKind::Values, key);
            let has_frames = |key: ItemKey| {
                let of_key = |(kind, lane, _): &&(ItemKind, Lane, Vec<usize>)| {
                    *kind == kind_of(key) && lane.code() == key.lane
                };
                blocks.iter().find(of_key).is_some_and(|(.., lengths)| {
                    let bytes: usize = lengths.iter().sum();
                    bytes > FRAME_BYTES && lengths.iter().filter(|&&length| length > 0).count() > 1
                })
            };

            for (kind, lane, lengths) in &blocks {
                pack(&sealer, *kind, LAYER, *lane, lengths);
            }
            let (frames, checksum) = written(&run, sealer.seal(ShardKind::Values, LAYER).unwrap());
            prop_assert!(frames.concat() == wanted, "other items");
            let bytes = |of: &[(ItemKey, Vec<u8>)]| of.iter().map(|(_, item)| item.len()).sum::<usize>();
            for items in &frames {
                prop_assert!(items.len() == 1 || bytes(items) <= FRAME_BYTES);
            }
            for (frame, next) in frames.iter().zip(frames.iter().skip(1)) {
                let (last, first) = (frame[frame.len() - 1].0, next[0].0);
                let is_other_kind = kind_of(last) != kind_of(first);
                // A block that has its own frames shares none.
                let is_other_block = last.lane != first.lane && (has_frames(last) || has_frames(first));
                let is_end = is_other_kind || is_other_block;
                prop_assert!(is_end || bytes(frame) + bytes(&next[..1]) > FRAME_BYTES, "{last:?}, {first:?}");
            }
            prop_assert!(sealed(&sealer, ShardKind::Values, LAYER).is_empty(), "the frames were taken already");

            // In another order, with a full heap.
            let turn = turn % blocks.len().max(1);
            blocks.rotate_left(turn);
            for (kind, lane, lengths) in blocks.iter().rev() {
                pack(&full, *kind, LAYER, *lane, lengths);
            }
            let (again, same) = written(&run, full.seal(ShardKind::Values, LAYER).unwrap());
            prop_assert!(again == frames, "other frames");
            prop_assert_eq!(same, checksum);
        });
    }

    /// Blocks of at most one frame are gathered, up to the next block that has its own frames.
    #[test]
    fn small_blocks_are_gathered() {
        let sealer = sealer(1 << 30);
        let sizes = |blocks: [&[usize]; 5]| -> Vec<usize> {
            for (lane, lengths) in LANES.into_iter().zip(blocks).rev() {
                pack(&sealer, ItemKind::Reach, LAYER, lane, lengths);
            }
            let sealed = sealer.seal(ShardKind::Reach, LAYER).unwrap();
            let most: usize = sealed.frames.iter().map(Frame::most_bytes).sum();
            assert_eq!(sealed.most_bytes(), most as u64);
            sealed.frames.iter().map(Frame::raw_bytes).collect()
        };
        assert!(sizes([&[], &[0], &[], &[0, 0], &[]]).is_empty());
        assert_eq!(sizes([&[100], &[], &[0, 7], &[1, 2, 3], &[]]), [113]);
        assert_eq!(sizes([&[100], &[200_000, 0, 200_000], &[50], &[], &[50]]), [100, 200_000, 200_000, 100]);
        assert_eq!(
            sizes([&[FRAME_BYTES - 9], &[9], &[1], &[FRAME_BYTES - 1], &[1]]),
            [FRAME_BYTES, FRAME_BYTES, 1]
        );
        let long = 2 * FRAME_BYTES;
        assert_eq!(sizes([&[5], &[long], &[6], &[7], &[]]), [5, long, 13], "an item is never cut");
    }

    /// Layers and kinds of shards are sealed separately. A block that is made again replaces the first.
    #[test]
    fn sealing_takes_the_items_of_the_shard_alone() {
        let sealer = sealer(1 << 30);
        let layers = [6, 8, 10].map(Layer);
        for layer in layers {
            for kind in [ItemKind::Reach, ItemKind::Values, ItemKind::BestMoves] {
                for lane in LANES {
                    pack(&sealer, kind, layer, lane, &[30, 0, 20]);
                    pack(&sealer, kind, layer, lane, &[0, 11, 12]);
                }
            }
        }
        let wanted = |kinds: &[ItemKind], layer| -> Vec<u8> {
            let blocks = kinds.iter().flat_map(|&kind| LANES.map(|lane| (kind, lane)));
            let all = blocks.flat_map(|(kind, lane)| items(kind, layer, lane, &[0, 11, 12]));
            all.flat_map(|(_, item)| item).collect()
        };
        for layer in [layers[1], layers[0], layers[2]] {
            let values = wanted(&[ItemKind::Values, ItemKind::BestMoves], layer);
            assert_eq!(sealed(&sealer, ShardKind::Values, layer), values);
            assert_eq!(sealed(&sealer, ShardKind::Reach, layer), wanted(&[ItemKind::Reach], layer));
            assert!(sealed(&sealer, ShardKind::Values, layer).is_empty());
        }
        pack(&sealer, ItemKind::Reach, LAYER, LANES[0], &[5]);
        sealer.clear();
        assert!(sealed(&sealer, ShardKind::Reach, LAYER).is_empty());
    }

    #[test]
    fn blocks_are_taken_in_the_order_of_the_lanes() {
        let unsealed = Unsealed::default();
        let key = |layer, lane| Parts::key(layer, lane, 0);
        let layers = [4, 6, 8].map(Layer);
        for layer in layers {
            for lane in LANES.into_iter().rev() {
                unsealed.add(layer, lane, Packed::Items(vec![(key(layer, lane), vec![1])]));
            }
        }
        for layer in [layers[1], layers[2], layers[0]] {
            let taken = unsealed.take(layer).into_iter().map(|packed| match packed {
                Packed::Items(items) => items[0].0,
                Packed::Frames(frames) => panic!("{frames:?}"),
            });
            assert_eq!(taken.collect::<Vec<_>>(), LANES.map(|lane| key(layer, lane)));
            assert!(unsealed.take(layer).is_empty());
        }
    }
}
