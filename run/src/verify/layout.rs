//! The boards of the entries of a block. Rows and columns are numbered by the text of `docs/dev/format.md`, without the
//! solver's tables.

mod row_walk;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::game::{CheckedGame, in_first_sector, lane_sector, lane_tiles};
use super::geometry::Geometry;
pub use row_walk::{LayoutRow, RowSymmetry, RowWalk};

/// The exponent of L, a large tile in a skeleton. No small tile has this exponent. In a board, it is a loose stone.
const LARGE: u64 = 15;

/// A symmetric mask numbers only its canonical configs if it has at most this many configs. Else it numbers all
/// configs.
const MOST_CANONICAL: u64 = 1 << 15;

/// A class keeps lists of the configs of all its masks if these have at most this many configs in total.
const MOST_LISTED: u64 = 1 << 18;

/// Limit on the configs that are kept in lists, and on the sequences of kept columns: 64 MiB each.
const MOST_KEPT: usize = 1 << 23;

/// Most entries of a part, unless a single row has more.
const PART_ENTRIES: usize = 1 << 16;

/// The numbering of a run's rows and columns.
#[derive(Debug)]
pub struct Layout<'a> {
    game: &'a CheckedGame,
    large: u8,
    /// The number of cells without a stone.
    cells: usize,
    /// The canonical masks by their number of large tiles, each list ascending.
    masks: Vec<Vec<Mask>>,
    /// `configs[cells][sum / 2]` is the number of ways to fill `cells` cells with small tiles of total `sum`.
    configs: Vec<Vec<u64>>,
    /// By number of large tiles, small sum and sector.
    classes: Mutex<FxHashMap<(usize, u32, u64), Arc<ClassRows>>>,
    columns: Mutex<KeptColumns>,
}

/// The columns of lanes, kept for the next blocks of the same lanes.
#[derive(Debug, Default)]
struct KeptColumns {
    lanes: FxHashMap<u64, Arc<Vec<u64>>>,
    /// The total number of kept columns.
    count: usize,
}

impl KeptColumns {
    /// Keeps the columns of a lane. If the kept columns become too many, removes those of all other lanes, because a
    /// walk through the lanes in order no longer needs them.
    fn add(&mut self, lane: u64, columns: &Arc<Vec<u64>>) {
        if self.count + columns.len() > MOST_KEPT {
            *self = Self::default();
        }
        if self.lanes.insert(lane, Arc::clone(columns)).is_none() {
            self.count += columns.len();
        }
    }

    fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.lanes.retain(|&lane, _| keeps(lane));
        self.count = self.lanes.values().map(|columns| columns.len()).sum();
    }
}

/// A set of cells that hold large tiles.
#[derive(Debug)]
struct Mask {
    /// One bit per cell.
    bits: u32,
    /// The cells of the set, in order.
    large_cells: Vec<u32>,
    /// The other cells without a stone, in order.
    small_cells: Vec<u32>,
    /// Whether a symmetry other than the identity maps the set to itself.
    is_symmetric: bool,
    sector: u64,
}

impl Mask {
    /// A skeleton with these small tiles.
    fn skeleton(&self, small: u64) -> u64 {
        self.large_cells.iter().fold(small, |board, &cell| board | LARGE << (4 * cell))
    }

    /// A board with the exponents of a sequence in the large cells. The highest digit is in the first cell.
    fn place(&self, mut sequence: u64) -> u64 {
        let mut board = 0;
        for &cell in self.large_cells.iter().rev() {
            board |= (sequence & 15) << (4 * cell);
            sequence >>= 4;
        }
        board
    }
}

/// The rows of a class: skeletons with the same number of large tiles, the same sum of the small ones, and the same
/// sector.
#[derive(Debug)]
pub struct ClassRows {
    large_tiles: usize,
    small_sum: u32,
    /// The first row of each mask, and the number of rows at the end. Masks of other sectors have no rows.
    first_row: Vec<u64>,
    /// The small tiles of each row of each mask. A list is empty if its rows are computed when they are needed.
    listed: Vec<Vec<u64>>,
}

