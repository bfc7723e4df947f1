//! A reader of the best moves of an item, as `docs/dev/format.md` defines them.

/// Reads the best moves of an item, entry by entry.
pub struct BestMoveReader<'a> {
    unread: std::slice::Iter<'a, u8>,
    /// The distance of the coded number from the low end of the interval.
    code: u64,
    /// The width of the interval.
    width: u64,
    /// The probabilities of a yes, in units of 1 / 65,536. The index combines the last best move of the row, the last
    /// best move of the column, the legal moves, and the number of declined candidates.
    chances: Vec<u32>,
    /// The last best move of the row.
    before: u8,
    /// The last best move of each column.
    above: Vec<u8>,
}

impl<'a> BestMoveReader<'a> {
    /// Creates a reader of an item. Its part has `columns` columns.
    pub fn new(item: &'a [u8], columns: usize) -> Self {
        let chance = |place: usize| if place.is_multiple_of(4) { 0xc000 } else { 0x8000 };
        let chances = (0..4 * 4 * 16 * 4).map(chance).collect();
        let (before, above) = (0, vec![0; columns]);
        let mut reader = Self { unread: item.iter(), code: 0, width: (1 << 32) - 1, chances, before, above };
        (0..4).for_each(|_| reader.read_byte());
        reader
    }

    /// Begins the next row.
    pub fn next_row(&mut self) {
        self.before = 0;
    }

    /// Reads the best move of the next entry of the row, from the entry's column and its legal moves, one bit per move.
    pub fn next(&mut self, column: usize, legal: u8) -> u8 {
        if legal == 0 {
            return 0;
        }
        let mut order: Vec<u8> = (0..4).filter(|&m| legal >> m & 1 == 1).collect();
        if let Some(at) = order.iter().position(|&m| m == self.before) {
            order[..=at].rotate_right(1);
        }
        let place =
            (usize::from(self.before) * 4 + usize::from(self.above[column])) * 16 + usize::from(legal);
        let declined = (0..order.len() - 1).take_while(|&nth| !self.decide(4 * place + nth)).count();
        self.before = order[declined];
        self.above[column] = self.before;
        self.before
    }

    /// The number of bytes that no decision has needed.
    pub fn unread(&self) -> usize {
        self.unread.len()
    }

    fn decide(&mut self, place: usize) -> bool {
        let chance = self.chances[place];
        let yes_part = (self.width / 4096) * u64::from((chance / 16) | 1);
        let yes = self.code < yes_part;
        if yes {
            self.width = yes_part;
            self.chances[place] += (65_536 - chance) / 8;
        } else {
            self.code -= yes_part;
            self.width -= yes_part;
            self.chances[place] -= chance / 8;
        }
        while self.width < 1 << 24 {
            self.width *= 256;
            self.read_byte();
        }
        yes
    }

    fn read_byte(&mut self) {
        // In an intact item, the code is below the width, which has 32 bits. In a damaged item, it may be any number.
        self.code = (self.code * 256 + self.unread.next().map_or(0, |&byte| u64::from(byte))) & 0xffff_ffff;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a damaged item, the code may be larger than any valid code.
    #[test]
    fn arbitrary_bytes_are_read_without_a_panic() {
        let mut moves = BestMoveReader::new(&[0xff; 64], 4);
        for n in 0..10_000 {
            assert!(moves.next(n % 4, 0b1111) < 4);
        }
    }
}
