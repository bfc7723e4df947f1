//! Table of the patterns of a run, with their effects on shapes.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::pattern::{Items, Pattern};
use crate::shapes::{Rearrangement, ShapeCache};

/// Number of a pattern in a [`Patterns`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PatternId(pub u32);

impl PatternId {
    /// Pattern that preserves every sequence of any length.
    pub const IDENTITY: PatternId = PatternId(0);
}

/// Numbers the patterns of all classes of a run, and caches the effects of patterns on shapes.
#[derive(Debug, Default)]
pub struct Patterns {
    table: Mutex<PatternTable>,
    cache: ShapeCache,
}

#[derive(Debug, Default)]
struct PatternTable {
    ids: FxHashMap<Pattern, PatternId>,
    patterns: Vec<Arc<KnownPattern>>,
    rearrangements: FxHashMap<Items, Arc<Rearrangement>>,
}

/// Pattern with its known effects on shapes.
#[derive(Debug)]
pub struct KnownPattern {
    pub(crate) pattern: Pattern,
    /// Effects on shapes, shared by all patterns with the same items; `None` if tiles merge.
    pub(crate) rearrangement: Option<Arc<Rearrangement>>,
}

impl KnownPattern {
    /// Whether large tiles merge. If they merge, few columns take part.
    pub fn merges(&self) -> bool {
        self.rearrangement.is_none()
    }
}

impl Patterns {
    /// Returns the numbers of patterns. Assigns a number to each new pattern. The numbers depend on the order of
    /// calls, but results do not depend on the numbers.
    pub fn intern(&self, patterns: &[Pattern]) -> Vec<PatternId> {
        let mut guard = self.table.lock();
        let PatternTable { ids, patterns: known, rearrangements } = &mut *guard;
        patterns
            .iter()
            .map(|pattern| {
                let next = PatternId(known.len() as u32 + 1);
                let id = *ids.entry(*pattern).or_insert(next);
                if id == next {
                    let items = pattern.items();
                    let made = || Arc::new(Rearrangement::default());
                    let rearrangement = (!items.merges())
                        .then(|| Arc::clone(rearrangements.entry(items).or_insert_with(made)));
                    known.push(Arc::new(KnownPattern { pattern: *pattern, rearrangement }));
                }
                id
            })
            .collect()
    }

    /// Returns the pattern of each number; `None` for [`PatternId::IDENTITY`].
    pub fn known(&self, ids: impl IntoIterator<Item = PatternId>) -> Vec<Option<Arc<KnownPattern>>> {
        let table = self.table.lock();
        let known = |id: PatternId| Some(Arc::clone(&table.patterns[id.0.checked_sub(1)? as usize]));
        ids.into_iter().map(known).collect()
    }

    /// Data that the effects on shapes share.
    pub(crate) fn cache(&self) -> &ShapeCache {
        &self.cache
    }

    /// Approximate number of bytes that effects on shapes take.
    pub fn shape_bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// Drops the effects on shapes. They are computed again on demand.
    pub fn clear_shapes(&self) {
        self.table.lock().rearrangements.values().for_each(|rearrangement| rearrangement.forget());
        self.cache.clear();
    }
}
