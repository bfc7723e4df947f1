//! Boards of which nothing is to be known for now, in few bytes.

use super::layer_reader::Part;

/// Bits of a difference in each byte; the highest bit says that more follow.
const BITS: u32 = 7;

/// The boards of a part, ascending and each once, as differences to the one before: about two bytes each where many of a
/// lane's boards are there.
#[derive(Debug)]
pub struct ListedPart {
    lane: u64,
    boards: usize,
    /// Seven bits a byte, the lowest first.
    differences: Vec<u8>,
}

impl ListedPart {
    /// Lists the boards of a part, and forgets what else it has.
    pub fn new(part: Part) -> Self {
        let (mut differences, mut last) = (Vec::with_capacity(3 * part.boards.len()), 0);
        for &board in &part.boards {
            let mut difference = board - last;
            while difference >> BITS != 0 {
                differences.push(difference as u8 | 1 << BITS);
                difference >>= BITS;
            }
            differences.push(difference as u8);
            last = board;
        }
        differences.shrink_to_fit();
        Self { lane: part.lane, boards: part.boards.len(), differences }
    }

    /// The part that was listed.
    pub fn into_part(self) -> Part {
        let mut boards = Vec::with_capacity(self.boards);
        let (mut board, mut difference, mut shift) = (0, 0, 0);
        for byte in self.differences {
            difference |= u64::from(byte & !(1 << BITS)) << shift;
            shift += BITS;
            if byte >> BITS == 0 {
                board += difference;
                boards.push(board);
                (difference, shift) = (0, 0);
            }
        }
        Part { lane: self.lane, boards, ..Part::default() }
    }

    /// How many boards there are.
    pub fn count(&self) -> usize {
        self.boards
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        (size_of::<Self>() + self.differences.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_boards_come_back() {
        let part = |boards: &[u64]| Part { lane: 7, boards: boards.to_vec(), ..Part::default() };
        for boards in [
            &[][..],
            &[1],
            &[u64::MAX],
            &[0x10, 0x11, 0x90, 0x91, 0x4091, 0x1234_5678_9abc, u64::MAX - 1, u64::MAX],
        ] {
            let listed = ListedPart::new(part(boards));
            assert_eq!(listed.count(), boards.len());
            let back = listed.into_part();
            assert_eq!((back.lane, &back.boards[..]), (7, boards));
        }
        // 127 is the largest difference of one byte.
        let dense: Vec<u64> = (1..=1000).map(|n| 127 * n).collect();
        assert_eq!(ListedPart::new(part(&dense)).differences.len(), 1000);
    }
}
