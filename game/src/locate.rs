//! Position of a board in its block, without the tables of the solver.
//!
//! The solver lists the rows of a class and the columns of a lane once and uses all of them. A query for a single board
//! needs one entry of these tables. So [`Locator`] counts instead of listing, and returns the same numbers.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::bitset::{Ranks, set};
use crate::board::Board;
use crate::class::{ClassId, Space, Split, has_table};
use crate::configs::Config;
use crate::huge::HugeTiles;
use crate::lane::Lane;
use crate::layer::Layer;
use crate::params::Params;
use crate::ranks::ColumnRanks;
use crate::rowset::Row;
use crate::sequence::{Column, Sequence};
use crate::skeleton::Mask;

/// Entry of a block: the position of the value of a board and its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPlace {
    /// Layer of the block.
    pub layer: Layer,
    /// Lane of the block.
    pub lane: Lane,
    /// Row in the block.
    pub row: Row,
    /// Number of rows of the block.
    pub rows: u32,
    /// Column in the block.
    pub column: Column,
    /// Number of columns of the block.
    pub columns: u64,
}

/// Finds boards in their blocks. Any number of threads may use a locator at once.
///
/// The locator keeps its counts in memory: a few tens of MiB after queries for all states of a board of 16 cells.
#[derive(Debug)]
pub struct Locator {
    space: Space,
    orbits: OrbitCounts,
    /// Classes by number of large tiles, half of the small sum, and sector.
    classes: Vec<Vec<OnceLock<ClassRanks>>>,
    /// Lanes by number of large tiles, then by the sum of these tiles in units of the smallest large tile, then by
    /// huge tiles.
    lanes: Vec<Vec<OnceLock<FxHashMap<HugeTiles, ColumnRanks>>>>,
}

/// Row numbers of a class.
#[derive(Debug)]
struct ClassRanks {
    /// First row of each canonical mask. The last element is the number of rows in total.
    first_row: Box<[u32]>,
    /// Canonical configs of each mask for which [`has_table`] holds. Computed on first use.
    canonical: Box<[OnceLock<RankSet>]>,
}

impl Locator {
    /// Creates a locator for the boards of a run. Cost: a few milliseconds on a board of 16 cells.
    pub fn new(params: &Params) -> Self {
        let (space, cells) = (Space::new(params), params.game().cells());
        let classes = (0..=cells).map(|k| {
            let sums = ((cells - k) << (params.split().large() - 1)) / 2 + 1;
            (0..sums * usize::from(params.split().sectors())).map(|_| OnceLock::new()).collect()
        });
        let units = (params.last_layer().0 >> params.split().large()) as usize + 1;
        Self {
            orbits: OrbitCounts::new(cells, params.split().large()),
            classes: classes.collect(),
            lanes: (0..=cells).map(|_| (0..units).map(|_| OnceLock::new()).collect()).collect(),
            space,
        }
    }

    /// Symmetries, masks and configs of the run.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns the entry of a board and its images; `None` if the tiles are too large or too many for any block.
    ///
    /// Cost: about half a microsecond, and up to a few milliseconds on the first query for a class or a lane. Many boards
    /// cost less with a [`Placer`](crate::placer::Placer).
    pub fn place(&self, board: Board) -> Option<EntryPlace> {
        let Split { lane, layer, mask, config, sequence } = self.space.split(board)?;
        let (column, columns) = self.column(lane, sequence)?;
        let (row, rows) = self.row(ClassId::of(layer, lane)?, mask, config)?;
        Some(EntryPlace { layer, lane, row, rows, column, columns })
    }

    /// Returns the column of a sequence, and the number of columns of its lane.
    pub(crate) fn column(&self, lane: Lane, sequence: Sequence) -> Option<(Column, u64)> {
        let unit = (lane.large_sum >> self.space.params().split().large()) as usize;
        let lane_slot = self.lanes.get(lane.k as usize)?.get(unit)?;
        let columns = lane_slot.get_or_init(|| self.lanes_like(lane)).get(&lane.huge)?;
        Some((columns.column(sequence)?, columns.len()))
    }

    /// Returns the row of a canonical skeleton, and the number of rows of its class.
    pub(crate) fn row(&self, id: ClassId, mask: u32, config: Config) -> Option<(Row, u32)> {
        let class = self.class_of(id)?;
        let of_mask = &self.space.masks(id.k)[mask as usize];
        let cells = of_mask.small_cells.len();
        let rank = self.space.configs.rank(cells, id.small_sum, config);
        let within = if has_table(of_mask, self.space.configs.count(cells, id.small_sum)) {
            self.canonical(class, id, mask as usize).number(rank)
        } else {
            rank
        };
        let rows = class.first_row.last().copied().unwrap_or(0);
        Some((Row(class.first_row[mask as usize] + within), rows))
    }

