//! Compressed lists of boards, for layers that are not processed yet.

use super::layer_reader::Part;

/// Bits of a difference in each byte. The highest bit of a byte is set if more bytes follow.
const BITS: u32 = 7;

/// The boards of a part, ascending and each once, as differences between neighbours. If the part has many boards of its
/// lane, a board needs about two bytes.
#[derive(Debug)]
pub struct ListedPart {
    lane: u64,
    boards: usize,
    /// Seven bits per byte, the lowest bits first.
    differences: Vec<u8>,
}

impl ListedPart {
    /// Lists the boards of a part. Other data of the part is dropped.
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

    /// The listed part, with boards and no other data.
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

    /// The number of boards.
    pub fn count(&self) -> usize {
        self.boards
    }

    /// The bytes of memory of the list.
    pub fn bytes(&self) -> u64 {
        (size_of::<Self>() + self.differences.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_boards_are_restored() {
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
