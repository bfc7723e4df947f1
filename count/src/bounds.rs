//! Bounds on the number of states, layer by layer.

use std::collections::BTreeMap;

use exact2048_game::BoardSize;

use crate::cycles::{CycleType, cycle_types};
use crate::fillings::{BySum, fillings, stone_placements};

/// Numbers of possible boards. A possible board has at least two tiles, one of them a 2 or 4 from the last spawn.
#[derive(Clone, Debug)]
pub struct Bounds {
    size: BoardSize,
    target: Option<u8>,
    layers: Vec<LayerBounds>,
    reachable: usize,
}

/// Boards of one tile sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LayerBounds {
    /// The tile sum.
    pub sum: u64,
    /// Number of boards with tiles below the target.
    pub all: Count,
    /// Number of boards within the tile bound: at most `cells + 2 − e` tiles of at least `2^e`, for every e ≥ 3.
    pub within_tile_bound: Count,
}

/// A number of boards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Number of boards.
    pub boards: u128,
    /// Number of boards up to rotation and reflection.
    pub orbits: u128,
}

/// Kind of boards to count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// All boards, as in Lees-Miller's published baseline formula.
    All,
    /// Boards in layers that a game can reach.
    ///
    /// Each move raises the sum by 2 or 4, so no game passes two consecutive empty layers.
    Reachable,
    /// Boards within the tile bound.
    WithinTileBound,
}

/// Reason why counting is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// The target is not a tile, or out of range.
    #[error("{0} is not a target: expected a power of two from 8 to {max}", max = 1u64 << Bounds::MAX_TARGET)]
    Target(u64),
}

impl Bounds {
    /// Exponent of the largest target.
    pub const MAX_TARGET: u8 = 17;

    /// Counts boards with tiles below the target. Without a target, allows tiles up to the largest, `2^(cells + 1)`.
    ///
    /// The time is proportional to the target and to the square of the number of cells. On 4×4, it is well below a second
    /// for 2048, and tens of seconds without a target. Calls `reached` with the approximate completed share, from 0 to 1.
    ///
    /// # Errors
    ///
    /// If the target is not a power of two from 8 to 2^[`Self::MAX_TARGET`].
    pub fn new(
        size: BoardSize,
        target: Option<u64>,
        mut reached: impl FnMut(f64),
    ) -> Result<Self, CountError> {
        let target = target.map(exponent_of).transpose()?;
        let cells = size.tile_cells();
        let largest = target.map_or(cells as u8 + 1, |target| target - 1);
        let tile_bound = |e: u8| if e < 3 { cells } else { (cells + 2).saturating_sub(usize::from(e)) };
        let types = cycle_types(size);
        // `counts` runs twice: for all boards, and within the tile bound. Each run places the tiles twice for each type
        // of symmetry and twice for the identity: once with all tiles, once without 2s and 4s.
        let steps = 2 * (types.len() + 1) * (usize::from(largest) + usize::from(largest.saturating_sub(2)));
        let mut done = 0;
        let mut placed = || {
            done += 1;
            reached(f64::from(done) / steps as f64);
        };
        let all = counts(&types, size, largest, |_| cells, &mut placed);
        let within = counts(&types, size, largest, tile_bound, &mut placed);
        let layers: Vec<LayerBounds> = all
            .iter()
            .enumerate()
            .skip(FIRST_HALF_SUM)
            .map(|(half, &all)| LayerBounds {
                sum: 2 * half as u64,
                all,
                within_tile_bound: within.get(half).copied().unwrap_or_default(),
            })
            .collect();
        let empty = |layer: &LayerBounds| layer.all.boards == 0;
        let reachable = layers.windows(2).position(|pair| pair.iter().all(empty)).unwrap_or(layers.len());
        Ok(Self { size, target, layers, reachable })
    }

    /// The board.
    #[must_use]
    pub fn size(&self) -> BoardSize {
        self.size
    }

