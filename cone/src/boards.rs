//! A set of boards to which any number of threads can add at once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytemuck::allocation::zeroed_slice_box;
use exact2048_game::Board;

/// Largest number of boards in one lookup: the number of cells of the largest board.
pub const AT_A_TIME: usize = 16;

/// Exclusive limit of the number of slots of a table.
///
/// With this limit, slot numbers fit 32 bits, and callers can use the two largest 32-bit numbers for other purposes.
const MOST_SLOTS: usize = u32::MAX as usize - 1;

/// Boards in an open-addressing table. At most two of three slots are occupied.
///
/// A free slot is 0, because no state and no afterstate is the empty board.
#[derive(Debug, Default)]
pub struct Boards {
    slots: Box<[AtomicU64]>,
    count: AtomicUsize,
}

impl Boards {
    /// Number of boards.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }

    /// Number of slots. [`slot`](Self::slot) returns slot numbers.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of the table after [`reserve`](Self::reserve) for `more` additional boards.
    pub fn bytes_with(&self, more: usize) -> u64 {
        let needed = slots_for(self.len() + more);
        if needed <= self.slots.len() { self.bytes() } else { 8 * self.grown(needed) as u64 }
    }

    /// Reserves slots for `more` additional boards.
    pub fn reserve(&mut self, more: usize) {
        let needed = slots_for(self.len() + more);
        if needed > self.slots.len() {
            self.rebuild(self.grown(needed));
        }
    }

    /// Shrinks the table to the size that its boards need.
    pub fn shrink(&mut self) {
        let least = slots_for(self.len());
        if least < self.slots.len() {
            self.rebuild(least);
        }
    }

    /// Number of slots of a table that must grow.
    ///
    /// The number at least doubles, so the table is seldom rebuilt.
    fn grown(&self, needed: usize) -> usize {
        needed.max(2 * self.slots.len())
    }

    fn rebuild(&mut self, slots: usize) {
        // Callers store slot numbers in 32 bits, and a wrong slot would give a wrong value.
        assert!(
            slots < MOST_SLOTS,
            "expected a table of fewer than {MOST_SLOTS} slots (32 GiB), found {slots}"
        );
        let boards = std::mem::replace(&mut self.slots, zeroed_slice_box(slots));
        self.count = AtomicUsize::new(0);
        let boards =
            boards.iter().map(|slot| Board(slot.load(Ordering::Relaxed))).filter(|board| board.0 != 0);
        self.count(boards.filter(|&board| self.add(board).1).count());
    }

    /// Adds boards, and returns the number of new boards for [`count`](Self::count).
    ///
    /// The caller must [reserve](Self::reserve) slots first. A large table does not fit into the processor's caches. A
    /// call with several boards is then faster, because the loads of their slots overlap.
    #[inline]
    pub fn insert(&self, boards: &[Board]) -> usize {
        boards.chunks(AT_A_TIME).map(|boards| self.insert_at(boards).1).sum()
    }

    /// Adds at most [`AT_A_TIME`] boards as [`insert`](Self::insert) does, and also returns the slot of each board.
    ///
    /// The slots stay valid until the table changes its size.
    #[inline]
    pub fn insert_at(&self, boards: &[Board]) -> ([usize; AT_A_TIME], usize) {
        let (mut slots, found, mut added) = ([0; AT_A_TIME], self.first_words(boards), 0);
        for ((slot, &board), found) in slots.iter_mut().zip(boards).zip(found) {
            *slot = self.first_slot(board);
            if found != board.0 {
                let (at, is_new) = self.add(board);
                *slot = at;
                added += usize::from(is_new);
            }
        }
        (slots, added)
    }

    /// Counts many new boards at once. If threads counted each board separately, they would wait for each other.
    #[inline]
    pub fn count(&self, added: usize) {
        self.count.fetch_add(added, Ordering::Relaxed);
    }

    /// Contents of the first slot of each board.
    #[inline]
    fn first_words(&self, boards: &[Board]) -> [u64; AT_A_TIME] {
        let mut words = [0; AT_A_TIME];
        for (word, &board) in words.iter_mut().zip(boards) {
            *word = self.slots[self.first_slot(board)].load(Ordering::Relaxed);
        }
        words
    }

    /// Adds a board without counting it. Returns the board's slot, and whether the board is new.
    #[inline]
    fn add(&self, board: Board) -> (usize, bool) {
        let mut at = self.first_slot(board);
        loop {
            let mut found = self.slots[at].load(Ordering::Relaxed);
            if found == 0 {
                match self.slots[at].compare_exchange(0, board.0, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return (at, true),
                    Err(other) => found = other,
                }
            }
            if found == board.0 {
                return (at, false);
            }
            at = self.next(at);
        }
    }

