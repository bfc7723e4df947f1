//! Contract of a layered game: the laws of the rules on which the solver relies.
//!
//! The trait is for reference code and tests. The kernels have their own implementation of 2048, with constants and
//! tables. `game/tests/layered` checks the laws for 2048 and for a second game.
//!
//! 1. **Layers.** A move preserves the layer of a board. A spawn raises the layer by the rise of its kind, at least 1.
//!    So the value of a state depends only on states of higher layers. No game jumps over as many neighbouring
//!    layers as the largest rise. No board is above the last layer.
//! 2. **Spawns.** Every kind of spawn has the same number of places in an afterstate. An afterstate that a move made
//!    has a place, unless it is won.
//! 3. **Symmetries.** The images of a board are images of one another. The moves of an image of a state lead to images
//!    of the state's afterstates, with the same scores. The spawns in an image of an afterstate lead to images of the
//!    same states.
//! 4. **Potential.** A move raises the potential by exactly its score. A spawn raises it by the unscored points of its
//!    kind. So an expected score plus the potential is a value that moves preserve.
//! 5. **Lanes.** A spawn preserves the lane. A move leads to the same lane or to one of its target lanes. So the states
//!    of a lane follow from its own afterstates below, and its afterstates from the states of few lanes.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use crate::board::Board;
use crate::huge::HugeTiles;
use crate::lane::Lane;
use crate::layer::{Layer, SpawnKind};
use crate::params::Params;
use crate::rules::{self, Move};
use crate::sequence::Sequence;
use crate::symmetry::Symmetries;

/// Game whose states are divided into layers, and the layers into lanes. The module lists its laws.
pub trait LayeredGame {
    /// Board, with the player or chance to move.
    type Board: Copy + Ord + Hash + Debug;
    /// Lane of a board.
    type Lane: Copy + Ord + Debug;

    /// Returns the states in which a game can begin.
    fn starts(&self) -> Vec<Self::Board>;

    /// Returns the afterstates of the legal moves in a state, with their scores.
    fn moves(&self, state: Self::Board) -> Vec<(Self::Board, u64)>;

    /// Returns the kinds of spawns.
    fn spawns(&self) -> Vec<SpawnLaw>;

    /// Returns the states after a spawn of a kind, one for each place. `kind` is an index into
    /// [`spawns`](Self::spawns).
    fn spawned(&self, after: Self::Board, kind: usize) -> Vec<Self::Board>;

    /// Returns the layer of a board, counted from the first layer.
    fn layer(&self, board: Self::Board) -> u32;

    /// Returns the last layer.
    fn last_layer(&self) -> u32;

    /// Returns all images of a board under the symmetries of the game, including the board itself.
    fn images(&self, board: Self::Board) -> Vec<Self::Board>;

    /// Returns the potential of a board.
    fn potential(&self, board: Self::Board) -> u64;

    /// Whether an afterstate is won. The game ends there.
    fn is_won(&self, after: Self::Board) -> bool;

    /// Returns the lane of a board.
    fn lane(&self, board: Self::Board) -> Self::Lane;

    /// Returns the other lanes to which moves can lead.
    fn target_lanes(&self, lane: Self::Lane) -> BTreeSet<Self::Lane>;
}

/// Properties of a kind of spawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpawnLaw {
    /// Number of layers by which a spawn raises a board.
    pub rise: u32,
    /// Relative frequency.
    pub weight: u32,
    /// Unscored potential that a spawn adds.
    pub unscored: u64,
}

impl LayeredGame for Params {
    type Board = Board;
    type Lane = Lane;

    fn starts(&self) -> Vec<Board> {
        self.game().starts().into_iter().map(|start| start.board).collect()
    }

    fn moves(&self, state: Board) -> Vec<(Board, u64)> {
        let moves = Move::ALL.into_iter().filter_map(|m| rules::make_move(state, m, self.game().board()));
        moves.map(|(after, score)| (after, u64::from(score))).collect()
    }

    fn spawns(&self) -> Vec<SpawnLaw> {
        let law = |spawn: SpawnKind| SpawnLaw {
            rise: spawn.tile() / Layer::STEP,
            weight: spawn.weight(self.game().spawn4()),
            unscored: spawn.unscored_potential(),
        };
        SpawnKind::ALL.map(law).to_vec()
    }

    fn spawned(&self, after: Board, kind: usize) -> Vec<Board> {
        let exponent = SpawnKind::ALL[kind].exponent();
        rules::empty_cells(after, self.game().board()).map(|cell| after.with(cell, exponent)).collect()
    }

    fn layer(&self, board: Board) -> u32 {
        Layer(board.tile_sum(self.game().board())).number()
    }

    fn last_layer(&self) -> u32 {
        self.last_layer().number()
    }

    fn images(&self, board: Board) -> Vec<Board> {
        Symmetries::new(self.game().board()).images(board).collect()
    }

    fn potential(&self, board: Board) -> u64 {
        rules::potential(board)
    }

    fn is_won(&self, after: Board) -> bool {
        self.game().is_won(after)
    }

    fn lane(&self, board: Board) -> Lane {
        let exponents = (0..self.game().places()).map(|cell| (cell, board.get(cell)));
        let large = exponents.filter(|&(_, exponent)| exponent >= self.split().large());
        let add = |(cells, sum, sequence): (u32, u32, Sequence), (cell, e): (usize, u8)| {
            (cells | 1 << cell, sum + (1 << e), sequence << 4 | Sequence::from(e))
        };
        let (cells, large_sum, sequence) = large.fold((0, 0, 0), add);
        let huge = HugeTiles::of(sequence, self.split().huge());
        Lane { k: cells.count_ones() as u8, large_sum, huge, sector: self.sectors().of(cells) }
    }

    fn target_lanes(&self, lane: Lane) -> BTreeSet<Lane> {
        lane.target_lanes(self)
    }
}
