//! The fingerprint: a sum over all states that depends on nothing but boards and values.
//!
//! It adds, modulo 2^128, the hash of every state once, so it does not depend on order, on shards, or on the split
//! between skeleton and sequence. Of a board its canonical image is hashed. A board's first images are those whose sets
//! of empty cells, of 2s and of 4s are first in order. The canonical image is the one of them with the smallest words.
//! The small tiles alone determine the first images, so for nearly all rows one image serves all columns.

use std::iter::Peekable;
use std::ops::{Range, RangeInclusive};
use std::slice;

use exact2048_game::bitset::{self, Number};
use exact2048_game::class::Space;
use exact2048_game::columns::Columns;
use exact2048_game::images::MOST_SYMMETRIES as SYMMETRIES;
use exact2048_game::rowset::Slot;
use exact2048_game::skeleton::Config;
use exact2048_game::transitions::Skeletons;
use exact2048_game::value::Value;

use crate::backup::{BackedUp, BlockValues};
use crate::kernels::hashes::{
    self, BlockColumns, ColumnWords, PairTables, RowImage, Sums, WantedColumns, Words,
};
use crate::open_block::OpenBlock;
use crate::pieces::of_slots;
use crate::tables::{MapCache, SymmetricColumns};
use crate::{Worker, most_pieces};

/// The number of columns at a time that measured well, a multiple of 64: what they add to hashes fits a core's cache.
const COLUMNS_AT_ONCE: usize = 1024;

/// The number of rows of a mask at a time: enough for them to share the words that are made of columns, and few enough
/// to take little memory.
const ROWS_AT_ONCE: usize = 1024;

impl<V: Value> Worker<V> {
    /// Counts the states of a block, up to symmetry, and sums their hashes.
    pub(crate) fn fingerprint(&self, block: &BackedUp<'_, V>, cache: &mut MapCache) -> BlockValues {
        let BackedUp { open, transitions, reach, .. } = *block;
        let occurs = |slot| reach.summary.occupied.contains(slot);
        let symmetric = self.tables.symmetric_rows(cache, &open.tables, transitions, occurs);
        let pieces = self.value_pieces(reach.matrix.rows().len(), open.tables.stride());
        // Every piece makes the words of a mask's columns anew.
        let pieces = pieces.at_most(most_pieces(open.helpers));
        let found = pieces.map(|slots| self.fingerprint_of(block, slots, &symmetric));
        found.into_iter().fold(BlockValues::default(), |all, piece| BlockValues {
            states: all.states + piece.states,
            fingerprint: all.fingerprint.wrapping_add(piece.fingerprint),
        })
    }

    fn fingerprint_of(
        &self,
        block: &BackedUp<'_, V>,
        slots: Range<usize>,
        symmetric: &[SymmetricColumns<'_>],
    ) -> BlockValues {
        let BackedUp { open: &OpenBlock { class, ref tables, .. }, transitions, reach, states } = *block;
        let (held, columns) = (reach.matrix.rows(), tables.columns.len());
        let skeletons = (self.tables.configs(transitions), self.tables.skeletons(transitions));
        let mut hashes = MaskHashes::new(&self.tables.space, &tables.columns);
        let mut found = BlockValues::default();
        let mut symmetric = of_slots(symmetric, slots.clone(), |row| row.slot).iter().peekable();
        let row_in = |slot: usize| held.row(Slot::from_index(slot)).index();
        let rows = row_in(slots.start)..row_in(slots.end);
        for mask in 0..class.masks() {
            let all = class.mask_rows(mask);
            let rows = all.start.max(rows.start)..all.end.min(rows.end);
            let slots = held.rows_in(rows).map(|row| held.slot(row));
            let mut slots = slots.filter(|&slot| reach.summary.occupied.contains(slot)).peekable();
            if slots.peek().is_some() {
                hashes.begin(mask);
            }
            while slots.peek().is_some() {
                hashes.take(slots.by_ref().take(ROWS_AT_ONCE), skeletons, &mut symmetric);
                for first in (0..columns).step_by(COLUMNS_AT_ONCE) {
                    found.states += hashes.add(&BlockColumns {
                        first,
                        columns: COLUMNS_AT_ONCE.min(columns - first),
                        words: reach.matrix.words(),
                        bits: reach.matrix.bits(),
                        stride: tables.stride(),
                        values: states,
                    });
                }
            }
        }
        found.fingerprint = hashes.sums.total();
        found
    }
}

/// The sum of the hashes of a block's states, mask by mask, some rows and columns at a time.
struct MaskHashes<'a> {
    space: &'a Space,
    columns: &'a Columns,
    sums: Sums,
    /// Where each symmetry's image has the large tiles of the mask, the last one first.
    large_cells: [Vec<u8>; SYMMETRIES],
    /// For each small cell of the mask, the last one first: where the images have it.
    small_cells: Vec<[u8; SYMMETRIES]>,
    /// For each symmetry the words of the columns that are worked on, as far as the rows have states in them.
    large: [ColumnWords; SYMMETRIES],
    /// For each symmetry the columns in which some row has a state.
    wanted: [Vec<u64>; SYMMETRIES],
    /// The rows that are worked on of which only one image may be canonical, by the symmetry that gives it, with the
    /// words of their small tiles.
    rows: [Vec<(Slot, Words)>; SYMMETRIES],
    /// The other rows that are worked on: several of their images may be canonical, or a symmetry maps them to
    /// themselves.
    others: Vec<OtherRow<'a>>,
    marked: Vec<u64>,
    pairs: PairTables,
    /// The exponents of the lane's tiles.
    exponents: RangeInclusive<u8>,
}

