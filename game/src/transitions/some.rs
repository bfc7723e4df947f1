//! Transitions of some rows, copied from the transitions of a larger set. A block copies the transitions of its class.

use super::{Direction, MoveEdge, MoveGroup, Moves, Skeletons, Spawns, SymmetricRow};
use crate::bitset::Number;
use crate::layer::SpawnKind;
use crate::rowset::{RowSet, Slot};
use crate::table::Table;

/// Set of rows and a subset of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SomeRows<'a> {
    /// Full set.
    pub all: &'a RowSet,
    /// Subset of wanted rows.
    pub wanted: &'a RowSet,
}

impl SomeRows<'_> {
    /// Converts a slot of the full set to the slot among the wanted rows; `None` if the row is not wanted.
    #[inline]
    fn slot(&self, of_all: Slot) -> Option<Slot> {
        self.wanted.contains(self.all.row(of_all)).then(|| self.slot_of(of_all))
    }

    /// Converts a slot of the full set to the slot among the wanted rows. The row must be wanted.
    #[inline]
    fn slot_of(&self, of_all: Slot) -> Slot {
        self.wanted.slot(self.all.row(of_all))
    }

    /// Slots of the wanted rows in the full set, ascending.
    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.wanted.iter().map(|row| self.all.slot(row))
    }

    /// Selects the wanted elements of a list that has one element for each slot of the full set.
    pub fn of<T: Copy>(&self, list: &[T]) -> Table<T> {
        self.slots().map(|slot| list[slot.0 as usize]).collect::<Vec<T>>().into()
    }

    /// Selects the properties of the small tiles of the wanted rows.
    pub fn skeletons(&self, all: &Skeletons) -> Skeletons {
        Skeletons { potential: self.of(&all.potential), first_images: self.of(&all.first_images) }
    }

    /// Selects the symmetric rows that are wanted.
    pub fn symmetric(&self, all: &[SymmetricRow]) -> Vec<SymmetricRow> {
        let some = all.iter().filter_map(|row| {
            Some(SymmetricRow { slot: self.slot(row.slot)?, patterns: row.patterns.clone() })
        });
        some.collect()
    }

    /// Selects the spawns in the wanted rows.
    pub fn spawns(&self, all: &Spawns) -> Spawns {
        let (mut start, mut some) = (vec![0], SpawnKind::ALL.map(|_| Vec::new()));
        for slot in self.slots() {
            let slot = slot.0 as usize;
            let edges = all.start[slot] as usize..all.start[slot + 1] as usize;
            for (some, all) in some.iter_mut().zip(&all.edges) {
                some.extend_from_slice(all.get(edges.clone()).unwrap_or_default());
            }
            start.push(start[start.len() - 1] + all.start[slot + 1] - all.start[slot]);
        }
        let patterns = all.patterns.clone();
        Spawns { start: start.into(), edges: some.map(Table::from), patterns }
    }

    /// Selects the moves of the wanted rows. The result may have patterns without edges.
    pub fn moves(&self, all: &Moves) -> Moves {
        some_moves(all, |slot, _| self.wanted.contains(self.all.row(slot)), |slot| self.slot_of(slot))
    }

    /// Selects the moves of the wanted rows that `is_made` accepts, by slot among the wanted rows and direction. The
    /// result may have patterns without edges.
    pub fn select_moves(&self, all: &Moves, is_made: impl Fn(Slot, Direction) -> bool) -> Moves {
        let mut made = vec![0u8; self.all.len()];
        for (slot, of_all) in (0..).map(Slot).zip(self.slots()) {
            made[of_all.index()] = (0..4).fold(0, |set, to| set | u8::from(is_made(slot, to)) << to);
        }
        some_moves(all, |slot, to| made[slot.index()] >> to & 1 == 1, |slot| self.slot_of(slot))
    }
}

/// Selects the moves that `keeps` accepts by slot and direction, and maps their slots by `slot`. The result may have
/// patterns without edges.
pub(super) fn some_moves(
    all: &Moves,
    keeps: impl Fn(Slot, Direction) -> bool,
    slot: impl Fn(Slot) -> Slot,
) -> Moves {
    let mut some = Vec::new();
    let groups = all.groups.iter().map(|group| {
        let (mut edges, mut ends) = (Vec::new(), Vec::with_capacity(group.ends.len()));
        for of_pattern in group.edges_of(0..group.patterns.len()) {
            if some.len() < of_pattern.len() {
                some.resize(of_pattern.len(), MoveEdge::default());
            }
            // A branch would often be mispredicted, because kept edges look random. So the loop writes every edge, and
            // the next edge overwrites an edge that is not kept.
            let mut kept = 0;
            for &edge in of_pattern {
                some[kept] = edge;
                kept += usize::from(keeps(edge.from, edge.direction()));
            }
            edges.extend(some[..kept].iter().map(|edge| edge.moved_to_slot(slot(edge.from))));
            ends.push(edges.len() as u32);
        }
        MoveGroup { patterns: group.patterns.clone(), ends, edges: edges.into(), ..*group }
    });
    let won = all.won_rows.iter().filter(|&&(slot, direction)| keeps(slot, direction));
    let won_rows = won.map(|&(from, direction)| (slot(from), direction));
    Moves { groups: groups.collect(), won_rows: won_rows.collect() }
}
