//! Resting places of a piece.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::field::Field;
use crate::piece::{Cell, Piece, Turn};

/// Allowed ways to drop a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Drops {
    /// Straight down from above.
    Hard,
    /// Any sequence of moves left, right and down, and of quarter turns with the kicks of SRS.
    #[default]
    Srs,
    /// Any place in which the piece fits and is supported, even if no sequence of moves reaches the place.
    Anywhere,
}

/// Place of a piece: the piece's turn, and the column and row of the bottom left corner of its square.
type Place = (Turn, Cell);

/// The sets of cells in which a piece can rest, sorted and without duplicates.
///
/// All cells above the field are empty, so a piece may enter in any column and turn.
pub(crate) fn resting(field: Field, piece: Piece, drops: Drops) -> Vec<Field> {
    let shapes: [_; 4] = std::array::from_fn(|turn| piece.cells(turn));
    let fit = |(turn, at): Place| field.fit(&shapes[turn], at);
    // A cell of a square is at most three columns and rows from the square's corner.
    let above = field.height() + 2;
    let entries = (0..4).flat_map(|turn| (-3..=3).map(move |x| (turn, (x, above))));
    let entries: Vec<Place> = entries.filter(|&place| fit(place).is_some()).collect();
    let places: Vec<Place> = match drops {
        Drops::Hard => entries.into_iter().map(|place| fallen(place, fit)).collect(),
        Drops::Srs => reached(piece, entries, above, fit),
        Drops::Anywhere => entries
            .into_iter()
            .flat_map(|(turn, (x, above))| (-3..=above).map(move |y| (turn, (x, y))))
            .collect(),
    };
    let mut cells: Vec<Field> =
        places.into_iter().filter(|&place| fit(below(place)).is_none()).filter_map(fit).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

fn below((turn, (x, y)): Place) -> Place {
    (turn, (x, y - 1))
}

fn fallen(mut place: Place, fit: impl Fn(Place) -> Option<Field>) -> Place {
    while fit(below(place)).is_some() {
        place = below(place);
    }
    place
}

/// All places that a piece can reach by moves and turns.
fn reached(piece: Piece, entries: Vec<Place>, above: i8, fit: impl Fn(Place) -> Option<Field>) -> Vec<Place> {
    let mut seen: FxHashSet<Place> = entries.iter().copied().collect();
    let mut waiting = VecDeque::from(entries);
    let mut found = Vec::new();
    while let Some(place) = waiting.pop_front() {
        found.push(place);
        let (turn, (x, y)) = place;
        let moves = [(x - 1, y), (x + 1, y), (x, y - 1)].map(|at| (turn, at));
        let moves = moves.into_iter().filter(|&next| fit(next).is_some());
        let turns = [(turn + 1) % 4, (turn + 3) % 4].into_iter().filter_map(|to| {
            let kicks = piece.kicks(turn, to).into_iter();
            kicks.map(|(dx, dy)| (to, (x + dx, y + dy))).find(|&next| fit(next).is_some())
        });
        // Skips places above the entry row. The search begins with all columns and turns in the entry row, so the
        // search finds all resting places without these places.
        waiting
            .extend(moves.chain(turns).filter(|&(_, (_, y))| y <= above).filter(|&next| seen.insert(next)));
    }
    found
}
