//! The committed ranges of a run, and which of them has a layer.

use std::sync::{Arc, OnceLock};

use exact2048_storage::ShardKind;

use super::{CatalogShard, WorkTime};
use crate::commit::Commit;
use crate::owners::Owners;

/// A finished range and its shards.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) commit: Arc<Commit>,
    /// Empty if the reach of the range was removed.
    pub(super) shards: Vec<Arc<CatalogShard>>,
    /// Which shard holds which lane; `None` where there is only one.
    pub(super) owners: Option<Arc<Owners>>,
    pub(super) took: Option<WorkTime>,
}

impl Range {
    /// Whether its shards count: every range has one, unless they were removed.
    pub(super) fn is_stored(&self) -> bool {
        !self.shards.is_empty()
    }
}

/// Where a stored range is among all.
#[derive(Debug)]
struct Stored {
    kind: ShardKind,
    first: u32,
    last: u32,
    at: usize,
}

/// All ranges, in the order of the journal. No two whose shards count have a layer of one phase in common.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    all: Vec<Range>,
    /// Those whose shards count, by kind and first layer; made when one is looked for.
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

    /// The range whose shards hold a layer. A large run has thousands of ranges, and is asked for each of its items.
    pub(super) fn find(&self, kind: ShardKind, layer: u32) -> Option<&Range> {
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
