//! Index maps in the layout that the kernels read.
//!
//! Rows of values have two padding columns after those of their lane. The first holds nothing ([`ColumnMap::none`]),
//! the second a won game ([`ColumnMap::won`]). An index map leads a column to one of them if no column of the target
//! matches. Rows and maps are padded to whole vectors of [`LANES`], so that loops have no remainder.

mod list;

use std::ops::Range;

use exact2048_game::maps::{ColumnMap, Pair};
use exact2048_game::patterns::KnownPattern;

use super::COLUMNS_AT_ONCE;
pub use list::MapList;

/// Values a vector: rows and maps are padded to multiples of it.
pub const LANES: usize = 16;

/// Number of padding columns that a target row needs after its own.
const PADDING: usize = 2;

/// Length of a row of `columns` values with its padding.
pub fn stride(columns: usize) -> usize {
    (columns + PADDING).next_multiple_of(LANES)
}

/// The target of each column of a source lane, in a target lane.
#[derive(Clone, Copy, Debug)]
pub enum IndexMap<'a> {
    /// Every column leads to the column of the same number.
    Identity,
    /// The target of every column.
    Dense(DenseMap<'a>),
    /// Pairs, for maps in which most columns take no part.
    Sparse(SparseMap<'a>),
}

/// The target of each column of a lane in the same lane. All columns take part.
#[derive(Debug)]
pub struct Permutation {
    /// Padded as a [`DenseMap`]; `None` if every column leads to itself.
    leads_to: Option<Vec<u32>>,
    /// All entries are below this.
    bound: usize,
}

/// Entry `c` is the target of column `c`, perhaps a padding column. More entries, which lead to the first padding
/// column, fill up the last vector.
#[derive(Clone, Copy, Debug)]
pub struct DenseMap<'a> {
    leads_to: &'a [u32],
    /// All entries are below this.
    bound: usize,
}

/// The pairs (column, target) of the columns that take part.
#[derive(Clone, Copy, Debug)]
pub struct SparseMap<'a> {
    /// Ascending.
    pairs: &'a [Pair],
    /// The number of pairs from the first [`COLUMNS_AT_ONCE`] columns, from the first twice as many, and so on. Empty
    /// if all pairs come from the first [`COLUMNS_AT_ONCE`] columns.
    ends: &'a [u32],
    /// All pairs come from columns below `source_bound`, and lead to columns below `target_bound`.
    source_bound: usize,
    target_bound: usize,
}

impl IndexMap<'_> {
    /// Whether no column takes part.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Sparse(map) if map.pairs.is_empty())
    }
}

impl Permutation {
    /// Every column leads to itself.
    pub const IDENTITY: Self = Self { leads_to: None, bound: 0 };

    /// The effect on the columns of a lane of a pattern without births, merges and conditions.
    ///
    /// # Panics
    ///
    /// If the lanes differ in their number of columns, or the pattern has a merge.
    pub fn new(between: &ColumnMap<'_>, pattern: Option<&KnownPattern>) -> Self {
        let Some(pattern) = pattern else { return Self::IDENTITY };
        let columns = between.source.len();
        assert_eq!(columns, between.target.len(), "a permutation is of the columns of one lane");
        assert!(!pattern.merges(), "no tiles merge in a permutation");
        let mut leads_to = vec![between.none(); columns];
        between.write_targets(pattern, &mut leads_to);
        Self::of(leads_to)
    }

    /// The permutation that leads column `c` to `leads_to[c]`.
    pub fn of(mut leads_to: Vec<u32>) -> Self {
        let columns = leads_to.len();
        leads_to.resize(stride(columns), columns as u32);
        Self { bound: bound_of(leads_to.iter().copied()) as usize, leads_to: Some(leads_to) }
    }

    /// The target of every column; `None` if each column leads to itself.
    #[inline]
    pub fn map(&self) -> Option<DenseMap<'_>> {
        self.leads_to.as_ref().map(|leads_to| DenseMap { leads_to, bound: self.bound })
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.leads_to.as_ref().map_or(0, |leads_to| size_of_val(&**leads_to))
    }
}

/// The largest number plus 1, or 0 if there is none.
fn bound_of(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.max().map_or(0, |largest| largest.checked_add(1).expect("no lane has so many columns"))
}

impl<'a> DenseMap<'a> {
    /// The target of each column, padding included.
    pub fn leads_to(&self) -> &'a [u32] {
        self.leads_to
    }

    /// The values of a row that some vectors of the map lead to.
    ///
    /// # Panics
    ///
    /// If the map leads beyond the end of the row.
    #[inline(always)]
    pub fn gather<V: Copy>(&self, row: &'a [V], vectors: Range<usize>) -> Gather<'a, V> {
        assert!(row.len() >= self.bound, "a row is as long as its map leads");
        Gather { leads_to: &self.leads_to.as_chunks::<LANES>().0[vectors], row }
    }
}

