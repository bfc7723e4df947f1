//! Transitions of a class: the effect of moves and spawns on each of its rows.
//!
//! The transitions of a class are computed once and used for every block of that class. For a very large class,
//! transitions are computed only for the rows of one block. The parts for afterstates ([`Spawns`]), for states
//! ([`Moves`]) and for both are computed separately on first use. A row of the class itself is given by its *slot*:
//! its number among the rows whose transitions are computed. A row of a target class is given by its number in the
//! class.

mod moves;
mod some;
mod spawns;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::board::exponent_potential;
use crate::class::{Class, ClassId, Space};
use crate::configs::Config;
use crate::images::FirstImages;
use crate::pattern::Pattern;
use crate::patterns::{PatternId, Patterns};
use crate::rowset::{RowSet, Slot};
use crate::skeleton::Mask;
use crate::slide::TileSource;
use crate::table::{Store, Table};

pub use moves::{Direction, MoveEdge, MoveGroup, Moves};
use some::{SomeRows, some_moves};
pub use spawns::{SpawnEdge, Spawns};

/// Tables of a run from which transitions are computed.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a> {
    /// Masks, configs, lines and classes.
    pub space: &'a Space,
    /// Numbers of patterns.
    pub patterns: &'a Patterns,
}

/// Effect of moves and spawns on rows of one class. Each part is computed on first use.
#[derive(Debug)]
pub struct Transitions {
    class: ClassId,
    rows: Arc<RowSet>,
    /// Transitions of a larger set of rows of the class, from which these transitions are copied.
    of_more: Option<Arc<Transitions>>,
    configs: OnceLock<Table<Config>>,
    skeletons: OnceLock<Skeletons>,
    symmetric: OnceLock<Vec<SymmetricRow>>,
    spawns: OnceLock<Spawns>,
    moves: OnceLock<Moves>,
}

/// Properties of the small tiles of rows. Every list has one entry per slot.
#[derive(Debug, Default)]
pub struct Skeletons {
    /// Φ of each row's small tiles.
    pub potential: Table<u32>,
    /// First images of each row, one bit per symmetry: [`FirstImages`].
    pub first_images: Table<u8>,
}

/// Row that symmetries of the board map to itself, so its columns form orbits.
#[derive(Clone, Debug)]
pub struct SymmetricRow {
    /// Slot of the row.
    pub slot: Slot,
    /// Effects of the symmetries on the columns: at least one pattern, without the identity.
    pub patterns: Vec<PatternId>,
}

impl Transitions {
    /// Approximate peak memory, in bytes per row, of computing moves or spawns. It covers the mean number of edges,
    /// lists that grow by doubling, and both the unsorted and the sorted edges.
    pub const BYTES_TO_MAKE_A_ROW: usize = 512;

    /// Creates the transitions of some rows of a class without computing any part.
    pub fn new(class: ClassId, rows: Arc<RowSet>) -> Self {
        Self {
            class,
            rows,
            of_more: None,
            configs: OnceLock::new(),
            skeletons: OnceLock::new(),
            symmetric: OnceLock::new(),
            spawns: OnceLock::new(),
            moves: OnceLock::new(),
        }
    }

    /// Creates the transitions of some of the rows of `of_more`.
    ///
    /// A part is computed for all rows of `of_more`, unless it exists already, and then copied. Cost: a few
    /// nanoseconds per edge.
    pub fn subset_of(of_more: &Arc<Self>, rows: Arc<RowSet>) -> Self {
        Self { of_more: Some(Arc::clone(of_more)), ..Self::new(of_more.class, rows) }
    }

    /// Rows of these transitions.
    pub fn rows(&self) -> &Arc<RowSet> {
        &self.rows
    }

    /// Returns the config of each row, one entry per slot. Cost on first use: tens of nanoseconds per row.
    pub fn configs(&self, maker: Maker<'_>) -> &[Config] {
        self.configs.get_or_init(|| match self.of_more() {
            Some((more, some)) => some.of(more.configs(maker)),
            None => {
                let class = maker.space.class(self.class);
                class.map_or_else(Table::default, |class| maker.space.configs_of(class, &self.rows).into())
            }
        })
    }

    /// Returns the properties of the small tiles of the rows. Cost on first use: tens of nanoseconds per row.
    pub fn skeletons(&self, maker: Maker<'_>) -> &Skeletons {
        self.skeletons.get_or_init(|| match self.of_more() {
            Some((more, some)) => some.skeletons(more.skeletons(maker)),
            None => self.made(maker, Skeletons::new),
        })
    }

    /// Returns the rows that symmetries map to themselves, ascending. Cost on first use: tens of nanoseconds for each
    /// row whose mask some symmetry maps to itself.
    pub fn symmetric(&self, maker: Maker<'_>) -> &[SymmetricRow] {
        self.symmetric.get_or_init(|| match self.of_more() {
            Some((more, some)) => some.symmetric(more.symmetric(maker)),
            None => self.made(maker, symmetric_rows),
        })
    }

