//! Tasks, what they come to, and what else is to be done once they are finished.

use std::ops::AddAssign;

use exact2048_game::{Lane, Layer};
use exact2048_solution::Phase;

/// A unit of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// Find the states of a block: spawns after earlier afterstates of its lane.
    EnumerateStates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
    },
    /// Find the afterstates of a block: moves from states of its layer, in this and in other lanes.
    EnumerateAfterstates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
    },
    /// Back up the afterstates of a block: means over spawns, from values of its lane.
    BackUpAfterstates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
    },
    /// Back up the states of a block: maxima over moves, from values of its layer, in this and in other lanes.
    BackUpStates {
        /// The layer.
        layer: Layer,
        /// The lane.
        lane: Lane,
        /// Whether its values are stored.
        keep: bool,
    },
    /// Pack a finished layer for its shard.
    Seal {
        /// What is packed: reachable states or values.
        phase: Phase,
        /// The layer.
        layer: Layer,
    },
}

/// Which half of the work on a block a task does. What other lanes need of a block is there after the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// From earlier layers of the same lane alone.
    First,
    /// From the first stages of its layer.
    Second,
}

impl Task {
    /// The block that the task works on, and which half of the work it is; `None` where it seals a layer.
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

/// What finished work comes to: a task, a layer, or a member's part of a layer. What it has none of is 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// States, up to symmetry.
    pub states: u64,
    /// Afterstates, up to symmetry.
    pub afterstates: u64,
    /// Share of the fingerprint: a sum modulo 2^128.
    pub fingerprint: u128,
    /// Bytes that sealed layers take in a shard at most.
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

/// What follows from tasks that are done, beside the next tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanEvent {
    /// To let go of something.
    Release(Release),
    /// All blocks of a layer that are planned here are done, and sealed where they are stored. Layers come in order.
    LayerDone {
        /// The layer.
        layer: Layer,
        /// What those blocks come to.
        totals: Totals,
    },
}

/// What no task needs any more.
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
