//! How many boards of 2048 there can be, without enumerating them: bounds from above on what a solver will meet.
//!
//! [`Bounds::new`] counts boards layer by layer (by tile sum), each board by itself and up to symmetry, with and
//! without the tile bound. `docs/count.md` has the formulas, their sources, and the published table.

mod bounds;
mod cycles;
mod fillings;

pub use bounds::{Bounds, Count, CountError, Counted, LayerBounds};
