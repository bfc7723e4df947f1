//! The hashes of a block's states, summed up.
//!
//! A board is hashed as one of its images. Its *first images* are those with the smallest set of empty cells, then of
//! 2s, then of 4s. Of these, the image with the smallest [`Words`] is canonical here. The small tiles determine the
//! first images, so nearly all rows have the same canonical image in all columns.

use std::iter::Peekable;
use std::ops::{Range, RangeInclusive};
use std::slice;

use exact2048_game::bitset::{self, Number};
use exact2048_game::class::{Class, Space};
use exact2048_game::columns::Columns;
use exact2048_game::configs::Config;
use exact2048_game::images::MOST_SYMMETRIES as SYMMETRIES;
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::transitions::Skeletons;
use exact2048_game::value::Value;

use super::hashes::{self, BlockColumns, ColumnWords, PairTables, RowImage, Sums, WantedColumns, Words};
use crate::bits::Source;
use crate::pieces::of_slots;

/// The number of columns to work on at a time, a multiple of 64. It measured well, because the words of this many
/// columns fit a core's cache.
const COLUMNS_AT_ONCE: usize = 1024;

/// The number of rows of a mask to work on at a time. These rows share the words of the columns, and take little
/// memory.
const ROWS_AT_ONCE: usize = 1024;

/// The states of a block with their values, to be hashed.
#[derive(Debug)]
pub struct BlockHashes<'a, V> {
    /// The geometry of the run.
    pub space: &'a Space,
    /// The class of the block.
    pub class: &'a Class,
    /// The columns of the block.
    pub columns: &'a Columns,
    /// The rows that the block holds.
    pub rows: &'a RowSet,
    /// The small tiles of each row.
    pub configs: &'a [Config],
    /// The first images of each row.
    pub skeletons: &'a Skeletons,
    /// The symmetric rows that occur, ascending.
    pub orbits: &'a [OrbitColumns<'a>],
    /// The states.
    pub states: Source<'a>,
    /// Values a row.
    pub stride: usize,
    /// The values, row by row.
    pub values: &'a [V],
}

/// The columns of a symmetric row that stand for their orbits. Other columns do not count.
#[derive(Clone, Copy, Debug)]
pub struct OrbitColumns<'a> {
    /// The slot of the row.
    pub slot: Slot,
    /// One bit a column.
    pub marked: &'a [u64],
}

/// The sum over some states.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct HashSum {
    /// The number of states, up to symmetry.
    pub states: u64,
    /// The sum of their hashes, modulo 2^128.
    pub sum: u128,
}

/// Counts the states in some slots, up to symmetry, and sums their hashes.
pub fn sum_hashes<V: Value>(plan: &BlockHashes<'_, V>, slots: Range<usize>) -> HashSum {
    let (held, columns) = (plan.rows, plan.columns.len());
    let mut hashes = MaskHashes::new(plan.space, plan.columns);
    let mut states = 0;
    let mut orbits = of_slots(plan.orbits, slots.clone(), |row| row.slot).iter().peekable();
    let row_in = |slot: usize| held.row(Slot::from_index(slot)).index();
    let rows = row_in(slots.start)..row_in(slots.end);
    for mask in 0..plan.class.masks() {
        let all = plan.class.mask_rows(mask);
        let rows = all.start.max(rows.start)..all.end.min(rows.end);
        let slots = held.rows_in(rows).map(|row| held.slot(row));
        let mut slots = slots.filter(|&slot| plan.states.occupied.contains(slot)).peekable();
        if slots.peek().is_some() {
            hashes.begin(mask);
        }
        while slots.peek().is_some() {
            hashes.take(slots.by_ref().take(ROWS_AT_ONCE), (plan.configs, plan.skeletons), &mut orbits);
            for first in (0..columns).step_by(COLUMNS_AT_ONCE) {
                states += hashes.add(&BlockColumns {
                    first,
                    columns: COLUMNS_AT_ONCE.min(columns - first),
                    words: plan.states.words,
                    bits: plan.states.bits,
                    stride: plan.stride,
                    values: plan.values,
                });
            }
        }
    }
    HashSum { states, sum: hashes.sums.total() }
}

/// The sum of the hashes of a block's states, mask by mask, some rows and columns at a time.
struct MaskHashes<'a> {
    space: &'a Space,
    columns: &'a Columns,
    sums: Sums,
    cells: ImageCells,
    rows: RowsAtOnce<'a>,
    large: LargeWords,
    marked: Vec<u64>,
}

/// The cells of a mask in the image of each symmetry.
#[derive(Default)]
struct ImageCells {
    /// The cells of the large tiles, the last one first.
    large: [Vec<u8>; SYMMETRIES],
    /// For each small cell of the mask, the last one first: its cell in each image.
    small: Vec<[u8; SYMMETRIES]>,
}

/// The rows of a mask that are worked on at once.
#[derive(Default)]
struct RowsAtOnce<'a> {
    /// Rows of which one image alone may be canonical, by its symmetry, with the words of their small tiles.
    plain: [Vec<(Slot, Words)>; SYMMETRIES],
    /// The other rows: several of their images may be canonical, or a symmetry maps them to themselves.
    others: Vec<OtherRow<'a>>,
}

