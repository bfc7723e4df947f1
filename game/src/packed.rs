//! Fast form of the rules: whole lines by table, symmetries by shifts. The modules [`rules`](crate::rules) and
//! [`symmetry`](crate::symmetry) work cell by cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::allocation::zeroed_slice_box;

use crate::board::{Board, BoardSize, MAX_EXPONENT};
use crate::rules::Move;
use crate::stones::Stone;

/// Set of moves, one bit each: bit `i` is the move number `i` of [`Move::ALL`].
pub type MoveSet = u8;

/// Outcomes of sliding a line in both directions.
///
/// The score is the same in both directions, because n adjacent equal tiles make ⌊n/2⌋ merges in either direction. A
/// line with locks that may slide in both directions has no merge.
#[derive(Clone, Copy, Debug, Default)]
struct Slid {
    /// The line slid towards its first cell. The first cell has the lowest four bits.
    first: u32,
    /// The line slid towards its last cell.
    last: u32,
    /// Score, with [`FIRST_BARRED`] and [`LAST_BARRED`].
    score: u32,
}

/// Bit in [`Slid::score`]: a lock would slide towards the first cell.
const FIRST_BARRED: u32 = 1 << 20;

/// Bit in [`Slid::score`]: a lock would slide towards the last cell.
const LAST_BARRED: u32 = 1 << 21;

/// Outcomes of all lines of one length.
#[derive(Clone, Debug)]
enum Lines {
    /// Full table, indexed by the bits of the line.
    Table(Arc<[Slid]>),
    /// Table with the same index. Entries are computed on first use, because few of these lines occur in a game.
    Lazy(Arc<Box<[AtomicU64]>>, Option<Stone>),
    /// No table, because there are too many lines: each call slides the line.
    Slid(usize, Option<Stone>),
}

/// Length of the longest lines whose table is filled when it is created. That table has 65,536 lines.
const LONGEST_IN_TABLE: usize = 4;

impl Lines {
    fn new(length: usize, stone: Option<Stone>) -> Self {
        match length {
            ..=LONGEST_IN_TABLE => {
                Self::Table((0..1u32 << (4 * length)).map(|line| slide_both(line, length, stone)).collect())
            }
            LAZY_LENGTH => Self::Lazy(Arc::new(zeroed_slice_box(1 << (4 * LAZY_LENGTH))), stone),
            _ => Self::Slid(length, stone),
        }
    }

    #[inline]
    fn slid(&self, line: u32) -> Slid {
        match self {
            Self::Table(table) => table[line as usize],
            Self::Lazy(slots, stone) => lazy_line(&slots[line as usize], line, *stone),
            Self::Slid(length, stone) => slide_both(line, *length, *stone),
        }
    }
}

/// Length of the lines of [`Lines::Lazy`]. There are 2^20 such lines. Their table grows to at most 8 MiB as lines are
/// first used.
const LAZY_LENGTH: usize = 5;

/// Returns the outcomes of a line from its slot in the table, and fills the slot on first use.
///
/// A slot is 0 until the first use of its line. Then the slot holds the two outcomes, a quarter of the score and a
/// mark in separate bits. Threads that fill a slot at the same time write the same bits.
#[inline]
fn lazy_line(slot: &AtomicU64, line: u32, stone: Option<Stone>) -> Slid {
    const BITS: u32 = 4 * LAZY_LENGTH as u32;
    const LINE: u64 = (1 << BITS) - 1;
    let mut bits = slot.load(Ordering::Relaxed);
    if bits == 0 {
        let Slid { first, last, score } = slide_both(line, LAZY_LENGTH, stone);
        bits = 1 << 63 | u64::from(score / 4) << (2 * BITS) | u64::from(last) << BITS | u64::from(first);
        slot.store(bits, Ordering::Relaxed);
    }
    let score = (bits >> (2 * BITS) & ((1 << 20) - 1)) as u32 * 4;
    Slid { first: (bits & LINE) as u32, last: (bits >> BITS & LINE) as u32, score }
}

