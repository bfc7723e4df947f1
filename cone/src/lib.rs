//! Values of states that a run does not store, from the stored layers above them.
//!
//! The *cone* of some states is all that moves and spawns lead to from them, up to the next layers whose values are
//! stored. [`Solver::solve`] enumerates it upward, each state once, layer by layer; asks for the values of the states that
//! it ends in; and backs them up again downward. The arithmetic is that of the solver of runs
//! ([`Backup`](exact2048_game::value::Backup)), so that every value has the same bits as in a run that stores all layers.
//!
//! States are canonical boards in hash tables, one a layer. A cone is a small part of its layers, and has no use for the
//! product structure that a whole layer has.
//!
//! Nothing here reads a file, a clock or the environment. Threads are those of the rayon pool that it is called in; the
//! result does not depend on them.

mod boards;
mod solved;
mod solver;
mod whole;

pub use solved::{Solved, SolvedLayer, Values};
pub use solver::{ConeError, Limits, Progress, Solver, TooLarge};
pub use whole::{LayerMoves, LayerTable};
