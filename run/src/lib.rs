//! Operations on a run as a whole.
//!
//! * [`member`] computes the missing parts of a run on the threads of a machine, alone or with other machines.
//! * [`alone`] solves a run in one process.
//! * [`verify`] checks a run with code that the solver does not share.
//! * [`kernels()`] compute values that a run does not store.
//! * [`play_follower`] follows games of perfect play.
//! * [`damaged_shards`] finds shards that must be computed again.
//! * [`machine`] reports the available memory and threads.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

pub mod alone;
mod cones;
mod kernels;
mod lanes;
mod layers;
pub mod machine;
pub mod member;
mod mend;
mod perfect_play;
pub mod verify;

pub use kernels::kernels;
pub use mend::{damaged_shards, remove_lost};
pub use perfect_play::{PlayProgress, play_follower, span_bytes};
