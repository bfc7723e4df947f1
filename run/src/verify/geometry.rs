//! Moves and symmetries, implemented from the text of the rules, for eight boards at a time.
//!
//! A board is a number with four bits per cell, row by row from the lowest bits upward. All lines of a board slide at
//! once: a mask selects the tiles at one distance from the wall, and a shift moves them to the wall. After that, each
//! step applies to all lines. Eight boards fill the registers of a vector unit.
//!
//! The cell of a stone is empty in a board, and holds 15 while the lines slide. No tile is 15 then, and two 15s do not
//! merge. A locked stone slides like a tile. If any cell of a stone holds none after that, the move is not legal. A wall
//! stays in its place, and tiles do not pass it. A loose stone is a 15 in a board, which slides and does not merge.

use exact2048_game::{BoardSize, Stone};
use multiversion::multiversion;

/// The number of boards that are processed at once.
const WIDTH: usize = 8;

type Batch = [u64; WIDTH];

/// The largest number of images of a board, which a square board has.
pub const MOST_IMAGES: usize = 8;

/// Data that depends only on the size of the board and its stones.
#[derive(Debug)]
pub struct Geometry {
    /// The number of cells, including those of stones.
    places: usize,
    /// All four bits of each cell without a stone.
    playable: u64,
    stones: Stones,
    /// For each image of a board, whether its symmetry maps stones to stones.
    keeps_stones: [bool; MOST_IMAGES],
    /// Left, right, up, down.
    directions: [Direction; 4],
    /// Exchanges the first and the last column, the second and the second to last, and so on.
    mirror: Vec<Swap>,
    /// Exchanges the first and the last row, the second and the second to last, and so on.
    upend: Vec<Swap>,
    /// Exchanges rows and columns; `None` unless the board is square.
    transpose: Option<Vec<Swap>>,
}

