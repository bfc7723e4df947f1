//! Numbers of boards by board.

/// A hash table from boards to numbers, for boards that are not empty.
#[derive(Default)]
pub struct BoardTable {
    /// A board, 0 where there is none, and its number.
    slots: Vec<(u64, u32)>,
}

impl BoardTable {
    /// Empties the table, and makes room for this number of boards.
    pub fn clear(&mut self, boards: usize) {
        self.slots.clear();
        self.slots.resize(2 * boards + 2, (0, 0));
    }

    /// Numbers boards from 0 on. They must be different ones.
    pub fn number(&mut self, boards: &[u64]) {
        self.clear(boards.len());
        for (number, &board) in boards.iter().enumerate() {
            let slot = self.slot(board);
            self.slots[slot] = (board, number as u32);
        }
    }

    /// The number of a board; `None` where it has none.
    #[inline]
    pub fn get(&self, board: u64) -> Option<u32> {
        let (found, number) = self.slots[self.slot(board)];
        (found == board).then_some(number)
    }

    /// The number of a board, which becomes `next` where it had none. There must be room.
    #[inline]
    pub fn get_or_insert(&mut self, board: u64, next: u32) -> u32 {
        let slot = self.slot(board);
        if self.slots[slot].0 != board {
            self.slots[slot] = (board, next);
        }
        self.slots[slot].1
    }

    /// Where a board is, or where it would be.
    #[inline]
    fn slot(&self, board: u64) -> usize {
        // Half of the slots are free, so that a free one is near.
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
