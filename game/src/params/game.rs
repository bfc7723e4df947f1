//! The game that a run solves.

use crate::board::{Board, BoardSize};
use crate::discount::Discount;
use crate::layer::{Layer, SpawnKind};
use crate::objective::{Objective, Spawn4, Spawner};
use crate::rules;

use super::precision::Precision;

/// Game that a run solves. The values and the fingerprint of the run depend only on these parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Game {
    pub(super) board: BoardSize,
    pub(super) objective: Objective,
    pub(super) spawn4: Spawn4,
    pub(super) discount: Discount,
    pub(super) spawner: Spawner,
    pub(super) precision: Precision,
    pub(super) from: Option<Board>,
}

/// State at which games begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartState {
    /// The board.
    pub board: Board,
    /// Relative frequency. It is 0 if the start needs a tile that never spawns.
    pub weight: u64,
}

impl Game {
    /// Size of the board.
    pub fn board(&self) -> BoardSize {
        self.board
    }

    /// Objective that the player optimises.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// Probability that a spawned tile is a 4.
    pub fn spawn4(&self) -> Spawn4 {
        self.spawn4
    }

    /// Factor by which each move reduces the value of a win.
    pub fn discount(&self) -> Discount {
        self.discount
    }

    /// Rule that places the tiles.
    pub fn spawner(&self) -> Spawner {
        self.spawner
    }

    /// Number of bits of a value.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Canonical board of the position from which the run begins; `None` if it begins with the starts of games.
    pub fn from(&self) -> Option<Board> {
        self.from
    }

    /// Whether the run is a whole game on a board without stones. Estimates hold for such runs only, because few boards
    /// of other runs are reachable.
    pub fn is_whole(&self) -> bool {
        self.from.is_none() && !self.board.has_stones()
    }

    /// States at which games begin: the given position, or every start of the rules in the order of [`rules::starts`].
    pub fn starts(&self) -> Vec<StartState> {
        if let Some(board) = self.from {
            return vec![StartState { board, weight: 1 }];
        }
        let weight = |spawn: SpawnKind| u64::from(spawn.weight(self.spawn4));
        let starts = rules::starts(self.board);
        starts
            .map(|(board, [first, second])| StartState { board, weight: weight(first) * weight(second) })
            .collect()
    }

    /// States at which games begin, each with its probability.
    pub fn start_probabilities(&self) -> Vec<(Board, f64)> {
        match self.from {
            Some(board) => vec![(board, 1.0)],
            None => rules::start_probabilities(self.board, self.spawn4).collect(),
        }
    }

    /// Lowest layer: that of the given position, or the lowest layer of the rules.
    pub fn first_layer(&self) -> Layer {
        self.from.map_or(Layer::FIRST, |board| Layer(board.tile_sum(self.board)))
    }

    /// Highest layer in which games begin.
    pub fn last_start(&self) -> Layer {
        self.from.map_or(Layer::LAST_START, |_| self.first_layer())
    }

    /// Number of places: playable cells and stones.
    pub fn places(&self) -> usize {
        self.board.places()
    }

    /// Number of playable cells.
    pub fn cells(&self) -> usize {
        self.board.cells()
    }

    /// Exponent of the winning tile; `None` if the objective has none.
    pub fn winning_exponent(&self) -> Option<u8> {
        self.objective.winning_exponent()
    }

    /// Whether a move to this board wins. Won boards end the game, and are not counted.
    #[inline]
    pub fn is_won(&self, after: Board) -> bool {
        self.winning_exponent().is_some_and(|exponent| self.board.largest(after) >= exponent)
    }

    /// Exponent of the largest tile that any game on the board can reach: one more than its cells for tiles.
    pub fn tile_bound(&self) -> u8 {
        self.board.tile_cells() as u8 + 1
    }

    /// Exponent of the largest tile that a counted board can hold. Won boards are not counted.
    pub fn largest_exponent(&self) -> u8 {
        self.winning_exponent().map_or(self.tile_bound(), |exponent| self.tile_bound().min(exponent - 1))
    }

    /// Largest number of cells of a counted board that can hold a tile of at least `2^exponent`.
    ///
    /// With n cells for tiles, the number is `n` for a 2 or a 4, and `n + 2 − exponent` for an 8 or a larger tile. The
    /// number is 0 above [`largest_exponent`](Self::largest_exponent). Loose stones do not count.
    pub fn most_cells_with(&self, exponent: u8) -> usize {
        if exponent > self.largest_exponent() {
            0
        } else if exponent < 3 {
            self.board.tile_cells()
        } else {
            (self.board.tile_cells() + 2).saturating_sub(exponent as usize)
        }
    }

    /// Exponents of the board with the largest tile sum within the tile bound.
    pub(crate) fn tile_bound_board(&self) -> impl Iterator<Item = u8> + '_ {
        let largest = |cell| (2..=self.largest_exponent()).rev().find(|&e| self.most_cells_with(e) >= cell);
        (1..=self.board.tile_cells()).map(move |cell| largest(cell).unwrap_or(1))
    }

    /// Largest tile sum that a counted board can have, by the tile bound.
    pub fn last_layer(&self) -> Layer {
        let sum: u64 = self.tile_bound_board().map(|e| 1u64 << e).sum();
        Layer(u32::try_from(sum).unwrap_or(u32::MAX))
    }
}
