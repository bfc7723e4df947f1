//! Statistics of perfect play, without sampling.
//!
//! [`perfect_play`] goes upward through the layers of a solved run with the chance that a game comes to each state, along
//! best moves: how likely each tile is the largest at the end, how many games end in which layer, and so how many moves a
//! game takes. [`chances`] holds the states of a layer with their chances; players are evaluated with it too.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

mod best;
pub mod chances;
mod outcome;
mod pass;
mod told;

pub use outcome::{LayerStatistics, PlayStatistics};
pub use pass::{LEAST_FOLLOWED, StatsError, StatsLimits, StatsProgress, has_usual_rules, perfect_play};
pub use told::{KeptStatistics, ToldStatistics};