/// A lane's entries in a layer: a row for each skeleton, a column for each sequence of large tiles.
#[derive(Clone, Debug)]
pub struct Block {
    class: Arc<ClassRows>,
    columns: Arc<Vec<u64>>,
}

/// Where a board is in its block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BoardPlace {
    /// The row of the board.
    pub row: usize,
    /// The column of the board.
    pub column: usize,
}

impl Block {
    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    fn rows_of_a_part(&self) -> usize {
        (PART_ENTRIES / self.columns.len()).max(1)
    }

    fn row_count(&self) -> usize {
        self.class.first_row.last().map_or(0, |&rows| rows as usize)
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.row_count().div_ceil(self.rows_of_a_part())
    }

    /// The rows of a part.
    pub fn rows(&self, part: usize) -> std::ops::Range<usize> {
        let first = part * self.rows_of_a_part();
        first..(first + self.rows_of_a_part()).min(self.row_count())
    }

    /// The part that has a row.
    pub fn part_of(&self, row: usize) -> usize {
        row / self.rows_of_a_part()
    }
}

impl<'a> Layout<'a> {
    /// The numbering for a game.
    pub fn new(game: &'a CheckedGame) -> Self {
        let (cells, large) = (game.geometry().playable().count(), game.params().split().large());
        Self {
            game,
            large,
            cells,
            masks: canonical_masks(game),
            configs: config_counts(cells, large),
            classes: Mutex::default(),
            columns: Mutex::default(),
        }
    }

    /// The block of a lane in a layer; `None` if it has no entry.
    pub fn block(&self, layer: u32, lane: u64) -> Option<Block> {
        let (sum, tiles) = lane_tiles(lane);
        let small_sum = layer.checked_sub(sum)?;
        if tiles > self.cells || small_sum % 2 != 0 {
            return None;
        }
        let block = Block {
            class: self.class(tiles, small_sum, lane_sector(lane)),
            columns: self.columns(lane, tiles, sum),
        };
        (block.row_count() > 0 && block.columns() > 0).then_some(block)
    }

    /// Releases the columns and classes that no block of a layer needs.
    ///
    /// `lanes` has the lanes of the layer in ascending order. The columns of other lanes are released. Other classes
    /// are released only if there are many, because other layers may need them again.
    pub fn forget_others(&self, layer: u32, lanes: &[u64]) {
        let with_columns: FxHashSet<u64> = lanes.iter().map(|&lane| in_first_sector(lane)).collect();
        self.columns.lock().retain(|lane| with_columns.contains(&lane));
        let mut classes = self.classes.lock();
        let listed = classes.values().flat_map(|class| &class.listed).map(Vec::len).sum::<usize>();
        if listed <= MOST_KEPT {
            return;
        }
        let needed: FxHashSet<_> = lanes.iter().map(|&lane| lane_tiles(lane)).collect();
        classes
            .retain(|&(tiles, small_sum, _), _| needed.contains(&(layer.saturating_sub(small_sum), tiles)));
    }

    /// The place of a board in its block. All images of a board have the same place.
    pub fn locate(&self, block: &Block, board: u64) -> Option<BoardPlace> {
        // The image with the smallest mask gives the place. Among images with the same mask, the smallest config
        // decides, then the smallest sequence.
        let images = self.game.geometry().images(board).map(|image| self.split(image));
        let (mask_bits, config, sequence) = images.into_iter().min()?;
        let masks = &self.masks[block.class.large_tiles];
        let index = masks.binary_search_by_key(&mask_bits, |mask| mask.bits).ok()?;
        let within = self.row_in_mask(&block.class, index, config)?;
        let key = |sequence: u64| (descending(sequence), sequence);
        let column = block.columns.binary_search_by_key(&key(sequence), |&other| key(other)).ok()?;
        Some(BoardPlace { row: block.class.first_row[index] as usize + within, column })
    }