fn slide_both(line: u32, length: usize, stone: Option<Stone>) -> Slid {
    let reversed = |line: u32| (0..length).fold(0, |r, cell| r << 4 | (line >> (4 * cell) & 15));
    let (first, last) = (slide(line, length, stone), slide(reversed(line), length, stone));
    let score = first.or(last).map_or(0, |(_, score)| score);
    let barred = |is_barred: bool, bit: u32| if is_barred { bit } else { 0 };
    Slid {
        first: first.map_or(line, |(slid, _)| slid),
        last: last.map_or(line, |(slid, _)| reversed(slid)),
        score: score | barred(first.is_none(), FIRST_BARRED) | barred(last.is_none(), LAST_BARRED),
    }
}

/// Slides a line towards its first cell; `None` if a lock would slide. On a board with stones, the exponent 15 is a
/// stone. On other boards, two 32,768s do not merge, because the exponent of 65,536 does not fit in four bits.
fn slide(line: u32, length: usize, stone: Option<Stone>) -> Option<(u32, u32)> {
    let (mut slid, mut taken, mut resting, mut score) = (0u32, 0, 0, 0);
    let exponents = (0..length).map(|place| (place, line >> (4 * place) & 15));
    for (place, exponent) in exponents.filter(|&(_, e)| e != 0) {
        if stone.is_some() && exponent == u32::from(MAX_EXPONENT) {
            if stone == Some(Stone::Locked) && taken != place {
                return None;
            }
            slid |= exponent << (4 * place);
            (taken, resting) = (place + 1, 0);
        } else if exponent == resting && exponent < u32::from(MAX_EXPONENT) {
            slid += 1 << (4 * (taken - 1));
            score += 2 << exponent;
            resting = 0;
        } else {
            slid |= exponent << (4 * taken);
            taken += 1;
            resting = exponent;
        }
    }
    Some((slid, score))
}

/// Legal moves of a board, by [`Move`], each with its afterstate and its score.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LegalMoves([Option<(Board, u32)>; 4]);

impl LegalMoves {
    /// Afterstate and score of a move; `None` if the move is not legal.
    #[inline]
    #[must_use]
    pub fn get(&self, direction: Move) -> Option<(Board, u32)> {
        self.0[direction as usize]
    }

    /// Iterates over the legal moves, in the order in which ties are broken.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Move, Board, u32)> + '_ {
        Move::ALL
            .into_iter()
            .zip(&self.0)
            .filter_map(|(direction, made)| made.map(|(to, score)| (direction, to, score)))
    }

    /// Whether no move is legal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// Rules on boards of one size. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PackedRules {
    size: BoardSize,
    rows: Lines,
    columns: Lines,
    /// Lowest bit of each playable cell.
    cells: u64,
    /// Exponent 15 in each place of a stone.
    stones: u64,
    /// Images that preserve the stones, one bit for each image of [`images`](Self::images).
    kept: u8,
}

impl PackedRules {
    /// Builds the tables for a size: 16^n lines for each side of n cells, if n is at most 4.
    #[must_use]
    pub fn new(size: BoardSize) -> Self {
        let stones = u64::from(MAX_EXPONENT) * size.packed_stones();
        let images = images(stones, size.rows(), size.cols()).into_iter().enumerate();
        Self {
            size,
            rows: Lines::new(size.cols(), size.stone()),
            columns: Lines::new(size.rows(), size.stone()),
            cells: size.playable().fold(0, |bits, cell| bits | 1 << (4 * cell)),
            stones,
            kept: images.fold(0, |kept, (slot, image)| kept | u8::from(image == stones) << slot),
        }
    }

    /// Size of the boards.
    #[must_use]
    pub fn size(&self) -> BoardSize {
        self.size
    }

    /// Returns all legal moves. Cost: a few tens of nanoseconds.
    #[inline]
    #[must_use]
    pub fn moves(&self, board: Board) -> LegalMoves {
        if self.stones != 0 {
            return self.moves_beside_stones(board).0;
        }
        // The compiler unrolls the loops where it knows the sides.
        match (self.size.rows(), self.size.cols()) {
            (3, 3) => self.moves_on(board, 3, 3),
            (4, 4) => self.moves_on(board, 4, 4),
            (4, 3) => self.moves_on(board, 4, 3),
            (5, 2) => self.moves_on(board, 5, 2),
            (rows, cols) => self.moves_on(board, rows, cols),
        }
    }

