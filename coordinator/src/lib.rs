//! Decides what a run does next, in pure code.
//!
//! The coordinator never computes a value, opens a file or reads a clock: finished tasks go in, tasks
//! and actions come out. `README.md` beside this crate states the scheduling problem.

pub mod cluster;
mod planner;
mod progress;
mod rate;
pub mod sizes;
mod task;
mod workload;

pub use planner::Planner;
pub use progress::{Commit, LayerCounts, Segment, missing_segments};
pub use rate::{Pace, Rate, is_enough};
pub use task::{Action, Phase, Report, Stage, Task};
pub use workload::Workload;

use exact2048_game::Layer;

/// Whether the values of a layer are stored.
///
/// A path steps from layer to layer by 2 or 4, so two neighbouring layers are a cut: any value
/// follows from the values of the next two kept layers above it. Two layers in every four are kept.
pub fn is_kept(layer: Layer) -> bool {
    layer.0 % CUT_PERIOD < 4
}

/// Distance between the cuts whose values are stored.
pub const CUT_PERIOD: u32 = 8;
