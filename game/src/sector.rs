//! Sectors: the division of lanes by the places of large tiles.
//!
//! A spawn leaves the large tiles in place, so it preserves the sector. On a board that is not square, so does a move
//! along the shorter side that neither merges large tiles nor makes one. All images of a board have the same sector.

use crate::board::BoardSize;

/// Largest number of sectors. The code of a lane has three bits for the sector.
pub const MOST_SECTORS: u8 = 8;

/// Sectors of a run: the sum of the weights of the cells with large tiles, modulo the number of sectors.
///
/// The weight of a cell is its distance from the nearer end of the longer side. On a square board, it is the sum of the
/// distances along both sides.
#[derive(Clone, Debug)]
pub struct Sectors {
    weights: Vec<u8>,
    count: u8,
}

impl Sectors {
    /// Sectors of a board, `count` in number.
    pub fn new(board: BoardSize, count: u8) -> Self {
        let (rows, cols) = (board.rows(), board.cols());
        let distance = |at: usize, of: usize| at.min(of - 1 - at) as u8;
        let weight = |cell: usize| {
            let along_rows = if rows >= cols { distance(cell / cols, rows) } else { 0 };
            let along_cols = if cols >= rows { distance(cell % cols, cols) } else { 0 };
            along_rows + along_cols
        };
        Self { weights: (0..board.cells()).map(weight).collect(), count }
    }

    /// Returns the sector of a board from the cells of its large tiles, one bit each.
    #[inline]
    pub fn of(&self, large_cells: u32) -> u8 {
        if self.count == 1 {
            return 0;
        }
        let weights = self.weights.iter().enumerate();
        let sum: u8 = weights.map(|(cell, weight)| weight * (large_cells >> cell & 1) as u8).sum();
        sum % self.count
    }

    /// Returns the sectors that occur, one bit each, by the number of large tiles.
    pub fn occurring(&self) -> Vec<u8> {
        let count = u32::from(self.count);
        let mut found = vec![0; self.weights.len() + 1];
        found[0] = 1;
        for (cell, &weight) in self.weights.iter().enumerate() {
            for k in (0..=cell).rev() {
                let before = found[k];
                let turned = (0..count).filter(|sector| before >> sector & 1 == 1);
                let after: u8 =
                    turned.map(|sector| 1 << ((sector + u32::from(weight)) % count)).fold(0, |a, b| a | b);
                found[k + 1] |= after;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Move, make_move};
    use crate::symmetry::Symmetries;
    use crate::{Board, lane::Step};

    fn large_cells(board: Board, cells: usize) -> u32 {
        (0..cells).map(|cell| u32::from(board.get(cell) >= 4) << cell).sum()
    }

    #[test]
    fn images_share_a_sector_and_each_occurs() {
        for (board, count) in
            [("2x2", 2), ("5x2", 3), ("2x5", 3), ("4x3", 8), ("3x3", 2), ("4x4", 4), ("1x6", 3)]
        {
            let size: BoardSize = board.parse().unwrap();
            let (sectors, symmetries) = (Sectors::new(size, count), Symmetries::new(size));
            let mut found = vec![0; size.cells() + 1];
            for mask in 0u32..1 << size.cells() {
                let board =
                    (0..size.cells()).fold(Board::default(), |b, c| b.with(c, 4 * (mask >> c & 1) as u8));
                let sector = sectors.of(mask);
                assert!(
                    symmetries
                        .images(board)
                        .all(|image| sectors.of(large_cells(image, size.cells())) == sector)
                );
                found[mask.count_ones() as usize] |= 1 << sector;
            }
            assert_eq!(sectors.occurring(), found, "{board}");
        }
    }

    #[test]
    fn moves_along_the_shorter_side_stay() {
        let size: BoardSize = "4x3".parse().unwrap();
        let sectors = Sectors::new(size, 4);
        let board = Board::parse("16 2 0 / 4 32 64 / 0 0 128 / 2 256 0", size).unwrap();
        for way in [Move::Left, Move::Right] {
            let (after, _) = make_move(board, way, size).unwrap();
            assert_eq!(sectors.of(large_cells(after, 12)), sectors.of(large_cells(board, 12)));
        }
        assert_eq!(Step::STAY.sector, 0);
    }
}
