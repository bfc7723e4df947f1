//! Positions of many boards in their blocks.
//!
//! Consecutive boards often have the same skeleton or the same sequence. A [`Placer`] computes the row of a skeleton
//! and the column of a sequence once.

use rustc_hash::FxHashMap;

use crate::board::{Board, tile};
use crate::class::ClassId;
use crate::huge::HugeTiles;
use crate::lane::Lane;
use crate::layer::Layer;
use crate::locate::{EntryPlace, Locator};
use crate::rowset::Row;
use crate::sequence::{Column, Sequence};

/// Finds boards in their blocks, for one thread. The results are those of [`Locator::place`].
///
/// Memory: some tens of bytes for each skeleton and each sequence.
#[derive(Debug)]
pub struct Placer<'a> {
    locator: &'a Locator,
    /// By the board with [`LARGE`] in place of each large tile.
    skeletons: FxHashMap<Board, Option<SkeletonPlace>>,
    sequences: FxHashMap<Sequence, Option<SequencePlace>>,
}

/// Nibble of a large tile in the board of a skeleton.
const LARGE: u64 = 15;

/// Row of a skeleton.
#[derive(Clone, Debug)]
struct SkeletonPlace {
    small_sum: u32,
    sector: u8,
    row: Row,
    rows: u32,
    /// Cells of the large tiles in the order of the canonical skeleton, for each symmetry that leads to it.
    orders: Vec<Vec<u8>>,
}

/// Column of a sequence, and its lane in the first sector.
#[derive(Clone, Copy, Debug)]
struct SequencePlace {
    lane: Lane,
    column: Column,
    columns: u64,
}

impl<'a> Placer<'a> {
    /// Creates a placer that has seen no board.
    pub fn new(locator: &'a Locator) -> Self {
        Self { locator, skeletons: FxHashMap::default(), sequences: FxHashMap::default() }
    }

    /// Returns the entry of a board and its images; `None` if the tiles are too large or too many for any block.
    ///
    /// Cost: some tens of nanoseconds if the skeleton and the sequence are known.
    pub fn place(&mut self, board: Board) -> Option<EntryPlace> {
        let locator = self.locator;
        let marked = marked(board, locator.space().params().split().large());
        let skeleton = self.skeletons.entry(marked).or_insert_with(|| skeleton_place(locator, marked));
        let SkeletonPlace { small_sum, sector, row, rows, orders } = skeleton.as_ref()?;
        let packed = |order: &Vec<u8>| {
            order.iter().fold(0, |sequence, &cell| sequence << 4 | (board.0 >> (4 * cell) & 15))
        };
        let sequence = orders.iter().map(packed).min()?;
        let k = orders[0].len() as u8;
        let found = self.sequences.entry(sequence).or_insert_with(|| sequence_place(locator, k, sequence));
        let SequencePlace { lane, column, columns } = (*found)?;
        let (layer, lane) = (Layer(lane.large_sum + small_sum), Lane { sector: *sector, ..lane });
        Some(EntryPlace { layer, lane, row: *row, rows: *rows, column, columns })
    }
}

/// Returns a board with [`LARGE`] in place of each large tile.
#[inline]
fn marked(board: Board, large: u8) -> Board {
    // Adds 16 - `large` to each nibble, in a separate byte. Bit 4 of the sum is set exactly for large tiles.
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let carries = |nibbles: u64| ((nibbles + ONES * u64::from(16 - large)) >> 4 & ONES) * LARGE;
    Board(board.0 | carries(board.0 & LOW) | carries(board.0 >> 4 & LOW) << 4)
}

fn skeleton_place(locator: &Locator, marked: Board) -> Option<SkeletonPlace> {
    let space = locator.space();
    let (places, permutations) = (space.params().game().places(), space.symmetries().permutations());
    let digit = |cell: u8| marked.0 >> (4 * cell) & 15;
    let large: u32 = (0..places).map(|cell| u32::from(digit(cell as u8) == LARGE) << cell).sum();
    let image = space.masks.image(large);
    if image.symmetries == 0 {
        return None;
    }
    let k = large.count_ones() as u8;
    let mask = &space.masks(k)[image.index as usize];
    let leading = permutations.iter().enumerate().filter(|(g, _)| image.symmetries >> g & 1 == 1);
    let configs = leading.map(|(_, from)| {
        let config = mask.small_cells.iter().fold(0, |c, &cell| c << 4 | digit(from[cell as usize]));
        (config, mask.large_cells.iter().map(|&cell| from[cell as usize]).collect::<Vec<u8>>())
    });
    let configs: Vec<_> = configs.collect();
    let config = configs.iter().map(|&(config, _)| config).min()?;
    let orders = configs.into_iter().filter(|&(other, _)| other == config).map(|(_, order)| order).collect();
    let small_sum = (0..places as u8).map(digit).filter(|&d| d != LARGE).map(|d| tile(d as u8)).sum();
    let sector = space.sector(k, image.index);
    let (row, rows) = locator.row(ClassId { k, small_sum, sector }, image.index, config)?;
    Some(SkeletonPlace { small_sum, sector, row, rows, orders })
}

fn sequence_place(locator: &Locator, k: u8, sequence: Sequence) -> Option<SequencePlace> {
    let (size, split) = (locator.space().params().game().board(), locator.space().params().split());
    let large_sum = (0..k).map(|place| size.tile((sequence >> (4 * place)) as u8 & 15)).sum();
    let lane = Lane { k, large_sum, huge: HugeTiles::of(sequence, split.huge()), sector: 0 };
    let (column, columns) = locator.column(lane, sequence)?;
    Some(SequencePlace { lane, column, columns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::huge::LEAST_HUGE;
    use crate::params::Params;

    /// Places boards with arbitrary tiles, including more large tiles than any game can have.
    #[test]
    fn places_are_those_of_the_locator() {
        let splits = [
            ("3x3", 3, None),
            ("4x3", 4, Some(LEAST_HUGE)),
            ("2x4", 3, None),
            ("4x4", 3, None),
            ("3x3:..x/..x/...", 3, None),
            ("3x3+2x", 3, None),
            ("4x4+8x", 4, None),
        ];
        for (board, large, huge) in splits {
            let objective = match board {
                "4x4" => "reach:2048",
                _ if board.contains('+') => "reach:256",
                _ => "score",
            };
            let sectors = if board.contains([':', '+']) { 1 } else { 4 };
            let params = Params::usual(board, objective).large(large).huge(huge).sectors(sectors);
            let params = params.build().unwrap();
            let (locator, size) = (Locator::new(&params), params.game().board());
            let mut placer = Placer::new(&locator);
            let mut random = 1u64;
            for _ in 0..20_000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let few = random >> 40 & 0x3f;
                let nibble = |cell: usize| {
                    let digit = (random >> (3 * cell) & 15) as u8;
                    // Boards of few tiles are often symmetric.
                    match few >> (cell % 6) & 1 {
                        0 if digit == 15 && size.loose() > 0 => 15,
                        0 => digit % 12,
                        _ => 0,
                    }
                };
                let board =
                    size.playable().fold(Board::default(), |board, cell| board.with(cell, nibble(cell)));
                assert_eq!(placer.place(board), locator.place(board), "{board:?}");
                assert_eq!(placer.place(board), locator.place(board), "{board:?}, known");
            }
        }
    }
}