    /// Returns the skeleton of a row of a block: the index of its mask, the mask, and the config. Returns `None` if
    /// there is no such row. Cost: that of [`place`](Self::place).
    pub fn skeleton(&self, layer: Layer, lane: Lane, row: Row) -> Option<(usize, &Mask, Config)> {
        let id = ClassId::of(layer, lane)?;
        let class = self.class_of(id)?;
        let index = class.first_row.partition_point(|&first| first <= row.0).checked_sub(1)?;
        let of_mask = self.space.masks(id.k).get(index)?;
        let (cells, within) = (of_mask.small_cells.len(), row.0 - class.first_row[index]);
        let has_table = has_table(of_mask, self.space.configs.count(cells, id.small_sum));
        let rank = if has_table { self.canonical(class, id, index).rank(within)? } else { within };
        Some((index, of_mask, self.space.configs.config(cells, id.small_sum, rank)))
    }

    /// Returns the boards of a row of a block; `None` if there is no such row. Cost: that of [`place`](Self::place).
    pub fn row_boards(&self, layer: Layer, lane: Lane, row: Row) -> Option<RowBoards> {
        let (_, mask, config) = self.skeleton(layer, lane, row)?;
        let symmetries =
            mask.stabiliser.iter().filter(|&&g| self.space.config_image(mask, config, g) == config);
        let permutations = self.space.symmetries().permutations();
        let place = |perm: &[u8], cell: u8| {
            mask.large_cells.iter().position(|&other| other == perm[cell as usize]).unwrap_or_default() as u8
        };
        let permuted =
            |&g: &usize| mask.large_cells.iter().map(|&cell| place(&permutations[g], cell)).collect();
        Some(RowBoards {
            small: with_tiles(Board::default(), &mask.small_cells, config),
            large_cells: mask.large_cells.clone(),
            symmetries: symmetries.map(permuted).collect(),
        })
    }

    /// Returns the rows of a block in order. Cost: a tenth of a microsecond per row.
    pub fn row_skeletons(&self, layer: Layer, lane: Lane) -> Option<Vec<RowSkeleton>> {
        let rows = self.rows(layer, lane)?;
        let row = |row| {
            let (index, mask, config) = self.skeleton(layer, lane, Row(row))?;
            let keeps = |&g: &usize| self.space.config_image(mask, config, g) == config;
            Some(RowSkeleton {
                small: with_tiles(Board::default(), &mask.small_cells, config),
                mask: index,
                is_symmetric: mask.stabiliser.iter().any(keeps),
            })
        };
        (0..rows).map(row).collect()
    }

    /// Returns the number of rows of a block; `None` if there is no such block.
    pub fn rows(&self, layer: Layer, lane: Lane) -> Option<u32> {
        self.class_of(ClassId::of(layer, lane)?)?.first_row.last().copied()
    }

    /// Returns the stored image of a board; `None` if the board has none.
    ///
    /// The stored image has the canonical skeleton and, among the images with that skeleton, the smallest sequence.
    pub fn stored_image(&self, board: Board) -> Option<Board> {
        let Split { lane, mask, config, sequence, .. } = self.space.split(board)?;
        let of_mask = &self.space.masks(lane.k)[mask as usize];
        Some(board_of(of_mask, config, sequence))
    }

    /// Returns a class, and counts its rows on first use; `None` if no board can be in it.
    fn class_of(&self, id: ClassId) -> Option<&ClassRanks> {
        let slot = self.classes.get(id.k as usize)?.get(self.space.place_of(id)?)?;
        Some(slot.get_or_init(|| self.class(id)))
    }

