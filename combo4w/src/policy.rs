//! The best placement of every decision.

use crate::field::Field;
use crate::piece::{PIECES, Piece};
use crate::sequence::Outlook;
use crate::solve::Solution;
use crate::space::{ComboSpace, ComboState};

/// A player's decision to drop either the current piece or the held one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The field.
    pub field: Field,
    /// The piece in hold, if any.
    pub hold: Option<Piece>,
    /// The current piece.
    pub current: Piece,
    /// Knowledge of the pieces after the current one.
    pub outlook: Outlook,
}

/// A possible placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The dropped piece.
    pub piece: Piece,
    /// The field after the drop.
    pub after: Field,
    /// The piece in hold after the drop.
    pub hold: Option<Piece>,
    /// Expected number of placements, including this one.
    pub value: f64,
}

impl Solution {
    /// All possible placements, best first; empty if the combo ends. `None` if the decision is not in this space.
    #[must_use]
    pub fn placements(&self, space: &ComboSpace, decision: &Decision) -> Option<Vec<Placement>> {
        let Decision { field, hold, current, outlook } = decision;
        let from = space.moves().find(*field)?;
        if !space.sequences().can_come(*current, outlook) {
            return None;
        }
        // The player may drop either piece. The other piece is then in hold.
        let mut hands = vec![(*current, *hold)];
        hands.extend(hold.filter(|hold| hold != current).map(|hold| (hold, Some(*current))));
        let mut placements = Vec::new();
        for (piece, hold) in hands {
            for &after in space.moves().next(from, piece) {
                let after = space.moves().fields()[after];
                let value =
                    self.value(space, &ComboState { field: after, hold, outlook: outlook.clone() })? + 1.0;
                placements.push(Placement { piece, after, hold, value });
            }
        }
        placements.sort_by(|a, b| b.value.total_cmp(&a.value));
        Some(placements)
    }
}

impl ComboSpace {
    /// All possible decisions, each once.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> + '_ {
        let levels = self.sequences().levels();
        let hold = self.problem().hold;
        let groups = levels
            .iter()
            .enumerate()
            .flat_map(|(at, level)| (0..level.groups()).map(move |group| (at, group)));
        let comings = groups.flat_map(move |(at, group)| {
            let (level, next) = (&levels[at], (at + 1) % levels.len());
            let group = level.group(group);
            let seen = move |outlook| PIECES[level.first(outlook)];
            group.follow.iter().flat_map(move |&(drawn, outlook)| {
                let outlook = self.sequences().outlook(next, outlook as usize);
                let currents: Vec<Piece> = match self.problem().previews {
                    0 => vec![PIECES[usize::from(drawn)]],
                    _ => group.outlooks.clone().map(seen).collect(),
                };
                currents.into_iter().map(move |current| (current, outlook.clone()))
            })
        });
        comings.flat_map(move |(current, outlook)| {
            let holds: Vec<Option<Piece>> =
                if hold { PIECES.into_iter().map(Some).collect() } else { vec![None] };
            holds.into_iter().flat_map(move |hold| {
                let outlook = outlook.clone();
                let fields = self.moves().fields().iter();
                fields.map(move |&field| Decision { field, hold, current, outlook: outlook.clone() })
            })
        })
    }
}
