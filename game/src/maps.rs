//! Patterns and index maps: what a move or a spawn does to the sequences.
//!
//! A [`Pattern`] says, for each large tile of the target skeleton, which large tile of the source it
//! is, and which pairs of the source must be equal or different for that to happen. It is a property
//! of skeletons alone. Applied to the columns of a lane it becomes an [`IndexMap`] from columns to
//! columns, which all rows with that pattern share.

use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use crate::board::MAX_EXPONENT;
use crate::columns::{Columns, Sequence};
use crate::params::Params;
use crate::shapes::{Arrangements, Rearrangement, Shape};
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
    fn merges(&self) -> bool {
        self.items.iter().any(|&item| item != NO_ITEM && item & (MERGED | BORN) == MERGED)
    }

    /// The columns whose sequences meet the conditions, one bit a column.
    fn meeting(&self, columns: &Columns) -> Vec<u64> {
        let mut bits = vec![u64::MAX; columns.words()];
        if let Some(last) = bits.last_mut()
            && !columns.len().is_multiple_of(64)
        {
            *last = (1 << (columns.len() % 64)) - 1;
        }
        for (first, &meets) in self.meets.iter().enumerate().filter(|&(_, &meets)| meets != 0) {
            let equal = columns.equal_at(first as u8, (meets & !EQUAL) - 1);
            if meets & EQUAL != 0 {
                bits.iter_mut().zip(equal).for_each(|(b, e)| *b &= e);
            } else {
                bits.iter_mut().zip(equal).for_each(|(b, e)| *b &= !e);
            }
        }
        bits
    }
}

/// Where the large tiles of a target come from, without the conditions under which they do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Items([u8; 16]);

impl Items {
    /// Whether large tiles are born.
    pub(crate) fn births(&self) -> bool {
        self.0.contains(&BORN)
    }

    /// What becomes of a sequence of `k` exponents; `born` is the exponent of a new tile. `None` where
    /// a tile would not fit: such a tile is on no reachable board.
    #[inline]
    pub(crate) fn apply(&self, sequence: Sequence, k: u8, born: u8) -> Option<Sequence> {
        let exponent = |i: u8| (sequence >> (4 * (k - 1 - i))) & 15;
        let mut image = 0;
        for &item in self.0.iter().take_while(|&&item| item != NO_ITEM) {
            let e = match item {
                BORN => Sequence::from(born),
                _ if item & MERGED != 0 => exponent(item & !MERGED) + 1,
                _ => exponent(item),
            };
            if e > Sequence::from(MAX_EXPONENT) {
                return None;
            }
            image = image << 4 | e;
        }
        Some(image)
    }
}

/// Number of a pattern in a [`Patterns`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PatternId(pub u32);

impl PatternId {
    /// The pattern that leaves every sequence as it is, whatever its length.
    pub const IDENTITY: PatternId = PatternId(0);
}

/// Gives each pattern a number, for all classes of a run, and keeps what patterns do to shapes.
#[derive(Debug, Default)]
pub struct Patterns {
    table: Mutex<PatternTable>,
    arrangements: Mutex<FxHashMap<Sequence, Arc<Arrangements>>>,
}

#[derive(Debug, Default)]
struct PatternTable {
    ids: FxHashMap<Pattern, PatternId>,
    patterns: Vec<(Pattern, Arc<Rearrangement>)>,
    rearrangements: FxHashMap<Items, Arc<Rearrangement>>,
}

impl Patterns {
    /// The numbers of patterns, new ones where they are seen for the first time. Which number a
    /// pattern gets depends on who asks first; no result does.
    pub fn intern(&self, patterns: &[Pattern]) -> Vec<PatternId> {
        let mut guard = self.lock();
        let table = &mut *guard;
        patterns
            .iter()
            .map(|pattern| {
                let next = PatternId(table.patterns.len() as u32 + 1);
                let id = *table.ids.entry(*pattern).or_insert(next);
                if id == next {
                    let items = Items(pattern.items);
                    let rearrangement = table.rearrangements.entry(items);
                    let rearrangement = rearrangement.or_insert_with(|| Arc::new(Rearrangement::new(items)));
                    table.patterns.push((*pattern, Arc::clone(rearrangement)));
                }
                id
            })
            .collect()
    }

    /// The pattern of a number other than [`PatternId::IDENTITY`], and what it does without its
    /// conditions.
    fn get(&self, id: PatternId) -> (Pattern, Arc<Rearrangement>) {
        self.lock().patterns[id.0 as usize - 1].clone()
    }

