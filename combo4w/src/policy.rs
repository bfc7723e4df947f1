//! The best placement of every decision.

use crate::field::Field;
use crate::piece::{PIECES, Piece};
use crate::sequence::Outlook;
use crate::solve::Solution;
use crate::space::{ComboSpace, ComboState};

/// What a player decides on: a piece has come, and either it or the held one is to be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The field.
    pub field: Field,
    /// The piece in hold, where there is one.
    pub hold: Option<Piece>,
    /// The piece that has come.
    pub current: Piece,
    /// What is known of the pieces after it.
    pub outlook: Outlook,
}

/// One way to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The piece that is dropped.
    pub piece: Piece,
    /// The field after that.
    pub after: Field,
    /// The piece that is in hold then.
    pub hold: Option<Piece>,
    /// Expected placements from now on, this one included.
    pub value: f64,
}

impl Solution {
    /// All ways to go on, the best one first; none where the combo ends. `None` where the decision is none of this space.
    #[must_use]
    pub fn placements(&self, space: &ComboSpace, decision: &Decision) -> Option<Vec<Placement>> {
        let Decision { field, hold, current, outlook } = decision;
        let from = space.moves().find(*field)?;
        if !space.sequences().can_come(*current, outlook) {
            return None;
        }
        // The current piece is dropped and the hold stays, or the other way round.
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
    /// All decisions that can come, each once.
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
