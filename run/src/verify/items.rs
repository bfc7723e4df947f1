//! The items of a layer in the shards that hold it.

use std::path::PathBuf;
use std::sync::Arc;

use exact2048_game::{Lane, Layer};
use exact2048_storage::{Entry, ItemKey, ShardKind};
use rustc_hash::FxHashMap;

use super::{Problem, parallel};
use crate::catalog::{Catalog, CatalogShard};

/// The items of one layer and kind by key, with their decoded frames.
pub struct Items {
    shards: Vec<Arc<CatalogShard>>,
    items: Vec<Item>,
    frames: FxHashMap<(usize, u32), Vec<u8>>,
}

/// One of them.
#[derive(Clone, Copy)]
pub struct Item {
    /// The index of its shard.
    shard: usize,
    /// Where it is there.
    pub entry: Entry,
}

impl Item {
    /// Its key.
    pub fn key(&self) -> ItemKey {
        self.entry.key
    }
}

impl Items {
    /// Reads the items of a layer, or one of them; `None` where no shard covers the layer.
    pub fn read(
        catalog: &Catalog,
        kind: ShardKind,
        layer: Layer,
        only: Option<ItemKey>,
        threads: usize,
    ) -> Result<Option<Self>, Problem> {
        let shards = catalog.find_layer(kind, layer.0);
        if shards.is_empty() {
            return Ok(None);
        }
        let start = ItemKey { layer: layer.0, lane: 0, part: 0 };
        let range = match only {
            Some(key) => key..ItemKey { part: key.part + 1, ..key },
            None => start..ItemKey { layer: layer.0 + 1, ..start },
        };
        let mut items = Vec::new();
        for (number, shard) in shards.iter().enumerate() {
            let all = shard.reader()?.items();
            let below = |end: ItemKey| all.partition_point(|entry| entry.key < end);
            for &entry in &all[below(range.start)..below(range.end)] {
                // What is in another shard than the one where it is looked for would never be found.
                if catalog.find(kind, entry.key).is_none_or(|holder| holder.serial != shard.serial) {
                    let what = format!("owner of the item {:?}", entry.key);
                    return Err(content(shard.path.clone(), None, what, "another shard", "this one"));
                }
                items.push(Item { shard: number, entry });
            }
        }
        items.sort_by_key(Item::key);
        let mut needed: Vec<_> = items.iter().map(|item| (item.shard, item.entry.frame)).collect();
        needed.sort_unstable();
        needed.dedup();
        let read = parallel::each(threads, needed.len(), |i| {
            let (shard, frame) = needed[i];
            Ok((needed[i], shards[shard].reader()?.read_frame(frame)?))
        });
        let frames = read.into_iter().collect::<Result<_, Problem>>()?;
        Ok(Some(Self { shards, items, frames }))
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// One of the items, in order of their keys.
    pub fn get(&self, i: usize) -> Option<Item> {
        self.items.get(i).copied()
    }

    /// Its bytes.
    pub fn bytes(&self, item: &Item) -> &[u8] {
        let frame = self.frames.get(&(item.shard, item.entry.frame));
        frame.and_then(|frame| item.entry.slice(frame)).unwrap_or_default()
    }

    /// The codes of the lanes that have items, ascending.
    pub fn lanes(&self) -> Vec<u64> {
        let mut lanes: Vec<u64> = self.items.iter().map(|item| item.entry.key.lane).collect();
        lanes.dedup();
        lanes
    }

    /// Where an item is: the offset of its frame in the file, and its key for people.
    pub fn place(&self, item: &Item) -> Result<(u64, String), Problem> {
        let frames = self.shards[item.shard].reader()?.frames();
        let offset = frames.get(item.entry.frame as usize).map_or(0, |frame| frame.file_offset);
        let ItemKey { layer, lane, part } = item.entry.key;
        let lane = Lane::from_code(lane).unwrap_or(Lane { k: u8::MAX, large_sum: 0 });
        Ok((offset, format!("item of layer {layer}, lane k={} sum={}, part {part}", lane.k, lane.large_sum)))
    }

    /// A problem of one item, or of all of them, which is told of the first shard.
    pub fn problem(
        &self,
        item: Option<&Item>,
        offset: Option<u64>,
        what: String,
        expected: String,
        found: String,
    ) -> Problem {
        let file = self.shards[item.map_or(0, |item| item.shard)].path.clone();
        content(file, offset, what, &expected, &found)
    }
}

fn content(file: PathBuf, offset: Option<u64>, what: String, expected: &str, found: &str) -> Problem {
    Problem::Content { file, offset, what, expected: expected.to_owned(), found: found.to_owned() }
}
