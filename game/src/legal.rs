//! Legal moves in the entries of a block, row by row and column by column.
//!
//! A move is legal if a tile has an empty cell before it, or if two equal tiles are adjacent along the move. The row
//! determines both conditions, except that the column determines whether two large tiles are equal. So a row has moves
//! that are legal in all its columns. A row also has two sets of columns. In the first set, moves along rows of the
//! board are legal. In the second set, moves along columns of the board are legal.

use crate::board::{Board, BoardSize};
use crate::columns::Columns;
use crate::configs::Config;
use crate::packed::PackedRules;
use crate::skeleton::Mask;

/// Set of moves, one bit each: bit `i` is the move number `i` of [`Move::ALL`](crate::rules::Move::ALL).
pub type MoveSet = u8;

/// Moves along rows of the board: left and right.
const ALONG_ROWS: MoveSet = 0b0011;

/// Moves along columns of the board: up and down.
const ALONG_COLUMNS: MoveSet = 0b1100;

/// Tiles that represent large tiles. Neighbours get different substitutes, so they do not merge.
const SUBSTITUTES: [u8; 2] = [14, 15];

/// Finds legal moves on boards of one size.
#[derive(Debug)]
pub struct Legality {
    rules: PackedRules,
}

/// Legal moves of entries whose rows have one mask.
#[derive(Debug)]
pub struct MaskLegality<'a> {
    rules: &'a PackedRules,
    mask: &'a Mask,
    /// Board with substitutes in the large cells.
    large: Board,
    /// Columns with two equal large tiles that are neighbours in a row of the board, and columns with equal neighbours
    /// in a column of the board.
    equal: [Vec<u64>; 2],
}

/// Legal moves of the entries of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowLegality<'a> {
    always: MoveSet,
    equal: [&'a [u64]; 2],
}

impl Legality {
    /// Builds the tables for boards of a size. Cost: that of [`PackedRules::new`].
    #[must_use]
    pub fn new(size: BoardSize) -> Self {
        Self { rules: PackedRules::new(size) }
    }

    /// Finds the columns with equal large neighbours, for the rows of a mask in blocks of the lane with these columns.
    ///
    /// Cost: one word operation for each 64 columns and each pair of large neighbours. The first call for a lane also
    /// costs a nanosecond for each column and pair of large tiles.
    #[must_use]
    pub fn of_mask<'a>(&'a self, mask: &'a Mask, columns: &Columns) -> MaskLegality<'a> {
        let width = self.rules.size().cols();
        let mut equal = [vec![0; columns.words()], vec![0; columns.words()]];
        for (second, &cell) in mask.large_cells.iter().enumerate() {
            let cell = usize::from(cell);
            let before = [(cell % width > 0).then(|| cell - 1), cell.checked_sub(width)];
            for (equal, neighbour) in equal.iter_mut().zip(before) {
                let first = mask.large_cells.iter().position(|&other| Some(usize::from(other)) == neighbour);
                if let Some(first) = first {
                    let bits = columns.equal_at(first as u8, second as u8);
                    equal.iter_mut().zip(bits).for_each(|(all, bits)| *all |= bits);
                }
            }
        }
        let large = mask.large_cells.iter().fold(Board::default(), |board, &cell| {
            let cell = usize::from(cell);
            board.with(cell, SUBSTITUTES[(cell / width + cell % width) % 2])
        });
        MaskLegality { rules: &self.rules, mask, large, equal }
    }
}

impl MaskLegality<'_> {
    /// Returns the legal moves of the row of a config. Cost: a few tens of nanoseconds.
    #[must_use]
    pub fn row(&self, config: Config) -> RowLegality<'_> {
        let cells = self.mask.small_cells.iter().rev().enumerate();
        let board = cells.fold(self.large, |board, (i, &cell)| {
            board.with(usize::from(cell), (config >> (4 * i)) as u8 & 15)
        });
        let moves = self.rules.moves(board);
        let always = moves.iter().map(|(direction, ..)| 1 << direction as u8).sum();
        RowLegality { always, equal: [&self.equal[0], &self.equal[1]] }
    }
}

impl RowLegality<'_> {
    /// Returns the legal moves in each of 64 columns, beginning with column `64 * word`.
    #[inline]
    #[must_use]
    pub fn word(&self, word: usize) -> ColumnLegality {
        ColumnLegality { always: self.always, equal: self.equal.map(|equal| equal[word]) }
    }

    /// Returns the columns in which no move is legal, one bit each, among the 64 columns from column `64 * word` on.
    #[inline]
    #[must_use]
    pub fn none(&self, word: usize) -> u64 {
        let [rows, columns] = self.equal.map(|equal| equal[word]);
        if self.always == 0 { !(rows | columns) } else { 0 }
    }
}

/// Legal moves in 64 columns of a row.
#[derive(Clone, Copy, Debug)]
pub struct ColumnLegality {
    always: MoveSet,
    equal: [u64; 2],
}

impl ColumnLegality {
    /// Returns the legal moves in one of the columns, by its number among the 64.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, bit: usize) -> MoveSet {
        let [rows, columns] = self.equal.map(|equal| (equal >> bit & 1) as u8);
        self.always | (rows * ALONG_ROWS) | (columns * ALONG_COLUMNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{ClassId, Space};
    use crate::lane::{lanes, layer_range};
    use crate::rowset::Row;
    use crate::{Layer, Params};

    /// Compares all entries of all blocks of small boards, with several splits between small and large tiles.
    #[test]
    fn legal_moves_are_those_of_the_rules() {
        for (board, large) in [("2x2", 3), ("3x2", 3), ("3x2", 4), ("2x3", 3), ("1x5", 3), ("5x1", 4)] {
            let size = board.parse().unwrap();
            let params = Params::usual(board, "score").large(large).build();
            let space = Space::new(&params.unwrap());
            let (rules, legality) = (PackedRules::new(size), Legality::new(size));
            let mut compared = 0;
            for lane in lanes(space.params()) {
                let columns = Columns::new(space.params(), lane);
                let (first, last) = layer_range(space.params(), lane);
                for layer in (first.0..=last.0).step_by(2).map(Layer) {
                    let class = space.class(ClassId::of(layer, lane).unwrap()).unwrap();
                    for (index, mask) in space.masks(lane.k).iter().enumerate() {
                        let of_mask = legality.of_mask(mask, &columns);
                        let rows = class.mask_rows(index);
                        for row in rows.clone() {
                            let within = (row - rows.start) as u32;
                            let cells = mask.small_cells.len();
                            let config = class.config(&space.configs, cells, index, within);
                            let legal = of_mask.row(config);
                            for (column, &sequence) in columns.sequences().iter().enumerate() {
                                let board = space.board(class, Row(row as u32), sequence);
                                let moves = rules.moves(board);
                                let wanted: MoveSet = moves.iter().map(|(d, ..)| 1 << d as u8).sum();
                                let (word, bit) = (column / 64, column % 64);
                                assert_eq!(legal.word(word).at(bit), wanted, "{board:?}");
                                assert_eq!(legal.none(word) >> bit & 1 == 1, wanted == 0, "{board:?}");
                                compared += 1;
                            }
                        }
                    }
                }
            }
            assert!(compared > 100, "{board}");
        }
    }
}
