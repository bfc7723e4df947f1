//! Targets of columns: a pattern applied to the columns of a lane.

use crate::bitset;
use crate::columns::{Columns, Finder, GroupIndex};
use crate::params::Params;
use crate::pattern::Rewriting;
use crate::patterns::{KnownPattern, Patterns};
use crate::sequence::{Counts, Sequence};

/// Columns of a source lane and of a target lane.
///
/// Each source column has a target. If the move makes the winning tile, the target is [`ColumnMap::won`]. A column
/// takes no part if it breaks a condition of the pattern or leads to another lane. Then its target is
/// [`ColumnMap::none`].
#[derive(Clone, Copy, Debug)]
pub struct ColumnMap<'a> {
    /// Parameters of the run.
    pub params: &'a Params,
    /// Interned patterns.
    pub patterns: &'a Patterns,
    /// Columns of the source lane.
    pub source: &'a Columns,
    /// Columns of the target lane.
    pub target: &'a Columns,
}

/// A source column and its target, in 32 bits each, which is the form that kernels read.
///
/// The target is a [`Column`](crate::sequence::Column) of a lane that has tables, or one of the two numbers after that
/// lane's last column.
pub type Pair = [u32; 2];

/// Smallest mean number of columns per group at which groups that lead to other lanes are skipped as a whole.
const LARGE_GROUP_COLUMNS: usize = 1024;

impl ColumnMap<'_> {
    /// Target of columns that take no part: the number after the target's last column.
    pub fn none(&self) -> u32 {
        self.target.len() as u32
    }

    /// Target of columns whose move makes the winning tile.
    pub fn won(&self) -> u32 {
        self.target.len() as u32 + 1
    }

    /// Returns the columns that meet a pattern's conditions, one bit each.
    ///
    /// Every column that takes part meets the conditions. Some other columns also meet them, but lead to another lane
    /// or break the tile bound. No reachable board breaks the tile bound.
    pub fn matching_columns(&self, pattern: &KnownPattern) -> Vec<u64> {
        pattern.pattern.matching_columns(self.source)
    }

    /// Writes the target of each column to `leads_to`, which has one entry per column. Ignores conditions.
    ///
    /// Without a merge, the arrangements of a multiset lead to the arrangements of one other multiset, in the same way
    /// in all lanes. For a pattern with merges, this method writes nothing; see [`ColumnMap::for_each_pair`]. Cost:
    /// about a nanosecond per column.
    pub fn write_targets(&self, pattern: &KnownPattern, leads_to: &mut [u32]) {
        let Some(rearrangement) = &pattern.rearrangement else { return };
        let (items, large) = (pattern.pattern.items(), self.params.split().large());
        let shapes = self.source.shapes(items.births(), large);
        let maps = rearrangement.maps(items, shapes, self.patterns.cache(), large);
        for ((group, shape), map) in self.source.groups().iter().zip(shapes).zip(&maps) {
            let out = &mut leads_to[group.first as usize..][..group.count as usize];
            match self.target.group(Counts::of(shape.actual(map.target))) {
                Some(to) => {
                    out.iter_mut().zip(&map.leads_to).for_each(|(out, number)| *out = to.first + number);
                }
                None => out.fill(self.none()),
            }
        }
    }

    /// Visits the columns that take part in a pattern with merges, ascending, each with its target.
    ///
    /// `matching_columns` holds the columns that meet the pattern's conditions. Cost: about ten nanoseconds for each
    /// pair, and two for each column of `matching_columns` that leads to another lane.
    pub fn for_each_pair(
        &self,
        pattern: &KnownPattern,
        mut matching_columns: Vec<u64>,
        mut visit: impl FnMut(Pair),
    ) {
        let rewriting = pattern.pattern.items().on(self.source.lane().k, self.params.split().large());
        let mut finder = self.target.finder();
        self.leave_out_groups(&rewriting, &mut finder, &mut matching_columns);
        let mut groups = self.source.groups().iter();
        // The multiset of the column, and the first column of the next multiset.
        let (mut multiset, mut end) = (Counts::default(), 0);
        // Target groups already found for this multiset, by the only exponent that merges.
        let mut known: [Option<Option<GroupIndex>>; 16] = [None; 16];
        let mut leads_to = |column: usize, sequence: Sequence| {
            while column >= end {
                let group = groups.next()?;
                (multiset, end) = (Counts::of(group.multiset), (group.first + group.count) as usize);
                known = [None; 16];
            }
            let mut find = || finder.group(rewriting.apply_to_counts(multiset, sequence)?);
            let group = match rewriting.only_merging(sequence) {
                Some(exponent) => *known[exponent as usize].get_or_insert_with(find),
                None => find(),
            };
            let Some(group) = group else {
                // No reachable board breaks the tile bound, so only holes lead out of all lanes.
                return self.wins(|| rewriting.apply(sequence)).then(|| self.won());
            };
            Some(finder.column(group, rewriting.apply(sequence))?.0 as u32)
        };
        let sequences = self.source.sequences();
        bitset::for_each_bit(&matching_columns, |column| {
            if let Some(to) = leads_to(column, sequences[column]) {
                visit([column as u32, to]);
            }
        });
    }

    /// Clears the bits of groups that do not lead to the target lane. Most groups do not lead there. Does nothing if
    /// the objective has a winning tile, or if the groups are small.
    fn leave_out_groups(&self, rewriting: &Rewriting, finder: &mut Finder<'_>, matching_columns: &mut [u64]) {
        let groups = self.source.groups();
        if self.params.game().winning_exponent().is_some()
            || self.source.len() < LARGE_GROUP_COLUMNS * groups.len()
        {
            return;
        }
        for group in groups {
            let multiset = Counts::of(group.multiset);
            if !rewriting.can_lead(multiset, |image| finder.group(image).is_some()) {
                bitset::clear(matching_columns, group.first as usize..(group.first + group.count) as usize);
            }
        }
    }

    /// Whether the objective has a winning tile and the sequence holds it. Computes the sequence only if the objective
    /// has a winning tile.
    fn wins(&self, sequence: impl FnOnce() -> Sequence) -> bool {
        self.params.game().winning_exponent().is_some_and(|wanted| {
            let sequence = sequence();
            (0..16).any(|i| (sequence >> (4 * i) & 15) as u8 == wanted)
        })
    }
}

