//! Patterns: what a move or a spawn does to the sequences.
//!
//! A [`Pattern`] says, for each large tile of the target skeleton, which large tile of the source it
//! is, and which pairs of the source must be equal or different for that to happen. It is a property
//! of skeletons alone. Applied to the columns of a lane it becomes a map from columns to columns
//! ([`crate::maps`]), which all rows with that pattern share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::bitset::BitSet;
use crate::board::MAX_EXPONENT;
use crate::columns::{Column, Columns, Counts, Sequence};
use crate::shapes::{Arrangements, Rearrangement};
use crate::slide::TileSource;

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
    pub fn set_item(&mut self, item: usize, source: TileSource) {
        self.items[item] = match source {
            TileSource::Plain(from) => from,
            TileSource::Merged(from) => MERGED | from,
            TileSource::Born => BORN,
        };
    }

    /// Requires that large tile `first` of the source equals (or differs from) `second`.
    pub fn set_condition(&mut self, first: u8, second: u8, equal: bool) {
        self.meets[first as usize] = (second + 1) | if equal { EQUAL } else { 0 };
    }

    /// Where the large tiles come from.
    pub(crate) fn items(&self) -> Items {
        Items(self.items)
    }

    /// The pairs of source tiles, `first < second`, that have to be equal, or to differ.
    fn conditions(&self) -> impl Iterator<Item = Condition> {
        let meets = (0u8..).zip(self.meets).filter(|&(_, meets)| meets != 0);
        meets.map(|(first, meets)| Condition {
            first,
            second: (meets & !EQUAL) - 1,
            equal: meets & EQUAL != 0,
        })
    }

    /// The columns whose sequences meet the conditions, one bit a column.
    pub(crate) fn meeting(&self, columns: &Columns) -> Vec<u64> {
        let mut bits = BitSet::<Column>::below(columns.len()).into_words();
        for condition in self.conditions() {
            let equal = columns.equal_at(condition.first, condition.second);
            if condition.equal {
                bits.iter_mut().zip(equal).for_each(|(b, e)| *b &= e);
            } else {
                bits.iter_mut().zip(equal).for_each(|(b, e)| *b &= !e);
            }
        }
        bits
    }
}

/// Two large tiles of a source that meet.
struct Condition {
    first: u8,
    second: u8,
    equal: bool,
}

/// Where the large tiles of a target come from, without the conditions under which they do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Items([u8; 16]);

impl Items {
    /// Whether large tiles are born.
    pub(crate) fn births(&self) -> bool {
        self.0.contains(&BORN)
    }

    /// Whether large tiles merge.
    pub(crate) fn merges(&self) -> bool {
        self.0.iter().any(|&item| item != NO_ITEM && item & (MERGED | BORN) == MERGED)
    }

    /// What is done to sequences of `k` exponents; `born` is the exponent of a new tile.
    pub(crate) fn on(&self, k: u8, born: u8) -> Rewriting {
        let items = self.0.iter().take_while(|&&item| item != NO_ITEM);
        let mut rewriting = Rewriting { born, ..Rewriting::default() };
        for (&item, place) in items.clone().zip((0..items.count() as u32).rev()) {
            let shift = |source: u8| 4 * u32::from(k - 1 - source);
            let to = 4 * place;
            match item {
                BORN => {
                    rewriting.births += 1;
                    rewriting.plus |= Sequence::from(born) << to;
                }
                _ if item & MERGED != 0 => {
                    let from = shift(item & !MERGED);
                    rewriting.merging[rewriting.merges] = from;
                    rewriting.merges += 1;
                    rewriting.plus |= 1 << to;
                    rewriting.shift(from, to);
                }
                _ => rewriting.shift(shift(item), to),
            }
        }
        rewriting
    }
}

/// How the sequences that [`Items`] lead to are put together.
#[derive(Default)]
pub(crate) struct Rewriting {
    shifts: [Shift; 16],
    len: usize,
    /// The exponents of new tiles, and ones for tiles that merge, at their places in the target.
    plus: Sequence,
    /// The shifts that bring each exponent that merges to the lowest bits of a sequence.
    merging: [u32; 16],
    merges: usize,
    born: u8,
    births: u8,
}

/// The exponents that move by the same distance: `mask` has their bits in the target.
#[derive(Clone, Copy, Default)]
struct Shift {
    distance: u32,
    mask: Sequence,
}