/// The stones of a board.
#[derive(Clone, Copy, Debug)]
struct Stones {
    /// All four bits of each cell with a lock or a wall.
    cells: u64,
    /// The kind of the stones in these cells; `None` without any.
    kind: Option<Stone>,
    /// The number of loose stones.
    loose: u8,
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
        let (has_stone, all) = (|place: &usize| size.is_stone(*place), 0..rows * cols);
        let stones = all.filter(has_stone).map(|place| 15 << (4 * place)).sum::<u64>();
        let mut geometry = Self {
            places: rows * cols,
            playable: u64::MAX >> (64 - 4 * rows * cols) & !stones,
            stones: Stones { cells: stones, kind: size.stone(), loose: size.loose() },
            keeps_stones: [true; MOST_IMAGES],
            directions,
            mirror: (0..cols / 2).map(mirrored).collect(),
            upend: (0..rows / 2).map(upended).collect(),
            transpose: (rows == cols).then(|| (1..rows).map(off_diagonal).collect()),
        };
        geometry.keeps_stones = geometry.images(stones).map(|image| image == stones);
        geometry
    }

    /// Number of cells, including those of stones.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The numbers of the cells without a stone, in ascending order.
    pub fn playable(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.places).filter(|place| self.playable >> (4 * place) & 1 == 1)
    }

    /// The number of loose stones.
    pub fn loose(&self) -> u8 {
        self.stones.loose
    }

    /// The board without its loose stones.
    #[inline]
    pub fn tiles(&self, board: u64) -> u64 {
        if self.stones.loose == 0 { board } else { board & !full(board) }
    }

    /// The sum of the tiles of a board: its layer.
    #[inline]
    pub fn tile_sum(&self, board: u64) -> u32 {
        let tiles = self.tiles(board);
        let exponents = (0..16).map(|cell| tiles >> (4 * cell) & 15);
        exponents.filter(|&exponent| exponent > 0).map(|exponent| 1 << exponent).sum()
    }

    /// All four bits of each cell without a stone.
    pub fn playable_bits(&self) -> u64 {
        self.playable
    }

    /// The lowest bit of each empty cell.
    #[inline]
    pub fn empty_cells(&self, board: u64) -> u64 {
        !taken(board) & LOWEST_BITS & self.playable
    }

    /// The boards after each of the four moves, in the order of `boards`. A move that does not change its board is not
    /// legal. A move that locked stones forbid does not change its board.
    pub fn slide(&self, boards: &[u64], after: &mut [Vec<u64>; 4]) {
        for (direction, after) in self.directions.iter().zip(after) {
            after.clear();
            after.extend_from_slice(boards);
            slide(after, direction, self);
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

    /// The images of a board under the symmetries of its shape that map stones to stones. The board itself replaces the
    /// images under other symmetries. On a board that is not square, the list has each image at least twice.
    pub fn images(&self, board: u64) -> [u64; MOST_IMAGES] {
        let [first] = images(self, [board]);
        first
    }
}

/// The images of each of some boards.
fn images<const N: usize>(geometry: &Geometry, boards: [u64; N]) -> [[u64; MOST_IMAGES]; N] {
    let unchanged = boards;
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
    for (all, board) in all.iter_mut().zip(unchanged) {
        for (image, _) in all.iter_mut().zip(geometry.keeps_stones).filter(|&(_, keeps)| !keeps) {
            *image = board;
        }
    }
    all
}

#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn canonicalise(boards: &mut [u64], geometry: &Geometry) {
    if geometry.keeps_stones.contains(&false) {
        boards.iter_mut().for_each(|board| *board = geometry.canonical(*board));
        return;
    }
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
fn slide(boards: &mut [u64], direction: &Direction, geometry: &Geometry) {
    let stones = geometry.stones;
    match stones.kind {
        None if stones.loose == 0 => slide_boards::<NO_STONES>(boards, direction, 0),
        // Loose stones have no cell that they must keep.
        None => slide_boards::<LOCKED>(boards, direction, 0),
        Some(Stone::Locked) => slide_boards::<LOCKED>(boards, direction, stones.cells),
        Some(Stone::Wall) => slide_boards::<WALLS>(boards, direction, stones.cells),
    }
}

// The kinds of stones as parameters of functions, so that boards without stones cost no more.
const NO_STONES: u8 = 0;
const LOCKED: u8 = 1;
const WALLS: u8 = 2;

#[inline(always)]
fn slide_boards<const STONES: u8>(boards: &mut [u64], direction: &Direction, stones: u64) {
    match direction.ranks.len() {
        2 => in_batches(boards, |batch| slide_around::<2, STONES>(batch, direction, stones)),
        3 => in_batches(boards, |batch| slide_around::<3, STONES>(batch, direction, stones)),
        4 => in_batches(boards, |batch| slide_around::<4, STONES>(batch, direction, stones)),
        5 => in_batches(boards, |batch| slide_around::<5, STONES>(batch, direction, stones)),
        6 => in_batches(boards, |batch| slide_around::<6, STONES>(batch, direction, stones)),
        7 => in_batches(boards, |batch| slide_around::<7, STONES>(batch, direction, stones)),
        8 => in_batches(boards, |batch| slide_around::<8, STONES>(batch, direction, stones)),
        // In a line of one cell, no tile moves.
        _ => {}
    }
}

/// Slides all lines with the stones in their cells. A board that then lacks a stone stays unchanged.
#[inline(always)]
fn slide_around<const N: usize, const STONES: u8>(
    boards: Batch,
    direction: &Direction,
    stones: u64,
) -> Batch {
    if STONES == NO_STONES {
        return slide_lines::<N, STONES>(boards, direction);
    }
    let after = slide_lines::<N, STONES>(each(boards, |board| board | stones), direction);
    zip(boards, after, |board, after| if after & stones == stones { after & !stones } else { board })
}

/// Slides all lines, of `N` cells each.
///
/// Tiles move as far as they can. Two equal tiles that meet merge. Pairs nearest the wall merge first. A merged tile
/// does not merge again.
#[inline(always)]
fn slide_lines<const N: usize, const STONES: u8>(boards: Batch, direction: &Direction) -> Batch {
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
            close_gap::<N, STONES>(&mut ranks, at);
        }
    }
    // A merge leaves a gap, so a merged tile cannot meet the next one.
    for at in 1..N {
        merge::<N, STONES>(&mut ranks, at);
    }
    for new in 2..N {
        for at in (2..=new).rev() {
            close_gap::<N, STONES>(&mut ranks, at);
        }
    }
    let mut after = [0; WIDTH];
    for (i, rank) in ranks.into_iter().enumerate() {
        let (right, left) = (direction.right * i as u32, direction.left * i as u32);
        after = zip(after, rank, |after, rank| after | rank << right >> left);
    }
    after
}

/// Moves each tile of a rank to the previous rank if its cell there is empty. Walls stay.
#[inline(always)]
fn close_gap<const N: usize, const STONES: u8>(ranks: &mut [Batch; N], at: usize) {
    let stays = |here| if STONES == WALLS { full(here) } else { 0 };
    let move_on = zip(ranks[at - 1], ranks[at], |before, here| here & !taken(before) & !stays(here));
    ranks[at - 1] = zip(ranks[at - 1], move_on, |before, moved| before | moved);
    ranks[at] = zip(ranks[at], move_on, |here, moved| here ^ moved);
}

