//! Statistics of perfect play, without sampling.
//!
//! The type [`PlayStatistics`] contains the distributions of the largest tile at the end and of the last layer of a game.
//! It also contains the mean number of moves. The kernels of the solver compute these statistics by following games upward
//! through the layers of a run ([`FollowPlay`]). The module [`chances`] stores the boards of a layer with their
//! probabilities. The evaluation of imperfect players uses this module.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

pub mod chances;
mod follow;
mod outcome;
mod view;

pub use follow::{FollowPlay, FollowerOfRun, LEAST_FOLLOWED, StatsProgress, has_usual_rules};
pub use outcome::{LayerStatistics, PlayStatistics};
pub use view::{KeptStatistics, StatisticsView};