impl Rewriting {
    /// Moves the exponent at bit `from` to bit `to`.
    fn shift(&mut self, from: u32, to: u32) {
        let distance = from.wrapping_sub(to) % Sequence::BITS;
        let known = self.shifts[..self.len].iter().position(|shift| shift.distance == distance);
        let at = known.unwrap_or(self.len);
        self.len = self.len.max(at + 1);
        self.shifts[at].distance = distance;
        self.shifts[at].mask |= 15 << to;
    }

    /// What becomes of a sequence. Tiles that merge must not be of the largest exponent.
    #[inline]
    pub(crate) fn apply(&self, sequence: Sequence) -> Sequence {
        let moved = |shift: &Shift| sequence.rotate_right(shift.distance) & shift.mask;
        self.shifts[..self.len].iter().fold(self.plus, |image, shift| image + moved(shift))
    }

    /// The exponent that merges in a sequence, where exactly one pair does.
    #[inline]
    pub(crate) fn only_merging(&self, sequence: Sequence) -> Option<u8> {
        (self.merges == 1).then_some((sequence >> self.merging[0]) as u8 & 15)
    }

    /// Whether some arrangement of a multiset becomes one that is `wanted`. Says so without a check unless exactly one
    /// pair merges.
    pub(crate) fn may_lead(&self, multiset: Counts, mut wanted: impl FnMut(Counts) -> bool) -> bool {
        let mut merging = (0..MAX_EXPONENT).filter(|&exponent| multiset.of_exponent(exponent) >= 2);
        self.merges != 1 || merging.any(|exponent| wanted(self.with_births(multiset.merged(exponent))))
    }

    /// What becomes of the multiset of a sequence. `None` where a tile would not fit: such a tile is on no reachable board.
    #[inline]
    pub(crate) fn apply_to_counts(&self, multiset: Counts, sequence: Sequence) -> Option<Counts> {
        let mut image = multiset;
        for shift in &self.merging[..self.merges] {
            let exponent = (sequence >> shift) as u8 & 15;
            if exponent == MAX_EXPONENT {
                return None;
            }
            image = image.merged(exponent);
        }
        Some(self.with_births(image))
    }

    fn with_births(&self, multiset: Counts) -> Counts {
        (0..self.births).fold(multiset, |multiset, _| multiset.with(self.born))
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
    /// About what takes the memory that [`Patterns::forget_shapes`] frees.
    shape_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct PatternTable {
    ids: FxHashMap<Pattern, PatternId>,
    patterns: Vec<Arc<KnownPattern>>,
    rearrangements: FxHashMap<Items, Arc<Rearrangement>>,
}

/// A pattern, with what it does to shapes as far as that was worked out.
#[derive(Debug)]
pub struct KnownPattern {
    pub(crate) pattern: Pattern,
    /// Shared by all patterns with the same items; `None` where tiles merge.
    pub(crate) rearrangement: Option<Arc<Rearrangement>>,
}

impl KnownPattern {
    /// Whether large tiles merge: few columns take part then.
    pub fn merges(&self) -> bool {
        self.rearrangement.is_none()
    }
}

impl Patterns {
    /// The numbers of patterns, new ones where they are seen for the first time. Which number a
    /// pattern gets depends on who asks first; no result does.
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

    /// The patterns of some numbers; none for [`PatternId::IDENTITY`].
    pub fn known(&self, ids: impl IntoIterator<Item = PatternId>) -> Vec<Option<Arc<KnownPattern>>> {
        let table = self.table.lock();
        let known = |id: PatternId| Some(Arc::clone(&table.patterns[id.0.checked_sub(1)? as usize]));
        ids.into_iter().map(known).collect()
    }

    /// The arrangements of a multiset of exponents, sorted downward.
    pub(crate) fn arrangements(&self, multiset: Sequence) -> Arc<Arrangements> {
        let mut known = self.arrangements.lock();
        let arrangements = known.entry(multiset).or_insert_with(|| {
            let made = Arrangements::new(multiset);
            self.count_shape_bytes(made.heap_bytes());
            Arc::new(made)
        });
        Arc::clone(arrangements)
    }

    /// Notes that so many bytes more are kept about shapes.
    pub(crate) fn count_shape_bytes(&self, bytes: usize) {
        self.shape_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// About how many bytes are kept about shapes.
    pub fn shape_bytes(&self) -> usize {
        self.shape_bytes.load(Ordering::Relaxed)
    }

    /// Drops what is kept about shapes; it is made again where it is needed.
    pub fn forget_shapes(&self) {
        self.shape_bytes.store(0, Ordering::Relaxed);
        self.table.lock().rearrangements.values().for_each(|rearrangement| rearrangement.forget());
        self.arrangements.lock().clear();
    }
}
