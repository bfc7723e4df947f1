//! The items of a layer in the shards that hold it.

use std::path::PathBuf;
use std::sync::Arc;

use exact2048_solution::cache::WeighedCache;
use exact2048_solution::{Catalog, CatalogShard};
use exact2048_storage::{Entry, ItemKey, ShardKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::game::{lane_sector, lane_tiles};
use super::outcome::Problem;

/// The items of one layer and kind by key, with their decoded frames.
pub struct Items {
    shards: Vec<Arc<CatalogShard>>,
    items: Vec<Item>,
    frames: FxHashMap<(usize, u32), Arc<Vec<u8>>>,
}

/// Decoded frames, by the serial number of their shard and their number in it.
pub type FrameCache = WeighedCache<(u64, u32), Arc<Vec<u8>>>;

/// Content of items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Which entries are reachable.
    Reach,
    /// Values.
    Values,
    /// Best moves. Their items are in the shards of values, with the bit `BEST_MOVES` set in the number of the part.
    BestMoves,
    /// Values with all their bits, in the shards of a checkpoint.
    Checkpoint,
}

/// The bit in the number of a part that marks an item of best moves.
const BEST_MOVES: u32 = 1 << 31;

impl Content {
    /// The kind of shard that has items with this content.
    pub fn kind(self) -> ShardKind {
        match self {
            Self::Reach => ShardKind::Reach,
            Self::Values | Self::BestMoves => ShardKind::Values,
            Self::Checkpoint => ShardKind::Checkpoint,
        }
    }

    /// The key of the part that an item belongs to.
    fn part_of(self, key: ItemKey) -> ItemKey {
        let part = if self == Self::BestMoves { key.part & !BEST_MOVES } else { key.part };
        ItemKey { part, ..key }
    }

    /// The content of an item in a kind of shard.
    pub fn of(kind: ShardKind, key: ItemKey) -> Self {
        match kind {
            ShardKind::Reach => Self::Reach,
            ShardKind::Values if key.part & BEST_MOVES != 0 => Self::BestMoves,
            ShardKind::Values => Self::Values,
            ShardKind::Checkpoint => Self::Checkpoint,
        }
    }
}

/// One item.
#[derive(Clone, Copy)]
pub struct Item {
    /// The index of its shard in [`Items::shards`].
    shard: usize,
    /// The place of the item in the shard.
    entry: Entry,
    /// The key of its part.
    key: ItemKey,
}

impl Item {
    /// The key of its part.
    pub fn key(&self) -> ItemKey {
        self.key
    }
}

impl Items {
    /// Reads the items of a layer; `None` if no shard covers the layer.
    pub fn read(catalog: &Catalog, content: Content, layer: u32) -> Result<Option<Self>, Problem> {
        let kind = content.kind();
        let shards = catalog.find_layer(kind, layer);
        if shards.is_empty() {
            return Ok(None);
        }
        let mut items = Vec::new();
        for (number, shard) in shards.iter().enumerate() {
            let reader = shard.reader()?;
            let all = reader.items();
            let first = all.partition_point(|entry| entry.key.layer < layer);
            let of_layer = all[first..].iter().take_while(|entry| entry.key.layer == layer);
            let of_layer = of_layer.filter(|entry| Content::of(kind, entry.key) == content);
            items.extend(of_layer.map(|&entry| Item {
                shard: number,
                entry,
                key: content.part_of(entry.key),
            }));
        }
        items.sort_by_key(Item::key);
        let mut needed: Vec<_> = items.iter().map(|item| (item.shard, item.entry.frame)).collect();
        needed.sort_unstable();
        needed.dedup();
        let read = |(shard, frame): (usize, u32)| {
            let holder: &CatalogShard = &shards[shard];
            Ok(((shard, frame), Arc::new(holder.reader()?.read_frame(frame)?)))
        };
        let frames = needed.into_par_iter().map(read).collect::<Result<_, Problem>>()?;
        Ok(Some(Self { shards, items, frames }))
    }

    /// Reads one item. `cache` keeps the most recent frames.
    ///
    /// The result is empty if the shard lacks the item, and `None` if no shard covers the layer.
    pub fn read_one(
        catalog: &Catalog,
        content: Content,
        key: ItemKey,
        cache: &FrameCache,
    ) -> Result<Option<Self>, Problem> {
        let part = if content == Content::BestMoves { key.part | BEST_MOVES } else { key.part };
        let key = ItemKey { part, ..key };
        let Some(shard) = catalog.find(content.kind(), key) else { return Ok(None) };
        let (mut items, mut frames) = (Vec::new(), FxHashMap::default());
        if let Some(&entry) = shard.reader()?.find(key) {
            let read = || Ok::<_, Problem>(Arc::new(shard.reader()?.read_frame(entry.frame)?));
            frames.insert((0, entry.frame), cache.get_or_insert_with(&(shard.serial, entry.frame), read)?);
            items.push(Item { shard: 0, entry, key: content.part_of(entry.key) });
        }
        Ok(Some(Self { shards: vec![shard], items, frames }))
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The item at an index, in the order of the keys.
    pub fn get(&self, i: usize) -> Option<Item> {
        self.items.get(i).copied()
    }

    /// The item of a part.
    pub fn find(&self, part: ItemKey) -> Option<Item> {
        let at = self.items.binary_search_by_key(&part, Item::key).ok()?;
        self.get(at)
    }

    /// The bytes of an item.
    pub fn bytes(&self, item: &Item) -> &[u8] {
        let frame = self.frames.get(&(item.shard, item.entry.frame));
        frame.and_then(|frame| item.entry.slice(frame)).unwrap_or_default()
    }

    /// A problem of an item.
    pub fn problem(&self, item: &Item, expected: String, found: String) -> Problem {
        let shard = &self.shards[item.shard];
        let reader = shard.reader().ok();
        let frames = reader.as_ref().map(|reader| reader.frames());
        let frame = frames.and_then(|frames| frames.get(item.entry.frame as usize));
        let ItemKey { layer, lane, part } = item.key();
        let of = match Content::of(shard.record.kind, item.entry.key) {
            Content::BestMoves => "best moves of the".to_owned(),
            _ => shard.record.kind.to_string(),
        };
        let what = format!("{of} {}", item_text(layer, lane, part));
        Problem::Content {
            file: shard.place.clone(),
            offset: frame.map(|frame| frame.file_offset),
            what,
            expected,
            found,
        }
    }

    /// A problem of the layer.
    pub fn problem_of_all(&self, what: String, expected: String, found: String) -> Problem {
        let file = self.shards.first().map_or_else(|| PathBuf::new().into(), |shard| shard.place.clone());
        Problem::Content { file, offset: None, what, expected, found }
    }
}

/// The key of an item as text for messages.
pub fn item_text(layer: u32, lane: u64, part: u32) -> String {
    let (sum, tiles) = lane_tiles(lane);
    let huge: Vec<u64> = (8..16).flat_map(|e| (0..lane >> (4 * e) & 15).map(move |_| 1 << e)).collect();
    let among = if huge.is_empty() { String::new() } else { format!(", huge tiles {huge:?}") };
    let sector = match lane_sector(lane) {
        0 => String::new(),
        sector => format!(", sector {sector}"),
    };
    format!("item of layer {layer}, {tiles} large tiles of sum {sum}{among}{sector}, part {part}")
}
