//! The axis of layers: what the starts and the spawns do to the sum of a board's tiles.
//!
//! A move keeps the sum, a spawn raises it. All that follows from *how* a game's boards rise is here and nowhere else: the
//! first layer, the distance of layers, and how far each kind of spawn leads.

use serde::{Deserialize, Serialize};

use crate::objective::Spawn4;
use crate::rules::exponent_potential;

/// A layer: the sum of a board's tiles; always even.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layer(pub u32);

impl Layer {
    /// The lowest layer: a game begins with two tiles, of at least 2 each.
    pub const FIRST: Layer = Layer(4);

    /// The highest layer that a game can begin in: with two 4s.
    pub const LAST_START: Layer = Layer(8);

    /// How far the sums of neighbouring layers are apart.
    pub const STEP: u32 = 2;

    /// The most layers that a spawn rises. So spawns lead to a layer from at most this many layers below it, and of any
    /// this many neighbouring layers every game passes one.
    pub const RISE: u32 = SpawnKind::Four.tile() / Self::STEP;

    /// The layer of boards whose tiles sum to this, if there can be such boards in a game.
    pub fn of_sum(sum: u32) -> Option<Self> {
        let is_one = sum >= Self::FIRST.0 && (sum - Self::FIRST.0).is_multiple_of(Self::STEP);
        is_one.then_some(Self(sum))
    }

    /// The lowest layer whose tile sum is at least this; `None` above all numbers.
    pub fn at_least(sum: u32) -> Option<Self> {
        sum.max(Self::FIRST.0).checked_next_multiple_of(Self::STEP).map(Self)
    }

    /// The highest layer whose tile sum is at most this; `None` below the first.
    pub fn at_most(sum: u32) -> Option<Self> {
        (sum >= Self::FIRST.0).then(|| Self(sum / Self::STEP * Self::STEP))
    }

    /// How many layers lie below it, from the first on.
    pub fn number(self) -> u32 {
        self.0.saturating_sub(Self::FIRST.0) / Self::STEP
    }

    /// The same, as the place of the layer in a list of all of them.
    pub fn index(self) -> usize {
        self.number() as usize
    }

    /// The layer at a place in a list of all of them.
    pub fn nth(index: usize) -> Self {
        Self::FIRST.up(index as u32)
    }

    /// The layer that lies `layers` layers above this one.
    pub fn up(self, layers: u32) -> Self {
        Self(self.0 + Self::STEP * layers)
    }

    /// The layer that lies `layers` layers below this one; `None` below the first.
    pub fn down(self, layers: u32) -> Option<Self> {
        (layers <= self.number()).then(|| Self(self.0 - Self::STEP * layers))
    }

    /// The layer that a spawn leads to from here.
    pub fn after(self, spawn: SpawnKind) -> Self {
        Self(self.0 + spawn.tile())
    }

    /// The layer that a spawn leads here from; `None` where none does.
    pub fn before(self, spawn: SpawnKind) -> Option<Self> {
        self.0.checked_sub(spawn.tile()).and_then(Self::of_sum)
    }

    /// The layers from here to `last`, ascending.
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

/// What a spawn can be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpawnKind {
    /// A 2.
    Two,
    /// A 4.
    Four,
}

impl SpawnKind {
    /// All of them, the one that rises least first.
    pub const ALL: [SpawnKind; 2] = [SpawnKind::Two, SpawnKind::Four];

    /// The exponent of the tile.
    pub const fn exponent(self) -> u8 {
        match self {
            SpawnKind::Two => 1,
            SpawnKind::Four => 2,
        }
    }

    /// The tile: how far the sum rises.
    pub const fn tile(self) -> u32 {
        1 << self.exponent()
    }

    /// The score that the tile stands for without being made of others: such points are in the potential, and nobody has
    /// scored them.
    pub const fn gift(self) -> u64 {
        exponent_potential(self.exponent())
    }

    /// Its part of the [denominator](Spawn4::denominator) of chances.
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

    /// The axis is what the rules say: where games start, and where spawns lead.
    #[test]
    fn the_axis_is_that_of_the_rules() {
        let size = "2x2".parse().unwrap();
        let starts: Vec<Layer> = rules::starts(size).map(|(board, _)| Layer(board.tile_sum(4))).collect();
        assert_eq!(starts.iter().min(), Some(&Layer::FIRST));
        assert!(starts.iter().all(|layer| Layer::of_sum(layer.0) == Some(*layer)));
        for spawn in SpawnKind::ALL {
            let board = crate::Board::default().with(0, 3);
            let after = board.with(1, spawn.exponent());
            assert_eq!(Layer(board.tile_sum(4)).after(spawn), Layer(after.tile_sum(4)));
            assert_eq!(Layer(after.tile_sum(4)).before(spawn), Some(Layer(board.tile_sum(4))));
        }
        assert_eq!(SpawnKind::ALL.map(SpawnKind::gift), [0, 4]);
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
