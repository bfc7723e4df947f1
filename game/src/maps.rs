//! Where columns lead: a pattern applied to the columns of a lane.

use std::ops::Range;

use crate::columns::{Columns, Group};
use crate::params::Params;
use crate::patterns::{Effect, KnownPattern, Patterns};
use crate::shapes::Squeeze;

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

/// A column and where it leads.
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
    /// `None`, and nothing is written, where tiles merge: see [`Between::pairs`].
    pub fn rearranged(&self, pattern: &KnownPattern, leads_to: &mut [u32]) -> Option<()> {
        let Effect::Rearranges(rearrangement) = &pattern.effect else { return None };
        let (items, large) = (pattern.pattern.items(), self.params.large);
        let shapes = self.source.shapes(Squeeze::of(items), large);
        let maps = rearrangement.maps(items, shapes, self.patterns, large);
        for ((group, shape), map) in self.source.groups().iter().zip(shapes).zip(&maps) {
            let out = &mut leads_to[group.first as usize..][..group.count as usize];
            match shape.actual(map.target).and_then(|multiset| self.target.group(multiset)) {
                Some(to) => {
                    out.iter_mut().zip(&map.leads_to).for_each(|(out, number)| *out = to.first + number);
                }
                None => out.fill(self.none()),
            }
        }
        Some(())
    }

    /// Adds where each of the `wanted` columns leads that takes part, one bit a column, where tiles merge; ascending. Cost:
    /// about a nanosecond for each that would take part.
    pub fn pairs(&self, pattern: &KnownPattern, wanted: &[u64], pairs: &mut Vec<Pair>) {
        let Effect::Merges(merging) = &pattern.effect else { return };
        let (items, large) = (pattern.pattern.items(), self.params.large);
        let (shapes, meeting) = (self.source.shapes(Squeeze::of(items), large), self.meeting(pattern));
        let meeting = |group: usize| {
            let Group { first, count, .. } = self.source.groups()[group];
            ones_in(&meeting, first..first + count).map(move |column| column - first)
        };
        let maps = merging.maps(items, shapes, meeting, self.patterns, large);
        let mut first_of = Vec::new();
        for ((group, shape), map) in self.source.groups().iter().zip(shapes).zip(&maps) {
            first_of.clear();
            first_of.extend(map.targets.iter().map(|&target| {
                let multiset = shape.actual(target)?;
                match self.target.group(multiset) {
                    Some(to) => Some(Leads::To(to.first)),
                    None if wins(self.params, multiset) => Some(Leads::Won),
                    // Only holes of the product lead out of it: no reachable board breaks the tile bound.
                    None => None,
                }
            }));
            pairs.extend(map.pairs.iter().filter_map(|pair| {
                let column = group.first + pair.from;
                let is_wanted = wanted[column as usize / 64] >> (column % 64) & 1 == 1;
                let leads = first_of[pair.target as usize].filter(|_| is_wanted)?;
                Some((
                    column,
                    match leads {
                        Leads::To(first) => first + pair.to,
                        Leads::Won => self.won(),
                    },
                ))
            }));
        }
    }
}

#[cfg(test)]
impl Between<'_> {
    /// Where each column leads under a pattern's conditions.
    pub(crate) fn of_all_columns(&self, pattern: &KnownPattern) -> Vec<u32> {
        let (meeting, mut found) = (self.meeting(pattern), vec![self.none(); self.source.len()]);
        let meets = |column: usize| meeting[column / 64] >> (column % 64) & 1 == 1;
        if self.rearranged(pattern, &mut found).is_some() {
            let columns = found.iter_mut().enumerate();
            columns.filter(|&(column, _)| !meets(column)).for_each(|(_, to)| *to = self.none());
        } else {
            // In two halves, as a task and a later one may ask.
            let mut pairs = Vec::new();
            for wanted in [0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa] {
                self.pairs(pattern, &vec![wanted; meeting.len()], &mut pairs);
            }
            for (column, to) in pairs {
                assert!(meets(column as usize), "those that take part meet the conditions");
                found[column as usize] = to;
            }
        }
        found
    }
}

/// Where the columns of a multiset lead.
#[derive(Clone, Copy)]
enum Leads {
    /// To columns from this one on.
    To(u32),
    Won,
}

/// The bits of a range that are set, ascending.
fn ones_in(words: &[u64], range: Range<u32>) -> impl Iterator<Item = u32> {
    let (first, last) = (range.start / 64, range.end.saturating_sub(1) / 64);
    (first..=last).flat_map(move |word| {
        let mut rest = words.get(word as usize).copied().unwrap_or(0);
        if word == first {
            rest &= u64::MAX << (range.start % 64);
        }
        if word == last {
            rest &= u64::MAX >> (63 - (range.end.wrapping_sub(1)) % 64);
        }
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| word * 64 + rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(bit)
        })
    })
}

/// Whether a sequence holds the wanted tile.
fn wins(params: &Params, sequence: u64) -> bool {
    let wanted = params.winning_exponent().map(u64::from);
    wanted.is_some_and(|e| (0..16).any(|i| sequence >> (4 * i) & 15 == e))
}
