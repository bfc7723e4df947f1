//! Parameters of a run, in three parts that are checked once.
//!
//! Values depend on the [`Game`] alone. The [`TileSplit`] decides the blocks of a layer, and the [`RunContents`] what
//! the run stores of them. So a function that takes one part shows what its result depends on.

mod builder;
mod contents;
mod error;
mod game;
mod precision;
mod record;
mod split;
#[cfg(test)]
mod tests;
mod whole;

pub use builder::{OpenChoices, ParamsBuilder};
pub use contents::RunContents;
pub use error::ParamsError;
pub use game::Game;
pub use precision::Precision;
pub use record::ParamsRecord;
pub use split::TileSplit;
pub use whole::Params;