    /// The mask of a board as bits, and its config and its sequence as numbers, with the first cell in the highest
    /// digit. The cells of stones have no digit.
    fn split(&self, board: u64) -> (u32, u64, u64) {
        let (mut mask, mut config, mut sequence) = (0, 0, 0);
        for cell in self.game.geometry().playable() {
            let exponent = board >> (4 * cell) & 15;
            if exponent >= u64::from(self.large) {
                mask |= 1 << cell;
                sequence = sequence << 4 | exponent;
            } else {
                config = config << 4 | exponent;
            }
        }
        (mask, config, sequence)
    }

    fn class(&self, large_tiles: usize, small_sum: u32, sector: u64) -> Arc<ClassRows> {
        let key = (large_tiles, small_sum, sector);
        if let Some(class) = self.classes.lock().get(&key) {
            return Arc::clone(class);
        }
        // Two threads may compute the same class at once. Their results are equal.
        let class = Arc::new(self.make_class(large_tiles, small_sum, sector));
        self.classes.lock().insert(key, Arc::clone(&class));
        class
    }

    fn make_class(&self, large_tiles: usize, small_sum: u32, sector: u64) -> ClassRows {
        let (geometry, of_mask) = (self.game.geometry(), self.count(self.cells - large_tiles, small_sum));
        let masks = &self.masks[large_tiles];
        let list_all = of_mask * masks.len() as u64 <= MOST_LISTED;
        let (mut first_row, mut listed, mut rows) = (vec![0], Vec::new(), 0);
        for mask in masks {
            let count = if mask.sector == sector { of_mask } else { 0 };
            let only_canonical = mask.is_symmetric && count <= MOST_CANONICAL;
            let mut list = Vec::new();
            if only_canonical || list_all {
                let all = (0..count).map(|rank| self.nth_config(mask, small_sum, rank));
                list.extend(
                    all.filter(|&small| !only_canonical || is_canonical(geometry, mask.skeleton(small))),
                );
            }
            rows += if only_canonical { list.len() as u64 } else { count };
            first_row.push(rows);
            listed.push(list);
        }
        ClassRows { large_tiles, small_sum, first_row, listed }
    }

    /// The number of ways to fill some cells with small tiles of a sum.
    fn count(&self, cells: usize, sum: u32) -> u64 {
        self.configs[cells].get(sum as usize / 2).copied().unwrap_or(0)
    }

    /// The small tiles of a config, by its number among all configs of a mask with this sum.
    fn nth_config(&self, mask: &Mask, small_sum: u32, mut rank: u64) -> u64 {
        let (mut board, mut sum) = (0, small_sum);
        for (i, cell) in mask.small_cells.iter().enumerate() {
            let after = mask.small_cells.len() - i - 1;
            for exponent in 0..self.large {
                let Some(rest) = sum.checked_sub(tile(exponent)) else { break };
                let ways = self.count(after, rest);
                if rank < ways {
                    board |= u64::from(exponent) << (4 * cell);
                    sum = rest;
                    break;
                }
                rank -= ways;
            }
        }
        board
    }

    /// The row of a canonical config among the rows of its mask.
    fn row_in_mask(&self, class: &ClassRows, mask: usize, config: u64) -> Option<usize> {
        let small_cells = &self.masks[class.large_tiles][mask].small_cells;
        let digit = |i: usize| config >> (4 * (small_cells.len() - 1 - i)) & 15;
        if !class.listed[mask].is_empty() {
            let as_config =
                |small: u64| small_cells.iter().fold(0, |c, cell| c << 4 | (small >> (4 * cell) & 15));
            return class.listed[mask].binary_search_by_key(&config, |&small| as_config(small)).ok();
        }
        let (mut rank, mut sum) = (0, class.small_sum);
        for i in 0..small_cells.len() {
            let after = small_cells.len() - i - 1;
            let smaller = (0..digit(i) as u8).filter_map(|exponent| sum.checked_sub(tile(exponent)));
            rank += smaller.map(|rest| self.count(after, rest)).sum::<u64>();
            sum = sum.checked_sub(tile(digit(i) as u8))?;
        }
        Some(rank as usize)
    }

