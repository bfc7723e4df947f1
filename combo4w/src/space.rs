//! The states: a field, a piece in hold, and an outlook, numbered densely.

use crate::drops::Drops;
use crate::field::Field;
use crate::moves::{FieldId, Placements, TooManyCells};
use crate::piece::{PIECES, Piece};
use crate::sequence::{Draw, Outlook, Sequences};

/// A combo problem to solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComboProblem {
    /// The field from which the solver finds all other fields.
    pub first: Field,
    /// Allowed ways to drop a piece.
    pub drops: Drops,
    /// Whether one piece can be held.
    pub hold: bool,
    /// Method of drawing pieces.
    pub draw: Draw,
    /// Number of visible pieces after the current one.
    pub previews: usize,
}

/// A state, before the next piece is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComboState {
    /// The field.
    pub field: Field,
    /// The piece in hold, if any.
    pub hold: Option<Piece>,
    /// Knowledge of the next pieces.
    pub outlook: Outlook,
}

/// The states of a problem.
///
/// The order of states is by outlook, then by piece in hold, then by field. Fields are in the order of their components.
/// Each component is after the components on which it depends.
#[derive(Clone, Debug)]
pub struct ComboSpace {
    problem: ComboProblem,
    moves: Placements,
    sequences: Sequences,
    /// Fields in the order of their components.
    order: Vec<FieldId>,
    place_of: Vec<usize>,
    stages: Vec<Stage>,
}

/// Fields to solve together, as the range of their places in a row of values.
pub(crate) type Stage = std::ops::Range<usize>;

impl ComboSpace {
    /// Finds the states.
    ///
    /// # Errors
    ///
    /// If the first field has too many cells.
    pub fn new(problem: ComboProblem) -> Result<Self, TooManyCells> {
        let moves = Placements::from_field(problem.first, problem.drops)?;
        let sequences = Sequences::new(problem.draw, problem.previews);
        let (order, stages) = stages(&moves);
        let mut place_of = vec![0; order.len()];
        for (place, &field) in order.iter().enumerate() {
            place_of[field] = place;
        }
        Ok(Self { problem, moves, sequences, order, place_of, stages })
    }

    /// The problem to solve.
    #[must_use]
    pub fn problem(&self) -> &ComboProblem {
        &self.problem
    }

    /// The fields and their successors.
    #[must_use]
    pub fn moves(&self) -> &Placements {
        &self.moves
    }

    /// The outlooks.
    #[must_use]
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Number of states.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.sequences.len() * self.row()
    }

    pub(crate) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Number of pieces that can be in hold, or 1 without hold.
    pub(crate) fn holds(&self) -> usize {
        if self.problem.hold { PIECES.len() } else { 1 }
    }

    /// Number of fields.
    pub(crate) fn width(&self) -> usize {
        self.order.len()
    }

    /// Number of states of one outlook.
    pub(crate) fn row(&self) -> usize {
        self.holds() * self.width()
    }

    /// The place of a field in a row of values.
    pub(crate) fn place(&self, field: FieldId) -> usize {
        self.place_of[field]
    }

    /// The places of the fields after a drop of a piece.
    pub(crate) fn next_places(&self, place: usize, piece: usize) -> impl Iterator<Item = usize> + '_ {
        let next = self.moves.next(self.order[place], PIECES[piece]);
        next.iter().map(|&field| self.place_of[field])
    }

    /// The level of a state, and its number within the level; `None` if the state is impossible.
    #[must_use]
    pub(crate) fn find(&self, state: &ComboState) -> Option<(usize, usize)> {
        let place = self.place(self.moves.find(state.field)?);
        let hold = match (self.problem.hold, state.hold) {
            (true, Some(piece)) => piece.index(),
            (false, None) => 0,
            _ => return None,
        };
        let (level, outlook) = self.sequences.find(&state.outlook)?;
        Some((level, (outlook * self.holds() + hold) * self.width() + place))
    }

    /// The state with a level and a number within the level.
    pub(crate) fn state(&self, level: usize, at: usize) -> ComboState {
        let (outlook, rest) = (at / self.row(), at % self.row());
        let (hold, place) = (rest / self.width(), rest % self.width());
        ComboState {
            field: self.moves.fields()[self.order[place]],
            hold: self.problem.hold.then(|| PIECES[hold]),
            outlook: self.sequences.outlook(level, outlook),
        }
    }
}

/// Sorts fields into stages, in the order of solving.
///
/// A component's depth is the length of the longest path from the component to one without successors. Components of one
/// depth are independent and form one stage. Every component has cycles, because an I placed flat on top changes nothing.
fn stages(moves: &Placements) -> (Vec<FieldId>, Vec<Stage>) {
    let components = moves.components();
    let mut component_of = vec![0; moves.fields().len()];
    for (number, fields) in components.iter().enumerate() {
        for &field in fields {
            component_of[field] = number;
        }
    }
    let mut depths: Vec<usize> = Vec::with_capacity(components.len());
    let mut by_depth: Vec<Vec<FieldId>> = Vec::new();
    for (number, fields) in components.iter().enumerate() {
        let next = fields.iter().flat_map(|&field| PIECES.map(|piece| moves.next(field, piece)));
        let others = next.flatten().map(|&next| component_of[next]).filter(|&next| next != number);
        let depth = others.map(|next| depths[next] + 1).max().unwrap_or(0);
        depths.push(depth);
        by_depth.resize(by_depth.len().max(depth + 1), Vec::new());
        by_depth[depth].extend(fields);
    }
    let mut end = 0;
    let mut places = |fields: &Vec<FieldId>| {
        let start = end;
        end += fields.len();
        start..end
    };
    let stages = by_depth.iter().map(&mut places).collect();
    (by_depth.concat(), stages)
}
