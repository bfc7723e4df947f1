//! Upper bounds on the number of states of 2048, without enumeration.
//!
//! [`Bounds::new`] counts boards layer by layer (by tile sum). It counts all boards and boards up to symmetry, with and
//! without the tile bound. `docs/count.md` has the formulas, their sources, and the published table.

mod bounds;
mod cycles;
mod fillings;

pub use bounds::{Bounds, Count, CountError, Counted, LayerBounds};
