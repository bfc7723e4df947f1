//! Transitions of some rows, from those of more: what was made once for a class is taken over for the rows of a block.

use super::{MoveGroup, Moves, Skeletons, Spawns, SymmetricRow};
use crate::rowset::{RowSet, Slot};
use crate::table::Table;

/// Some rows of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct SomeRows<'a> {
    /// The set.
    pub all: &'a RowSet,
    /// Those of it that are wanted.
    pub wanted: &'a RowSet,
}

impl SomeRows<'_> {
    /// The slot among the wanted rows of what is in a slot of the set.
    #[inline]
    fn slot(&self, of_all: Slot) -> Option<Slot> {
        let row = self.all.row(of_all);
        self.wanted.contains(row).then(|| self.wanted.slot(row))
    }

    /// The slots of the set that are wanted, ascending.
    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.wanted.iter().map(|row| self.all.slot(row))
    }

    /// The wanted elements of a list that has one element for each slot of the set.
    pub fn of<T: Copy>(&self, list: &[T]) -> Table<T> {
        self.slots().map(|slot| list[slot.0 as usize]).collect::<Vec<T>>().into()
    }

    /// The small tiles of the wanted rows.
    pub fn skeletons(&self, all: &Skeletons) -> Skeletons {
        Skeletons { potential: self.of(&all.potential), first_images: self.of(&all.first_images) }
    }

    /// Those of the symmetric rows that are wanted.
    pub fn symmetric(&self, all: &[SymmetricRow]) -> Vec<SymmetricRow> {
        let some = all.iter().filter_map(|row| {
            Some(SymmetricRow { slot: self.slot(row.slot)?, patterns: row.patterns.clone() })
        });
        some.collect()
    }

    /// The spawns in the wanted rows.
    pub fn spawns(&self, all: &Spawns) -> Spawns {
        let (mut start, mut twos, mut fours) = (vec![0], Vec::new(), Vec::new());
        for slot in self.slots() {
            let slot = slot.0 as usize;
            let edges = all.start[slot] as usize..all.start[slot + 1] as usize;
            twos.extend_from_slice(all.twos.get(edges.clone()).unwrap_or_default());
            fours.extend_from_slice(all.fours.get(edges).unwrap_or_default());
            start.push(start[start.len() - 1] + all.start[slot + 1] - all.start[slot]);
        }
        let patterns = all.patterns.clone();
        Spawns { start: start.into(), twos: twos.into(), fours: fours.into(), patterns }
    }

    /// The moves of the wanted rows. Patterns may have none.
    pub fn moves(&self, all: &Moves) -> Moves {
        let groups = all.groups.iter().map(|group| {
            let (mut edges, mut ends) = (Vec::new(), Vec::with_capacity(group.ends.len()));
            for of_pattern in group.edges_of(0..group.patterns.len()) {
                let some =
                    of_pattern.iter().filter_map(|&edge| Some(edge.moved_to_slot(self.slot(edge.from)?)));
                edges.extend(some);
                ends.push(edges.len() as u32);
            }
            MoveGroup { patterns: group.patterns.clone(), ends, edges: edges.into(), ..*group }
        });
        let won = all.won_rows.iter().filter_map(|&(slot, direction)| Some((self.slot(slot)?, direction)));
        Moves { groups: groups.collect(), won_rows: won.collect() }
    }
}
