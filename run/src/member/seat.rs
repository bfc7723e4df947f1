//! The part of a member in an epoch.

use exact2048_coordinator::cluster::WorkerId;
use exact2048_game::Params;
use exact2048_solution::{Owners, Segment, assign};

/// The part of a segment that a member computes, and the owners of the rest.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The parameters of the run.
    pub params: Params,
    /// The layers of the epoch, and the direction of the pass.
    pub segment: Segment,
    /// All members of the epoch.
    pub members: Vec<WorkerId>,
    /// The owner of each lane.
    pub owners: Owners,
    /// The index of this member.
    pub me: usize,
    /// The number of layers that this member may report beyond the layers that all members have finished.
    pub window_layers: u32,
}

impl Seat {
    /// The seat of the only member of an epoch.
    pub fn alone(params: &Params, segment: Segment) -> Self {
        Self {
            params: params.clone(),
            segment,
            members: vec![WorkerId(0)],
            owners: assign(params, &[1]),
            me: 0,
            window_layers: segment.layers(),
        }
    }
}