/// Merges each tile of a rank with the tile in the previous rank if both are equal. Stones do not merge.
#[inline(always)]
fn merge<const N: usize, const STONES: u8>(ranks: &mut [Batch; N], at: usize) {
    let stays = |here| if STONES == NO_STONES { 0 } else { full(here) };
    let equal =
        zip(ranks[at - 1], ranks[at], |before, here| taken(here) & !taken(before ^ here) & !stays(here));
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

/// A mask with all four bits of each cell that holds 15.
#[inline(always)]
fn full(cells: u64) -> u64 {
    let pairs = cells & cells >> 1;
    let all = (pairs & pairs >> 2) & LOWEST_BITS;
    (all << 4).wrapping_sub(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A direct implementation of the rules, for one board, with lists of tiles.
    ///
    /// Tiles slide toward the wall until another tile or the wall stops them. Two equal tiles that meet become one tile
    /// of twice their value. A tile merges at most once per move. Tiles nearest the wall merge first.
    ///
    /// A locked stone is a tile that does not merge. If one slides away from its cell, the move is not legal, and the
    /// board stays unchanged. Walls divide lines.
    fn by_the_rules(board: u64, size: BoardSize, direction: usize) -> u64 {
        let (rows, cols) = (size.rows(), size.cols());
        let (lines, length) = if direction < 2 { (rows, cols) } else { (cols, rows) };
        let is_wall = |&place: &usize| size.stone() == Some(Stone::Wall) && size.is_stone(place);
        let mut after = vec![None; rows * cols];
        for line in 0..lines {
            let place = |i: usize| match direction {
                0 => line * cols + i,
                1 => line * cols + length - 1 - i,
                2 => i * cols + line,
                _ => (length - 1 - i) * cols + line,
            };
            let places: Vec<usize> = (0..length).map(place).collect();
            for places in places.split(is_wall) {
                let moved = moved_tiles(places.iter().filter_map(|&place| tile_at(board, size, place)));
                moved.into_iter().zip(places).for_each(|(tile, &place)| after[place] = Some(tile));
            }
        }
        let lock_left = |place: usize| size.is_stone(place) && after[place] != Some(Tile::Stone);
        if size.stone() == Some(Stone::Locked) && (0..rows * cols).any(lock_left) {
            return board;
        }
        let bits = |(place, tile): (usize, &Option<Tile>)| match tile {
            Some(Tile::Exponent(exponent)) => exponent << (4 * place),
            Some(Tile::Loose) => 15 << (4 * place),
            _ => 0,
        };
        after.iter().enumerate().map(bits).sum()
    }

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Tile {
        Exponent(u64),
        Stone,
        Loose,
    }

    fn tile_at(board: u64, size: BoardSize, place: usize) -> Option<Tile> {
        match board >> (4 * place) & 15 {
            _ if size.is_stone(place) => Some(Tile::Stone),
            15 if size.loose() > 0 => Some(Tile::Loose),
            0 => None,
            exponent => Some(Tile::Exponent(exponent)),
        }
    }

    /// The tiles of a line after a move, from the wall outward.
    fn moved_tiles(tiles: impl Iterator<Item = Tile>) -> Vec<Tile> {
        let (mut tiles, mut moved) = (tiles.peekable(), Vec::new());
        while let Some(tile) = tiles.next() {
            let merged = match tile {
                Tile::Exponent(exponent) => tiles.next_if_eq(&tile).map(|_| Tile::Exponent(exponent + 1)),
                Tile::Stone | Tile::Loose => None,
            };
            moved.push(merged.unwrap_or(tile));
        }
        moved
    }

    /// The cell to which a symmetry moves the cell (r, c). Only squares have the symmetries 4 to 7.
    fn moved(symmetry: usize, r: usize, c: usize, rows: usize, cols: usize) -> (usize, usize) {
        let (r, c) = if symmetry >= 4 { (c, r) } else { (r, c) };
        let r = if symmetry & 1 == 0 { r } else { rows - 1 - r };
        let c = if symmetry & 2 == 0 { c } else { cols - 1 - c };
        (r, c)
    }

    fn random(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    fn random_boards(size: BoardSize, count: usize, below: u64) -> Vec<u64> {
        let mut seed = 2048u64;
        let mut exponent = |place| if size.is_stone(place) { 0 } else { random(&mut seed) % below };
        (0..count).map(|_| (0..size.places()).map(|place| exponent(place) << (4 * place)).sum()).collect()
    }

    fn plain_sizes() -> impl Iterator<Item = BoardSize> {
        (1..=8).flat_map(|rows| (1..=8).map(move |cols| BoardSize::new(rows, cols))).filter_map(Result::ok)
    }

    /// All sizes, each without stones and with a few and with many stones of both kinds.
    fn sizes() -> impl Iterator<Item = BoardSize> {
        let mut seed = 7;
        plain_sizes().flat_map(move |plain| {
            let (few, many) = (random(&mut seed) & random(&mut seed), random(&mut seed));
            let on_board = |stones: u64| (stones & ((1 << plain.places()) - 1)) as u16;
            // A symmetric picture.
            let corners = 1 | 1 << (plain.places() - 1);
            let pictures = [0, on_board(few), on_board(many), on_board(corners)];
            let kinds = pictures.map(|stones| [(stones, Stone::Locked), (stones, Stone::Wall)]);
            kinds.into_iter().flatten().filter_map(move |(stones, kind)| {
                BoardSize::with_stones(plain.rows() as u64, plain.cols() as u64, stones, kind).ok()
            })
        })
    }

    #[test]
    fn every_move_on_every_size_is_that_of_the_rules() {
        for size in sizes() {
            let geometry = Geometry::new(size);
            // Beside stones, no merge makes a 15.
            let most = if size.stone().is_some() { 14 } else { 15 };
            // Tiles of few kinds often merge. Tiles of many kinds are rarely equal.
            for (below, count) in [(2, 333), (3, 1001), (most, 333)] {
                check_slides(&geometry, size, &random_boards(size, count, below));
            }
        }
    }

    /// Compares all moves of some boards with the rules. A move keeps the sum of the tiles.
    fn check_slides(geometry: &Geometry, size: BoardSize, boards: &[u64]) {
        let mut after = [const { Vec::new() }; 4];
        geometry.slide(boards, &mut after);
        for (direction, after) in after.iter().enumerate() {
            for (&board, &after) in boards.iter().zip(after) {
                let wanted = by_the_rules(board, size, direction);
                assert_eq!(after, wanted, "{size}, {board:x}, direction {direction}");
                assert_eq!(geometry.tile_sum(after), geometry.tile_sum(board));
            }
        }
    }

    #[test]
    fn loose_stones_slide_and_never_merge() {
        for size in plain_sizes().filter_map(|plain| plain.with_loose(1).ok()) {
            let geometry = Geometry::new(size);
            let (tiles, stones) = (random_boards(size, 333, 3), random_boards(size, 333, 2));
            let boards: Vec<u64> =
                tiles.iter().zip(stones).map(|(tiles, stones)| tiles | (15 * stones)).collect();
            check_slides(&geometry, size, &boards);
        }
    }

    #[test]
    fn every_line_of_four_slides_by_the_rules() {
        let size = BoardSize::new(1, 4).unwrap();
        let geometry = Geometry::new(size);
        let boards: Vec<u64> =
            (0..6u64.pow(4)).map(|n| (0..4).map(|c| (n / 6u64.pow(c) % 6) << (4 * c)).sum()).collect();
        let mut after = [const { Vec::new() }; 4];
        geometry.slide(&boards, &mut after);
        for (i, &board) in boards.iter().enumerate() {
            assert_eq!(after[0][i], by_the_rules(board, size, 0), "{board:x}");
            assert_eq!(after[1][i], by_the_rules(board, size, 1), "{board:x}");
            assert_eq!((after[2][i], after[3][i]), (board, board));
        }
    }

    #[test]
    fn images_are_those_of_the_rectangle_that_keep_its_stones() {
        for size in sizes() {
            let (rows, cols, geometry) = (size.rows(), size.cols(), Geometry::new(size));
            let boards = random_boards(size, 100, 12);
            let keeps_stones = |symmetry: usize| {
                (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))).all(|(r, c)| {
                    let (to_r, to_c) = moved(symmetry, r, c, rows, cols);
                    size.is_stone(r * cols + c) == size.is_stone(to_r * cols + to_c)
                })
            };
            let symmetries = (0..if rows == cols { 8 } else { 4 }).filter(|&symmetry| keeps_stones(symmetry));
            let symmetries: Vec<usize> = symmetries.collect();
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
                let mut wanted: Vec<u64> = symmetries.iter().map(|&symmetry| image(symmetry)).collect();
                wanted.sort_unstable();
                wanted.dedup();
                let mut found = geometry.images(board).to_vec();
                found.sort_unstable();
                found.dedup();
                assert_eq!(found, wanted, "{size}, {board:x}");
                assert_eq!(canonical, wanted[0]);
                assert_eq!(geometry.canonical(board), wanted[0]);
            }
        }
    }
}