    #[inline(always)]
    fn moves_on(&self, board: Board, rows: usize, cols: usize) -> LegalMoves {
        let [left, right, score] = slide_rows(board.0, rows, cols, &self.rows);
        let across = transposed(board.0, rows, cols);
        let [up, down, score_across] = slide_rows(across, cols, rows, &self.columns);
        let back = |across: u64| transposed(across, cols, rows);
        let made = |after: u64, score: u64| (after != board.0).then_some((Board(after), score as u32));
        LegalMoves([
            made(left, score),
            made(right, score),
            made(back(up), score_across),
            made(back(down), score_across),
        ])
    }

    /// Returns all legal moves on a board with stones, and the moves that slide no lock.
    fn moves_beside_stones(&self, board: Board) -> (LegalMoves, MoveSet) {
        let (rows, cols) = (self.size.rows(), self.size.cols());
        let full = board.0 | self.stones;
        let ([left, right, score], barred) = slide_rows_beside_stones(full, rows, cols, &self.rows);
        let across = transposed(full, rows, cols);
        let ([up, down, score_across], barred_across) =
            slide_rows_beside_stones(across, cols, rows, &self.columns);
        let back = |across: u64| transposed(across, cols, rows);
        let slid = [
            (left, score, barred & FIRST_BARRED),
            (right, score, barred & LAST_BARRED),
            (back(up), score_across, barred_across & FIRST_BARRED),
            (back(down), score_across, barred_across & LAST_BARRED),
        ];
        let made = |(after, score, barred): (u64, u64, u32)| {
            (barred == 0 && after != full).then_some((Board(after & !self.stones), score as u32))
        };
        let possible = slid.iter().zip(0..).map(|(&(.., barred), way)| u8::from(barred == 0) << way).sum();
        (LegalMoves(slid.map(made)), possible)
    }

    /// Returns the moves that slide no lock. Such a move is legal if it changes the board.
    #[must_use]
    pub fn possible(&self, board: Board) -> MoveSet {
        if self.stones == 0 { 0b1111 } else { self.moves_beside_stones(board).1 }
    }

    /// Returns the lowest bit of each empty cell.
    #[inline]
    #[must_use]
    pub fn empty(&self, board: Board) -> u64 {
        let b = board.0 | board.0 >> 1;
        !(b | b >> 2) & self.cells
    }

    /// Whether some cell holds exactly this exponent, which must not be 0.
    #[inline]
    #[must_use]
    pub fn has(&self, board: Board, exponent: u8) -> bool {
        self.empty(Board(board.0 ^ (self.cells * u64::from(exponent)))) != 0
    }

    /// Returns the image of a board with the smallest packed number. Cost: about ten nanoseconds.
    #[inline]
    #[must_use]
    pub fn canonical(&self, board: Board) -> Board {
        if self.kept != u8::MAX {
            return self.images(board).into_iter().min().unwrap_or(board);
        }
        let least = |images: [u64; 8]| Board(images.into_iter().fold(u64::MAX, u64::min));
        // The compiler unrolls the loops where it knows the sides.
        match (self.size.rows(), self.size.cols()) {
            (3, 3) => least(images(board.0, 3, 3)),
            (4, 4) => least(images(board.0, 4, 4)),
            (4, 3) => least(images(board.0, 4, 3)),
            (5, 2) => least(images(board.0, 5, 2)),
            (rows, cols) => least(images(board.0, rows, cols)),
        }
    }

    /// Returns the images of a board under the symmetries.
    ///
    /// The first four are the board itself, the board with its columns reversed, with its rows reversed, and with both
    /// reversed. The last four are the same images of the transposed board. A board that is not square is not
    /// transposed, so its last four images repeat the first four. The board itself replaces each image that would move
    /// a stone to a playable cell.
    #[inline]
    #[must_use]
    pub fn images(&self, board: Board) -> [Board; 8] {
        let images = match (self.size.rows(), self.size.cols()) {
            (3, 3) => images(board.0, 3, 3),
            (4, 4) => images(board.0, 4, 4),
            (4, 3) => images(board.0, 4, 3),
            (5, 2) => images(board.0, 5, 2),
            (rows, cols) => images(board.0, rows, cols),
        };
        if self.kept == u8::MAX {
            return images.map(Board);
        }
        std::array::from_fn(|slot| if self.kept >> slot & 1 == 1 { Board(images[slot]) } else { board })
    }
}

