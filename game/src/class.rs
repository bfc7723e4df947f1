//! Classes: all canonical skeletons with the same number of large tiles, the same small sum and the same sector.
//!
//! A block of a lane with k large tiles of sum T in sector s has the rows of the class (k, layer − T, s). So all blocks
//! of one class share its rows and their transitions.

use std::sync::OnceLock;

use crate::bitset::BitSet;
use crate::board::Board;
use crate::columns::Columns;
use crate::configs::{Config, Configs};
use crate::huge::HugeTiles;
use crate::lane::{Lane, layer_range};
use crate::layer::Layer;
use crate::params::Params;
use crate::rowset::{Row, RowSet};
use crate::sequence::Sequence;
use crate::skeleton::{Mask, Masks};
use crate::slide::Lines;
use crate::symmetry::Symmetries;

/// Identifier of a class: the number of large tiles, the sum of the small tiles and the sector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId {
    /// Number of large tiles.
    pub k: u8,
    /// Sum of the small tiles.
    pub small_sum: u32,
    /// Sector of the places of the large tiles.
    pub sector: u8,
}

impl ClassId {
    /// Returns the class of the block of `lane` in `layer`; `None` if the layer is below the lane.
    pub fn of(layer: Layer, lane: Lane) -> Option<Self> {
        let small_sum = layer.0.checked_sub(lane.large_sum)?;
        Some(Self { k: lane.k, small_sum, sector: lane.sector })
    }
}

/// Rows of a class: its canonical skeletons, ordered by mask and then by config.
#[derive(Debug)]
pub struct Class {
    id: ClassId,
    /// First row of each canonical mask, and the number of rows at the end. Masks of other sectors have no rows.
    first_row: Vec<u32>,
    /// Canonical configs of each mask that has symmetries and at most [`MOST_IN_TABLE`] configs; `None` for other
    /// masks.
    symmetric: Vec<Option<CanonicalConfigs>>,
}

/// Largest number of configs of a mask that numbers only its canonical configs. Part of the format.
///
/// In a mask with more configs, every config has the row of its rank, and the rows of noncanonical configs stay empty.
/// A table of all configs would take longer to build than most boards take to solve.
const MOST_IN_TABLE: u32 = 1 << 15;

/// Whether a table numbers the canonical configs of a mask that has `count` configs in all.
pub(crate) fn has_table(mask: &Mask, count: u32) -> bool {
    !mask.stabiliser.is_empty() && count <= MOST_IN_TABLE
}

/// Canonical configs of a mask that has symmetries.
#[derive(Debug)]
struct CanonicalConfigs {
    /// Row within the mask by the rank of the config; `u32::MAX` for a config that is not canonical.
    row_of_rank: Vec<u32>,
    rank_of_row: Vec<u32>,
}

impl Class {
    fn new(space: &Space, id: ClassId) -> Self {
        let masks = space.masks.canonical(id.k as usize);
        let (mut first_row, mut symmetric, mut rows) = (vec![0], Vec::new(), 0);
        for (index, mask) in masks.iter().enumerate() {
            let is_here = space.sector(id.k, index as u32) == id.sector;
            let count = if is_here { space.configs.count(mask.small_cells.len(), id.small_sum) } else { 0 };
            let canonical = (is_here && has_table(mask, count)).then(|| {
                let rank_of_row: Vec<u32> = space.canonical_ranks(mask, id.small_sum).collect();
                let mut row_of_rank = vec![u32::MAX; count as usize];
                for (row, &rank) in (0u32..).zip(&rank_of_row) {
                    row_of_rank[rank as usize] = row;
                }
                CanonicalConfigs { row_of_rank, rank_of_row }
            });
            rows += canonical.as_ref().map_or(count, |c| c.rank_of_row.len() as u32);
            first_row.push(rows);
            symmetric.push(canonical);
        }
        Self { id, first_row, symmetric }
    }

    /// Identifier of the class.
    pub fn id(&self) -> ClassId {
        self.id
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.first_row.last().map_or(0, |&rows| rows as usize)
    }