    /// The arrangements of a multiset of exponents, sorted downward.
    pub(crate) fn arrangements(&self, multiset: Sequence) -> Arc<Arrangements> {
        let mut known = self.arrangements.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let arrangements = known.entry(multiset).or_insert_with(|| Arc::new(Arrangements::new(multiset)));
        Arc::clone(arrangements)
    }

    /// Drops what is kept about shapes; it is made again where it is needed.
    pub fn forget_shapes(&self) {
        let table = self.lock();
        table.rearrangements.values().for_each(|rearrangement| rearrangement.forget());
        self.arrangements.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
    }

    fn lock(&self) -> MutexGuard<'_, PatternTable> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Where each column of a source lane leads in a target lane.
#[derive(Debug)]
pub enum IndexMap {
    /// Every column leads to the column of the same number.
    Identity,
    /// Where every column leads.
    Dense(DenseMap),
    /// Pairs, for maps that most columns have no part in.
    Sparse(SparseMap),
}

/// The pairs (column, where it leads) of the columns that take part, as far as they were asked for.
#[derive(Debug)]
pub struct SparseMap {
    pairs: Vec<(u32, u32)>,
    /// The columns that meet the conditions and were not looked up yet, one bit a column.
    rest: Vec<u64>,
}

impl SparseMap {
    /// A map with all of its pairs.
    pub fn new(pairs: Vec<(u32, u32)>) -> Self {
        Self { pairs, rest: Vec::new() }
    }

    /// The pairs of the columns that were asked for so far, and perhaps more.
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }
}

/// Entry `c` is where column `c` leads: a column of the target, or one of the two that follow the last,
/// [`IndexMap::none`] and [`IndexMap::won`]. Padded with the former to whole vectors.
#[derive(Debug)]
pub struct DenseMap {
    leads_to: Vec<u32>,
    /// All entries are below this.
    bound: usize,
}

impl DenseMap {
    /// A map with the given entries.
    pub fn new(mut leads_to: Vec<u32>, target_columns: usize) -> Self {
        leads_to.resize(IndexMap::stride(leads_to.len()), target_columns as u32);
        let bound = leads_to.iter().max().map_or(0, |&largest| largest as usize + 1);
        Self { leads_to, bound }
    }

    /// Where each column leads, padding included.
    pub fn leads_to(&self) -> &[u32] {
        &self.leads_to
    }

    /// Calls `visit` with the number of each vector of columns and the values that they lead to.
    #[inline(always)]
    pub fn gather_from<V: Copy>(&self, row: &[V], mut visit: impl FnMut(usize, [V; IndexMap::LANES])) {
        for chunk in 0..self.leads_to.len() / IndexMap::LANES {
            visit(chunk, self.gather_chunk(row, chunk));
        }
    }

    /// The values that one vector of columns leads to in `row`.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the innermost loop of the solver: bounds checks halve its speed")]
    pub fn gather_chunk<V: Copy>(&self, row: &[V], chunk: usize) -> [V; IndexMap::LANES] {
        assert!(row.len() >= self.bound, "a row is as long as its map leads");
        let leads_to = &self.leads_to.as_chunks::<{ IndexMap::LANES }>().0[chunk];
        // SAFETY: every entry is below `bound`, which is the largest entry plus 1 and is set where the
        // entries are; both are private and never change. `row` has at least `bound` values.
        leads_to.map(|to| unsafe { *row.get_unchecked(to as usize) })
    }
}

impl IndexMap {
    /// Number of padding columns that a target row needs behind its own.
    pub const PADDING: usize = 2;

    /// Values a vector: rows and maps are padded to multiples of it.
    pub const LANES: usize = 16;

    /// Length of a row of `columns` values with its padding.
    pub fn stride(columns: usize) -> usize {
        (columns + Self::PADDING).next_multiple_of(Self::LANES)
    }

    /// The padding column for a column that does not take part.
    pub fn none(target: &Columns) -> u32 {
        target.len() as u32
    }

    /// The padding column for a column whose move makes the wanted tile.
    pub fn won(target: &Columns) -> u32 {
        target.len() as u32 + 1
    }

    /// The map of a pattern from the columns of one lane to those of another. Cost: about a
    /// nanosecond a column; where tiles merge, nothing yet: see [`IndexMap::extend`].
    pub fn new(
        params: &Params,
        patterns: &Patterns,
        id: PatternId,
        source: &Columns,
        target: &Columns,
    ) -> Self {
        if id == PatternId::IDENTITY {
            return IndexMap::Identity;
        }
        let (pattern, rearrangement) = patterns.get(id);
        let meeting = pattern.meeting(source);
        if pattern.merges() {
            IndexMap::Sparse(SparseMap { pairs: Vec::new(), rest: meeting })
        } else {
            Self::rearranging(params, patterns, &rearrangement, &meeting, source, target)
        }
    }

