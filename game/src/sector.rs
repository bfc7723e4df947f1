//! Sectors: the division of lanes by the places of large tiles.
//!
//! A spawn leaves the large tiles in place, so it preserves the sector. On a board that is not square, so does a move
//! along the shorter side that neither merges large tiles nor makes one. All images of a board have the same sector.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::board::BoardSize;

/// Largest number of sectors. The code of a lane has three bits for the sector.
pub const MOST_SECTORS: u8 = 8;

/// Sectors of a run.
///
/// The sector of a set of cells follows from its profile: how many of its cells are in each line along the shorter side, up
/// to symmetry. Profiles are dealt to the sectors, those of most sets first. Each goes to the sector that then has the
/// fewest sets of this number of cells.
#[derive(Clone, Debug)]
pub struct Sectors {
    /// Sector of each set of cells, one bit each. Empty with a single sector.
    sectors: Vec<u8>,
    occurring: Vec<u8>,
}

impl Sectors {
    /// Sectors of a board, `count` in number. Cost: a step per set of cells.
    pub fn new(board: BoardSize, count: u8) -> Self {
        let cells = board.places();
        if count == 1 {
            return Self { sectors: Vec::new(), occurring: vec![1; cells + 1] };
        }
        let profiles: Vec<u32> = (0..1u32 << cells).map(|set| profile(board, set)).collect();
        let mut sizes = BTreeMap::<(u32, u32), u32>::new();
        for (set, &profile) in (0u32..).zip(&profiles) {
            *sizes.entry((set.count_ones(), profile)).or_default() += 1;
        }
        let mut order: Vec<((u32, u32), u32)> = sizes.into_iter().collect();
        order.sort_by_key(|&((large, profile), size)| (large, Reverse(size), profile));
        let mut sector_of = BTreeMap::new();
        let mut occurring = vec![0; cells + 1];
        let mut dealt = vec![vec![0; usize::from(count)]; cells + 1];
        for ((large, profile), size) in order {
            let dealt = &mut dealt[large as usize];
            let sector = (0..count).min_by_key(|&sector| dealt[usize::from(sector)]).unwrap_or_default();
            dealt[usize::from(sector)] += size;
            occurring[large as usize] |= 1 << sector;
            sector_of.insert(profile, sector);
        }
        Self { sectors: profiles.iter().map(|profile| sector_of[profile]).collect(), occurring }
    }

    /// Returns the sector of a board from the cells of its large tiles, one bit each.
    #[inline]
    pub fn of(&self, large_cells: u32) -> u8 {
        self.sectors.get(large_cells as usize).copied().unwrap_or_default()
    }

    /// Returns the sectors that occur, one bit each, by the number of large tiles.
    pub fn occurring(&self) -> &[u8] {
        &self.occurring
    }
}

/// The profile of a set of cells: its cells in each line along the shorter side, four bits a line, the first line lowest. Of
/// all images, the smallest number.
fn profile(board: BoardSize, set: u32) -> u32 {
    let (rows, cols) = (board.rows(), board.cols());
    let count = |lines: usize, line_of: &dyn Fn(usize) -> usize| {
        let cells = (0..board.places()).filter(|cell| set >> cell & 1 == 1);
        let (there, back) = cells.map(line_of).fold((0, 0), |(there, back), line| {
            (there + (1u32 << (4 * line)), back + (1u32 << (4 * (lines - 1 - line))))
        });
        there.min(back)
    };
    let by_row = || count(rows, &|cell| cell / cols);
    let by_column = || count(cols, &|cell| cell % cols);
    match rows.cmp(&cols) {
        Ordering::Greater => by_row(),
        Ordering::Less => by_column(),
        Ordering::Equal => by_row().min(by_column()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Board;
    use crate::rules::{Move, make_move};
    use crate::symmetry::Symmetries;

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

    /// With eight sectors, none has more than a quarter of the sets with 3 to 9 large tiles on 4x3.
    #[test]
    fn sectors_are_even() {
        let sectors = Sectors::new("4x3".parse().unwrap(), 8);
        for large in 3..=9 {
            let mut sets = [0; 8];
            for set in (0u32..1 << 12).filter(|set| set.count_ones() == large) {
                sets[usize::from(sectors.of(set))] += 1;
            }
            let (most, all) = (sets.iter().max().unwrap(), sets.iter().sum::<u32>());
            assert!(4 * most <= all, "{sets:?} with {large} large tiles");
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
    }
}
