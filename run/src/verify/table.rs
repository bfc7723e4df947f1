//! A hash table from boards to numbers.

/// A hash table from boards to numbers, for boards that are not empty.
#[derive(Default)]
pub struct BoardTable {
    /// Pairs of a board and its number. The board is 0 in a free slot.
    slots: Vec<(u64, u32)>,
}

impl BoardTable {
    /// Empties the table, and reserves memory for this number of boards.
    pub fn clear(&mut self, boards: usize) {
        self.slots.clear();
        self.slots.resize(2 * boards + 2, (0, 0));
    }

    /// Numbers boards from 0 upward. The boards must differ.
    pub fn number(&mut self, boards: &[u64]) {
        self.clear(boards.len());
        for (number, &board) in boards.iter().enumerate() {
            let slot = self.slot(board);
            self.slots[slot] = (board, number as u32);
        }
    }

    /// The number of a board; `None` if it has none.
    #[inline]
    pub fn get(&self, board: u64) -> Option<u32> {
        let (found, number) = self.slots[self.slot(board)];
        (found == board).then_some(number)
    }

    /// The number of a board, which becomes `next` if it has none. The table must have a free slot.
    #[inline]
    pub fn get_or_insert(&mut self, board: u64, next: u32) -> u32 {
        let slot = self.slot(board);
        if self.slots[slot].0 != board {
            self.slots[slot] = (board, next);
        }
        self.slots[slot].1
    }

    /// The slot of a board, or the free slot for it.
    #[inline]
    fn slot(&self, board: u64) -> usize {
        // At least half of the slots are free, so the search is short.
        let hash = board.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize;
        while self.slots[slot].0 != 0 && self.slots[slot].0 != board {
            slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_keep_their_numbers() {
        let boards: Vec<u64> = (1..=1000u64).map(|i| (i << 24) | (i % 7)).collect();
        let mut table = BoardTable::default();
        for count in [0, 1, 7, 1000] {
            table.number(&boards[..count]);
            for (i, &board) in boards.iter().enumerate() {
                assert_eq!(table.get(board), (i < count).then_some(i as u32));
            }
        }
        table.clear(10);
        for _ in 0..2 {
            assert!(
                boards[..10]
                    .iter()
                    .enumerate()
                    .all(|(i, &board)| table.get_or_insert(board, i as u32) == i as u32)
            );
        }
    }
}