    /// Exponent of the target.
    #[must_use]
    pub fn target(&self) -> Option<u8> {
        self.target
    }

    /// All layers in ascending order, starting with sum 4, including empty layers.
    #[must_use]
    pub fn layers(&self) -> &[LayerBounds] {
        &self.layers
    }

    /// Number of boards of all layers together. With a target, all won boards together count as one board, as in the
    /// published formula.
    #[must_use]
    pub fn total(&self, kind: Counted) -> Count {
        let won = u128::from(self.target.is_some());
        let layers = match kind {
            Counted::Reachable => &self.layers[..self.reachable],
            Counted::All | Counted::WithinTileBound => &self.layers[..],
        };
        layers.iter().fold(Count { boards: won, orbits: won }, |sum, layer| {
            let count = if kind == Counted::WithinTileBound { layer.within_tile_bound } else { layer.all };
            Count { boards: sum.boards + count.boards, orbits: sum.orbits + count.orbits }
        })
    }

    /// The largest sum of a board of this kind.
    #[must_use]
    pub fn last_sum(&self, kind: Counted) -> Option<u64> {
        let layers =
            if kind == Counted::Reachable { &self.layers[..self.reachable] } else { &self.layers[..] };
        let counts = |layer: &&LayerBounds| match kind {
            Counted::WithinTileBound => layer.within_tile_bound.boards > 0,
            Counted::All | Counted::Reachable => layer.all.boards > 0,
        };
        layers.iter().rfind(counts).map(|layer| layer.sum)
    }
}

/// Half the tile sum of the first layer. That sum is 4.
const FIRST_HALF_SUM: usize = 2;

fn exponent_of(tile: u64) -> Result<u8, CountError> {
    let exponent = tile.trailing_zeros() as u8;
    if tile.is_power_of_two() && (3..=Bounds::MAX_TARGET).contains(&exponent) {
        Ok(exponent)
    } else {
        Err(CountError::Target(tile))
    }
}

/// Numbers of boards by half their sum.
///
/// Burnside's lemma gives the number of orbits: the mean, over the symmetries, of the number of boards that are their own
/// image.
fn counts(
    types: &BTreeMap<CycleType, u128>,
    size: BoardSize,
    largest: u8,
    most: impl Fn(u8) -> usize + Copy,
    placed: &mut impl FnMut(),
) -> Vec<Count> {
    let loose = size.loose().into();
    let boards = candidates(&CycleType::identity(size.cells()), loose, largest, most, placed);
    let mut counts: Vec<Count> = boards.into_iter().map(|boards| Count { boards, orbits: 0 }).collect();
    for (cycles, &symmetries) in types {
        let fixed = candidates(cycles, loose, largest, most, placed);
        for (count, fixed) in counts.iter_mut().zip(fixed) {
            count.orbits += symmetries * fixed;
        }
    }
    let order: u128 = types.values().sum();
    for count in &mut counts {
        debug_assert_eq!(count.orbits % order, 0);
        count.orbits /= order;
    }
    counts
}

/// Number of boards that are their own image under a symmetry, with a 2 or a 4 and at least two tiles.
fn candidates(
    cycles: &CycleType,
    loose: usize,
    largest: u8,
    most: impl Fn(u8) -> usize + Copy,
    placed: &mut impl FnMut(),
) -> BySum {
    let mut boards = fillings(cycles, loose, 1..=largest, most, placed);
    let without = fillings(cycles, loose, 3..=largest, most, placed);
    for (boards, without) in boards.iter_mut().zip(without) {
        *boards -= without;
    }
    // Subtracts the boards with a single tile, a 2 or 4 on a fixed cell.
    let beside_it = stone_placements(&cycles.without_fixed_cell(), loose);
    for boards in boards.iter_mut().take(FIRST_HALF_SUM + 1).skip(1) {
        *boards -= cycles.fixed_cells() as u128 * beside_it;
    }
    boards
}
