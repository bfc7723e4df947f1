//! Patterns: the effect of a move or a spawn on the sequences.
//!
//! A [`Pattern`] gives the source of each large tile of the target skeleton, and the pairs of source tiles that must
//! be equal or different. A pattern depends only on the skeletons. Applied to the columns of a lane, it becomes a map
//! from columns to columns ([`crate::maps`]). All rows with that pattern share the map.

use crate::bitset::BitSet;
use crate::board::MAX_EXPONENT;
use crate::columns::Columns;
use crate::sequence::{Column, Counts, Sequence};
use crate::slide::TileSource;

const MERGED: u8 = 0x40;
const BORN: u8 = 0x80;
const NO_ITEM: u8 = 0xff;
const EQUAL: u8 = 0x80;

/// Effect of a transition on the large tiles, in the cell order of the canonical skeletons.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// Source of each large tile of the target: a number, a number with `MERGED`, or `BORN`.
    items: [u8; 16],
    /// For each large tile of the source: 0, or 1 + the number of the tile that it meets, with `EQUAL` if the two
    /// tiles merge.
    meets: [u8; 16],
}

impl Pattern {
    /// Creates a pattern without large tiles, for callers that set its items.
    pub fn empty() -> Self {
        Self { items: [NO_ITEM; 16], meets: [0; 16] }
    }

    /// Creates the pattern that preserves the order of `k` large tiles.
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

    /// Sources of the large tiles.
    pub(crate) fn items(&self) -> Items {
        Items(self.items)
    }

    /// Pairs of source tiles, `first < second`, that must be equal or must differ.
    fn conditions(&self) -> impl Iterator<Item = Condition> {
        let meets = (0u8..).zip(self.meets).filter(|&(_, meets)| meets != 0);
        meets.map(|(first, meets)| Condition {
            first,
            second: (meets & !EQUAL) - 1,
            equal: meets & EQUAL != 0,
        })
    }

    /// Returns the columns whose sequences meet the conditions, one bit per column.
    pub(crate) fn matching_columns(&self, columns: &Columns) -> Vec<u64> {
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

/// Condition on two large tiles of a source that meet.
struct Condition {
    first: u8,
    second: u8,
    equal: bool,
}

/// Sources of the large tiles of a target, without conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Items([u8; 16]);

impl Items {
    /// Whether new large tiles are born.
    pub(crate) fn births(&self) -> bool {
        self.0.contains(&BORN)
    }

    /// Whether large tiles merge.
    pub(crate) fn merges(&self) -> bool {
        self.0.iter().any(|&item| item != NO_ITEM && item & (MERGED | BORN) == MERGED)
    }

    /// Returns the rewriting of sequences of `k` exponents; `born` is the exponent of a new tile.
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

/// Bit operations that apply [`Items`] to a sequence.
#[derive(Default)]
pub(crate) struct Rewriting {
    shifts: [Shift; 16],
    len: usize,
    /// Summand at each place of the target: the exponent of a new tile, 1 for a merge, else 0.
    plus: Sequence,
    /// Shifts that move each exponent that merges to the lowest bits of a sequence.
    merging: [u32; 16],
    merges: usize,
    born: u8,
    births: u8,
}

/// Exponents that move by the same distance; `mask` has their bits in the target.
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

    /// Returns the image of a sequence. Tiles that merge must not have the largest exponent.
    #[inline]
    pub(crate) fn apply(&self, sequence: Sequence) -> Sequence {
        let moved = |shift: &Shift| sequence.rotate_right(shift.distance) & shift.mask;
        self.shifts[..self.len].iter().fold(self.plus, |image, shift| image + moved(shift))
    }

    /// Returns the exponent that merges in a sequence; `None` unless exactly one pair merges.
    #[inline]
    pub(crate) fn only_merging(&self, sequence: Sequence) -> Option<u8> {
        (self.merges == 1).then_some((sequence >> self.merging[0]) as u8 & 15)
    }

    /// Whether an arrangement of a multiset can become an arrangement of a `wanted` multiset. Returns true without a
    /// check unless exactly one pair merges.
    pub(crate) fn can_lead(&self, multiset: Counts, mut wanted: impl FnMut(Counts) -> bool) -> bool {
        let mut merging = (0..MAX_EXPONENT).filter(|&exponent| multiset.of_exponent(exponent) >= 2);
        self.merges != 1 || merging.any(|exponent| wanted(self.with_births(multiset.merged(exponent))))
    }

    /// Returns the image of the multiset of a sequence. Returns `None` if a tile would exceed the largest exponent,
    /// because no reachable board has such a tile.
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
