//! Moves and symmetries, implemented from the text of the rules, for eight boards at a time.
//!
//! A board is a number with four bits per cell, row by row from the lowest bits upward. All lines of a board slide at
//! once: a mask selects the tiles at one distance from the wall, and a shift moves them to the wall. After that, each
//! step applies to all lines. Eight boards fill the registers of a vector unit.

use exact2048_game::BoardSize;
use multiversion::multiversion;

/// The number of boards that are processed at once.
const WIDTH: usize = 8;

type Batch = [u64; WIDTH];

/// The largest number of images of a board, which a square board has.
pub const MOST_IMAGES: usize = 8;

/// Data that depends only on the size of the board.
#[derive(Debug)]
pub struct Geometry {
    cells: usize,
    /// Left, right, up, down.
    directions: [Direction; 4],
    /// Exchanges the first and the last column, the second and the second to last, and so on.
    mirror: Vec<Swap>,
    /// Exchanges the first and the last row, the second and the second to last, and so on.
    upend: Vec<Swap>,
    /// Exchanges rows and columns; `None` unless the board is square.
    transpose: Option<Vec<Swap>>,
}

/// How tiles slide to one wall.
#[derive(Debug)]
struct Direction {
    /// The cells at the wall, then those next to them, and so on; four bits a cell.
    ranks: Vec<u64>,
    /// The shifts to the right and to the left, in bits, from a rank to the previous rank. One of them is 0.
    right: u32,
    left: u32,
}

/// An exchange of some cells with the cells that lie `bits` bits higher.
#[derive(Debug)]
struct Swap {
    cells: u64,
    bits: u32,
}

impl Geometry {
    /// The geometry of boards of a size.
    pub fn new(size: BoardSize) -> Self {
        let (rows, cols) = (size.rows(), size.cols());
        let cell = |r: usize, c: usize| 15u64 << (4 * (r * cols + c));
        let row = |r: usize| (0..cols).map(|c| cell(r, c)).sum::<u64>();
        let col = |c: usize| (0..rows).map(|r| cell(r, c)).sum::<u64>();
        let (one, line) = (4, 4 * cols as u32);
        let toward = |ranks: Vec<u64>, right: u32, left: u32| Direction { ranks, right, left };
        let directions = [
            toward((0..cols).map(col).collect(), one, 0),
            toward((0..cols).rev().map(col).collect(), 0, one),
            toward((0..rows).map(row).collect(), line, 0),
            toward((0..rows).rev().map(row).collect(), 0, line),
        ];
        let mirrored = |c: usize| Swap { cells: col(c), bits: one * (cols - 1 - 2 * c) as u32 };
        let upended = |r: usize| Swap { cells: row(r), bits: line * (rows - 1 - 2 * r) as u32 };
        let off_diagonal = |d: usize| Swap {
            cells: (0..rows - d).map(|r| cell(r, r + d)).sum(),
            bits: (4 * d * (rows - 1)) as u32,
        };
        Self {
            cells: size.cells(),
            directions,
            mirror: (0..cols / 2).map(mirrored).collect(),
            upend: (0..rows / 2).map(upended).collect(),
            transpose: (rows == cols).then(|| (1..rows).map(off_diagonal).collect()),
        }
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// The lowest bit of each empty cell.
    #[inline]
    pub fn empty_cells(&self, board: u64) -> u64 {
        !taken(board) & LOWEST_BITS & (u64::MAX >> (64 - 4 * self.cells))
    }

    /// The boards after each of the four moves, in the order of `boards`. A move that does not change its board is not
    /// legal.
    pub fn slide(&self, boards: &[u64], after: &mut [Vec<u64>; 4]) {
        for (direction, after) in self.directions.iter().zip(after) {
            after.clear();
            after.extend_from_slice(boards);
            slide(after, direction);
        }
    }

    /// Puts the smallest image of each board in its place.
    pub fn canonicalise(&self, boards: &mut [u64]) {
        canonicalise(boards, self);
    }

    /// The smallest image of a board.
    pub fn canonical(&self, board: u64) -> u64 {
        self.images(board).into_iter().min().unwrap_or(board)
    }

    /// The images of a board under the symmetries of its shape. On a board that is not square, the list has each image
    /// at least twice.
    pub fn images(&self, board: u64) -> [u64; MOST_IMAGES] {
        let [first] = images(self, [board]);
        first
    }
}

/// The images of each of some boards.
fn images<const N: usize>(geometry: &Geometry, boards: [u64; N]) -> [[u64; MOST_IMAGES]; N] {
    let transposed = geometry.transpose.as_ref().map_or(boards, |swaps| exchange(boards, swaps));
    let mut all = [[0; MOST_IMAGES]; N];
    for (half, boards) in [boards, transposed].into_iter().enumerate() {
        let mirrored = exchange(boards, &geometry.mirror);
        let four = [boards, mirrored, exchange(boards, &geometry.upend), exchange(mirrored, &geometry.upend)];
        for (i, images) in four.into_iter().enumerate() {
            for (all, image) in all.iter_mut().zip(images) {
                all[4 * half + i] = image;
            }
        }
    }
    all
}

#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn canonicalise(boards: &mut [u64], geometry: &Geometry) {
    in_batches(boards, |boards| {
        let mut smallest = smallest_of_four(boards, geometry);
        if let Some(transpose) = &geometry.transpose {
            smallest = smaller(smallest, smallest_of_four(exchange(boards, transpose), geometry));
        }
        smallest
    });
}

