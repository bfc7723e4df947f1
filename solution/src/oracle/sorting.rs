//! Sorts the boards of a layer, each with a number such as its value.

use exact2048_game::Board;
use rayon::prelude::*;

/// Most bits that determine the *place* (bucket) to which a board is dealt before each place is sorted. They are the
/// highest bits in which boards differ, so most places get few boards.
const MOST_DEALT_BITS: u32 = 16;

/// Places that a thread sorts at a time.
const PLACES_AT_ONCE: usize = 256;

/// Sorts the boards of some lists together, each with its number. No board may be in the lists twice.
///
/// Cost: about ten nanoseconds per board. Threads share most of this work.
pub(super) fn sorted(lists: &[Vec<(Board, u64)>]) -> (Vec<Board>, Vec<u64>) {
    let mut dealt = vec![(Board::default(), 0); lists.iter().map(Vec::len).sum()];
    let mut ends = deal(lists, &mut dealt);
    ends.dedup();
    let (mut places, mut rest, mut first) = (Vec::with_capacity(ends.len()), &mut dealt[..], 0);
    for end in ends {
        let place;
        (place, rest) = rest.split_at_mut(end - first);
        first = end;
        places.push(place);
    }
    let places = places.into_par_iter().with_min_len(PLACES_AT_ONCE);
    places.for_each(|place| place.sort_unstable_by_key(|&(board, _)| board));
    dealt.into_iter().unzip()
}

/// Copies boards so that all boards of a place precede those of the next place. Returns where the places end.
fn deal(lists: &[Vec<(Board, u64)>], dealt: &mut [(Board, u64)]) -> Vec<usize> {
    let all = || lists.iter().flatten();
    let one = all().next().map_or(Board::default(), |&(board, _)| board);
    let differing = all().fold(0, |bits, (board, _)| bits | board.0 ^ one.0);
    let bits = dealt.len().checked_ilog2().unwrap_or(0).min(MOST_DEALT_BITS);
    let shift = (u64::BITS - differing.leading_zeros()).saturating_sub(bits);
    let place = |board: Board| (board.0 >> shift) as usize & ((1 << bits) - 1);
    let mut next = vec![0; 1 << bits];
    all().for_each(|&(board, _)| next[place(board)] += 1);
    let mut first = 0;
    for count in &mut next {
        first += std::mem::replace(count, first);
    }
    for &one in all() {
        let at = &mut next[place(one.0)];
        dealt[*at] = one;
        *at += 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_are_sorted_with_their_numbers() {
        let board = |i: u64, bits: u32| Board(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits));
        for (count, bits) in [(0, 8), (1, 36), (200, 11), (4000, 36), (100_000, 64)] {
            let mut all: Vec<(Board, u64)> = (0..count).map(|i| (board(i, bits), i)).collect();
            all.sort_unstable();
            all.dedup_by_key(|&mut (board, _)| board);
            let mut lists = vec![Vec::new(), Vec::new(), Vec::new()];
            all.iter().rev().for_each(|&(board, i)| lists[(i % 3) as usize].push((board, i)));
            let (boards, beside) = sorted(&lists);
            assert!(boards.into_iter().zip(beside).eq(all));
        }
    }
}