/// The words of the large tiles of the columns that are worked on at once.
struct LargeWords {
    /// By symmetry, for the columns in which the rows have states.
    words: [ColumnWords; SYMMETRIES],
    /// By symmetry, the columns in which some row has a state.
    wanted: [Vec<u64>; SYMMETRIES],
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
    one_an_orbit: Option<&'a OrbitColumns<'a>>,
}

impl<'a> MaskHashes<'a> {
    /// An empty sum for a block with these columns.
    fn new(space: &'a Space, columns: &'a Columns) -> Self {
        Self {
            space,
            columns,
            sums: Sums::default(),
            cells: ImageCells::default(),
            rows: RowsAtOnce::default(),
            large: LargeWords::new(space, columns),
            marked: Vec::new(),
        }
    }

    /// Begins with the rows of a mask.
    fn begin(&mut self, mask: usize) {
        let cells = &self.space.masks(self.columns.lane().k)[mask];
        let permutations = self.space.symmetries().permutations();
        // The cell of an image that holds the tile of `cell`.
        let place = |perm: &[u8], cell: u8| perm.iter().position(|&from| from == cell).unwrap_or(0) as u8;
        for (perm, places) in permutations.iter().zip(&mut self.cells.large) {
            places.clear();
            places.extend(cells.large_cells.iter().rev().map(|&cell| place(perm, cell)));
        }
        self.cells.small.clear();
        self.cells.small.extend(cells.small_cells.iter().rev().map(|&cell| {
            let mut places = [0; SYMMETRIES];
            places.iter_mut().zip(permutations).for_each(|(to, perm)| *to = place(perm, cell));
            places
        }));
    }

    /// Begins to work on some rows of the mask, given by ascending slots. `orbits` has the symmetric rows from the
    /// first of these on.
    fn take(
        &mut self,
        slots: impl Iterator<Item = Slot>,
        (configs, skeletons): (&[Config], &Skeletons),
        orbits: &mut Peekable<slice::Iter<'a, OrbitColumns<'a>>>,
    ) {
        let RowsAtOnce { plain, others } = &mut self.rows;
        plain.iter_mut().for_each(Vec::clear);
        others.clear();
        for slot in slots {
            let (config, images) = (configs[slot.index()], skeletons.first_images[slot.index()]);
            let small = |symmetry: usize| {
                hashes::words_of(self.cells.small.iter().map(|places| places[symmetry]), config)
            };
            let one_an_orbit = orbits.next_if(|row| row.slot == slot);
            if images.is_power_of_two() && one_an_orbit.is_none() {
                let symmetry = images.trailing_zeros() as usize;
                plain[symmetry].push((slot, small(symmetry)));
            } else {
                let images = (0..SYMMETRIES).filter(|symmetry| images >> symmetry & 1 == 1);
                let images = images.map(|symmetry| (symmetry, small(symmetry))).collect();
                others.push(OtherRow { slot, images, one_an_orbit });
            }
        }
    }

    /// Adds the hashes of these rows' states in some columns. Returns the number of states.
    fn add<V: Value>(&mut self, block: &BlockColumns<'_, V>) -> u64 {
        self.large.fill(block, &self.rows, &self.cells, self.columns);
        let mut states = 0;
        let plain = self.rows.plain.iter().zip(&self.large.words);
        for (rows, large) in plain.filter(|(rows, _)| !rows.is_empty()) {
            states += hashes::add_rows(&mut self.sums, block, rows, large);
        }
        for row in &self.rows.others {
            let mut marked = block.marks(row.slot);
            if let Some(orbits) = row.one_an_orbit {
                let one_an_orbit = orbits.marked[block.first / 64..].iter();
                self.marked.clear();
                self.marked.extend(marked.iter().zip(one_an_orbit).map(|(marked, one)| marked & one));
                marked = &self.marked;
            }
            let images = row.images.iter().map(|&(symmetry, small)| (small, &self.large.words[symmetry]));
            let images: Vec<RowImage<'_>> = images.collect();
            states += hashes::add_row_of_several(&mut self.sums, marked, &images, block.values(row.slot));
        }
        states
    }
}

impl LargeWords {
    fn new(space: &Space, columns: &Columns) -> Self {
        // Columns are in order of their tiles, the largest one first.
        let shift = 4 * columns.lane().k.saturating_sub(1);
        let largest = columns.groups().last().map_or(0, |group| group.multiset >> shift);
        Self {
            words: Default::default(),
            wanted: Default::default(),
            pairs: PairTables::default(),
            exponents: space.params().split().large()..=largest as u8 & 15,
        }
    }

    /// Makes the words of the columns for the images that the rows need.
    fn fill<V: Value>(
        &mut self,
        block: &BlockColumns<'_, V>,
        rows: &RowsAtOnce<'_>,
        cells: &ImageCells,
        columns: &Columns,
    ) {
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
        for (symmetry, rows) in rows.plain.iter().enumerate() {
            rows.iter().for_each(|&(slot, _)| want(slot, symmetry));
        }
        for row in &rows.others {
            row.images.iter().for_each(|&(symmetry, _)| want(row.slot, symmetry));
        }
        let sequences = &columns.sequences()[block.first..][..block.columns];
        for ((large, marked), cells) in self.words.iter_mut().zip(&self.wanted).zip(&cells.large) {
            if bitset::any(marked) {
                let wanted = WantedColumns { sequences, marked, exponents: &self.exponents };
                large.fill(cells, &wanted, &mut self.pairs);
            }
        }
    }
}
