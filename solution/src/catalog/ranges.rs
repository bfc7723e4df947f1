//! The committed ranges of a run, and the search for the range of a layer.

use std::sync::{Arc, OnceLock};

use exact2048_storage::ShardKind;

use super::shard::CatalogShard;
use crate::commit::Commit;
use crate::owners::Owners;
use crate::records::WorkTime;

/// A finished range and its shards.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) commit: Arc<Commit>,
    /// Empty if the reach of the range was removed.
    pub(super) shards: Vec<Arc<CatalogShard>>,
    /// The shards of the checkpoint; empty if it does not count.
    pub(super) checkpoint: Vec<Arc<CatalogShard>>,
    /// The assignment of lanes to shards; `None` for a single shard.
    pub(super) owners: Option<Arc<Owners>>,
    pub(super) took: Option<WorkTime>,
}

impl Range {
    /// All its shards.
    pub(super) fn all_shards(&self) -> impl Iterator<Item = &Arc<CatalogShard>> {
        self.shards.iter().chain(&self.checkpoint)
    }

    /// Its shards, or those of its checkpoint.
    pub(super) fn of_kind(&self, kind: ShardKind) -> &[Arc<CatalogShard>] {
        if kind == ShardKind::Checkpoint { &self.checkpoint } else { &self.shards }
    }

    /// Whether its checkpoint holds a layer.
    fn has_in_checkpoint(&self, layer: u32) -> bool {
        let first = self.commit.first;
        !self.checkpoint.is_empty() && (first.0..=first.up(1).0).contains(&layer)
    }

    /// Whether its shards count. Every range has a shard unless its shards were removed.
    pub(super) fn is_stored(&self) -> bool {
        !self.shards.is_empty()
    }
}

/// Position of a stored range among all ranges.
#[derive(Debug)]
struct Stored {
    kind: ShardKind,
    first: u32,
    last: u32,
    at: usize,
}

/// All ranges, in the order of the journal. Stored ranges of one phase have no layer in common.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    all: Vec<Range>,
    /// The stored ranges, by kind and first layer. Built at the first search.
    stored: OnceLock<Vec<Stored>>,
}

impl Ranges {
    pub(super) fn all(&self) -> &[Range] {
        &self.all
    }

    pub(super) fn all_mut(&mut self) -> &mut Vec<Range> {
        self.stored.take();
        &mut self.all
    }

    /// The range whose shards hold a layer.
    ///
    /// A large run has thousands of ranges, and every read of an item searches them.
    pub(super) fn find(&self, kind: ShardKind, layer: u32) -> Option<&Range> {
        if kind == ShardKind::Checkpoint {
            return self.all.iter().find(|range| range.has_in_checkpoint(layer));
        }
        let stored = self.stored.get_or_init(|| self.sorted());
        let after = stored.partition_point(|range| (range.kind, range.first) <= (kind, layer));
        let range = stored.get(after.checked_sub(1)?)?;
        (range.kind == kind && layer <= range.last).then(|| self.all.get(range.at))?
    }

    fn sorted(&self) -> Vec<Stored> {
        let stored = self.all.iter().enumerate().filter(|(_, range)| range.is_stored());
        let place = |(at, range): (usize, &Range)| {
            let Commit { phase, first, last, .. } = &*range.commit;
            Stored { kind: phase.shard_kind(), first: first.0, last: last.0, at }
        };
        let mut stored: Vec<Stored> = stored.map(place).collect();
        stored.sort_unstable_by_key(|range| (range.kind, range.first));
        stored
    }
}
