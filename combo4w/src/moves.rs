//! The reachable fields of combos, and their successors.

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

use crate::drops::{self, Drops};
use crate::field::Field;
use crate::piece::{PIECES, Piece};

/// Number of a field.
pub type FieldId = usize;

/// All fields that a combo can reach from a first field, and their successors.
///
/// A *placement* is a field, a piece, and the field after the drop. Every placement fills at least one row.
#[derive(Clone, Debug)]
pub struct Placements {
    fields: Vec<Field>,
    by_field: FxHashMap<Field, FieldId>,
    next: Vec<[Vec<FieldId>; 7]>,
}

/// Error of a first field from which a combo can reach too many fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected at most {most} filled cells, found {0}, which lead to too many fields", most = Placements::MOST_CELLS)]
pub struct TooManyCells(u32);

impl Placements {
    /// Largest number of filled cells of a first field. No later field has more filled cells or more rows.
    pub const MOST_CELLS: u32 = 8;

    /// Finds all fields reachable from a first field. Numbers the fields in the order of discovery; the first has number 0.
    ///
    /// # Errors
    ///
    /// If the field has more than [`Self::MOST_CELLS`] filled cells.
    pub fn from_field(first: Field, drops: Drops) -> Result<Self, TooManyCells> {
        if first.cells() > Self::MOST_CELLS {
            return Err(TooManyCells(first.cells()));
        }
        let mut moves =
            Self { fields: vec![first], by_field: FxHashMap::from_iter([(first, 0)]), next: Vec::new() };
        while moves.next.len() < moves.fields.len() {
            let field = moves.fields[moves.next.len()];
            let next = PIECES.map(|piece| {
                let resting = drops::resting(field, piece, drops);
                let mut next: Vec<FieldId> = resting
                    .into_iter()
                    .filter_map(|cells| field.cleared_with(cells))
                    .map(|field| moves.add(field))
                    .collect();
                next.sort_unstable();
                next.dedup();
                next
            });
            moves.next.push(next);
        }
        Ok(moves)
    }

    fn add(&mut self, field: Field) -> FieldId {
        *self.by_field.entry(field).or_insert_with(|| {
            self.fields.push(field);
            self.fields.len() - 1
        })
    }

    /// The fields by number.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The number of a field.
    #[must_use]
    pub fn find(&self, field: Field) -> Option<FieldId> {
        self.by_field.get(&field).copied()
    }

    /// The distinct fields after a drop of a piece; empty if the piece ends the combo.
    #[must_use]
    pub fn next(&self, field: FieldId, piece: Piece) -> &[FieldId] {
        &self.next[field][piece.index()]
    }

    /// Number of placements.
    #[must_use]
    pub fn placements(&self) -> usize {
        self.next.iter().flatten().map(Vec::len).sum()
    }

    /// Strongly connected components of the fields. Each component is later in the list than the components of its
    /// successors.
    #[must_use]
    pub fn components(&self) -> Vec<Vec<FieldId>> {
        let mut graph = DiGraph::<(), ()>::with_capacity(self.fields.len(), self.placements());
        let nodes: Vec<NodeIndex> = self.fields.iter().map(|_| graph.add_node(())).collect();
        for (from, next) in self.next.iter().enumerate() {
            for &to in next.iter().flatten() {
                graph.add_edge(nodes[from], nodes[to], ());
            }
        }
        let sorted = |component: Vec<NodeIndex>| {
            let mut fields: Vec<FieldId> = component.into_iter().map(NodeIndex::index).collect();
            fields.sort_unstable();
            fields
        };
        tarjan_scc(&graph).into_iter().map(sorted).collect()
    }
}
