//! Statistics of perfect play, without sampling.
//!
//! The type [`PlayStatistics`] has the distribution of the largest tile at the end and of the layers in which games end,
//! and so the number of moves of a game. The kernels of the solver compute it by following games upward through the layers
//! of a run ([`FollowPlay`]). The module [`chances`] holds the boards of a layer with their probabilities, to evaluate
//! imperfect players.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

pub mod chances;
mod follow;
mod outcome;
mod view;

pub use follow::{FollowPlay, FollowerOfRun, LEAST_FOLLOWED, StatsProgress, has_usual_rules};
pub use outcome::{LayerStatistics, PlayStatistics};
pub use view::{KeptStatistics, StatisticsView};