    /// Returns the canonical configs of a mask for which [`has_table`] holds.
    fn canonical<'a>(&self, class: &'a ClassRanks, id: ClassId, mask: usize) -> &'a RankSet {
        let of_mask = &self.space.masks(id.k)[mask];
        class.canonical[mask].get_or_init(|| RankSet::new(self.space.canonical_ranks(of_mask, id.small_sum)))
    }

    /// Counts the columns of every lane that has as many large tiles as `lane`, with the same sum. The keys are the
    /// huge tiles.
    fn lanes_like(&self, lane: Lane) -> FxHashMap<HugeTiles, ColumnRanks> {
        let params = self.space.params();
        let all = ColumnRanks::new(&params.without_huge_tiles(), Lane::new(lane.k, lane.large_sum));
        let huge: BTreeSet<_> =
            all.multisets().map(|multiset| HugeTiles::of(multiset, params.split().huge())).collect();
        huge.into_iter().map(|huge| (huge, ColumnRanks::new(params, Lane { huge, ..lane }))).collect()
    }

    /// Counts the rows of a class.
    fn class(&self, id: ClassId) -> ClassRanks {
        let masks = self.space.masks(id.k);
        let mut first_row = Vec::with_capacity(masks.len() + 1);
        first_row.push(0);
        let mut rows = 0;
        for (index, mask) in (0..).zip(masks) {
            let configs = self.space.configs.count(mask.small_cells.len(), id.small_sum);
            rows += if self.space.sector(id.k, index) != id.sector {
                0
            } else if has_table(mask, configs) {
                self.orbits.of(&self.space, mask, id.small_sum)
            } else {
                configs
            };
            first_row.push(rows);
        }
        let canonical = masks.iter().map(|_| OnceLock::new()).collect();
        ClassRanks { first_row: first_row.into(), canonical }
    }
}

/// Builds the board of a mask, a config and a sequence.
#[must_use]
pub fn board_of(mask: &Mask, config: Config, sequence: Sequence) -> Board {
    let small = with_tiles(Board::default(), &mask.small_cells, config);
    with_tiles(small, &mask.large_cells, sequence)
}

/// Adds tiles to empty cells of a board. `packed` holds their exponents, one per nibble, with the first cell in the
/// highest nibble.
#[inline]
pub fn with_tiles(board: Board, cells: &[u8], packed: u64) -> Board {
    let places = cells.iter().rev().enumerate();
    Board(places.fold(board.0, |b, (i, &cell)| b | (packed >> (4 * i) & 15) << (4 * cell)))
}

/// Small tiles, mask and symmetry of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowSkeleton {
    /// Small tiles of the row.
    pub small: Board,
    /// Index of the mask. The mask gives the cells of the large tiles.
    pub mask: usize,
    /// Whether a symmetry preserves the skeleton. If so, some sequences are not stored: see [`RowBoards::board`].
    pub is_symmetric: bool,
}

/// Boards of a row: its skeleton with each sequence of large tiles.
#[derive(Debug)]
pub struct RowBoards {
    small: Board,
    large_cells: Vec<u8>,
    /// Effect on sequences of each symmetry that preserves the skeleton. For each place of the image, the list gives
    /// the place in the original sequence.
    symmetries: Vec<Vec<u8>>,
}

impl RowBoards {
    /// Returns the board with a sequence. Returns `None` if an image of that board in this row has a smaller sequence,
    /// because only the image with the smallest sequence is stored.
    #[inline]
    pub fn board(&self, sequence: Sequence) -> Option<Board> {
        let last = self.large_cells.len().wrapping_sub(1);
        let image = |from: &Vec<u8>| {
            let exponents = from.iter().map(|&from| sequence >> (4 * (last - from as usize)) & 15);
            exponents.fold(0, |image, exponent| image << 4 | exponent)
        };
        let counts = self.symmetries.iter().all(|from| image(from) >= sequence);
        counts.then(|| with_tiles(self.small, &self.large_cells, sequence))
    }
}

/// Counts the orbits of configs under the symmetries of their mask.
///
/// By Burnside's lemma, the number of orbits is the mean, over the symmetries, of the number of configs that each
/// symmetry preserves.
#[derive(Debug)]
struct OrbitCounts {
    /// Number of configs that a symmetry preserves, as `fixed[ones][twos][fours][half_sum]`. The indices are the
    /// numbers of cycles of 1, 2 and 4 cells, and half of the small sum. All cells of a cycle have the same digit,
    /// which is the exponent of their tile.
    fixed: Vec<Vec<Vec<Vec<u64>>>>,
}

