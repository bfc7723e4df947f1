//! The states of the chain, in layers by sum.

use std::ops::Range;

use exact2048_game::Spawn4;

use crate::bag::Bag;

/// Number of a state of the chain. The numbers follow the order of sums, and within a sum the order of [`Bag`].
pub type StateId = usize;

/// The Markov chain of a bag of tiles, until it has a target tile.
///
/// The chain starts with an empty bag. Its first transition puts two random tiles into the bag. Every further transition is
/// a *move*: all pairs merge once ([`Bag::merged`]), then a random tile is added. Bags with the target or a larger tile are
/// absorbing.
///
/// A random tile raises the sum by 2 or by 4. So the states of one sum, a *layer*, depend only on the states of two other
/// layers. One pass computes every expectation without solving equations.
///
/// The number of states is about 1.7 times the target tile.
/// Source: J. Lees-Miller, "The Mathematics of 2048: Minimum Moves to Win with Markov Chains" (2017).
#[derive(Debug)]
pub struct Chain {
    target: u8,
    spawn4: Spawn4,
    states: Vec<BagState>,
    /// Numbers of the states of each layer. The sums of the layers are 4, 6, 8 and so on.
    layers: Vec<Range<StateId>>,
}

/// A state and its successors.
#[derive(Clone, Copy, Debug)]
pub struct BagState {
    /// The tiles.
    pub bag: Bag,
    /// Successors after a spawned 2 and after a spawned 4; `None` if the state is absorbing.
    ///
    /// A successor is `None` if its tile never spawns.
    pub next: Option<[Option<StateId>; 2]>,
}

/// Reason why a chain is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The target is not a tile, is out of range, or can spawn.
    #[error("{0} is not a target: expected a power of two from 8 to {max}", max = 1u64 << Chain::MAX_TARGET)]
    Target(u64),
}

/// Sum of the first layer.
pub(crate) const FIRST_SUM: u64 = 4;

impl Chain {
    /// Exponent of the largest target. The chain to 2^23 has 14 million states and takes a gigabyte.
    pub const MAX_TARGET: u8 = 23;

    /// Builds the chain to a tile.
    ///
    /// # Errors
    ///
    /// If `tile` is not a power of two from 8 to 2^[`Self::MAX_TARGET`].
    pub fn new(tile: u64, spawn4: Spawn4) -> Result<Self, ChainError> {
        let target = tile.trailing_zeros() as u8;
        if !tile.is_power_of_two() || !(3..=Self::MAX_TARGET).contains(&target) {
            return Err(ChainError::Target(tile));
        }
        Ok(Self::build(target, spawn4))
    }

    /// Finds the states layer by layer, upward.
    fn build(target: u8, spawn4: Spawn4) -> Self {
        let spawns = [spawn4.weight2() > 0, spawn4.weight4() > 0];
        let mut found = Window::default();
        for bag in starts(spawn4) {
            found.add((bag.sum() - FIRST_SUM) / 2, bag);
        }
        let (mut bags, mut layers) = (Vec::new(), Vec::new());
        while let Some(layer) = found.next() {
            let first = bags.len();
            for &bag in layer.iter().filter(|bag| bag.largest() < target) {
                for step in (1..=2).filter(|&step| spawns[usize::from(step) - 1]) {
                    found.add(layers.len() as u64 + u64::from(step), bag.merged().with(step));
                }
            }
            bags.extend(layer);
            layers.push(first..bags.len());
        }
        // The successor by a tile may be a state even if the tile never spawns, because other spawns may lead to this
        // state.
        let next_by = |layer: usize, bag: Bag, step: u8| -> Option<StateId> {
            let range: Range<StateId> = layers.get(layer + usize::from(step))?.clone();
            let at = bags[range.clone()].binary_search(&bag.merged().with(step)).ok()?;
            spawns[usize::from(step) - 1].then_some(range.start + at)
        };
        let states = layers
            .iter()
            .enumerate()
            .flat_map(|(layer, range)| bags[range.clone()].iter().map(move |&bag| (layer, bag)))
            .map(|(layer, bag)| {
                let next = (bag.largest() < target).then(|| [next_by(layer, bag, 1), next_by(layer, bag, 2)]);
                BagState { bag, next }
            })
            .collect();
        Self { target, spawn4, states, layers }
    }

    /// Exponent of the target.
    #[must_use]
    pub fn target(&self) -> u8 {
        self.target
    }

    /// Probability that a spawned tile is a 4.
    #[must_use]
    pub fn spawn4(&self) -> Spawn4 {
        self.spawn4
    }

    /// All states except the empty bag, by number.
    #[must_use]
    pub fn states(&self) -> &[BagState] {
        &self.states
    }

    /// The sum and the states of each layer, in ascending order. The first layers may be empty if 2s or 4s never spawn.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = (u64, Range<StateId>)> + ExactSizeIterator + '_ {
        self.layers.iter().enumerate().map(|(at, states)| (FIRST_SUM + 2 * at as u64, states.clone()))
    }

    /// The largest sum of a state.
    #[must_use]
    pub fn last_sum(&self) -> u64 {
        FIRST_SUM + 2 * (self.layers.len() as u64 - 1)
    }

    /// Absorbing states, by number.
    pub fn absorbing(&self) -> impl Iterator<Item = StateId> + '_ {
        (0..self.states.len()).filter(|&id| self.states[id].next.is_none())
    }

    /// The possible states after the first transition.
    pub fn starts(&self) -> impl Iterator<Item = StateId> + '_ {
        starts(self.spawn4).filter_map(|bag| self.find(bag))
    }

    /// The number of a state.
    #[must_use]
    pub fn find(&self, bag: Bag) -> Option<StateId> {
        let layer = usize::try_from(bag.sum().checked_sub(FIRST_SUM)? / 2).ok()?;
        let range = self.layers.get(layer)?.clone();
        self.states[range.clone()]
            .binary_search_by_key(&bag, |state| state.bag)
            .ok()
            .map(|at| range.start + at)
    }
}

/// The possible bags of two spawned tiles.
fn starts(spawn4: Spawn4) -> impl Iterator<Item = Bag> {
    let weights = [spawn4.weight2(), spawn4.weight4()];
    [[1, 1], [1, 2], [2, 2]]
        .into_iter()
        .filter(move |tiles| tiles.iter().all(|&e: &u8| weights[usize::from(e) - 1] > 0))
        .map(|tiles| tiles.into_iter().fold(Bag::EMPTY, Bag::with))
}

/// The known bags of the next layers, at most five layers at once.
#[derive(Default)]
struct Window {
    /// Number of removed layers.
    begun: u64,
    layers: std::collections::VecDeque<Vec<Bag>>,
}

impl Window {
    fn add(&mut self, layer: u64, bag: Bag) {
        let at = (layer - self.begun) as usize;
        if self.layers.len() <= at {
            self.layers.resize(at + 1, Vec::new());
        }
        self.layers[at].push(bag);
    }

    /// Removes the lowest layer and returns its bags, sorted and without duplicates.
    fn next(&mut self) -> Option<Vec<Bag>> {
        let mut bags = self.layers.pop_front()?;
        self.begun += 1;
        bags.sort_unstable();
        bags.dedup();
        Some(bags)
    }
}