#[inline(always)]
fn smallest_of_four(boards: Batch, geometry: &Geometry) -> Batch {
    let mirrored = exchange(boards, &geometry.mirror);
    let upended = exchange(boards, &geometry.upend);
    let both = exchange(mirrored, &geometry.upend);
    smaller(smaller(boards, mirrored), smaller(upended, both))
}

#[inline(always)]
fn exchange<const N: usize>(boards: [u64; N], swaps: &[Swap]) -> [u64; N] {
    let mut boards = boards;
    for &Swap { cells, bits } in swaps {
        let others = !(cells | cells << bits);
        boards = each(boards, |b| b & others | (b & cells) << bits | (b >> bits) & cells);
    }
    boards
}

#[inline(always)]
fn smaller(a: Batch, b: Batch) -> Batch {
    zip(a, b, u64::min)
}

// These functions loop over arrays in place, because compilers do not always vectorize the methods of arrays.

#[inline(always)]
fn each<const N: usize>(mut a: [u64; N], of: impl Fn(u64) -> u64) -> [u64; N] {
    for a in &mut a {
        *a = of(*a);
    }
    a
}

#[inline(always)]
fn zip(mut a: Batch, b: Batch, of: impl Fn(u64, u64) -> u64) -> Batch {
    for (a, b) in a.iter_mut().zip(b) {
        *a = of(*a, b);
    }
    a
}

