//! Tasks, their totals, and the events that follow from them.

use std::ops::AddAssign;

use exact2048_game::{Lane, Layer};
use exact2048_solution::Phase;

/// A unit of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// Find the states of a block, by spawns after earlier afterstates of its lane.
    EnumerateStates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
    },
    /// Find the afterstates of a block, by moves from states of its layer in this and in other lanes.
    EnumerateAfterstates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
    },
    /// Compute the values of a block's afterstates: means over spawns, from values of its lane.
    BackUpAfterstates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
    },
    /// Compute the values of a block's states: maxima over moves, from values of its layer in this and in other
    /// lanes.
    BackUpStates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
        /// Whether the block's values are stored.
        keep: bool,
    },
    /// Pack a finished layer for its shard.
    Seal {
        /// Contents to pack: reachable states or values.
        phase: Phase,
        /// The layer.
        layer: Layer,
    },
}

/// Half of the work on a block. Other lanes need only the results of the first stage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// Uses only earlier layers of the same lane.
    First,
    /// Uses the results of first stages of its layer.
    Second,
}

impl Task {
    /// Returns the task's block and stage; `None` for sealing a layer.
    pub fn block(self) -> Option<(Layer, Lane, Stage)> {
        match self {
            Self::EnumerateStates { layer, lane } | Self::BackUpAfterstates { layer, lane } => {
                Some((layer, lane, Stage::First))
            }
            Self::EnumerateAfterstates { layer, lane } | Self::BackUpStates { layer, lane, .. } => {
                Some((layer, lane, Stage::Second))
            }
            Self::Seal { .. } => None,
        }
    }
}

/// Totals of finished work: a task, a layer, or a member's part of a layer. Totals that do not apply are 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Number of states, up to symmetry.
    pub states: u64,
    /// Number of afterstates, up to symmetry.
    pub afterstates: u64,
    /// Part of the fingerprint: a sum modulo 2^128.
    pub fingerprint: u128,
    /// Upper bound on the bytes of sealed layers in a shard.
    pub sealed_bytes: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.states += other.states;
        self.afterstates += other.afterstates;
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.sealed_bytes += other.sealed_bytes;
    }
}

/// Consequence of finished tasks, in addition to the next tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanEvent {
    /// Release some data.
    Release(Release),
    /// All blocks of a layer in this planner are done, and sealed if the layer is stored. Layers are reported in
    /// order.
    LayerDone {
        /// The layer.
        layer: Layer,
        /// Totals of these blocks.
        totals: Totals,
    },
}

/// Data that no task needs any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// A layer's states, or their values.
    States(Layer),
    /// A layer's afterstates, or their values.
    Afterstates(Layer),
    /// The values of a block's states.
    BlockStates(Layer, Lane),
    /// The values of a block's afterstates.
    BlockAfterstates(Layer, Lane),
    /// The tables of a lane.
    Lane(Lane),
}
