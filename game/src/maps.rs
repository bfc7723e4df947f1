//! Where columns lead: a pattern applied to the columns of a lane.

use crate::bitset;
use crate::columns::{Column, Columns};
use crate::params::Params;
use crate::patterns::{KnownPattern, Patterns};

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

/// A column and where it leads: [`Column`]s of lanes that have tables, or the two numbers after the last one, in the 32 bits
/// that kernels read.
pub type Pair = (u32, u32);

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
            match self.target.group(shape.actual(map.target)) {
                Some(to) => {
                    out.iter_mut().zip(&map.leads_to).for_each(|(out, number)| *out = to.first + number);
                }
                None => out.fill(self.none()),
            }
        }
    }

    /// Where columns lead where tiles merge, of those that take part; ascending. `meeting` are the columns that meet the
    /// pattern's conditions. Cost: some tens of nanoseconds for each of these.
    pub fn pairs(&self, pattern: &KnownPattern, meeting: &[u64]) -> Vec<Pair> {
        let (items, k) = (pattern.pattern.items(), self.source.lane().k);
        let leads_to = |column: usize| {
            let image = items.apply(self.source.sequences()[column], k, self.params.large)?;
            match self.target.column(image) {
                Some(Column(to)) => Some(to as u32),
                None if wins(self.params, image) => Some(self.won()),
                // Only holes of the product lead out of it: no reachable board breaks the tile bound.
                None => None,
            }
        };
        // Maps are many and are made on several threads: one allocation instead of many is felt.
        let mut pairs = Vec::with_capacity(bitset::ones(meeting) as usize);
        bitset::for_each_bit(meeting, |column| {
            pairs.extend(leads_to(column).map(|to| (column as u32, to)));
        });
        pairs
    }
}

#[cfg(test)]
impl Between<'_> {
    /// Where each column leads under a pattern's conditions.
    pub(crate) fn of_all_columns(&self, pattern: &KnownPattern) -> Vec<u32> {
        let (meeting, mut found) = (self.meeting(pattern), vec![self.none(); self.source.len()]);
        let meets = |column: usize| meeting[column / 64] >> (column % 64) & 1 == 1;
        if pattern.merges() {
            for (column, to) in self.pairs(pattern, &meeting) {
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

/// Whether a sequence holds the wanted tile.
fn wins(params: &Params, sequence: u64) -> bool {
    let wanted = params.winning_exponent().map(u64::from);
    wanted.is_some_and(|e| (0..16).any(|i| sequence >> (4 * i) & 15 == e))
}