    /// Returns the spawns. Cost on first use: about a hundred nanoseconds per row.
    pub fn spawns(&self, maker: Maker<'_>) -> &Spawns {
        self.spawns.get_or_init(|| match self.of_more() {
            Some((more, some)) => some.spawns(more.spawns(maker)),
            None => self.made(maker, Spawns::new),
        })
    }

    /// Returns the moves. Cost on first use: a few hundred nanoseconds per row.
    pub fn moves(&self, maker: Maker<'_>) -> &Moves {
        self.moves.get_or_init(|| match self.of_more() {
            Some((more, some)) => some.moves(more.moves(maker)),
            None => self.made(maker, Moves::new),
        })
    }

    /// Returns only the moves for which `is_made` returns true, given their slot and direction.
    ///
    /// The selection is not cached. The moves from which it selects are cached.
    pub fn select_moves(&self, maker: Maker<'_>, is_made: impl Fn(Slot, Direction) -> bool) -> Moves {
        match self.of_more() {
            Some((more, rows)) => rows.select_moves(more.moves(maker), is_made),
            None => some_moves(self.moves(maker), is_made, |slot| slot),
        }
    }

    /// Heap size in bytes of the long lists that exist.
    pub fn heap_bytes(&self) -> usize {
        let configs = self.configs.get().map_or(0, Table::heap_bytes);
        let skeletons =
            self.skeletons.get().map_or(0, |s| s.potential.heap_bytes() + s.first_images.heap_bytes());
        let spawns = self.spawns.get().map_or(0, Spawns::heap_bytes);
        configs + skeletons + spawns + self.moves.get().map_or(0, Moves::heap_bytes)
    }

    /// Returns the same transitions with the existing long lists moved to a store.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn stored_in<S: Store>(&self, store: &mut S) -> Result<Self, S::Error> {
        let stored = Self::new(self.class, Arc::clone(&self.rows));
        if let Some(configs) = self.configs.get() {
            let _ = stored.configs.set(configs.stored_in(store)?);
        }
        if let Some(Skeletons { potential, first_images }) = self.skeletons.get() {
            let (potential, first_images) = (potential.stored_in(store)?, first_images.stored_in(store)?);
            let _ = stored.skeletons.set(Skeletons { potential, first_images });
        }
        if let Some(rows) = self.symmetric.get() {
            let _ = stored.symmetric.set(rows.clone());
        }
        if let Some(spawns) = self.spawns.get() {
            let _ = stored.spawns.set(spawns.stored_in(store)?);
        }
        if let Some(moves) = self.moves.get() {
            let _ = stored.moves.set(moves.stored_in(store)?);
        }
        Ok(stored)
    }

    fn of_more(&self) -> Option<(&Transitions, SomeRows<'_>)> {
        let more = self.of_more.as_deref()?;
        Some((more, SomeRows { all: &more.rows, wanted: &self.rows }))
    }

    fn made<T: Default>(&self, maker: Maker<'_>, make: impl FnOnce(Maker<'_>, &Class, &Held<'_>) -> T) -> T {
        let Some(class) = maker.space.class(self.class) else { return T::default() };
        make(maker, class, &Held { rows: &self.rows, configs: self.configs(maker) })
    }
}

impl Skeletons {
    fn new(maker: Maker<'_>, class: &Class, held: &Held<'_>) -> Self {
        let space = maker.space;
        let mut potential = Vec::with_capacity(held.rows.len());
        let mut first_images = Vec::with_capacity(held.rows.len());
        for_each_mask(space, class, held, |mask, rows| {
            let images = FirstImages::new(&space.symmetries, mask.mask);
            for config in rows.map(|row| row.config) {
                first_images.push(images.of(config));
                // The nibbles above the digits of a config are zero, so they count as empty cells.
                let of_digit = |i: u32| exponent_potential((config >> (4 * i)) as u8 & 15);
                potential.push((0..16).map(of_digit).sum::<u64>() as u32);
            }
        });
        Self { potential: potential.into(), first_images: first_images.into() }
    }
}

fn symmetric_rows(maker: Maker<'_>, class: &Class, held: &Held<'_>) -> Vec<SymmetricRow> {
    let (mut found, mut numbers) = (Vec::new(), Numbers::new(class.id().k));
    for_each_mask(maker.space, class, held, |mask, rows| {
        // Most masks have no symmetry, so their rows have no symmetry either.
        if mask.mask.stabiliser.is_empty() {
            return;
        }
        let images = mask.stabiliser(maker.space, &mut numbers);
        for row in rows {
            let cells = mask.mask.small_cells.len();
            let kept = images.iter().filter(|image| image.config(cells, row.config) == row.config);
            let mut patterns: Vec<u32> = kept.map(|image| image.pattern).filter(|&p| p != 0).collect();
            patterns.sort_unstable();
            patterns.dedup();
            if !patterns.is_empty() {
                found.push((row.slot, patterns));
            }
        }
    });
    let ids = numbers.intern(maker.patterns);
    let rows = found.into_iter().map(|(slot, patterns)| SymmetricRow {
        slot,
        patterns: patterns.iter().map(|&pattern| ids[pattern as usize]).collect(),
    });
    rows.collect()
}