/// The values of a row that vectors of a map lead to.
pub struct Gather<'a, V> {
    /// All entries are below the length of the row.
    leads_to: &'a [[u32; LANES]],
    row: &'a [V],
}

impl<V: Copy> Gather<'_, V> {
    /// The values that a vector of the map leads to.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the innermost loop of the solver: bounds checks halve its speed")]
    pub fn vector(&self, number: usize) -> [V; LANES] {
        // SAFETY: every entry is below the map's `bound`, the largest entry plus 1, which was found when the entries
        // were written. Both are private to this module and its list, and do not change while a view of them lives. The
        // row has at least `bound` values. Only `gather` makes a `Gather`, and it checks that.
        self.leads_to[number].map(|to| unsafe { *self.row.get_unchecked(to as usize) })
    }
}

impl<'a> SparseMap<'a> {
    /// The pairs, ascending by column.
    pub fn pairs(&self) -> &'a [Pair] {
        self.pairs
    }

    /// The pairs of the columns from `first`, a multiple of [`COLUMNS_AT_ONCE`], up to the next multiple.
    pub fn pairs_from(&self, first: usize) -> Pairs<'a> {
        let run = first / COLUMNS_AT_ONCE;
        let all = self.pairs.len();
        let end = |run: usize| self.ends.get(run).map_or(all, |&end| end as usize);
        let pairs = &self.pairs[run.checked_sub(1).map_or(0, end)..end(run)];
        Pairs { pairs, source_bound: self.source_bound, target_bound: self.target_bound }
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

    /// The pairs whose columns are marked, one bit a column. They are written to `found`.
    #[inline(always)]
    pub fn of_marked<'b>(&self, marked: &[u64], found: &'b mut Vec<Pair>) -> Pairs<'b> {
        found.resize(self.pairs.len().max(found.len()), [0; 2]);
        let mut count = 0;
        // The loop does not branch, because the processor cannot predict which columns are marked.
        for &pair in self.pairs {
            found[count] = pair;
            count += (marked[pair[0] as usize / 64] >> (pair[0] % 64) & 1) as usize;
        }
        let Self { source_bound, target_bound, .. } = *self;
        Pairs { pairs: &found[..count], source_bound, target_bound }
    }

    /// Calls `visit` for each pair with its column's elements of `source` and `beside`, and the value that it leads to.
    #[inline(always)]
    #[allow(unsafe_code, reason = "an inner loop of the solver, with two bounds checks a value")]
    pub fn for_each<V: Copy, B>(
        &self,
        (source, beside): (&mut [V], &mut [B]),
        target: &[V],
        mut visit: impl FnMut((&mut V, &mut B), V),
    ) {
        assert!(source.len() >= self.source_bound && target.len() >= self.target_bound, "rows of the lanes");
        assert_eq!(source.len(), beside.len(), "both are of the same columns");
        for &[from, to] in self.pairs {
            // SAFETY: all pairs of the map start from columns below `source_bound` and lead to columns below
            // `target_bound`. The list computed both bounds from the pairs. The pairs do not change while a view of
            // them, or the copy of some in `of_marked`, lives. All three slices are at least as long.
            let (from, to) = unsafe {
                let from = from as usize;
                let from = (source.get_unchecked_mut(from), beside.get_unchecked_mut(from));
                (from, *target.get_unchecked(to as usize))
            };
            visit(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::columns::Columns;
    use exact2048_game::pattern::Pattern;
    use exact2048_game::patterns::Patterns;
    use exact2048_game::slide::TileSource;
    use exact2048_game::{Lane, Params};

    /// A spawn after which tiles merge would silently lose values.
    #[test]
    #[should_panic(expected = "no tiles merge in a permutation")]
    fn a_permutation_has_no_merge() {
        let params = Params::usual("2x2", "score").large(3).build().unwrap();
        let patterns = Patterns::default();
        let mut merge = Pattern::empty();
        merge.set_item(0, TileSource::Merged(0));
        merge.set_condition(0, 1, true);
        let known = patterns.known(patterns.intern(&[merge])).pop().flatten();
        let columns = Columns::new(&params, Lane::new(2, 16));
        let between = ColumnMap { params: &params, patterns: &patterns, source: &columns, target: &columns };
        Permutation::new(&between, known.as_deref());
    }
}