    fn columns(&self, lane: u64, tiles: usize, sum: u32) -> Arc<Vec<u64>> {
        let lane = in_first_sector(lane);
        if let Some(columns) = self.columns.lock().lanes.get(&lane) {
            return Arc::clone(columns);
        }
        let columns = Arc::new(self.make_columns(lane, tiles, sum));
        self.columns.lock().add(lane, &columns);
        columns
    }

    /// All sequences of a lane's large exponents, for a given number and sum of the large tiles.
    fn make_columns(&self, lane: u64, tiles: usize, sum: u32) -> Vec<u64> {
        let mut multisets = Vec::new();
        let loose = usize::from(self.game.geometry().loose());
        if let Some(left) = tiles.checked_sub(loose) {
            let largest = self.game.largest_exponent();
            self.multisets(left, sum, largest, &mut vec![LARGE as u8; loose], &mut multisets);
        }
        // Other lanes have the same number and sum of large tiles, but other huge tiles.
        let packed = |exponents: &[u8]| exponents.iter().fold(0, |packed, &e| packed << 4 | u64::from(e));
        multisets.retain(|exponents| self.game.lane_of_tiles(packed(exponents)) == lane);
        multisets.sort_unstable();
        let mut sequences = Vec::new();
        for descending in multisets {
            let mut exponents: Vec<u8> = descending.into_iter().rev().collect();
            loop {
                sequences.push(packed(&exponents));
                if !next_arrangement(&mut exponents) {
                    break;
                }
            }
        }
        sequences
    }

    /// Finds the multisets of large exponents that begin with `chosen`, in descending order.
    ///
    /// `left` more exponents follow. Their tiles have the total `sum`, and none of them exceeds `most`. At most n + 2 -
    /// e exponents of a multiset are e or more, without loose stones, which also take none of the n cells.
    fn multisets(&self, left: usize, sum: u32, most: u8, chosen: &mut Vec<u8>, found: &mut Vec<Vec<u8>>) {
        if left == 0 {
            if sum == 0 {
                found.push(chosen.clone());
            }
            return;
        }
        for exponent in self.large..=most {
            // The later tiles are not larger, so this tile must be at least the mean of the tiles that are left.
            let (tile, left_sum) = (u64::from(tile(exponent)), u64::from(sum));
            let fits = tile <= left_sum && tile * left as u64 >= left_sum;
            if fits && chosen.len() + usize::from(exponent) < self.cells + 2 {
                chosen.push(exponent);
                self.multisets(left - 1, sum - tile as u32, exponent, chosen, found);
                chosen.pop();
            }
        }
    }
}

/// Whether no image of a skeleton with the same mask has a smaller config.
fn is_canonical(geometry: &Geometry, skeleton: u64) -> bool {
    let mask = large_cells(skeleton);
    let images = geometry.images(skeleton).into_iter().filter(|&image| large_cells(image) == mask);
    images.map(|image| compare_configs(image, skeleton)).all(Ordering::is_ge)
}

/// The lowest bit of each cell that holds L.
fn large_cells(skeleton: u64) -> u64 {
    skeleton & skeleton >> 1 & skeleton >> 2 & skeleton >> 3 & 0x1111_1111_1111_1111
}

/// Compares two configs of one mask as numbers: by the first cell in which they differ.
fn compare_configs(a: u64, b: u64) -> Ordering {
    let first = (a ^ b).trailing_zeros() & !3;
    (a.checked_shr(first).unwrap_or(0) & 15).cmp(&(b.checked_shr(first).unwrap_or(0) & 15))
}

