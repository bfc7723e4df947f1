//! Columns: the sequences of large exponents of a lane.
//!
//! The columns of lane (k, T, H) are all sequences of `k` exponents of at least `large` whose tiles sum to `T` and
//! whose huge tiles are `H`. Loose stones are among the `k`, with [`MAX_EXPONENT`], and add nothing to `T`. The tiles
//! must also obey the tile bound ([`Params::most_cells_with`]). The set depends only on the parameters and the lane, so
//! it includes sequences that occur in no game. Most of its sequences do occur (`docs/dev/performance.md`).

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::bitset;
use crate::board::{MAX_EXPONENT, exponent_potential};
use crate::endings::{self, Endings, beginning, ending, endings};
use crate::lane::Lane;
use crate::params::Params;
use crate::ranks::ColumnRanks;
use crate::sequence::{Column, Counts, Sequence, arrangements, unpack};
use crate::shape::Shape;

/// Columns of a lane, ordered by their exponents sorted downward and then as sequences.
///
/// So the arrangements of one multiset of exponents are contiguous.
#[derive(Debug)]
pub struct Columns {
    lane: Lane,
    sequences: Vec<Sequence>,
    potential: Vec<u32>,
    groups: Vec<Group>,
    /// Index of each group.
    index: FxHashMap<Counts, u32>,
    /// First column with each beginning, by the index of its group and the beginning. Computed when a merge first
    /// leads to this lane.
    beginnings: OnceLock<FxHashMap<(u32, Sequence), u32>>,
    /// For each pair of places, one bit for each column with equal exponents there. Computed on first use.
    equal: OnceLock<Vec<u64>>,
    /// Shape of each group for patterns without births, and for patterns with births.
    shapes: [OnceLock<Vec<Shape>>; 2],
}

/// Columns with one multiset of exponents.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Exponents, sorted downward.
    pub multiset: Sequence,
    /// First column.
    pub first: u32,
    /// Number of columns.
    pub count: u32,
}

impl Columns {
    /// Lists the columns of a lane. Cost: tens of nanoseconds per column.
    pub fn new(params: &Params, lane: Lane) -> Self {
        let ranks = ColumnRanks::new(params, lane);
        let (mut sequences, mut potential, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for multiset in ranks.multisets() {
            let mut exponents = unpack(multiset, lane.k);
            // The exponents are sorted downward, so loose stones come first.
            let tiles = exponents.iter().skip(params.game().board().loose().into());
            let sum: u64 = tiles.map(|&e| exponent_potential(e)).sum();
            exponents.reverse();
            let first = sequences.len() as u32;
            sequences.extend(arrangements(exponents));
            potential.resize(sequences.len(), sum as u32);
            groups.push(Group { multiset, first, count: sequences.len() as u32 - first });
        }
        let index = groups.iter().enumerate().map(|(i, group)| (Counts::of(group.multiset), i as u32));
        let (index, beginnings, equal) = (index.collect(), OnceLock::new(), OnceLock::new());
        let lane = lane.in_first_sector();
        Self { lane, sequences, potential, groups, index, beginnings, equal, shapes: Default::default() }
    }

    /// Counts the columns of a lane without listing them.
    pub fn count(params: &Params, lane: Lane) -> u64 {
        ColumnRanks::new(params, lane).len()
    }

    /// Lane of the columns, in the first sector. Its other sectors have the same columns.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Sequences of the columns, in order.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Whether the lane has no column.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Φ of the tiles of each sequence.
    pub fn potential(&self) -> &[u32] {
        &self.potential
    }

    /// Groups of columns, in order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the group of a multiset of exponents.
    pub fn group(&self, multiset: Counts) -> Option<&Group> {
        self.index.get(&multiset).map(|&i| &self.groups[i as usize])
    }

    /// Returns a finder of columns by their sequences.
    pub fn finder(&self) -> Finder<'_> {
        let beginnings = self.beginnings.get_or_init(|| {
            let mut beginnings = FxHashMap::default();
            for (i, group) in (0..).zip(&self.groups) {
                let sequences = &self.sequences[group.first as usize..][..group.count as usize];
                let firsts = endings::beginnings(sequences);
                beginnings.extend(firsts.map(|(begins, number)| ((i, begins), group.first + number)));
            }
            beginnings
        });
        let nothing = Counts::default();
        let last = (nothing, self.index.get(&nothing).copied().map(GroupIndex));
        Finder { index: &self.index, beginnings, endings: endings(), last }
    }

