//! Legal moves in the entries of a block, row by row and column by column.
//!
//! A move is legal if a tile has an empty cell before it, or if two equal tiles are adjacent along the move. The row
//! determines both conditions, except that the column determines whether two large tiles are equal. So a row has moves
//! that are legal in all its columns. A row also has two sets of columns. In the first set, moves along rows of the
//! board are legal. In the second set, moves along columns of the board are legal.
//!
//! A lock forbids a move if the cells before it have a gap or two equal neighbours. The row determines the gaps. The
//! column determines whether two large tiles are equal, so a row has one more set of columns for each move.

use crate::board::{Board, BoardSize};
use crate::columns::Columns;
use crate::configs::Config;
use crate::packed::{MoveSet, PackedRules};
use crate::rules::Move;
use crate::skeleton::Mask;
use crate::stones::Stone;

/// Moves along rows of the board: left and right.
const ALONG_ROWS: MoveSet = 0b0011;

/// Moves along columns of the board: up and down.
const ALONG_COLUMNS: MoveSet = 0b1100;

/// All moves.
const ALL_MOVES: MoveSet = ALONG_ROWS | ALONG_COLUMNS;

/// Tiles that represent large tiles. Neighbours get different substitutes, so they do not merge.
const SUBSTITUTES: [u8; 2] = [13, 14];

/// Finds legal moves on boards of one size.
#[derive(Debug)]
pub struct Legality {
    rules: PackedRules,
    /// For each move, the cells from which a lock follows in the direction away from the wall, one bit each. `None`
    /// without locks.
    before_locks: Option<[u16; 4]>,
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
    /// Columns in which two equal large neighbours forbid each move. `None` without locks.
    barred: Option<[Vec<u64>; 4]>,
}

/// Legal moves of the entries of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowLegality<'a> {
    always: MoveSet,
    equal: [&'a [u64]; 2],
    barred: Option<Barred<&'a [u64]>>,
}

/// Moves that locks forbid.
#[derive(Clone, Copy, Debug)]
struct Barred<T> {
    /// Moves that a lock forbids in all columns.
    always: MoveSet,
    /// Columns in which a lock forbids each move.
    columns: [T; 4],
}

impl Legality {
    /// Builds the tables for boards of a size. Cost: that of [`PackedRules::new`].
    #[must_use]
    pub fn new(size: BoardSize) -> Self {
        let before_locks = (size.stone() == Some(Stone::Locked)).then(|| cells_before_locks(size));
        Self { rules: PackedRules::new(size), before_locks }
    }

    /// Finds the columns with equal large neighbours, for the rows of a mask in blocks of the lane with these columns.
    ///
    /// Cost: one word operation for each 64 columns and each pair of large neighbours. The first call for a lane also
    /// costs a nanosecond for each column and pair of large tiles.
    #[must_use]
    pub fn of_mask<'a>(&'a self, mask: &'a Mask, columns: &Columns) -> MaskLegality<'a> {
        let width = self.rules.size().cols();
        let none = || vec![0; columns.words()];
        let mut equal = [none(), none()];
        let mut barred = self.before_locks.map(|_| std::array::from_fn(|_| none()));
        for (second, &cell) in mask.large_cells.iter().enumerate() {
            let cell = usize::from(cell);
            let before = [(cell % width > 0).then(|| cell - 1), cell.checked_sub(width)];
            for (axis, neighbour) in before.into_iter().enumerate() {
                let first = mask.large_cells.iter().position(|&other| Some(usize::from(other)) == neighbour);
                if let Some(first) = first {
                    let bits = columns.equal_at(first as u8, second as u8);
                    add(&mut equal[axis], bits);
                    for (barred, before) in barred.iter_mut().zip(self.before_locks) {
                        let ways = 2 * axis..2 * axis + 2;
                        let forbids = |way: &usize| {
                            let cells = [mask.large_cells[first], mask.large_cells[second]];
                            cells.iter().all(|cell| before[*way] >> cell & 1 == 1)
                        };
                        ways.filter(forbids).for_each(|way| add(&mut barred[way], bits));
                    }
                }
            }
        }
        let large = mask.large_cells.iter().fold(Board::default(), |board, &cell| {
            let cell = usize::from(cell);
            board.with(cell, SUBSTITUTES[(cell / width + cell % width) % 2])
        });
        MaskLegality { rules: &self.rules, mask, large, equal, barred }
    }
}