    /// The slots of at most [`AT_A_TIME`] boards. All boards must be in the set.
    ///
    /// As with [`insert`](Self::insert), a call with several boards is faster than several calls.
    #[inline]
    pub fn slots_of(&self, boards: &[Board]) -> [usize; AT_A_TIME] {
        let (mut slots, found) = ([0; AT_A_TIME], self.first_words(boards));
        for ((slot, &board), found) in slots.iter_mut().zip(boards).zip(found) {
            *slot = self.first_slot(board);
            if found != board.0 {
                *slot = self.slot(board).unwrap_or(*slot);
            }
        }
        slots
    }

    /// The slot of a board; `None` if the board is not in the set.
    #[inline]
    pub fn slot(&self, board: Board) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.first_slot(board);
        loop {
            match self.slots[at].load(Ordering::Relaxed) {
                found if found == board.0 => return Some(at),
                0 => return None,
                _ => at = self.next(at),
            }
        }
    }

    /// The board in a slot, if any.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<Board> {
        let bits = self.slots[slot].load(Ordering::Relaxed);
        (bits != 0).then_some(Board(bits))
    }

    #[inline]
    fn first_slot(&self, board: Board) -> usize {
        first_slot(board, self.slots.len())
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        slot_after(slot, self.slots.len())
    }
}

/// The first slot in the search for a board, in a table of `slots` slots: the board's hash as a fraction of the table.
///
/// The hash mixes twice, with the constants of [SplitMix64](https://doi.org/10.1145/2714064.2660195). With only one
/// multiplication, a spawn would add about the same number to the hash of every board. Boards added in the order of one
/// table would then crowd into a small part of the next table, and searches would visit thousands of slots.
#[inline]
pub fn first_slot(board: Board, slots: usize) -> usize {
    let mut mixed = (board.0 ^ board.0 >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((u128::from(mixed) * slots as u128) >> 64) as usize
}

/// The slot at which a search continues after `slot`.
#[inline]
pub fn slot_after(slot: usize, slots: usize) -> usize {
    if slot + 1 == slots { 0 } else { slot + 1 }
}

/// Number of slots of a table for this number of boards: 1.5 times as many, and a free slot, so every search ends.
fn slots_for(boards: usize) -> usize {
    boards + boards / 2 + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::collections::BTreeSet;

    use rayon::prelude::*;

    use super::*;

    /// Reads afterstates in the order of their table, and adds the states after their spawns to a growing table.
    #[test]
    fn searches_are_short_while_a_table_grows_in_the_order_of_another() {
        let tiles = |nth: u64, cells: u64| {
            (0..cells).map(move |cell| (nth / 5u64.pow(cell as u32) % 5) << (4 * cell))
        };
        let mut first = Boards::default();
        first.reserve(5usize.pow(7));
        let boards = (0..5u64.pow(7)).map(|nth| Board(0x987 << 36 | tiles(nth, 7).sum::<u64>()));
        first.count(boards.map(|board| first.insert(&[board])).sum());
        let (mut spawned, mut longest) = (Boards::default(), 0);
        for step in (0..first.slots()).collect::<Vec<_>>().chunks(first.slots() / 32) {
            let boards: Vec<Board> = step.iter().filter_map(|&slot| first.get(slot)).collect();
            spawned.reserve(2 * boards.len());
            for board in boards {
                let with_tile = [7, 8].map(|cell| board.with(cell, 1));
                let (slots, added) = spawned.insert_at(&with_tile);
                spawned.count(added);
                let searched =
                    |(board, slot)| (slot + spawned.slots() - spawned.first_slot(board)) % spawned.slots();
                longest = with_tile.into_iter().zip(slots).map(searched).fold(longest, usize::max);
            }
        }
        assert!(longest < 250, "a search went through {longest} slots");
    }

    #[test]
    fn boards_are_found_for_any_number_of_threads() {
        let mut set = Boards::default();
        assert_eq!((set.slot(Board(1)), set.len()), (None, 0));
        let board = |i: u64| Board(1 + i.wrapping_mul(0x2545_f491_4f6c_dd1d) % 5000);
        for batch in 0..10 {
            set.reserve(2000);
            (0..2000u64).into_par_iter().for_each(|i| set.count(set.insert(&[board(batch * 1500 + i)])));
        }
        let expected: BTreeSet<Board> = (0..15_500).map(board).collect();
        set.shrink();
        let found: BTreeSet<Board> = (0..set.slots()).filter_map(|slot| set.get(slot)).collect();
        assert_eq!((found.len(), set.len()), (expected.len(), expected.len()));
        assert_eq!(found, expected);
        for bits in 1..6000 {
            let slot = set.slot(Board(bits));
            assert_eq!(slot.is_some(), expected.contains(&Board(bits)));
            assert!(slot.is_none_or(|slot| set.get(slot) == Some(Board(bits))));
        }
        assert_eq!(set.bytes(), set.bytes_with(0));
    }
}
