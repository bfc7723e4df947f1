//! Layers: the sums of the tiles of a board, and the effect of starts and spawns on them.
//!
//! A move preserves the sum, and a spawn raises it. Only this module knows the first layer, the distance between
//! layers, and the rise of each kind of spawn.

use serde::{Deserialize, Serialize};

use crate::board::exponent_potential;
use crate::objective::Spawn4;

/// Layer of a board: the sum of its tiles. The sum is always even.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layer(pub u32);

impl Layer {
    /// Lowest layer: a game begins with two tiles of at least 2 each.
    pub const FIRST: Layer = Layer(4);

    /// Highest layer in which a game can begin: with two 4s.
    pub const LAST_START: Layer = Layer(8);

    /// Difference between the sums of neighbouring layers.
    pub const STEP: u32 = 2;

    /// Largest number of layers by which a spawn raises a board.
    ///
    /// So every spawn into a layer starts at most this many layers below. A game cannot skip this many neighbouring
    /// layers.
    pub const RISE: u32 = SpawnKind::Four.tile() / Self::STEP;

    /// Returns the layer of a tile sum; `None` if boards of a game cannot have this sum.
    pub fn of_sum(sum: u32) -> Option<Self> {
        let is_one = sum >= Self::FIRST.0 && (sum - Self::FIRST.0).is_multiple_of(Self::STEP);
        is_one.then_some(Self(sum))
    }

    /// Returns the lowest layer whose tile sum is at least `sum`; `None` if that layer does not fit in a `u32`.
    pub fn at_least(sum: u32) -> Option<Self> {
        sum.max(Self::FIRST.0).checked_next_multiple_of(Self::STEP).map(Self)
    }

    /// Returns the highest layer whose tile sum is at most `sum`; `None` below the first layer.
    pub fn at_most(sum: u32) -> Option<Self> {
        (sum >= Self::FIRST.0).then(|| Self(sum / Self::STEP * Self::STEP))
    }

    /// Number of layers below this layer, counted from the first layer.
    pub fn number(self) -> u32 {
        self.0.saturating_sub(Self::FIRST.0) / Self::STEP
    }

    /// Index of the layer in a list of all layers.
    pub fn index(self) -> usize {
        self.number() as usize
    }

    /// Returns the layer at an index in a list of all layers.
    pub fn nth(index: usize) -> Self {
        Self::FIRST.up(index as u32)
    }

    /// Returns the layer `layers` layers above this layer.
    pub fn up(self, layers: u32) -> Self {
        Self(self.0 + Self::STEP * layers)
    }

    /// Returns the layer `layers` layers below this layer; `None` below the first layer.
    pub fn down(self, layers: u32) -> Option<Self> {
        (layers <= self.number()).then(|| Self(self.0 - Self::STEP * layers))
    }

    /// Returns the layer after a spawn in this layer.
    pub fn after(self, spawn: SpawnKind) -> Self {
        Self(self.0 + spawn.tile())
    }

    /// Returns the layer before a spawn into this layer; `None` if no such layer exists.
    pub fn before(self, spawn: SpawnKind) -> Option<Self> {
        self.0.checked_sub(spawn.tile()).and_then(Self::of_sum)
    }

    /// Iterates over the layers from this layer to `last`, ascending.
    pub fn to(self, last: Layer) -> impl DoubleEndedIterator<Item = Layer> + ExactSizeIterator + Clone {
        let layers = if self <= last { (last.0 - self.0) / Self::STEP + 1 } else { 0 };
        (0..layers).map(move |above| self.up(above))
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One item for each kind of spawn, in the order of [`SpawnKind::ALL`].
pub type PerSpawn<T> = [T; SpawnKind::ALL.len()];

/// Kind of a spawned tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpawnKind {
    /// A 2.
    Two,
    /// A 4.
    Four,
}

impl SpawnKind {
    /// All kinds, in ascending order of the tile.
    ///
    /// The kernels, the planner and the statistics name single kinds, so a third kind needs changes there too.
    pub const ALL: [SpawnKind; 2] = [SpawnKind::Two, SpawnKind::Four];

    /// Position of the kind in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Exponent of the tile.
    pub const fn exponent(self) -> u8 {
        match self {
            SpawnKind::Two => 1,
            SpawnKind::Four => 2,
        }
    }

    /// Value of the tile, which a spawn adds to the sum.
    pub const fn tile(self) -> u32 {
        1 << self.exponent()
    }

    /// Potential of the tile: the points of the merges that would make it. The player did not score these points,
    /// because the tile spawned.
    pub const fn unscored_potential(self) -> u64 {
        exponent_potential(self.exponent())
    }

    /// Weight of the kind, in units of 1 / [`denominator`](Spawn4::denominator).
    pub fn weight(self, spawn4: Spawn4) -> u32 {
        match self {
            SpawnKind::Two => spawn4.weight2(),
            SpawnKind::Four => spawn4.weight4(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn layers_are_found_on_both_sides_of_a_sum() {
        for (sum, below, above) in
            [(0, None, 4), (3, None, 4), (4, Some(4), 4), (5, Some(4), 6), (6, Some(6), 6)]
        {
            assert_eq!(
                (Layer::at_most(sum), Layer::at_least(sum)),
                (below.map(Layer), Some(Layer(above))),
                "{sum}"
            );
        }
        assert_eq!(Layer::at_least(u32::MAX), None);
        assert_eq!(Layer::at_most(u32::MAX), Some(Layer(u32::MAX - 1)));
    }

    /// Starts and spawns of the rules are in the layers that this module defines.
    #[test]
    fn layers_of_starts_and_spawns_agree_with_the_rules() {
        let size = "2x2".parse().unwrap();
        let starts: Vec<Layer> = rules::starts(size).map(|(board, _)| Layer(board.tile_sum(size))).collect();
        assert_eq!(starts.iter().min(), Some(&Layer::FIRST));
        assert!(starts.iter().all(|layer| Layer::of_sum(layer.0) == Some(*layer)));
        for spawn in SpawnKind::ALL {
            let board = crate::Board::default().with(0, 3);
            let after = board.with(1, spawn.exponent());
            assert_eq!(Layer(board.tile_sum(size)).after(spawn), Layer(after.tile_sum(size)));
            assert_eq!(Layer(after.tile_sum(size)).before(spawn), Some(Layer(board.tile_sum(size))));
        }
        assert_eq!(SpawnKind::ALL.map(SpawnKind::unscored_potential), [0, 4]);
        let whole = Spawn4::default();
        let weights: u32 = SpawnKind::ALL.iter().map(|spawn| spawn.weight(whole)).sum();
        assert_eq!(weights, whole.denominator());
    }

    #[test]
    fn layers_are_counted_from_the_first() {
        assert_eq!([0, 1, 2, 3, 5].map(Layer::of_sum), [None; 5]);
        assert_eq!((Layer(4).number(), Layer(10).number(), Layer(4).up(3)), (0, 3, Layer(10)));
        assert_eq!((Layer(10).down(3), Layer(10).down(4)), (Some(Layer(4)), None));
        assert_eq!(
            (Layer(6).before(SpawnKind::Two), Layer(6).before(SpawnKind::Four)),
            (Some(Layer(4)), None)
        );
        assert!(Layer(6).to(Layer(10)).eq([6, 8, 10].map(Layer)));
        assert!(Layer(6).to(Layer(10)).rev().eq([10, 8, 6].map(Layer)));
        assert_eq!(Layer(6).to(Layer(4)).len(), 0);
    }
}
