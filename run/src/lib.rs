//! What is done with a run as a whole.
//!
//! [`member`] computes what is missing of it on the threads of a machine, alone or with others, [`alone`] is a process that
//! does so by itself until nothing is missing, [`verify`] checks it with code that the solver does not share,
//! [`layer_solver`] works out layers that it does not store, [`play_follower`] follows games of perfect play,
//! and [`damaged_shards`] finds what has to be made again. [`machine`] says how much memory there is for it.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

pub mod alone;
mod layers;
pub mod machine;
pub mod member;
mod mend;
mod perfect_play;
pub mod verify;

pub use layers::layer_solver;
pub use mend::{damaged_shards, remove_lost};
pub use perfect_play::{PlayProgress, play_follower, span_bytes};
