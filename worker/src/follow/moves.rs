//! The form of best moves that are kept only while games are followed: four bits a state. The form in shards takes less
//! than a quarter of that, but coding and decoding it takes a quarter of the time that following games does.

use exact2048_game::bitset::{for_each_bit, ones};
use exact2048_game::legal::MoveSet;
use exact2048_game::rowset::Slot;
use exact2048_game::transitions::Direction;
use exact2048_solution::PayloadError;
use exact2048_storage::ItemKey;

use crate::kernels::chances::NO_MOVE;
use crate::policy::RowsOfMoves;

/// Packs the best moves of the states of some rows: of each row those of its states, two a byte, [`NO_MOVE`] where none
/// is legal. A move that is not legal stands for the first legal one.
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

/// The best of some legal moves.
fn among(legal: MoveSet, best: Direction) -> Direction {
    match legal {
        0 => NO_MOVE,
        _ if legal >> best & 1 == 1 => best,
        _ => legal.trailing_zeros() as Direction,
    }
}

/// Calls `found` with the slot, the column and the best move of each state of the rows that are `wanted`; `rows` are those
/// that were packed, each with its states.
///
/// # Errors
///
/// If the item is not of these rows.
pub fn unpack<'a>(
    key: ItemKey,
    item: &[u8],
    rows: impl Iterator<Item = (Slot, &'a [u64])>,
    wanted: impl Fn(Slot) -> bool,
    mut found: impl FnMut(Slot, usize, Direction),
) -> Result<(), PayloadError> {
    let other = || PayloadError::new(key, "the moves of this part".into(), format!("{} bytes", item.len()));
    let mut rest = item;
    for (slot, states) in rows {
        let bytes = (ones(states) as usize).div_ceil(2);
        let (of_row, behind) = rest.split_at_checked(bytes).ok_or_else(other)?;
        rest = behind;
        if wanted(slot) {
            let mut moves = of_row.iter().flat_map(|pair| [pair & 15, pair >> 4]);
            for_each_bit(states, |column| found(slot, column, moves.next().unwrap_or(NO_MOVE)));
        }
    }
    rest.is_empty().then_some(()).ok_or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Lane, Layer};
    use exact2048_solution::Parts;

    /// Three rows: with three states, with none, with one that ends a game.
    const ROWS: [(Slot, [u64; 2]); 3] = [(Slot(0), [0b101, 1]), (Slot(1), [0, 0]), (Slot(4), [0b10, 0])];

    fn unpacked(item: &[u8], wanted: impl Fn(Slot) -> bool) -> Option<Vec<(u32, usize, Direction)>> {
        let rows = ROWS.iter().map(|(slot, states)| (*slot, &states[..]));
        let mut found = Vec::new();
        let key = Parts::key(Layer(8), Lane::new(0, 0), 0);
        let read = unpack(key, item, rows, wanted, |slot, column, best| found.push((slot.0, column, best)));
        read.is_ok().then_some(found)
    }

    #[test]
    fn each_state_has_its_move() {
        let (item, moves) = ([0x31, 2, 4], [(0, 0, 1), (0, 2, 3), (0, 64, 2), (4, 1, NO_MOVE)]);
        assert_eq!(unpacked(&item, |_| true), Some(moves.to_vec()));
        assert_eq!(unpacked(&item, |slot| slot == Slot(4)), Some(moves[3..].to_vec()));
    }

    #[test]
    fn an_item_of_other_rows_is_no_item_of_these() {
        for item in [&[0x31, 2][..], &[0x31, 2, 4, 0]] {
            assert_eq!(unpacked(item, |_| true), None);
        }
    }

    #[test]
    fn a_move_is_a_legal_one_or_none() {
        assert_eq!([among(0b1010, 3), among(0b1010, 0), among(0, 2)], [3, 1, NO_MOVE]);
    }
}
