//! Where the columns of rows lead, laid out for the kernels.
//!
//! Rows of values have two more columns than their lane, where index maps lead to that have no column of the target to
//! lead to: the first holds nothing ([`Between::none`]), the second a won game ([`Between::won`]). Rows and maps are
//! padded to whole vectors of [`LANES`], so that loops have no remainder.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::maps::{Between, Pair};
use exact2048_game::patterns::KnownPattern;

use super::COLUMNS_AT_ONCE;

/// Values a vector: rows and maps are padded to multiples of it.
pub const LANES: usize = 16;

/// Number of padding columns that a target row needs after its own.
const PADDING: usize = 2;

/// Length of a row of `columns` values with its padding.
pub fn stride(columns: usize) -> usize {
    (columns + PADDING).next_multiple_of(LANES)
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

/// What exchanges the columns of a lane: all of them take part.
#[derive(Debug)]
pub enum Permutation {
    /// Every column leads to itself.
    Identity,
    /// Where every column leads.
    Of(DenseMap),
}

/// Entry `c` is where column `c` leads, a padding column perhaps. Padded with the first of these to whole vectors.
#[derive(Debug)]
pub struct DenseMap {
    leads_to: Vec<u32>,
    /// All entries are below this.
    bound: usize,
}

/// The pairs (column, where it leads) of the columns that take part, as far as they were asked for.
#[derive(Debug)]
pub struct SparseMap {
    /// Ascending.
    pairs: Vec<Pair>,
    /// How many of them come from the first [`COLUMNS_AT_ONCE`] columns, from the first two times as many, and so on.
    ends: Vec<u32>,
    /// All pairs come from columns below this, and lead to columns below the other.
    source_bound: usize,
    target_bound: usize,
    /// The columns that meet the conditions and were not looked up yet, one bit a column.
    rest: Vec<u64>,
}

impl IndexMap {
    /// The map of a pattern from the columns of one lane to those of another; `None` stands for the pattern that leaves
    /// sequences alone. Cost: about a nanosecond a column; where tiles merge, nothing yet: see [`IndexMap::extend`].
    pub fn new(between: &Between<'_>, pattern: Option<&KnownPattern>) -> Self {
        let Some(pattern) = pattern else { return Self::Identity };
        let meeting = between.meeting(pattern);
        let columns = between.source.len();
        let mut leads_to = vec![0; stride(columns)];
        if between.rearranged(pattern, &mut leads_to[..columns]).is_none() {
            return Self::Sparse(SparseMap::of_sorted(Vec::new(), meeting));
        }
        let none = between.none();
        let taking_part: u32 = meeting.iter().map(|word| word.count_ones()).sum();
        if (taking_part as usize) < columns / 4 {
            let mut pairs = Vec::with_capacity(taking_part as usize);
            for_each_bit(&meeting, |column| {
                if leads_to[column] != none {
                    pairs.push((column as u32, leads_to[column]));
                }
            });
            return Self::Sparse(SparseMap::new(pairs));
        }
        for (leads_to, &meeting) in leads_to.chunks_mut(64).zip(&meeting) {
            if meeting != u64::MAX {
                let columns = leads_to.iter_mut().enumerate();
                columns.filter(|(bit, _)| meeting >> bit & 1 == 0).for_each(|(_, to)| *to = none);
            }
        }
        leads_to[columns..].fill(none);
        Self::Dense(DenseMap::of_padded(leads_to))
    }

    /// Whether the map covers the `wanted` columns, one bit each: see [`IndexMap::extend`].
    pub fn covers(&self, wanted: &[u64]) -> bool {
        match self {
            Self::Identity | Self::Dense(_) => true,
            Self::Sparse(map) => map.rest.iter().zip(wanted).all(|(rest, wanted)| rest & wanted == 0),
        }
    }

    /// Sees to it that the map covers the `wanted` columns, one bit each; the other arguments are those that it was made
    /// with. Where tiles merge few columns take part, and of those many never occur.
    pub fn extend(&mut self, between: &Between<'_>, pattern: Option<&KnownPattern>, wanted: &[u64]) {
        let (Self::Sparse(map), Some(pattern)) = (self, pattern) else { return };
        let new: Vec<u64> = map.rest.iter().zip(wanted).map(|(rest, wanted)| rest & wanted).collect();
        let count: u32 = new.iter().map(|word| word.count_ones()).sum();
        if count == 0 {
            return;
        }
        let mut pairs = std::mem::take(&mut map.pairs);
        let is_first = pairs.is_empty();
        pairs.reserve(count as usize);
        between.pairs(pattern, &new, &mut pairs);
        if !is_first {
            pairs.sort_unstable();
        }
        let rest = map.rest.iter().zip(&new).map(|(rest, new)| rest & !new).collect();
        *map = SparseMap::of_sorted(pairs, rest);
    }
}

impl Permutation {
    /// What a pattern without births, merges and conditions does to the columns of a lane.
    ///
    /// # Panics
    ///
    /// If columns of the two lanes differ, or the pattern has a merge.
    pub fn new(between: &Between<'_>, pattern: Option<&KnownPattern>) -> Self {
        let Some(pattern) = pattern else { return Self::Identity };
        let columns = between.source.len();
        assert_eq!(columns, between.target.len(), "a permutation is of the columns of one lane");
        let mut leads_to = vec![between.none(); stride(columns)];
        let permuted = between.rearranged(pattern, &mut leads_to[..columns]);
        assert!(permuted.is_some(), "no tiles merge in a permutation");
        Self::Of(DenseMap::of_padded(leads_to))
    }
}

impl DenseMap {
    /// A map with the given entries.
    pub fn new(mut leads_to: Vec<u32>, target_columns: usize) -> Self {
        leads_to.resize(stride(leads_to.len()), target_columns as u32);
        Self::of_padded(leads_to)
    }

    fn of_padded(leads_to: Vec<u32>) -> Self {
        let bound = leads_to.iter().max().map_or(0, |&largest| largest as usize + 1);
        Self { leads_to, bound }
    }

    /// Where each column leads, padding included.
    pub fn leads_to(&self) -> &[u32] {
        &self.leads_to
    }

    /// Calls `visit` with each of some vectors of columns and the values that they lead to in `row`.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the innermost loop of the solver: bounds checks halve its speed")]
    pub fn gather<V: Copy>(
        &self,
        row: &[V],
        vectors: impl Iterator<Item = usize>,
        mut visit: impl FnMut(usize, [V; LANES]),
    ) {
        assert!(row.len() >= self.bound, "a row is as long as its map leads");
        let leads_to = self.leads_to.as_chunks::<LANES>().0;
        for vector in vectors {
            // SAFETY: every entry is below `bound`, which is the largest entry plus 1 and is set where the
            // entries are; both are private and never change. `row` has at least `bound` values.
            visit(vector, leads_to[vector].map(|to| unsafe { *row.get_unchecked(to as usize) }));
        }
    }
}

impl SparseMap {
    /// A map with all of its pairs, ascending.
    pub fn new(pairs: Vec<Pair>) -> Self {
        Self::of_sorted(pairs, Vec::new())
    }

    /// The pairs of the columns that were asked for so far, ascending by column.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Those of the columns from a multiple of [`COLUMNS_AT_ONCE`] up to the next.
    pub fn pairs_from(&self, first: usize) -> Pairs<'_> {
        let run = first / COLUMNS_AT_ONCE;
        let start = run.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before));
        let pairs = match (start, self.ends.get(run)) {
            (Some(&start), Some(&end)) => &self.pairs[start as usize..end as usize],
            _ => &[],
        };
        Pairs { pairs, source_bound: self.source_bound, target_bound: self.target_bound }
    }

    fn of_sorted(pairs: Vec<Pair>, rest: Vec<u64>) -> Self {
        let source_bound = pairs.last().map_or(0, |&(last, _)| last as usize + 1);
        let target_bound = pairs.iter().map(|&(_, to)| to as usize + 1).max().unwrap_or(0);
        let ends = (1..=source_bound.div_ceil(COLUMNS_AT_ONCE)).map(|run| {
            pairs.partition_point(|&(column, _)| (column as usize) < run * COLUMNS_AT_ONCE) as u32
        });
        Self { ends: ends.collect(), source_bound, target_bound, pairs, rest }
    }
}

/// Some pairs of a map, which come from columns below a bound and lead to columns below another.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    pairs: &'a [Pair],
    source_bound: usize,
    target_bound: usize,
}

impl Pairs<'_> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Calls `visit` with the value of each column and the value that it leads to.
    #[inline(always)]
    #[allow(unsafe_code, reason = "an inner loop of the solver, with two bounds checks a value")]
    pub fn for_each<V: Copy>(&self, source: &mut [V], target: &[V], mut visit: impl FnMut(&mut V, V)) {
        assert!(source.len() >= self.source_bound && target.len() >= self.target_bound, "rows of the lanes");
        for &(from, to) in self.pairs {
            // SAFETY: all pairs of the map come from columns below `source_bound` and lead to columns below
            // `target_bound`; both were found with the pairs, which never change. Both rows are that long.
            let (from, to) =
                unsafe { (source.get_unchecked_mut(from as usize), *target.get_unchecked(to as usize)) };
            visit(from, to);
        }
    }
}
