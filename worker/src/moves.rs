//! The form of best moves that are kept only while games are followed: four bits a state.
//!
//! The form in shards takes less than a quarter of that. But coding and decoding it takes a quarter of the time of
//! following games.

use exact2048_game::bitset::{for_each_bit, ones};
use exact2048_game::packed::MoveSet;
use exact2048_game::transitions::Direction;
use exact2048_solution::PayloadError;
use exact2048_storage::ItemKey;

use crate::kernels::chances::NO_MOVE;
use crate::policy::RowsOfMoves;

/// Packs the best moves of the states of some rows, two a byte. A state without a legal move gets [`NO_MOVE`].
///
/// It packs the first legal move in place of a move that is not legal.
pub fn pack(rows: &mut RowsOfMoves<'_>) -> Vec<u8> {
    let (mut packed, mut of_row) = (Vec::new(), Vec::new());
    for (row, best) in rows {
        of_row.clear();
        for (word, &states) in row.states.iter().enumerate() {
            let legality = row.legality.word(word);
            for_each_bit(&[states], |bit| of_row.push(among(legality.at(bit), best[64 * word + bit])));
        }
        let (pairs, last) = of_row.as_chunks::<2>();
        packed.extend(pairs.iter().map(|&[first, second]| first | second << 4));
        packed.extend(last);
    }
    packed
}

/// The best move if it is legal, else the first legal one.
fn among(legal: MoveSet, best: Direction) -> Direction {
    match legal {
        0 => NO_MOVE,
        _ if legal >> best & 1 == 1 => best,
        _ => legal.trailing_zeros() as Direction,
    }
}

/// The best moves of a row, as [`pack`] packs them.
#[derive(Clone, Copy, Debug)]
pub struct RowMoves<'a>(&'a [u8]);

impl RowMoves<'_> {
    /// The best move of the state with this number among the row's states.
    #[inline]
    pub fn of(self, number: u32) -> Direction {
        let number = number as usize;
        self.0.get(number / 2).map_or(NO_MOVE, |pair| pair >> (4 * (number % 2)) & 15)
    }
}

/// Calls `found` with each row, its states and their best moves. `rows` are the packed rows, each with its states.
///
/// # Errors
///
/// If the item is not of these rows.
pub fn unpack<'a, R>(
    key: ItemKey,
    item: &[u8],
    rows: impl Iterator<Item = (R, &'a [u64])>,
    mut found: impl FnMut(R, &'a [u64], RowMoves<'_>),
) -> Result<(), PayloadError> {
    let other = || PayloadError::new(key, "the moves of this part".into(), format!("{} bytes", item.len()));
    let mut rest = item;
    for (row, states) in rows {
        let bytes = (ones(states) as usize).div_ceil(2);
        let (of_row, behind) = rest.split_at_checked(bytes).ok_or_else(other)?;
        rest = behind;
        found(row, states, RowMoves(of_row));
    }
    rest.is_empty().then_some(()).ok_or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Lane, Layer};
    use exact2048_solution::Parts;

    /// Three rows: one with three states, one without states, and one with a state that ends a game.
    const ROWS: [(u32, [u64; 2]); 3] = [(0, [0b101, 1]), (1, [0, 0]), (4, [0b10, 0])];

    fn unpacked(item: &[u8]) -> Option<Vec<(u32, Vec<Direction>)>> {
        let rows = ROWS.iter().map(|(row, states)| (*row, &states[..]));
        let mut found = Vec::new();
        let key = Parts::key(Layer(8), Lane::new(0, 0), 0);
        let read = unpack(key, item, rows, |row, states, moves| {
            found.push((row, (0..ones(states) as u32).map(|number| moves.of(number)).collect()));
        });
        read.is_ok().then_some(found)
    }

    #[test]
    fn each_state_has_its_move() {
        let moves = [(0, vec![1, 3, 2]), (1, vec![]), (4, vec![NO_MOVE])];
        assert_eq!(unpacked(&[0x31, 2, 4]), Some(moves.to_vec()));
    }

    #[test]
    fn an_item_of_other_rows_is_refused() {
        for item in [&[0x31, 2][..], &[0x31, 2, 4, 0]] {
            assert_eq!(unpacked(item), None);
        }
    }

    #[test]
    fn a_move_is_a_legal_one_or_none() {
        assert_eq!([among(0b1010, 3), among(0b1010, 0), among(0, 2)], [3, 1, NO_MOVE]);
    }
}
