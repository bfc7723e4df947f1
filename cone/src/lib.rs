//! Values of states that a run does not store, from the stored layers above them.
//!
//! The *cone* of some states is the set of states reachable from them by moves and spawns, up to the next stored layers.
//! The method [`Solver::solve`] enumerates the cone upward, layer by layer. It then requests the values of the final states,
//! and backs them up downward. It uses the same arithmetic as the solver of runs
//! ([`Backup`](exact2048_game::backup::Backup)), so every value has the same bits as in a run that stores all layers.
//!
//! States are canonical boards in one hash table for each layer. A cone is a small part of its layers, so this crate does
//! not use the product structure of a whole layer.
//!
//! This crate reads no file, clock or environment. It uses the threads of the caller's rayon pool, but the result does not
//! depend on them.

mod boards;
mod solved;
mod solver;
mod whole;

pub use solved::{Solved, SolvedLayer, Values};
pub use solver::{ConeError, Limits, Progress, Solver, TooLarge};
pub use whole::{LayerMoves, LayerTable};