    /// Number of canonical masks of all sectors.
    pub fn masks(&self) -> usize {
        self.symmetric.len()
    }

    /// Rows of a canonical mask.
    pub fn mask_rows(&self, mask: usize) -> std::ops::Range<usize> {
        self.first_row[mask] as usize..self.first_row[mask + 1] as usize
    }

    /// Returns the row of a canonical skeleton, from the index of its mask and its config.
    #[inline]
    pub fn row(&self, configs: &Configs, cells: usize, mask: u32, config: Config) -> Row {
        self.rows_of_mask(mask).of_rank(configs.rank(cells, self.id.small_sum, config))
    }

    /// Returns the finder of the rows of a canonical mask.
    #[inline]
    pub(crate) fn rows_of_mask(&self, mask: u32) -> MaskRows<'_> {
        let of_rank = self.symmetric[mask as usize].as_ref().map(|canonical| &*canonical.row_of_rank);
        MaskRows { first: self.first_row[mask as usize], of_rank }
    }

    /// Returns the rank of the config of a row of a mask; `within` counts from the first row of the mask. The ranks
    /// ascend with the rows.
    fn rank(&self, mask: usize, within: u32) -> u32 {
        self.symmetric[mask].as_ref().map_or(within, |canonical| canonical.rank_of_row[within as usize])
    }

    /// Returns the config of a row of a mask; `within` counts from the first row of the mask.
    pub(crate) fn config(&self, configs: &Configs, cells: usize, mask: usize, within: u32) -> Config {
        configs.config(cells, self.id.small_sum, self.rank(mask, within))
    }
}

/// Rows of a canonical mask, by the ranks of their configs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskRows<'a> {
    first: u32,
    /// Row within the mask by rank; `None` if rows and ranks are equal.
    of_rank: Option<&'a [u32]>,
}

impl MaskRows<'_> {
    /// Returns the row of a canonical config, from its rank.
    #[inline]
    pub fn of_rank(self, rank: u32) -> Row {
        Row(self.first + self.of_rank.map_or(rank, |rows| rows[rank as usize]))
    }
}

/// Decomposition of a board into its canonical skeleton and its large exponents.
pub(crate) struct Split {
    pub(crate) lane: Lane,
    pub(crate) layer: Layer,
    /// Index of the canonical mask among the masks with the lane's `k`.
    pub(crate) mask: u32,
    pub(crate) config: Config,
    /// Large exponents, packed as in [`crate::columns`].
    pub(crate) sequence: u64,
}

/// Tables that the parameters of a run determine: symmetries, masks, configs, slides and classes. Each class is
/// computed on first use.
#[derive(Debug)]
pub struct Space {
    params: Params,
    pub(crate) symmetries: Symmetries,
    pub(crate) masks: Masks,
    pub(crate) configs: Configs,
    pub(crate) lines: Lines,
    /// Sector of each canonical mask, by the number of large tiles.
    mask_sectors: Vec<Vec<u8>>,
    /// By number of large tiles, half of the small sum, and sector.
    classes: Vec<Vec<OnceLock<Class>>>,
}

impl Space {
    /// Builds the space of a run.
    pub fn new(params: &Params) -> Self {
        let cells = params.game().cells();
        let symmetries = Symmetries::new(params.game().board());
        let classes = (0..=cells).map(|k| {
            let sums = ((cells - k) << (params.split().large() - 1)) / 2 + 1;
            (0..sums * usize::from(params.split().sectors())).map(|_| OnceLock::new()).collect()
        });
        let (masks, sectors) = (Masks::new(params.game().board(), &symmetries), params.sectors());
        let sector = |mask: &Mask| sectors.of(mask.large_cells.iter().fold(0, |bits, cell| bits | 1 << cell));
        Self {
            params: params.clone(),
            mask_sectors: (0..=cells).map(|k| masks.canonical(k).iter().map(sector).collect()).collect(),
            masks,
            configs: Configs::new(cells, params.split().large()),
            lines: Lines::new(params.game().board(), params.split().large()),
            classes: classes.collect(),
            symmetries,
        }
    }