/// Rows whose transitions are computed.
struct Held<'a> {
    rows: &'a RowSet,
    /// Configs of the rows, in order.
    configs: &'a [Config],
}

/// Row whose transitions are computed.
struct HeldRow {
    slot: Slot,
    config: Config,
}

/// Canonical mask of the class.
struct OfMask<'a> {
    mask: &'a Mask,
    index: u32,
    /// Number of the large tile in each cell.
    number: [u8; 16],
}

/// Calls `visit` with each mask that has some of the rows, and with these rows in order.
fn for_each_mask<'a>(
    space: &'a Space,
    class: &Class,
    held: &Held<'_>,
    mut visit: impl FnMut(&OfMask<'a>, &mut dyn Iterator<Item = HeldRow>),
) {
    let mut left = (0..).map(Slot).zip(held.configs.iter().copied());
    for (index, mask) in space.masks(class.id().k).iter().enumerate() {
        let rows = held.rows.count_in(class.mask_rows(index));
        if rows == 0 {
            continue;
        }
        let mut number = [0u8; 16];
        (0u8..).zip(&mask.large_cells).for_each(|(i, &cell)| number[cell as usize] = i);
        let mut rows = left.by_ref().take(rows).map(|(slot, config)| HeldRow { slot, config });
        visit(&OfMask { mask, index: index as u32, number }, &mut rows);
        // Skips the rows that `visit` did not consume.
        rows.for_each(drop);
    }
}

impl OfMask<'_> {
    /// Cells with a large tile, one bit per cell.
    fn large(&self) -> u32 {
        self.mask.large_cells.iter().fold(0, |cells, &cell| cells | 1 << cell)
    }

    /// Returns the effect on configs and columns of each symmetry that preserves the mask.
    fn stabiliser(&self, space: &Space, numbers: &mut Numbers) -> Vec<Image> {
        let mask = self.mask;
        let last = mask.small_cells.len();
        let shift =
            |cell: u8| mask.small_cells.iter().position(|&c| c == cell).map_or(0, |i| 4 * (last - 1 - i));
        let images = mask.stabiliser.iter().map(|&symmetry| {
            let perm = &space.symmetries.permutations()[symmetry];
            let mut shifts = [0u8; 16];
            for (to, &cell) in shifts.iter_mut().zip(&mask.small_cells) {
                *to = shift(perm[cell as usize]) as u8;
            }
            let mut pattern = Pattern::empty();
            for (item, &cell) in mask.large_cells.iter().enumerate() {
                pattern.set_item(item, TileSource::Plain(self.number[perm[cell as usize] as usize]));
            }
            Image { shifts, pattern: numbers.number(pattern) }
        });
        images.collect()
    }
}

/// Map from skeletons to an image that has the canonical mask.
struct Image {
    /// Source of the digit of each small cell, as the shift of its nibble.
    shifts: [u8; 16],
    /// Number of the pattern of the large tiles.
    pattern: u32,
}

impl Image {
    /// Returns the digits of the config of the image, in cell order.
    #[inline]
    fn digits(&self, cells: usize, digits: u64) -> impl ExactSizeIterator<Item = u8> {
        self.shifts[..cells].iter().map(move |&shift| (digits >> shift) as u8 & 15)
    }

    /// Returns the config of the image.
    #[inline]
    fn config(&self, cells: usize, digits: u64) -> Config {
        self.digits(cells, digits).fold(0, |config, digit| config << 4 | Config::from(digit))
    }
}

/// Numbers of the patterns of one class, in order of first use. Number 0 is the identity.
struct Numbers {
    known: FxHashMap<Pattern, u32>,
    seen: Vec<Pattern>,
}

impl Numbers {
    fn new(k: u8) -> Self {
        let identity = Pattern::identity(k);
        Self { known: FxHashMap::from_iter([(identity, 0)]), seen: vec![identity] }
    }

    fn number(&mut self, pattern: Pattern) -> u32 {
        let next = self.seen.len() as u32;
        let number = *self.known.entry(pattern).or_insert(next);
        if number == next {
            self.seen.push(pattern);
        }
        number
    }

    /// Converts the numbers to the pattern numbers that all classes share.
    fn intern(&self, patterns: &Patterns) -> Vec<PatternId> {
        let mut ids = vec![PatternId::IDENTITY];
        ids.extend(patterns.intern(&self.seen[1..]));
        ids
    }
}