/// Replaces boards, eight at a time. The last batch is filled with empty boards.
#[inline(always)]
fn in_batches(boards: &mut [u64], change: impl Fn(Batch) -> Batch) {
    let (whole, rest) = boards.as_chunks_mut::<WIDTH>();
    for batch in whole {
        *batch = change(*batch);
    }
    if !rest.is_empty() {
        let mut batch = [0; WIDTH];
        batch[..rest.len()].copy_from_slice(rest);
        rest.copy_from_slice(&change(batch)[..rest.len()]);
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn slide(boards: &mut [u64], direction: &Direction) {
    match direction.ranks.len() {
        2 => in_batches(boards, |batch| slide_lines::<2>(batch, direction)),
        3 => in_batches(boards, |batch| slide_lines::<3>(batch, direction)),
        4 => in_batches(boards, |batch| slide_lines::<4>(batch, direction)),
        5 => in_batches(boards, |batch| slide_lines::<5>(batch, direction)),
        6 => in_batches(boards, |batch| slide_lines::<6>(batch, direction)),
        7 => in_batches(boards, |batch| slide_lines::<7>(batch, direction)),
        8 => in_batches(boards, |batch| slide_lines::<8>(batch, direction)),
        // In a line of one cell, no tile moves.
        _ => {}
    }
}

/// Slides all lines, of `N` cells each.
///
/// Tiles move as far as they can. Two equal tiles that meet merge. Pairs nearest the wall merge first. A merged tile
/// does not merge again.
#[inline(always)]
fn slide_lines<const N: usize>(boards: Batch, direction: &Direction) -> Batch {
    // The tiles at each distance from the wall, all shifted to the wall.
    let mut ranks = [boards; N];
    for (i, rank) in ranks.iter_mut().enumerate() {
        let (cells, right, left) =
            (direction.ranks[i], direction.right * i as u32, direction.left * i as u32);
        *rank = each(*rank, |b| (b & cells) >> right << left);
    }
    // Each rank in turn moves toward the wall, as far as the cells before it are empty.
    for new in 1..N {
        for at in (1..=new).rev() {
            close_gap(&mut ranks, at);
        }
    }
    // A merge leaves a gap, so a merged tile cannot meet the next one.
    for at in 1..N {
        merge(&mut ranks, at);
    }
    for new in 2..N {
        for at in (2..=new).rev() {
            close_gap(&mut ranks, at);
        }
    }
    let mut after = [0; WIDTH];
    for (i, rank) in ranks.into_iter().enumerate() {
        let (right, left) = (direction.right * i as u32, direction.left * i as u32);
        after = zip(after, rank, |after, rank| after | rank << right >> left);
    }
    after
}

/// Moves each tile of a rank to the previous rank if its cell there is empty.
#[inline(always)]
fn close_gap<const N: usize>(ranks: &mut [Batch; N], at: usize) {
    let move_on = zip(ranks[at - 1], ranks[at], |before, here| here & !taken(before));
    ranks[at - 1] = zip(ranks[at - 1], move_on, |before, moved| before | moved);
    ranks[at] = zip(ranks[at], move_on, |here, moved| here ^ moved);
}

/// Merges each tile of a rank with the tile in the previous rank if both are equal.
#[inline(always)]
fn merge<const N: usize>(ranks: &mut [Batch; N], at: usize) {
    let equal = zip(ranks[at - 1], ranks[at], |before, here| taken(here) & !taken(before ^ here));
    ranks[at - 1] = zip(ranks[at - 1], equal, |before, equal| before + (equal & LOWEST_BITS));
    ranks[at] = zip(ranks[at], equal, |here, equal| here & !equal);
}

/// The lowest bit of every cell.
const LOWEST_BITS: u64 = 0x1111_1111_1111_1111;

/// A mask with all four bits of each cell that is not empty.
#[inline(always)]
fn taken(cells: u64) -> u64 {
    let pairs = cells | cells >> 1;
    let any = (pairs | pairs >> 2) & LOWEST_BITS;
    (any << 4).wrapping_sub(any)
}

/// The sum of the tiles of a board: its layer.
pub fn tile_sum(board: u64) -> u32 {
    let exponents = (0..16).map(|cell| board >> (4 * cell) & 15);
    exponents.filter(|&exponent| exponent > 0).map(|exponent| 1 << exponent).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A direct implementation of the rules, for one board, with lists of tiles.
    ///
    /// Tiles slide toward the wall until another tile or the wall stops them. Two equal tiles that meet become one tile
    /// of twice their value. A tile merges at most once per move. Tiles nearest the wall merge first.
    fn by_the_rules(board: u64, rows: usize, cols: usize, direction: usize) -> u64 {
        let get = |r: usize, c: usize| board >> (4 * (r * cols + c)) & 15;
        let (lines, length) = if direction < 2 { (rows, cols) } else { (cols, rows) };
        let mut after = 0;
        for line in 0..lines {
            let place = |i: usize| match direction {
                0 => (line, i),
                1 => (line, length - 1 - i),
                2 => (i, line),
                _ => (length - 1 - i, line),
            };
            let mut tiles: std::collections::VecDeque<u64> =
                (0..length).map(|i| get(place(i).0, place(i).1)).filter(|&e| e > 0).collect();
            let mut done = Vec::new();
            while let Some(tile) = tiles.pop_front() {
                if tiles.front() == Some(&tile) {
                    tiles.pop_front();
                    done.push(tile + 1);
                } else {
                    done.push(tile);
                }
            }
            for (i, tile) in done.into_iter().enumerate() {
                let (r, c) = place(i);
                after |= tile << (4 * (r * cols + c));
            }
        }
        after
    }

    /// The cell to which a symmetry moves the cell (r, c). Only squares have the symmetries 4 to 7.
    fn moved(symmetry: usize, r: usize, c: usize, rows: usize, cols: usize) -> (usize, usize) {
        let (r, c) = if symmetry >= 4 { (c, r) } else { (r, c) };
        let r = if symmetry & 1 == 0 { r } else { rows - 1 - r };
        let c = if symmetry & 2 == 0 { c } else { cols - 1 - c };
        (r, c)
    }

    fn random_boards(cells: usize, count: usize, below: u64) -> Vec<u64> {
        let mut seed = 2048u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        (0..count).map(|_| (0..cells).map(|c| (random() % below) << (4 * c)).sum()).collect()
    }

    fn sizes() -> impl Iterator<Item = (usize, usize)> {
        (1..=8).flat_map(|r| (1..=8).map(move |c| (r, c))).filter(|(r, c)| (2..=16).contains(&(r * c)))
    }

    #[test]
    fn every_move_on_every_size_is_that_of_the_rules() {
        for (rows, cols) in sizes() {
            let geometry = Geometry::new(BoardSize::new(rows as u64, cols as u64).unwrap());
            // Tiles of few kinds often merge. Tiles of many kinds are rarely equal.
            for (below, count) in [(2, 333), (3, 1001), (15, 333)] {
                let boards = random_boards(rows * cols, count, below);
                let mut after = [const { Vec::new() }; 4];
                geometry.slide(&boards, &mut after);
                for (direction, after) in after.iter().enumerate() {
                    for (&board, &after) in boards.iter().zip(after) {
                        let wanted = by_the_rules(board, rows, cols, direction);
                        assert_eq!(after, wanted, "{rows}x{cols}, {board:x}, direction {direction}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_line_of_four_slides_by_the_rules() {
        let geometry = Geometry::new(BoardSize::new(1, 4).unwrap());
        let boards: Vec<u64> =
            (0..6u64.pow(4)).map(|n| (0..4).map(|c| (n / 6u64.pow(c) % 6) << (4 * c)).sum()).collect();
        let mut after = [const { Vec::new() }; 4];
        geometry.slide(&boards, &mut after);
        for (i, &board) in boards.iter().enumerate() {
            assert_eq!(after[0][i], by_the_rules(board, 1, 4, 0), "{board:x}");
            assert_eq!(after[1][i], by_the_rules(board, 1, 4, 1), "{board:x}");
            assert_eq!((after[2][i], after[3][i]), (board, board));
        }
    }

    #[test]
    fn images_are_those_of_the_rectangle() {
        for (rows, cols) in sizes() {
            let geometry = Geometry::new(BoardSize::new(rows as u64, cols as u64).unwrap());
            let boards = random_boards(rows * cols, 100, 12);
            let mut canonical = boards.clone();
            geometry.canonicalise(&mut canonical);
            for (&board, canonical) in boards.iter().zip(canonical) {
                let image = |symmetry: usize| {
                    let cells = (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c)));
                    cells.fold(0, |image, (r, c)| {
                        let (to_r, to_c) = moved(symmetry, r, c, rows, cols);
                        image | (board >> (4 * (r * cols + c)) & 15) << (4 * (to_r * cols + to_c))
                    })
                };
                let mut wanted: Vec<u64> = (0..if rows == cols { 8 } else { 4 }).map(image).collect();
                wanted.sort_unstable();
                wanted.dedup();
                let mut found = geometry.images(board).to_vec();
                found.sort_unstable();
                found.dedup();
                assert_eq!(found, wanted, "{rows}x{cols}, {board:x}");
                assert_eq!(canonical, wanted[0]);
                assert_eq!(geometry.canonical(board), wanted[0]);
            }
        }
    }
}
