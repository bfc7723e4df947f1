//! Games with one broken law.

use std::collections::BTreeSet;

use exact2048_game::layered::{LayeredGame, SpawnLaw};

use super::pours::{Cups, Pours};

/// Error of a broken game.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    MoveLeavesLayer,
    SpawnRisesBy,
    LastLayerTooLow,
    PlaceMissing,
    ImageMissing,
    MoveMissing,
    ScoreTooHigh,
    UnscoredPoints,
    SpawnLeavesLane,
    TargetLaneMissing,
}

/// The game of pours, with a fault.
pub struct Broken {
    pub game: Pours,
    pub fault: Fault,
}

impl Broken {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl LayeredGame for Broken {
    type Board = Cups;
    type Lane = <Pours as LayeredGame>::Lane;

    fn starts(&self) -> Vec<Cups> {
        self.game.starts()
    }

    fn moves(&self, state: Cups) -> Vec<(Cups, u64)> {
        let mut moves = self.game.moves(state);
        if self.has(Fault::MoveMissing) && state[0] > state[2] {
            moves.pop();
        }
        if let Some((after, score)) = moves.first_mut() {
            *score += u64::from(self.has(Fault::ScoreTooHigh));
            if self.has(Fault::MoveLeavesLayer) {
                after[0] += 1;
            }
        }
        moves
    }

    fn spawns(&self) -> Vec<SpawnLaw> {
        let mut spawns = self.game.spawns();
        spawns[2].rise += u32::from(self.has(Fault::SpawnRisesBy));
        spawns[1].unscored += u64::from(self.has(Fault::UnscoredPoints));
        spawns
    }

    fn spawned(&self, after: Cups, kind: usize) -> Vec<Cups> {
        let mut states = self.game.spawned(after, kind);
        if self.has(Fault::PlaceMissing) && kind == 2 {
            states.pop();
        }
        states
    }

    fn layer(&self, board: Cups) -> u32 {
        self.game.layer(board)
    }

    fn last_layer(&self) -> u32 {
        if self.has(Fault::LastLayerTooLow) { 8 } else { self.game.last_layer() }
    }

    fn images(&self, board: Cups) -> Vec<Cups> {
        let mut images = self.game.images(board);
        if self.has(Fault::ImageMissing) && board[0] > board[2] {
            images.pop();
        }
        images
    }

    fn potential(&self, board: Cups) -> u64 {
        self.game.potential(board)
    }

    fn is_won(&self, after: Cups) -> bool {
        self.game.is_won(after)
    }

    fn lane(&self, board: Cups) -> Self::Lane {
        // A cup of three stones counts as large, but a spawn can fill a cup with three.
        let board =
            if self.has(Fault::SpawnLeavesLane) { board.map(|stones| stones + stones / 3) } else { board };
        self.game.lane(board)
    }

    fn target_lanes(&self, lane: Self::Lane) -> BTreeSet<Self::Lane> {
        let mut lanes = self.game.target_lanes(lane);
        if self.has(Fault::TargetLaneMissing) {
            lanes.pop_first();
        }
        lanes
    }
}
