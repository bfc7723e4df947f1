//! The best and the worst case.

use crate::chain::{Chain, StateId};

/// Extreme numbers of moves and cells over all paths with a positive probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extremes {
    /// Smallest number of moves to the target.
    pub min_moves: u32,
    /// Largest number of moves to the target.
    pub max_moves: u32,
    /// Smallest number of cells with which some path reaches the target.
    ///
    /// It is the minimum over paths of the largest number of tiles before a move.
    pub min_cells: u32,
    /// Smallest number of cells with which every path reaches the target: the largest number of tiles before any move.
    pub max_cells: u32,
}

impl Extremes {
    const END: Extremes = Extremes { min_moves: 0, max_moves: 0, min_cells: 0, max_cells: 0 };

    fn or(self, other: Self) -> Self {
        Self {
            min_moves: self.min_moves.min(other.min_moves),
            max_moves: self.max_moves.max(other.max_moves),
            min_cells: self.min_cells.min(other.min_cells),
            max_cells: self.max_cells.max(other.max_cells),
        }
    }

    fn after_move(self, cells: u32) -> Self {
        Self {
            min_moves: self.min_moves + 1,
            max_moves: self.max_moves + 1,
            min_cells: self.min_cells.max(cells),
            max_cells: self.max_cells.max(cells),
        }
    }
}

/// Computes the extreme numbers of moves and cells, in one pass from the last layer to the first.
#[must_use]
pub fn extremes(chain: &Chain) -> Extremes {
    let states = chain.states();
    let mut known = vec![Extremes::END; states.len()];
    let over = |known: &[Extremes], ids: &mut dyn Iterator<Item = StateId>| {
        ids.map(|id| known[id]).reduce(Extremes::or).expect("one of the tiles is spawned")
    };
    for id in (0..states.len()).rev() {
        if let Some(next) = states[id].next {
            known[id] = over(&known, &mut next.into_iter().flatten()).after_move(states[id].bag.len());
        }
    }
    over(&known, &mut chain.starts())
}
