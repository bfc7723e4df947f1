//! Statistics of perfect play, without sampling.
//!
//! [`PlayStatistics`] say how likely each tile is the largest at the end, how many games end in which layer, and so how many
//! moves a game takes. They come from following games upward through the layers of a run, which takes the kernels of
//! the solver ([`FollowPlay`]). [`chances`] holds the boards of a layer with their chances, to evaluate players that
//! are not perfect.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

pub mod chances;
mod follow;
mod outcome;
mod told;

pub use follow::{FollowPlay, FollowerOfRun, LEAST_FOLLOWED, StatsProgress, has_usual_rules};
pub use outcome::{LayerStatistics, PlayStatistics};
pub use told::{KeptStatistics, ToldStatistics};