    /// Parameters of the run.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Symmetries of the board.
    pub fn symmetries(&self) -> &Symmetries {
        &self.symmetries
    }

    /// Canonical masks with `k` large cells.
    pub fn masks(&self, k: u8) -> &[Mask] {
        self.masks.canonical(k as usize)
    }

    /// Sector of a canonical mask with `k` large cells, by its index.
    pub fn sector(&self, k: u8, mask: u32) -> u8 {
        self.mask_sectors[usize::from(k)][mask as usize]
    }

    /// Place of a class in a list by half of the small sum and sector; `None` if the run has fewer sectors.
    pub(crate) fn place_of(&self, id: ClassId) -> Option<usize> {
        let sectors = self.params.split().sectors();
        (id.sector < sectors)
            .then(|| id.small_sum as usize / 2 * usize::from(sectors) + usize::from(id.sector))
    }

    /// Estimates the number of rows of a class without building it.
    pub fn estimate_rows(&self, id: ClassId) -> u64 {
        let rows = |mask: &Mask| {
            let configs = u64::from(self.configs.count(mask.small_cells.len(), id.small_sum));
            // Orbits of symmetric skeletons are smaller, so the quotient is too low, mostly for small classes.
            if has_table(mask, configs as u32) {
                configs / (mask.stabiliser.len() as u64 + 1) * 5 / 4 + 8
            } else {
                configs
            }
        };
        let masks = self.masks.canonical(usize::from(id.k)).iter().zip(&self.mask_sectors[usize::from(id.k)]);
        masks.filter(|&(_, &sector)| sector == id.sector).map(|(mask, _)| rows(mask)).sum()
    }

    /// Estimates rows × columns of each block of a lane, layers ascending, without building classes or columns.
    pub fn estimate_entries(&self, lane: Lane) -> impl Iterator<Item = (Layer, u64)> {
        let columns = Columns::count(&self.params, lane);
        let (first, last) = layer_range(&self.params, lane);
        first.to(last).map(move |layer| {
            let rows = ClassId::of(layer, lane).map_or(0, |class| self.estimate_rows(class));
            (layer, rows.saturating_mul(columns))
        })
    }

    /// Total number of ranks in the tables of all classes with a small sum of at most `most`.
    pub fn table_ranks(&self, most: u32) -> u64 {
        let all_masks = (0..=self.params.game().cells()).flat_map(|k| self.masks.canonical(k));
        let ranks = |mask: &Mask| -> u64 {
            let cells = mask.small_cells.len();
            let sums = (0..=most.min((cells as u32) << (self.params.split().large() - 1))).step_by(2);
            let counts = sums.map(|sum| self.configs.count(cells, sum));
            counts.filter(|&count| has_table(mask, count)).map(u64::from).sum()
        };
        all_masks.map(ranks).sum()
    }

    /// Returns a class, and builds it on first use; `None` if no skeleton has that many large tiles and that small sum.
    pub fn class(&self, id: ClassId) -> Option<&Class> {
        let slot = self.classes.get(id.k as usize)?.get(self.place_of(id)?)?;
        Some(slot.get_or_init(|| Class::new(self, id)))
    }