/// Slides every row. Returns the board slid towards the first cells, towards the last cells, and the score.
#[inline(always)]
fn slide_rows(board: u64, rows: usize, cols: usize, lines: &Lines) -> [u64; 3] {
    let bits = 4 * cols;
    let mask = (1u64 << bits) - 1;
    let (mut first, mut last, mut score) = (0, 0, 0);
    for row in 0..rows {
        let slid = lines.slid((board >> (bits * row) & mask) as u32);
        first |= u64::from(slid.first) << (bits * row);
        last |= u64::from(slid.last) << (bits * row);
        score += u64::from(slid.score);
    }
    [first, last, score]
}

/// Does the same as [`slide_rows`] on a board with stones. Also returns [`FIRST_BARRED`] and [`LAST_BARRED`].
fn slide_rows_beside_stones(board: u64, rows: usize, cols: usize, lines: &Lines) -> ([u64; 3], u32) {
    let bits = 4 * cols;
    let mask = (1u64 << bits) - 1;
    let (mut first, mut last, mut score, mut barred) = (0, 0, 0, 0);
    for row in 0..rows {
        let slid = lines.slid((board >> (bits * row) & mask) as u32);
        first |= u64::from(slid.first) << (bits * row);
        last |= u64::from(slid.last) << (bits * row);
        score += u64::from(slid.score & !(FIRST_BARRED | LAST_BARRED));
        barred |= slid.score & (FIRST_BARRED | LAST_BARRED);
    }
    ([first, last, score], barred)
}

/// Transposes a board of `rows` rows and `cols` columns.
#[inline(always)]
pub fn transposed(board: u64, rows: usize, cols: usize) -> u64 {
    if (rows, cols) == (4, 4) {
        // Swap the off-diagonal cells of each 2×2 square, then the off-diagonal squares.
        let swapped = (board ^ board >> 12) & 0x0000_f0f0_0000_f0f0;
        let board = board ^ swapped ^ swapped << 12;
        let swapped = (board ^ board >> 24) & 0x0000_0000_ff00_ff00;
        return board ^ swapped ^ swapped << 24;
    }
    if (rows, cols) == (3, 3) {
        // Swap the cells next to the diagonal, then the two corners off it.
        let swapped = (board ^ board >> 8) & 0x0_00f0_00f0;
        let board = board ^ swapped ^ swapped << 8;
        let swapped = (board ^ board >> 16) & 0x0_0000_0f00;
        return board ^ swapped ^ swapped << 16;
    }
    let mut across = 0;
    for row in 0..rows {
        for col in 0..cols {
            across |= (board >> (4 * (row * cols + col)) & 15) << (4 * (col * rows + row));
        }
    }
    across
}

/// Returns the images in the order of [`PackedRules::images`].
#[inline(always)]
fn images(bits: u64, rows: usize, cols: usize) -> [u64; 8] {
    let across = if rows == cols { transposed(bits, rows, cols) } else { bits };
    let [mirrored, across_mirrored] = [bits, across].map(|bits| mirrored(bits, rows, cols));
    let flipped = |bits| flipped(bits, rows, cols);
    [
        bits,
        mirrored,
        flipped(bits),
        flipped(mirrored),
        across,
        across_mirrored,
        flipped(across),
        flipped(across_mirrored),
    ]
}