    /// Whether the map covers the `wanted` columns, one bit each: see [`IndexMap::extend`].
    pub fn covers(&self, wanted: &[u64]) -> bool {
        match self {
            IndexMap::Identity | IndexMap::Dense(_) => true,
            IndexMap::Sparse(map) => map.rest.iter().zip(wanted).all(|(rest, wanted)| rest & wanted == 0),
        }
    }

    /// Sees to it that the map covers the `wanted` columns, one bit each; the arguments are those that it
    /// was made with. Where tiles merge few columns take part, and of those many never occur: each is
    /// looked up when it is first wanted, for some tens of nanoseconds.
    pub fn extend(
        &mut self,
        params: &Params,
        patterns: &Patterns,
        id: PatternId,
        source: &Columns,
        target: &Columns,
        wanted: &[u64],
    ) {
        if self.covers(wanted) {
            return;
        }
        let IndexMap::Sparse(map) = self else { return };
        let (_, rearrangement) = patterns.get(id);
        let k = source.lane().k;
        let leads_to = |column: usize| {
            let image = rearrangement.items().apply(source.sequences()[column], k, params.large)?;
            match target.column(image) {
                Some(to) => Some(to),
                None if wins(params, image) => Some(Self::won(target)),
                // Only holes of the product lead out of it: no reachable board breaks the tile bound.
                None => None,
            }
        };
        // Maps are many and grow by turns on several threads: one allocation instead of many is felt.
        let new: u32 = map.rest.iter().zip(wanted).map(|(rest, wanted)| (rest & wanted).count_ones()).sum();
        map.pairs.reserve(new as usize);
        for (w, (rest, wanted)) in map.rest.iter_mut().zip(wanted).enumerate() {
            let columns = ones(*rest & wanted).map(|bit| w * 64 + bit);
            map.pairs.extend(columns.filter_map(|column| Some((column as u32, leads_to(column)?))));
            *rest &= !wanted;
        }
    }

    /// Where none merge a multiset's arrangements lead to those of one other, alike in all lanes.
    fn rearranging(
        params: &Params,
        patterns: &Patterns,
        rearrangement: &Rearrangement,
        meeting: &[u64],
        source: &Columns,
        target: &Columns,
    ) -> Self {
        let none = Self::none(target);
        let mut dense = Vec::with_capacity(Self::stride(source.len()));
        dense.resize(source.len(), none);
        for group in source.groups() {
            let shape = Shape::new(params, rearrangement, group.multiset, source.lane().k);
            let map = rearrangement.shape_map(&shape, patterns, params.large);
            let Some(to) = target.group(shape.actual(map.target)) else { continue };
            let out = &mut dense[group.first as usize..][..group.count as usize];
            out.iter_mut().zip(&map.leads_to).for_each(|(out, number)| *out = to.first + number);
        }
        let taking_part: u32 = meeting.iter().map(|w| w.count_ones()).sum();
        if (taking_part as usize) < source.len() / 4 {
            let columns =
                meeting.iter().enumerate().flat_map(|(w, &word)| ones(word).map(move |bit| w * 64 + bit));
            let mut pairs = Vec::with_capacity(taking_part as usize);
            pairs.extend(columns.map(|column| (column as u32, dense[column])).filter(|&(_, to)| to != none));
            return IndexMap::Sparse(SparseMap::new(pairs));
        }
        for (w, &word) in meeting.iter().enumerate() {
            for (bit, out) in dense[w * 64..].iter_mut().take(64).enumerate() {
                if word >> bit & 1 == 0 {
                    *out = none;
                }
            }
        }
        IndexMap::Dense(DenseMap::new(dense, target.len()))
    }
}

/// Whether a sequence holds the wanted tile.
fn wins(params: &Params, sequence: Sequence) -> bool {
    let wanted = params.winning_exponent().map(Sequence::from);
    wanted.is_some_and(|e| (0..16).any(|i| sequence >> (4 * i) & 15 == e))
}

/// The numbers of the bits that are set, ascending.
fn ones(word: u64) -> impl Iterator<Item = usize> {
    std::iter::successors((word != 0).then_some(word), |&rest| {
        let rest = rest & (rest - 1);
        (rest != 0).then_some(rest)
    })
    .map(|rest| rest.trailing_zeros() as usize)
}
