//! What workers are told to do, what they answer, and what else is to be done.

use exact2048_game::{Lane, Layer};
use exact2048_solution::{Commit, Phase};

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

/// The half of the work on a block that a task is. What other lanes need of a block is there after the first.
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

/// What a finished task reports; fields that its kind does not have are 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// States of the block, up to symmetry.
    pub states: u64,
    /// Afterstates of the block, up to symmetry.
    pub afterstates: u64,
    /// The block's share of the fingerprint.
    pub fingerprint: u128,
    /// Bytes that a sealed layer takes in a shard.
    pub sealed_bytes: u64,
}

/// What is to be done beside tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// No task needs this layer's states or their values any more.
    ReleaseStates(Layer),
    /// No task needs this layer's afterstates or their values any more.
    ReleaseAfterstates(Layer),
    /// No task needs the tables of this lane any more.
    ReleaseLane(Lane),
    /// Write the sealed layers of the commit to a shard, then commit it.
    Publish(Commit),
    /// A layer of a share is finished and sealed; layers come in order.
    LayerDone {
        /// The layer.
        layer: Layer,
        /// What the share's blocks of the layer have together.
        report: Report,
    },
}