/// A row with several images that may be canonical, or with columns that do not all count.
#[derive(Debug)]
struct OtherRow<'a> {
    slot: Slot,
    /// The symmetries that give these images, with the words of the small tiles.
    images: Vec<(usize, Words)>,
    one_an_orbit: Option<&'a SymmetricColumns<'a>>,
}

impl<'a> MaskHashes<'a> {
    /// For the block of a lane with these columns.
    fn new(space: &'a Space, columns: &'a Columns) -> Self {
        // Columns are in order of their tiles, the largest one first.
        let largest = columns
            .groups()
            .last()
            .map_or(0, |group| group.multiset >> (4 * columns.lane().k.saturating_sub(1)));
        Self {
            space,
            columns,
            sums: Sums::default(),
            large_cells: Default::default(),
            small_cells: Vec::new(),
            large: Default::default(),
            wanted: Default::default(),
            rows: Default::default(),
            others: Vec::new(),
            marked: Vec::new(),
            pairs: PairTables::default(),
            exponents: space.params().split().large()..=largest as u8 & 15,
        }
    }

    /// Begins with the rows of a mask.
    fn begin(&mut self, mask: usize) {
        let cells = &self.space.masks(self.columns.lane().k)[mask];
        let permutations = self.space.symmetries().permutations();
        // Where the image of a symmetry holds what was in `cell`.
        let place = |perm: &[u8], cell: u8| perm.iter().position(|&from| from == cell).unwrap_or(0) as u8;
        for (perm, places) in permutations.iter().zip(&mut self.large_cells) {
            places.clear();
            places.extend(cells.large_cells.iter().rev().map(|&cell| place(perm, cell)));
        }
        self.small_cells.clear();
        self.small_cells.extend(cells.small_cells.iter().rev().map(|&cell| {
            let mut places = [0; SYMMETRIES];
            places.iter_mut().zip(permutations).for_each(|(to, perm)| *to = place(perm, cell));
            places
        }));
    }

    /// Begins to work on some rows of the mask, given by ascending slots. `symmetric` has the symmetric rows from the
    /// first of these on.
    fn take(
        &mut self,
        slots: impl Iterator<Item = Slot>,
        (configs, skeletons): (&[Config], &Skeletons),
        symmetric: &mut Peekable<slice::Iter<'a, SymmetricColumns<'a>>>,
    ) {
        self.rows.iter_mut().for_each(Vec::clear);
        self.others.clear();
        for slot in slots {
            let (config, images) = (configs[slot.index()], skeletons.first_images[slot.index()]);
            let small = |symmetry: usize| {
                hashes::words_of(self.small_cells.iter().map(|places| places[symmetry]), config)
            };
            let one_an_orbit = symmetric.next_if(|row| row.slot == slot);
            if images.is_power_of_two() && one_an_orbit.is_none() {
                let symmetry = images.trailing_zeros() as usize;
                self.rows[symmetry].push((slot, small(symmetry)));
            } else {
                let images = (0..SYMMETRIES).filter(|symmetry| images >> symmetry & 1 == 1);
                let images = images.map(|symmetry| (symmetry, small(symmetry))).collect();
                self.others.push(OtherRow { slot, images, one_an_orbit });
            }
        }
    }