impl OrbitCounts {
    /// Computes the counts for up to `cells` cells and digits below `large`.
    fn new(cells: usize, large: u8) -> Self {
        let half_tile = |digit: u8| if digit == 0 { 0 } else { 1usize << (digit - 1) };
        // One more cycle of `length` cells may have any digit, and adds `length` times the digit's tile to the sum.
        let with_cycle = move |counts: &[u64], length: usize| {
            let mut longer = vec![0; counts.len() + length * half_tile(large - 1)];
            for (half, &count) in counts.iter().enumerate() {
                (0..large).for_each(|digit| longer[half + length * half_tile(digit)] += count);
            }
            longer
        };
        let with_cycles = |first: Vec<u64>, length: usize, most: usize| {
            std::iter::successors(Some(first), move |fewer| Some(with_cycle(fewer, length))).take(most + 1)
        };
        let fixed = with_cycles(vec![1], 1, cells).enumerate().map(|(ones, of_ones)| {
            let left = cells - ones;
            let of_twos = with_cycles(of_ones, 2, left / 2).enumerate();
            of_twos.map(|(twos, of_twos)| with_cycles(of_twos, 4, (left - 2 * twos) / 4).collect()).collect()
        });
        Self { fixed: fixed.collect() }
    }

    /// Number of canonical configs of a mask with a small sum.
    fn of(&self, space: &Space, mask: &Mask, small_sum: u32) -> u32 {
        let mut all = self.fixed_by(&[mask.small_cells.len(), 0, 0], small_sum);
        for &symmetry in &mask.stabiliser {
            let cycles = cycles(&mask.small_cells, &space.symmetries().permutations()[symmetry]);
            all += self.fixed_by(&cycles, small_sum);
        }
        (all / (mask.stabiliser.len() as u64 + 1)) as u32
    }

    fn fixed_by(&self, &[ones, twos, fours]: &[usize; 3], small_sum: u32) -> u64 {
        self.fixed[ones][twos][fours].get(small_sum as usize / 2).copied().unwrap_or(0)
    }
}

/// Counts the cycles of 1, 2 and 4 cells of a symmetry on a set of cells that it preserves. No other lengths occur,
/// because every symmetry of a board has order 1, 2 or 4.
fn cycles(cells: &[u8], perm: &[u8]) -> [usize; 3] {
    let mut in_cycles = [0usize; 3];
    for &cell in cells {
        let length = 1 + std::iter::successors(Some(perm[cell as usize]), |&at| Some(perm[at as usize]))
            .take_while(|&at| at != cell)
            .count();
        in_cycles[length.ilog2() as usize] += 1;
    }
    [in_cycles[0], in_cycles[1] / 2, in_cycles[2] / 4]
}

/// Bit set of ranks that also numbers its members.
#[derive(Debug)]
struct RankSet {
    words: Box<[u64]>,
    numbers: Ranks,
}

impl RankSet {
    /// Builds the set from ascending ranks.
    fn new(ranks: impl Iterator<Item = u32>) -> Self {
        let mut words: Vec<u64> = Vec::new();
        for rank in ranks {
            words.resize(rank as usize / 64 + 1, 0);
            set(&mut words, rank as usize);
        }
        Self { numbers: Ranks::of(&words), words: words.into() }
    }

    /// Returns the rank with this number in the set, counted from 0; `None` if the set is smaller.
    fn rank(&self, number: u32) -> Option<u32> {
        self.numbers.bit(&self.words, number).map(|rank| rank as u32)
    }

