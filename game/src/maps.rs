//! Patterns and index maps: what a move or a spawn does to the sequences.
//!
//! A [`Pattern`] says, for each large tile of the target skeleton, which large tile of the source it
//! is, and which pairs of the source must be equal or different for that to happen. It is a property
//! of skeletons alone. Applied to the columns of a lane it becomes an [`IndexMap`] from columns to
//! columns, which all rows with that pattern share.

use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use crate::columns::Columns;
use crate::params::Params;
use crate::shapes::{PatternShapes, Shape};
use crate::slide::Source;

const MERGED: u8 = 0x40;
const BORN: u8 = 0x80;
const NO_ITEM: u8 = 0xff;
const EQUAL: u8 = 0x80;

/// What a transition does to the large tiles, in the cell order of the canonical skeletons.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// Source of each large tile of the target: a number, with `MERGED`, or `BORN`.
    items: [u8; 16],
    /// For each large tile of the source: 0, or 1 + the tile it meets, with `EQUAL` where they merge.
    meets: [u8; 16],
}

impl Pattern {
    /// A pattern without any large tile, to be filled in.
    pub fn empty() -> Self {
        Self { items: [NO_ITEM; 16], meets: [0; 16] }
    }

    /// The pattern that leaves `k` large tiles in their order.
    pub fn identity(k: u8) -> Self {
        let mut pattern = Self::empty();
        for i in 0..k {
            pattern.items[i as usize] = i;
        }
        pattern
    }

    /// Sets the source of large tile `item` of the target.
    pub fn set_item(&mut self, item: usize, source: Source) {
        self.items[item] = match source {
            Source::Plain(from) => from,
            Source::Merged(from) => MERGED | from,
            Source::Born => BORN,
        };
    }

    /// Requires that large tile `first` of the source equals (or differs from) `second`.
    pub fn set_condition(&mut self, first: u8, second: u8, equal: bool) {
        self.meets[first as usize] = (second + 1) | if equal { EQUAL } else { 0 };
    }

    /// Whether large tiles merge.
    pub(crate) fn merges(&self) -> bool {
        self.items.iter().any(|&item| item != NO_ITEM && item & (MERGED | BORN) == MERGED)
    }

    /// Whether large tiles are born.
    pub(crate) fn births(&self) -> bool {
        self.items.contains(&BORN)
    }

    /// What becomes of a sequence, given as its exponents; `born` is the exponent of a new tile.
    /// `None` where a condition does not hold.
    pub(crate) fn apply(&self, exponents: &[u8], born: u8) -> Option<Vec<u8>> {
        for (first, &meets) in self.meets.iter().enumerate().filter(|&(_, &meets)| meets != 0) {
            let second = (meets & !EQUAL) as usize - 1;
            if (exponents[first] == exponents[second]) != (meets & EQUAL != 0) {
                return None;
            }
        }
        let items = self.items.iter().take_while(|&&item| item != NO_ITEM);
        Some(
            items
                .map(|&item| match item {
                    BORN => born,
                    _ if item & MERGED != 0 => exponents[(item & !MERGED) as usize] + 1,
                    _ => exponents[item as usize],
                })
                .collect(),
        )
    }
}

/// Number of a pattern in a [`Patterns`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PatternId(pub u32);

impl PatternId {
    /// The pattern that leaves every sequence as it is, whatever its length.
    pub const IDENTITY: PatternId = PatternId(0);
}

/// Gives each pattern a number, for all classes of a run.
#[derive(Debug, Default)]
pub struct Patterns(Mutex<PatternTable>);

#[derive(Debug, Default)]
struct PatternTable {
    ids: FxHashMap<Pattern, PatternId>,
    patterns: Vec<Arc<PatternShapes>>,
}

impl Patterns {
    /// The numbers of patterns, new ones where they are seen for the first time. Which number a
    /// pattern gets depends on who asks first; no result does.
    pub fn intern(&self, patterns: &[Pattern]) -> Vec<PatternId> {
        let mut table = self.lock();
        patterns
            .iter()
            .map(|pattern| {
                let next = PatternId(table.patterns.len() as u32 + 1);
                let id = *table.ids.entry(*pattern).or_insert(next);
                if id == next {
                    table.patterns.push(Arc::new(PatternShapes::new(*pattern)));
                }
                id
            })
            .collect()
    }

    /// The pattern of a number other than [`PatternId::IDENTITY`], with what is known of it.
    pub fn get(&self, id: PatternId) -> Arc<PatternShapes> {
        Arc::clone(&self.lock().patterns[id.0 as usize - 1])
    }

    fn lock(&self) -> MutexGuard<'_, PatternTable> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Where each column of a source lane leads in a target lane.
#[derive(Debug)]
pub enum IndexMap {
    /// Every column leads to the column of the same number.
    Identity,
    /// Entry `c` is where column `c` leads: a column of the target, or one of the two that follow
    /// the last: [`IndexMap::none`] and [`IndexMap::won`].
    Dense(Vec<u32>),
    /// The pairs (column, where it leads), for maps that most columns have no part in.
    Sparse(Vec<(u32, u32)>),
}

impl IndexMap {
    /// Number of padding columns that a target row needs behind its own.
    pub const PADDING: usize = 2;

    /// The padding column for a column that does not take part.
    pub fn none(target: &Columns) -> u32 {
        target.len() as u32
    }

    /// The padding column for a column whose move makes the wanted tile.
    pub fn won(target: &Columns) -> u32 {
        target.len() as u32 + 1
    }

    /// The map of a pattern from the columns of one lane to those of another. Cost: about a
    /// nanosecond a column, once the pattern has met columns of the same shapes.
    pub fn new(params: &Params, pattern: &PatternShapes, source: &Columns, target: &Columns) -> Self {
        if *pattern.pattern() == Pattern::identity(source.lane().k) && source.lane() == target.lane() {
            return IndexMap::Identity;
        }
        let none = Self::none(target);
        let mut dense = vec![none; source.len()];
        let mut used = 0;
        for group in source.groups() {
            let shape = Shape::new(params, pattern, group.multiset, source.lane().k);
            let map = pattern.shape_map(&shape, params.large);
            let out = &mut dense[group.first as usize..][..group.count as usize];
            for piece in &map.pieces {
                let multiset = shape.actual(piece.target);
                let first = match target.group(multiset) {
                    Some(group) => group.first,
                    None if shape.wins(params, multiset) => {
                        piece.leads_to.iter().for_each(|&(from, _)| out[from as usize] = Self::won(target));
                        used += piece.leads_to.len();
                        continue;
                    }
                    // Only holes of the product lead out of it: no reachable board breaks the tile bound.
                    None => continue,
                };
                piece.leads_to.iter().for_each(|&(from, to)| out[from as usize] = first + to);
                used += piece.leads_to.len();
            }
        }
        if used * 2 >= dense.len() {
            return IndexMap::Dense(dense);
        }
        let pairs = dense.into_iter().enumerate().filter(|&(_, to)| to != none);
        IndexMap::Sparse(pairs.map(|(from, to)| (from as u32, to)).collect())
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        match self {
            IndexMap::Identity => 0,
            IndexMap::Dense(to) => 4 * to.len(),
            IndexMap::Sparse(pairs) => 8 * pairs.len(),
        }
    }
}
