//! The states: a field, a piece in hold, and an outlook, numbered densely.

use crate::drops::Drops;
use crate::field::Field;
use crate::moves::{FieldId, Placements, TooManyCells};
use crate::piece::{PIECES, Piece};
use crate::sequence::{Draw, Outlook, Sequences};

/// What is to be solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComboProblem {
    /// The field from which all others are found.
    pub first: Field,
    /// How pieces may be dropped.
    pub drops: Drops,
    /// Whether one piece can be held.
    pub hold: bool,
    /// How pieces are drawn.
    pub draw: Draw,
    /// How many pieces are seen besides the one in hand.
    pub previews: usize,
}

/// A state, before the next piece is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComboState {
    /// The field.
    pub field: Field,
    /// The piece in hold, where there is one.
    pub hold: Option<Piece>,
    /// What is known of the pieces to come.
    pub outlook: Outlook,
}

/// The states of a problem.
///
/// A state is numbered by its outlook, then by its piece in hold, then by its field. Fields are in the order of their
/// components, each before those that lead to it: those that a component depends on are before it.
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

/// Fields that are solved together: their places in a row of values.
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

    /// The problem whose states these are.
    #[must_use]
    pub fn problem(&self) -> &ComboProblem {
        &self.problem
    }

    /// The fields and where they lead.
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

    /// Pieces that can be in hold, or 1 where none can.
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

    /// Where a field is in a row of values.
    pub(crate) fn place(&self, field: FieldId) -> usize {
        self.place_of[field]
    }

    /// The places that a piece leads to.
    pub(crate) fn next_places(&self, place: usize, piece: usize) -> impl Iterator<Item = usize> + '_ {
        let next = self.moves.next(self.order[place], PIECES[piece]);
        next.iter().map(|&field| self.place_of[field])
    }

    /// Level and number there of a state; `None` where it cannot be.
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

    /// A state by its level and its number there.
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

/// Fields in an order in which they can be solved, and which of them at once.
///
/// A component's depth is the length of the longest way from it to one that leads nowhere else. Those of one depth do not lead to
/// one another and are one stage. Within any component combos can stay: an I that lies flat on top changes nothing.
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