/// Adds columns to a set of columns.
fn add(all: &mut [u64], some: &[u64]) {
    all.iter_mut().zip(some).for_each(|(all, some)| *all |= some);
}

/// Returns, for each move, the cells from which a lock follows in the direction away from the wall.
fn cells_before_locks(size: BoardSize) -> [u16; 4] {
    Move::ALL.map(|way| {
        let mut found = 0;
        for line in way.lines(size) {
            let last = line.iter().rposition(|&cell| size.is_stone(usize::from(cell))).unwrap_or(0);
            line[..last].iter().for_each(|cell| found |= 1 << cell);
        }
        found
    })
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
        let barred = self.barred.as_ref().map(|columns| Barred {
            always: ALL_MOVES & !self.rules.possible(board),
            columns: columns.each_ref().map(Vec::as_slice),
        });
        RowLegality { always, equal: [&self.equal[0], &self.equal[1]], barred }
    }
}

impl RowLegality<'_> {
    /// Returns the legal moves in each of 64 columns, beginning with column `64 * word`.
    #[inline]
    #[must_use]
    pub fn word(&self, word: usize) -> ColumnLegality {
        let barred = self.barred.map(|Barred { always, columns }| Barred {
            always,
            columns: columns.map(|columns| columns[word]),
        });
        ColumnLegality { always: self.always, equal: self.equal.map(|equal| equal[word]), barred }
    }

    /// Returns the columns in which no move is legal, one bit each, among the 64 columns from column `64 * word` on.
    #[inline]
    #[must_use]
    pub fn none(&self, word: usize) -> u64 {
        if self.barred.is_some() {
            return self.word(word).none_beside_locks();
        }
        let [rows, columns] = self.equal.map(|equal| equal[word]);
        if self.always == 0 { !(rows | columns) } else { 0 }
    }
}

/// Legal moves in 64 columns of a row.
#[derive(Clone, Copy, Debug)]
pub struct ColumnLegality {
    always: MoveSet,
    equal: [u64; 2],
    barred: Option<Barred<u64>>,
}

impl ColumnLegality {
    /// Returns the legal moves in one of the columns, by its number among the 64.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, bit: usize) -> MoveSet {
        let [rows, columns] = self.equal.map(|equal| (equal >> bit & 1) as u8);
        let changing = self.always | (rows * ALONG_ROWS) | (columns * ALONG_COLUMNS);
        let Some(barred) = &self.barred else { return changing };
        let here = (0..).zip(barred.columns).map(|(way, columns)| ((columns >> bit & 1) as u8) << way);
        changing & !barred.always & !here.sum::<MoveSet>()
    }

    /// Returns the columns in which no move is legal on a board with locks.
    fn none_beside_locks(&self) -> u64 {
        (0..u64::BITS as usize).filter(|&bit| self.at(bit) == 0).fold(0, |none, bit| none | 1 << bit)
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
        let plain = [("2x2", 3), ("3x2", 3), ("3x2", 4), ("2x3", 3), ("1x5", 3), ("5x1", 4)];
        let locked = [("2x3:..x/...", 3), ("3x2:.x/../..", 3), ("1x5:...x.", 3), ("3x3:.../.xx/.xx", 3)];
        let walls = [("2x3:.#./...", 3), ("5x1:././././#", 4)];
        for (board, large) in plain.into_iter().chain(locked).chain(walls) {
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