    /// Returns the number of ranks in the set that are below `rank`. `rank` must be a member.
    fn number(&self, rank: u32) -> u32 {
        self.numbers.before(&self.words, rank as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;
    use crate::lane::{lanes, layer_range};

    fn locator(board: &str, objective: &str, large: u8) -> Locator {
        Locator::new(
            &Params::usual(board, objective)
                .large(large)
                .sectors(if board.contains(':') { 1 } else { 2 })
                .build()
                .unwrap(),
        )
    }

    /// Compares the positions of boards with the solver's positions, at every `row_step`-th row and `column_step`-th
    /// column of a block. Returns the number of boards compared.
    fn agree(locator: &Locator, layer: Layer, lane: Lane, row_step: usize, column_step: usize) -> usize {
        let (space, mut found) = (locator.space(), 0);
        let class = space.class(ClassId::of(layer, lane).unwrap()).unwrap();
        let columns = Columns::new(space.params(), lane);
        assert_eq!(locator.rows(layer, lane), Some(class.rows() as u32));
        for row in (0..class.rows() as u32).step_by(row_step).map(Row) {
            for (column, &sequence) in columns.sequences().iter().enumerate().step_by(column_step) {
                let board = space.board(class, row, sequence);
                let (at_lane, at_layer, at_row, at_sequence) = space.locate(board).unwrap();
                assert_eq!((at_lane, at_layer), (lane, layer));
                if at_row == row {
                    let counts = (at_sequence == sequence).then_some(board);
                    let boards = locator.row_boards(layer, lane, row).unwrap();
                    assert_eq!(boards.board(sequence), counts);
                }
                // Rows that are not canonical stay empty, and symmetric rows store one image.
                if (at_row, at_sequence) != (row, sequence) {
                    continue;
                }
                let expected = EntryPlace {
                    layer,
                    lane,
                    row,
                    rows: class.rows() as u32,
                    column: Column(column as u64),
                    columns: columns.len() as u64,
                };
                assert_eq!(locator.place(board), Some(expected));
                assert_eq!(locator.stored_image(board), Some(board));
                let (mask, of_mask, config) = locator.skeleton(layer, lane, row).unwrap();
                assert!(class.mask_rows(mask).contains(&(row.0 as usize)));
                assert_eq!(of_mask.large_cells, space.masks(lane.k)[mask].large_cells);
                let cells = of_mask.small_cells.len();
                assert_eq!(class.row(&space.configs, cells, mask as u32, config), row);
                found += 1;
            }
        }
        found
    }

    #[test]
    fn boards_have_the_places_of_the_solver() {
        for (board, objective, large) in
            [("2x2", "score", 3), ("3x2", "score", 4), ("2x3", "reach:64", 3), ("1x5", "score", 3)]
                .into_iter()
                .chain([("2x3:.x./...", "score", 3), ("3x3:#../.../..#", "reach:16", 3)])
        {
            let locator = locator(board, objective, large);
            for lane in lanes(locator.space().params()) {
                let (first, last) = layer_range(locator.space().params(), lane);
                let layers = (first.0..=last.0).step_by(2).map(Layer);
                let found: usize = layers.map(|layer| agree(&locator, layer, lane, 1, 1)).sum();
                assert!(found > 0, "{board} {lane:?}");
            }
        }
    }

    /// Samples boards of blocks that are too large to check whole. For some of their masks [`has_table`] holds, for
    /// others it does not.
    #[test]
    fn boards_of_large_blocks_have_the_places_of_the_solver() {
        for (board, objective, large, step) in
            [("3x3", "score", 4, 40), ("4x3", "score", 4, 400), ("4x4", "reach:64", 4, 600)]
        {
            let locator = locator(board, objective, large);
            let params = locator.space().params();
            let all = lanes(params);
            // Lanes with few columns, so their columns can be listed. Any number of large tiles is allowed.
            let few = all.iter().filter(|&&lane| ColumnRanks::new(params, lane).len() < 5000);
            for &lane in few.step_by(step) {
                let (first, last) = layer_range(params, lane);
                let layers =
                    [(3, 1), (1, 1), (1, 2)].map(|(a, b)| ((a * first.0 + b * last.0) / (a + b)) & !1);
                for layer in layers.map(Layer) {
                    assert!(agree(&locator, layer, lane, 4001, 97) > 0, "{board} {lane:?} {layer}");
                }
            }
        }
    }

    #[test]
    fn rows_are_counted_without_listing_them() {
        for (board, large) in
            [("3x3", 4), ("4x3", 3), ("4x4", 3), ("5x2", 4), ("7x2", 3), ("4x4:..../..../..xx/..xx", 4)]
        {
            let locator = locator(board, "reach:16", large);
            for k in 0..=locator.space.params().game().cells() as u8 {
                for small_sum in (0..40).step_by(6) {
                    let id = ClassId { k, small_sum, sector: 0 };
                    let Some(class) = locator.space.class(id) else { continue };
                    let counted = locator.class(id);
                    let rows: Vec<_> =
                        (0..class.masks()).map(|mask| class.mask_rows(mask).end as u32).collect();
                    assert_eq!(counted.first_row[1..], rows, "{board} {id:?}");
                }
            }
        }
    }

    #[test]
    fn boards_with_too_large_or_too_many_tiles_have_no_place() {
        let locator = locator("3x3", "reach:64", 4);
        let size = locator.space().params().game().board();
        let place = |text: &str| locator.place(Board::parse(text, size).unwrap());
        assert!(place("32 32 0 / 0 0 0 / 0 0 2").is_some());
        assert!(place("64 32 0 / 0 0 0 / 0 0 2").is_none());
        assert!(place("32768 32768 32768 / 32768 32768 32768 / 32768 32768 32768").is_none());
    }
}