    /// Adds the hashes of these rows' states in some columns; gives the number of states.
    fn add<V: Value>(&mut self, block: &BlockColumns<'_, V>) -> u64 {
        self.fill(block);
        let mut states = 0;
        for (rows, large) in self.rows.iter().zip(&self.large).filter(|(rows, _)| !rows.is_empty()) {
            states += hashes::add_rows(&mut self.sums, block, rows, large);
        }
        for row in &self.others {
            let mut marked = block.marks(row.slot);
            if let Some(symmetric) = row.one_an_orbit {
                let one_an_orbit = symmetric.representatives[block.first / 64..].iter();
                self.marked.clear();
                self.marked.extend(marked.iter().zip(one_an_orbit).map(|(marked, one)| marked & one));
                marked = &self.marked;
            }
            let images: Vec<RowImage<'_>> =
                row.images.iter().map(|&(symmetry, small)| (small, &self.large[symmetry])).collect();
            states += hashes::add_row_of_several(&mut self.sums, marked, &images, block.values(row.slot));
        }
        states
    }

    /// Makes the words of the columns for the images that the rows need.
    fn fill<V: Value>(&mut self, block: &BlockColumns<'_, V>) {
        let words = block.columns.div_ceil(64);
        for wanted in &mut self.wanted {
            wanted.clear();
            wanted.resize(words, 0);
        }
        let mut want = |slot: Slot, symmetry: usize| {
            self.wanted[symmetry]
                .iter_mut()
                .zip(block.marks(slot))
                .for_each(|(wanted, &marks)| *wanted |= marks);
        };
        for (symmetry, rows) in self.rows.iter().enumerate() {
            rows.iter().for_each(|&(slot, _)| want(slot, symmetry));
        }
        for row in &self.others {
            row.images.iter().for_each(|&(symmetry, _)| want(row.slot, symmetry));
        }
        let sequences = &self.columns.sequences()[block.first..][..block.columns];
        for ((large, marked), cells) in self.large.iter_mut().zip(&self.wanted).zip(&self.large_cells) {
            if bitset::any(marked) {
                let wanted = WantedColumns { sequences, marked, exponents: &self.exponents };
                large.fill(cells, &wanted, &mut self.pairs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::board::Board;
    use exact2048_game::class::ClassId;
    use exact2048_game::images::FirstImages;
    use exact2048_game::{Objective, Params, Precision, Spawn4};
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    use xxhash_rust::xxh3::xxh3_128;

    use super::*;

    /// The hash of a state as `docs/dev/format.md` has it, from all images of its board.
    fn slow_hash(space: &Space, board: Board, value: u64) -> u128 {
        let cells = space.params().game().cells();
        let contents = |image: Board| (0..cells).map(|cell| image.get(cell)).collect::<Vec<u8>>();
        let images: Vec<Vec<u8>> = space.symmetries().images(board).map(contents).collect();
        let holding = |image: &[u8], exponent: u8| -> u32 {
            (0..cells).filter(|&cell| image[cell] == exponent).map(|cell| 1 << cell).sum()
        };
        let key = |image: &Vec<u8>| [0, 1, 2].map(|exponent| holding(image, exponent));
        let first = images.iter().map(key).min().unwrap();
        let words = |image: &Vec<u8>| {
            let random = (0u8..).zip(image).map(|(cell, &exponent)| xxh3_128(&[cell, exponent]));
            random
                .fold((0u64, 0u64), |(a, b), r| (a.wrapping_add(r as u64), b.wrapping_add((r >> 64) as u64)))
        };
        let (a, b) = images.iter().filter(|image| key(image) == first).map(words).min().unwrap();
        let (low, high) = (value & 0xffff_ffff, value >> 32);
        let mix = |word: u64, added: u64| {
            let product = (word.wrapping_add(added) % (1 << 32)) * (word >> 32 | 1);
            let folded = product ^ product >> 24;
            u128::from(folded ^ folded << 16)
        };
        mix(b, low + 2 * high) << 64 | mix(a, low + high)
    }

    /// The hash that the kernels compute for a block with this one state.
    fn fast_hash(space: &Space, board: Board, value: u64) -> Option<u128> {
        let (lane, layer, row, sequence) = space.locate(board)?;
        let class = space.class(ClassId::of(layer, lane)?)?;
        let mask = (0..class.masks()).find(|&mask| class.mask_rows(mask).contains(&row.index()))?;
        let small = space.small_tiles(class, mask, row);
        let cells = &space.masks(lane.k)[mask].small_cells;
        let config = cells.iter().fold(0, |c, &cell| c << 4 | Config::from(small.get(cell as usize)));
        let columns = Columns::new(space.params(), lane);
        let column = columns.sequences().iter().position(|&found| found == sequence)?;
        let mut bits = vec![0; columns.words()];
        bits[column / 64] = 1 << (column % 64);
        let mut values = vec![u64::MAX; columns.len().next_multiple_of(64)];
        values[column] = value;
        let mut hashes = MaskHashes::new(space, &columns);
        hashes.begin(mask);
        let first_images = FirstImages::new(space.symmetries(), &space.masks(lane.k)[mask]).of(config);
        let skeletons = Skeletons { first_images: vec![first_images].into(), ..Skeletons::default() };
        hashes.take([Slot(0)].into_iter(), (&[config], &skeletons), &mut [].iter().peekable());
        let (words, stride) = (bits.len(), values.len());
        let mut states = 0;
        for first in (0..columns.len()).step_by(COLUMNS_AT_ONCE) {
            let columns = COLUMNS_AT_ONCE.min(columns.len() - first);
            states +=
                hashes.add(&BlockColumns { first, columns, words, bits: &bits, stride, values: &values });
        }
        assert_eq!(states, 1);
        Some(hashes.sums.total())
    }

    fn space(board: &str, large: u8) -> Space {
        let (board, _spawn4) = (board.parse().unwrap(), Spawn4::default());
        let objective =
            if board == "4x4".parse().unwrap() { "reach:2048".parse().unwrap() } else { Objective::Score };
        Space::new(
            &Params::builder(board, objective).precision(Precision::Bits64).large(large).build().unwrap(),
        )
    }

    #[test]
    fn hashes_are_those_of_whole_boards_for_any_split() {
        let mut compared = 0;
        for board in ["2x2", "1x5", "3x2", "3x3", "5x2", "4x3", "4x4"] {
            // With more digits, 16 small cells have more configs than there are numbers for.
            let splits = if board == "4x4" { 3..=4 } else { 3..=6 };
            let spaces: Vec<Space> = splits.map(|large| space(board, large)).collect();
            let cells = spaces[0].params().game().cells();
            let exponents = proptest::collection::vec(0..6u8, cells);
            let mut runner = TestRunner::deterministic();
            for _ in 0..40 {
                let exponents = exponents.new_tree(&mut runner).unwrap().current();
                // Some boards with a symmetry, of which one image is as good as another.
                let plain = (0..cells).fold(Board::default(), |b, cell| b.with(cell, exponents[cell]));
                for board in [plain, made_symmetric(&spaces[0], plain)] {
                    for (i, space) in spaces.iter().enumerate() {
                        let value = u64::from(exponents[0]) << (20 * i);
                        let Some(found) = fast_hash(space, board, value) else { continue };
                        assert_eq!(found, slow_hash(space, board, value), "{board:?}, split {}", 3 + i);
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 1_200, "only {compared} boards are within the tile bound");
    }

    /// A board that a symmetry maps to itself: of each two cells that it exchanges one is copied to the other.
    fn made_symmetric(space: &Space, board: Board) -> Board {
        let last = space.symmetries().permutations().last().unwrap();
        (0..space.params().game().cells()).fold(board, |b, cell| {
            let from = last[cell] as usize;
            if from > cell && last[from] as usize == cell { b.with(from, b.get(cell)) } else { b }
        })
    }
}