    /// Ranks of the canonical configs of a mask with a small sum, ascending.
    pub(crate) fn canonical_ranks<'a>(
        &'a self,
        mask: &'a Mask,
        small_sum: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let cells = mask.small_cells.len();
        let mut configs = self.configs.ascending(cells, small_sum);
        (0..self.configs.count(cells, small_sum)).filter(move |&rank| {
            let config = configs.config(rank);
            mask.stabiliser.iter().all(|&g| self.config_image(mask, config, g) >= config)
        })
    }

    /// Returns the configs of a set of rows of a class, in ascending order of rows.
    pub fn configs_of(&self, class: &Class, rows: &RowSet) -> Vec<Config> {
        let mut found = Vec::with_capacity(rows.len());
        for (index, mask) in self.masks.canonical(class.id.k as usize).iter().enumerate() {
            let (of_mask, cells) = (class.mask_rows(index), mask.small_cells.len());
            let first = of_mask.start as u32;
            let mut configs = self.configs.ascending(cells, class.id.small_sum);
            let rows = rows.rows_in(of_mask);
            found.extend(rows.map(|row| configs.config(class.rank(index, row.0 - first))));
        }
        found
    }

    /// Returns the rows of `class` from which a spawned 2 can lead to one of `rows` of the class `above`. Finds them
    /// by removing each single 2 from each of `rows`.
    pub fn rows_before_two(&self, class: &Class, above: &Class, rows: &RowSet) -> BitSet<Row> {
        let mut found = BitSet::with_room(class.rows());
        for (index, mask) in self.masks.canonical(above.id.k as usize).iter().enumerate() {
            let (of_mask, cells) = (above.mask_rows(index), mask.small_cells.len());
            let first = of_mask.start as u32;
            let mut configs = self.configs.ascending(cells, above.id.small_sum);
            for row in rows.rows_in(of_mask) {
                let config = configs.config(above.rank(index, row.0 - first));
                for digit in (0..cells).filter(|digit| config >> (4 * digit) & 15 == 1) {
                    let without = config & !(15 << (4 * digit));
                    let images = mask.stabiliser.iter().map(|&g| self.config_image(mask, without, g));
                    let canonical = images.fold(without, Config::min);
                    found.insert(class.row(&self.configs, cells, index as u32, canonical));
                }
            }
        }
        found
    }

    /// Returns the small tiles of a row of a mask, as a board without large tiles.
    pub fn small_tiles(&self, class: &Class, mask: usize, row: Row) -> Board {
        let cells = &self.masks.canonical(class.id.k as usize)[mask];
        let within = row.0 - class.first_row[mask];
        let config = class.config(&self.configs, cells.small_cells.len(), mask, within);
        let digits = self.digits(cells, config);
        cells.small_cells.iter().fold(Board::default(), |b, &c| b.with(c as usize, digits[c as usize]))
    }

    /// Returns the config of the image of a skeleton under a symmetry that preserves its mask.
    pub(crate) fn config_image(&self, mask: &Mask, config: Config, symmetry: usize) -> Config {
        let digits = self.digits(mask, config);
        let perm = &self.symmetries.permutations()[symmetry];
        mask.small_cells.iter().fold(0, |c, &cell| c << 4 | u64::from(digits[perm[cell as usize] as usize]))
    }

    /// Returns the digits of a skeleton by cell; L cells are 0.
    pub(crate) fn digits(&self, mask: &Mask, config: Config) -> [u8; 16] {
        let mut digits = [0; 16];
        let last = mask.small_cells.len();
        for (i, &cell) in mask.small_cells.iter().enumerate() {
            digits[cell as usize] = (config >> (4 * (last - 1 - i))) as u8 & 15;
        }
        digits
    }

    /// Returns the lane, the layer, the row and the large exponents of a board. The exponents are in the order of the
    /// canonical skeleton, packed as in [`crate::columns`].
    pub fn locate(&self, board: Board) -> Option<(Lane, Layer, Row, Sequence)> {
        let Split { lane, layer, mask, config, sequence } = self.split(board)?;
        let class = self.class(ClassId::of(layer, lane)?)?;
        let cells = self.params.game().cells() - lane.k as usize;
        Some((lane, layer, class.row(&self.configs, cells, mask, config), sequence))
    }

    /// Splits a board into its canonical skeleton and the sequence of its large exponents. Returns `None` if a large
    /// tile is in a stone's cell.
    pub(crate) fn split(&self, board: Board) -> Option<Split> {
        let (places, large) = (self.params.game().places(), self.params.split().large());
        let is_large = |place: usize| board.get(place) >= large;
        let mask_bits: u32 = (0..places).map(|place| u32::from(is_large(place)) << place).sum();
        let image = self.masks.image(mask_bits);
        if image.symmetries == 0 {
            return None;
        }
        let k = mask_bits.count_ones() as usize;
        let mask = &self.masks.canonical(k)[image.index as usize];
        let permutations = self.symmetries.permutations().iter().enumerate();
        let (config, sequence) = permutations
            .filter(|(g, _)| image.symmetries >> g & 1 == 1)
            .map(|(_, perm)| {
                let pack = |of: &[u8]| {
                    of.iter()
                        .fold(0u64, |p, &cell| p << 4 | u64::from(board.get(perm[cell as usize] as usize)))
                };
                (pack(&mask.small_cells), pack(&mask.large_cells))
            })
            .min()?;
        let size = self.params.game().board();
        let layer = Layer(board.tile_sum(size));
        let large_sum = (0..places).filter(|&p| is_large(p)).map(|p| size.tile(board.get(p))).sum();
        let huge = HugeTiles::of(sequence, self.params.split().huge());
        let sector = self.sector(k as u8, image.index);
        let lane = Lane { k: k as u8, large_sum, huge, sector };
        Some(Split { lane, layer, mask: image.index, config, sequence })
    }

    /// Returns the small tiles of a row as a board, and the cells of its large tiles.
    pub fn skeleton(&self, class: &Class, row: Row) -> (Board, &[u8]) {
        let mask = class.first_row.partition_point(|&first| first <= row.0) - 1;
        (self.small_tiles(class, mask, row), &self.masks.canonical(class.id.k as usize)[mask].large_cells)
    }

    /// Returns the board of a row and a sequence of large exponents.
    pub fn board(&self, class: &Class, row: Row, sequence: Sequence) -> Board {
        let (small, large_cells) = self.skeleton(class, row);
        let places = large_cells.iter().rev().enumerate();
        places.fold(small, |b, (i, &cell)| b.with(cell as usize, (sequence >> (4 * i)) as u8 & 15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn space(board: &str, large: u8, sectors: u8) -> Space {
        let params = Params::usual(board, "score").large(large).sectors(sectors).build().unwrap();
        Space::new(&params)
    }

    #[test]
    fn every_orbit_of_skeletons_is_one_row() {
        for (board, large, sectors) in [
            ("2x2", 3, 1),
            ("3x2", 4, 1),
            ("3x3", 3, 1),
            ("3x3", 3, 2),
            ("4x2", 4, 1),
            ("4x2", 4, 3),
            ("1x5", 3, 1),
            ("3x3:..x/.../x..", 3, 1),
            ("2x4:..../.##.", 4, 1),
        ] {
            let space = space(board, large, sectors);
            let size = space.params.game().board();
            let mut seen = std::collections::HashMap::new();
            for code in 0..(large as usize + 1).pow(size.cells() as u32) {
                let mut rest = code;
                let board = size.playable().fold(Board::default(), |b, cell| {
                    let digit = rest % (large as usize + 1);
                    rest /= large as usize + 1;
                    b.with(cell, digit as u8)
                });
                let (lane, layer, row, sequence) = space.locate(board).unwrap();
                let class = space.class(ClassId::of(layer, lane).unwrap()).unwrap();
                let canonical = space.symmetries.canonical(board);
                assert_eq!(space.symmetries.canonical(space.board(class, row, sequence)), canonical);
                let owner = seen.entry((class.id(), row)).or_insert(canonical);
                assert_eq!(*owner, canonical);
            }
            let rows: usize = space.classes.iter().flatten().filter_map(|c| c.get()).map(Class::rows).sum();
            assert_eq!(seen.len(), rows);
        }
    }

    proptest! {
        #[test]
        fn images_are_located_in_one_row(exponents in prop::collection::vec(0u8..12, 12)) {
            let space = space("4x3", 3, 3);
            let board = exponents.iter().enumerate().fold(Board::default(), |b, (i, &e)| b.with(i, e));
            let (lane, layer, row, sequence) = space.locate(board).unwrap();
            let class = space.class(ClassId::of(layer, lane).unwrap()).unwrap();
            let back = space.board(class, row, sequence);
            prop_assert_eq!(space.symmetries.canonical(back), space.symmetries.canonical(board));
            for image in space.symmetries.images(board) {
                let there = space.locate(image).unwrap();
                prop_assert_eq!(there, (lane, layer, row, sequence));
            }
        }
    }
}