    /// Returns the shape of each group.
    pub(crate) fn shapes(&self, births: bool, large: u8) -> &[Shape] {
        self.shapes[usize::from(births)].get_or_init(|| {
            let shape = |group: &Group| Shape::new(births, group.multiset, self.lane.k, large);
            self.groups.iter().map(shape).collect()
        })
    }

    /// Number of words that hold one bit per column.
    pub fn words(&self) -> usize {
        self.len().div_ceil(64)
    }

    /// Returns the columns whose exponents at places `first < second` are equal, one bit per column. Two 32,768s and two
    /// loose stones count as different, because they do not merge.
    pub fn equal_at(&self, first: u8, second: u8) -> &[u64] {
        let (k, words) = (self.lane.k as usize, self.words());
        let pair = |first: usize, second: usize| first * k + second;
        let equal = self.equal.get_or_init(|| {
            let mut bits = vec![0u64; k * k * words];
            for (column, &sequence) in self.sequences.iter().enumerate() {
                let exponent = |i: usize| sequence >> (4 * (k - 1 - i)) & 15;
                let can_merge = |exponent: u64| exponent < u64::from(MAX_EXPONENT);
                for second in 1..k {
                    let merges =
                        |first: usize| exponent(first) == exponent(second) && can_merge(exponent(second));
                    for first in (0..second).filter(|&first| merges(first)) {
                        bitset::set(&mut bits[pair(first, second) * words..], column);
                    }
                }
            }
            bits
        });
        &equal[pair(first as usize, second as usize) * words..][..words]
    }
}

/// Finds columns of a lane by their sequences. The finder first finds the group. Often it is the group of the previous
/// query.
#[derive(Debug)]
pub struct Finder<'a> {
    index: &'a FxHashMap<Counts, u32>,
    beginnings: &'a FxHashMap<(u32, Sequence), u32>,
    endings: &'static Endings,
    /// Multiset of the previous query, and its group.
    last: (Counts, Option<GroupIndex>),
}

/// Number of a group among the groups of its lane.
#[derive(Clone, Copy, Debug)]
pub struct GroupIndex(u32);

impl Finder<'_> {
    /// Returns the group of a multiset; `None` if the lane has no such multiset.
    #[inline]
    pub fn group(&mut self, multiset: Counts) -> Option<GroupIndex> {
        if self.last.0 != multiset {
            self.last = (multiset, self.index.get(&multiset).copied().map(GroupIndex));
        }
        self.last.1
    }

    /// Returns the column of a sequence. The sequence must be an arrangement of the group's multiset. Cost: a few
    /// nanoseconds.
    #[inline]
    pub fn column(&self, group: GroupIndex, sequence: Sequence) -> Option<Column> {
        let first = self.beginnings.get(&(group.0, beginning(sequence)))?;
        Some(Column(u64::from(first + ending(self.endings, sequence))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_sequences_within_the_tile_bound() {
        let params = Params::usual("3x2", "score").large(3).build().unwrap();
        let largest = u32::from(params.largest_exponent());
        for lane in crate::lane::lanes(&params) {
            let columns = Columns::new(&params, lane);
            let mut wanted = Vec::new();
            for code in 0..largest.pow(u32::from(lane.k)) {
                let mut exponents = Vec::new();
                let mut rest = code;
                for _ in 0..lane.k {
                    exponents.push((rest % largest + 1) as u8);
                    rest /= largest;
                }
                let sum: u32 = exponents.iter().map(|&e| 1 << e).sum();
                let bound =
                    |e: u8| exponents.iter().filter(|&&x| x >= e).count() <= params.most_cells_with(e);
                if sum == lane.large_sum && exponents.iter().all(|&e| e >= 3) && (3..=7).all(bound) {
                    wanted.push(exponents.iter().fold(0, |s, &e| s << 4 | u64::from(e)));
                }
            }
            let mut found = columns.sequences().to_vec();
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{lane:?}");
            let mut finder = columns.finder();
            for (i, &s) in columns.sequences().iter().enumerate() {
                let group = finder.group(Counts::of(s)).unwrap();
                assert_eq!(finder.column(group, s), Some(Column(i as u64)));
            }
        }
    }
}