/// Reverses the columns of a board.
#[inline(always)]
fn mirrored(bits: u64, rows: usize, cols: usize) -> u64 {
    if (rows, cols) == (3, 3) {
        return bits & 0x0_f00f_00f0 | (bits & 0x0_0f00_f00f) << 8 | bits >> 8 & 0x0_0f00_f00f;
    }
    if (rows, cols) == (4, 4) {
        let halves = (bits & 0x00ff_00ff_00ff_00ff) << 8 | bits >> 8 & 0x00ff_00ff_00ff_00ff;
        return (halves & 0x0f0f_0f0f_0f0f_0f0f) << 4 | halves >> 4 & 0x0f0f_0f0f_0f0f_0f0f;
    }
    let first = (0..rows).fold(0, |cells, row| cells | 15u64 << (4 * row * cols));
    let middle = if cols % 2 == 1 { bits & first << (4 * (cols / 2)) } else { 0 };
    (0..cols / 2).fold(middle, |image, col| {
        let (column, shift) = (first << (4 * col), 4 * (cols - 1 - 2 * col));
        image | (bits & column) << shift | bits >> shift & column
    })
}

/// Reverses the rows of a board.
#[inline(always)]
fn flipped(bits: u64, rows: usize, cols: usize) -> u64 {
    if (rows, cols) == (3, 3) {
        return bits & 0xff_f000 | (bits & 0xfff) << 24 | bits >> 24 & 0xfff;
    }
    if (rows, cols) == (4, 4) {
        let halves = bits.rotate_left(32);
        return (halves & 0x0000_ffff_0000_ffff) << 16 | halves >> 16 & 0x0000_ffff_0000_ffff;
    }
    let width = 4 * cols;
    let first = (1u64 << width) - 1;
    let middle = if rows % 2 == 1 { bits & first << (width * (rows / 2)) } else { 0 };
    (0..rows / 2).fold(middle, |image, row| {
        let (line, shift) = (first << (width * row), width * (rows - 1 - 2 * row));
        image | (bits & line) << shift | bits >> shift & line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::make_move;
    use crate::symmetry::Symmetries;

    /// Pseudo-random boards that are the same in every run of the tests.
    fn boards(size: BoardSize, count: usize) -> impl Iterator<Item = Board> {
        let (mut seed, most) = (1u64, u64::from(size.most_exponent()));
        (0..count).map(move |nth| {
            size.playable().fold(Board::default(), |board, cell| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                board.with(cell, ((seed >> 33) % (2 + nth as u64 % most)) as u8)
            })
        })
    }

    #[test]
    fn packed_rules_are_the_rules() {
        let plain =
            ["2x2", "3x2", "2x3", "3x3", "4x3", "3x4", "4x4", "1x5", "5x2", "2x5", "8x2", "2x8", "5x3"];
        let pictures =
            ["2x3:..x/...", "3x3:.../.x./...", "3x3:#../.../..#", "4x4:..../..../.xxx/.xxx", "1x5:x.x.."];
        let long = [
            "2x5:..#../.....",
            "8x2:x./../../../x./../../..",
            "4x4:xxxx/xxxx/..../....",
            "4x4:..../..#./.#../....",
        ];
        for size in plain.into_iter().chain(pictures).chain(long) {
            let size: BoardSize = size.parse().unwrap();
            let (packed, symmetries) = (PackedRules::new(size), Symmetries::new(size));
            for board in boards(size, 2000) {
                let moves = packed.moves(board);
                for direction in Move::ALL {
                    let text = board.to_text(size);
                    assert_eq!(
                        moves.get(direction),
                        make_move(board, direction, size),
                        "{text} {}",
                        direction.name()
                    );
                }
                assert_eq!(packed.canonical(board), symmetries.canonical(board), "{size}");
                let empty = size.playable().filter(|&cell| board.get(cell) == 0);
                assert_eq!(packed.empty(board), empty.fold(0, |bits, cell| bits | 1 << (4 * cell)));
                for exponent in 1..=15 {
                    let has = size.playable().any(|cell| board.get(cell) == exponent);
                    assert_eq!(packed.has(board, exponent), has);
                }
            }
        }
    }

    #[test]
    fn the_largest_tiles_do_not_merge() {
        assert!(PackedRules::new("2x2".parse().unwrap()).moves(Board(0xffff)).is_empty());
        let long = PackedRules::new("1x5".parse().unwrap());
        let (after, score) = long.moves(Board(0xeeee0)).get(Move::Left).unwrap();
        assert_eq!((after, score), (Board(0xff), 65_536), "the largest score of five cells");
    }
}