#[cfg(test)]
impl ColumnMap<'_> {
    /// Returns the target of each column under a pattern's conditions.
    pub(crate) fn of_all_columns(&self, pattern: &KnownPattern) -> Vec<u32> {
        let (matching_columns, mut found) =
            (self.matching_columns(pattern), vec![self.none(); self.source.len()]);
        let meets = |column: usize| matching_columns[column / 64] >> (column % 64) & 1 == 1;
        if pattern.merges() {
            self.for_each_pair(pattern, matching_columns.clone(), |[column, to]| found[column as usize] = to);
        } else {
            self.write_targets(pattern, &mut found);
            let columns = found.iter_mut().enumerate();
            columns.filter(|&(column, _)| !meets(column)).for_each(|(_, to)| *to = self.none());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Precision;
    use crate::lane::lanes;
    use crate::pattern::Pattern;
    use crate::sequence::unpack;
    use crate::slide::TileSource;

    /// The first two of seven tiles merge.
    fn merge() -> Pattern {
        let mut pattern = Pattern::empty();
        pattern.set_item(0, TileSource::Merged(0));
        (1..6).for_each(|item| pattern.set_item(item, TileSource::Plain(item as u8 + 1)));
        pattern.set_condition(0, 1, true);
        pattern
    }

    /// Some lanes of this board have groups with thousands of columns that lead to several lanes.
    #[test]
    fn pairs_of_large_groups_are_those_found_column_by_column() {
        let params =
            Params::usual("4x3", "score").precision(Precision::Bits64).large(4).huge(9).build().unwrap();
        let patterns = Patterns::default();
        let pattern = patterns.known(patterns.intern(&[merge()])).pop().flatten().unwrap();
        let all = lanes(&params);
        let of_seven = all.iter().filter(|lane| lane.k == 7).map(|&lane| Columns::new(&params, lane));
        let has_large_groups = |columns: &Columns| {
            columns.groups().len() > 1 && columns.len() >= LARGE_GROUP_COLUMNS * columns.groups().len()
        };
        let (mut several, mut found) = (0, 0);
        for source in of_seven.filter(has_large_groups).step_by(20) {
            let mut targets = 0;
            for &lane in all.iter().filter(|lane| lane.k == 6 && lane.large_sum == source.lane().large_sum) {
                let target = Columns::new(&params, lane);
                let wanted = merged_one_by_one(&source, &target);
                let (params, patterns) = (&params, &patterns);
                let between = ColumnMap { params, patterns, source: &source, target: &target };
                let mut pairs = Vec::new();
                between.for_each_pair(&pattern, between.matching_columns(&pattern), |pair| pairs.push(pair));
                assert_eq!(pairs, wanted, "{lane:?}");
                targets += usize::from(!wanted.is_empty());
                found += wanted.len();
            }
            several += usize::from(targets > 1);
        }
        assert!(several > 1 && found > 1000, "{several} lanes with several targets, {found} pairs");
    }

    /// Computes the pairs of [`merge`] one by one.
    fn merged_one_by_one(source: &Columns, target: &Columns) -> Vec<Pair> {
        let sequences = (0..).zip(target.sequences());
        let numbers: BTreeMap<Vec<u8>, u32> =
            sequences.map(|(number, &sequence)| (unpack(sequence, 6), number)).collect();
        let merged = |(column, &sequence): (u32, &Sequence)| {
            let mut exponents = unpack(sequence, 7);
            let first = exponents.remove(0);
            let merges = exponents[0] == first;
            exponents[0] += 1;
            merges.then(|| numbers.get(&exponents)).flatten().map(|&to| [column, to])
        };
        (0..).zip(source.sequences()).filter_map(merged).collect()
    }
}
