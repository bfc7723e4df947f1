//! Where columns lead: a pattern applied to the columns of a lane.

use crate::bitset;
use crate::columns::{Columns, Counts, Finder, Sequence};
use crate::params::Params;
use crate::patterns::{KnownPattern, Patterns, Rewriting};

/// The columns of a lane and those of the lane that they lead to. A column leads to one of the target's, to
/// [`Between::none`] where it takes no part, or to [`Between::won`] where the wanted tile is made.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// The parameters of the run.
    pub params: &'a Params,
    /// What is known of patterns.
    pub patterns: &'a Patterns,
    /// The columns.
    pub source: &'a Columns,
    /// Where they lead.
    pub target: &'a Columns,
}

/// A column and where it leads: a [`Column`](crate::columns::Column) of a lane that has tables, or one of the two numbers
/// after the last one, in the 32 bits that kernels read.
pub type Pair = (u32, u32);

/// Where groups have so many columns on average, those that lead elsewhere are left out whole.
const LARGE_GROUP_COLUMNS: usize = 1024;

impl Between<'_> {
    /// Where columns lead that take no part: after the target's last column.
    pub fn none(&self) -> u32 {
        self.target.len() as u32
    }

    /// Where columns lead whose move makes the wanted tile.
    pub fn won(&self) -> u32 {
        self.target.len() as u32 + 1
    }

    /// The columns that meet a pattern's conditions, one bit each. All that take part do; of those that do not, some
    /// might: they would break the tile bound, so that no reachable board has them.
    pub fn meeting(&self, pattern: &KnownPattern) -> Vec<u64> {
        pattern.pattern.meeting(self.source)
    }

    /// Writes where each column leads if conditions are left aside; `leads_to` has an entry a column. Without
    /// a merge a multiset's arrangements lead to those of one other, alike in all lanes. Cost: about a nanosecond a column.
    /// Nothing is written where tiles merge: see [`Between::pairs`].
    pub fn rearranged(&self, pattern: &KnownPattern, leads_to: &mut [u32]) {
        let Some(rearrangement) = &pattern.rearrangement else { return };
        let (items, large) = (pattern.pattern.items(), self.params.large);
        let shapes = self.source.shapes(items.births(), large);
        let maps = rearrangement.maps(items, shapes, self.patterns, large);
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

    /// Where columns lead where tiles merge, of those that take part; ascending. `meeting` are the columns that meet the
    /// pattern's conditions. Cost: some ten nanoseconds for each pair, and two for each of these columns that leads to another
    /// lane.
    pub fn pairs(&self, pattern: &KnownPattern, mut meeting: Vec<u64>) -> Vec<Pair> {
        let rewriting = pattern.pattern.items().on(self.source.lane().k, self.params.large);
        let mut finder = self.target.finder();
        self.leave_out_groups(&rewriting, &mut finder, &mut meeting);
        let mut groups = self.source.groups().iter();
        // The multiset of the column, and where the columns of others begin.
        let (mut multiset, mut end) = (Counts::default(), 0);
        let mut leads_to = |column: usize, sequence: Sequence| {
            while column >= end {
                let group = groups.next()?;
                (multiset, end) = (Counts::of(group.multiset), (group.first + group.count) as usize);
            }
            let Some(group) = finder.group(rewriting.apply_to_counts(multiset, sequence)?) else {
                // Only holes of the product lead out of all lanes: no reachable board breaks the tile bound.
                return self.wins(|| rewriting.apply(sequence)).then(|| self.won());
            };
            Some(finder.column(group, rewriting.apply(sequence))?.0 as u32)
        };
        // Maps are many and are made on several threads: one allocation instead of many is felt.
        let mut pairs = Vec::with_capacity(bitset::ones(&meeting) as usize);
        let sequences = self.source.sequences();
        bitset::for_each_bit(&meeting, |column| {
            pairs.extend(leads_to(column, sequences[column]).map(|to| (column as u32, to)));
        });
        // Maps are kept, and most columns of some lead to another lane.
        pairs.shrink_to_fit();
        pairs
    }

    /// Clears the bits of groups that lead to other lanes than the target, as most do.
    fn leave_out_groups(&self, rewriting: &Rewriting, finder: &mut Finder<'_>, meeting: &mut [u64]) {
        let groups = self.source.groups();
        if self.params.winning_exponent().is_some() || self.source.len() < LARGE_GROUP_COLUMNS * groups.len()
        {
            return;
        }
        for group in groups {
            let multiset = Counts::of(group.multiset);
            if !rewriting.may_lead(multiset, |image| finder.group(image).is_some()) {
                bitset::clear(meeting, group.first as usize..(group.first + group.count) as usize);
            }
        }
    }

    /// Whether a sequence, if the game can be won at all, holds the wanted tile.
    fn wins(&self, sequence: impl FnOnce() -> Sequence) -> bool {
        self.params.winning_exponent().is_some_and(|wanted| {
            let sequence = sequence();
            (0..16).any(|i| (sequence >> (4 * i) & 15) as u8 == wanted)
        })
    }
}

#[cfg(test)]
impl Between<'_> {
    /// Where each column leads under a pattern's conditions.
    pub(crate) fn of_all_columns(&self, pattern: &KnownPattern) -> Vec<u32> {
        let (meeting, mut found) = (self.meeting(pattern), vec![self.none(); self.source.len()]);
        let meets = |column: usize| meeting[column / 64] >> (column % 64) & 1 == 1;
        if pattern.merges() {
            for (column, to) in self.pairs(pattern, meeting.clone()) {
                found[column as usize] = to;
            }
        } else {
            self.rearranged(pattern, &mut found);
            let columns = found.iter_mut().enumerate();
            columns.filter(|&(column, _)| !meets(column)).for_each(|(_, to)| *to = self.none());
        }
        found
    }
}