/// The masks without a smaller image, by their number of cells. Masks are compared as numbers. No mask has the cell of a
/// stone.
fn canonical_masks(game: &CheckedGame) -> Vec<Vec<Mask>> {
    let geometry = game.geometry();
    let (places, playable) = (geometry.places() as u32, || geometry.playable().map(|cell| cell as u32));
    let mut masks: Vec<Vec<Mask>> = (0..=playable().count()).map(|_| Vec::new()).collect();
    for bits in 0..1u32 << places {
        // Boards of nibbles 0 and 1 have the same order as the numbers of their bits.
        let board = (0..places).map(|cell| u64::from(bits >> cell & 1) << (4 * cell)).sum::<u64>();
        let has_smaller_image = || geometry.images(board).iter().any(|&image| image < board);
        if board & !geometry.playable_bits() != 0 || has_smaller_image() {
            continue;
        }
        masks[bits.count_ones() as usize].push(Mask {
            bits,
            large_cells: playable().filter(|cell| bits >> cell & 1 == 1).collect(),
            small_cells: playable().filter(|cell| bits >> cell & 1 == 0).collect(),
            is_symmetric: is_kept_by_a_symmetry(geometry, bits),
            sector: game.sector(LARGE * board),
        });
    }
    masks
}

/// Whether a symmetry other than the identity maps a set of cells to itself.
fn is_kept_by_a_symmetry(geometry: &Geometry, bits: u32) -> bool {
    let cells = geometry.places() as u64;
    let numbered = numbered(geometry.places());
    let in_set = |cell: u64| bits >> cell & 1;
    let from = |image: u64, cell: u64| (image >> (4 * cell) & 15).checked_sub(1).unwrap_or(15);
    let keeps = |image: u64| (0..cells).all(|cell| in_set(from(image, cell)) == in_set(cell));
    geometry.images(numbered).into_iter().any(|image| image != numbered && keeps(image))
}

/// A board with a different number in each cell, whose images show how symmetries move cells. The largest number is 15,
/// so the last of sixteen cells is empty.
fn numbered(cells: usize) -> u64 {
    (0..cells.min(15)).map(|cell| (cell as u64 + 1) << (4 * cell)).sum()
}

/// `counts[cells][sum / 2]` is the number of ways to fill `cells` cells with tiles below `2^large` of total `sum`.
/// Cells may be empty.
fn config_counts(cells: usize, large: u8) -> Vec<Vec<u64>> {
    let mut counts = vec![vec![1]];
    for cells in 1..=cells {
        let before = &counts[cells - 1];
        let mut of_cells = vec![0; (cells << (large - 1)) / 2 + 1];
        for exponent in 0..large {
            for (half, ways) in before.iter().enumerate() {
                of_cells[half + tile(exponent) as usize / 2] += ways;
            }
        }
        counts.push(of_cells);
    }
    counts
}

fn tile(exponent: u8) -> u32 {
    if exponent == 0 { 0 } else { 1 << exponent }
}

/// The exponents of a sequence in descending order, as a number.
fn descending(sequence: u64) -> u64 {
    let mut counts = [0u8; 16];
    (0..16).for_each(|i| counts[(sequence >> (4 * i) & 15) as usize] += 1);
    let largest_first = (1..16).rev().flat_map(|e| std::iter::repeat_n(e as u64, counts[e].into()));
    largest_first.fold(0, |all, e| all << 4 | e)
}

/// Changes an arrangement of numbers to the next larger one. Returns `false` if there is none.
fn next_arrangement(numbers: &mut [u8]) -> bool {
    let Some(at) = (1..numbers.len()).rev().find(|&i| numbers[i - 1] < numbers[i]) else { return false };
    let larger = numbers.iter().rposition(|&n| n > numbers[at - 1]).unwrap_or(at);
    numbers.swap(at - 1, larger);
    numbers[at..].reverse();
    true
}
