//! Parameters of a run, in three parts that are checked once.
//!
//! Values depend only on the [`Game`]. The [`TileSplit`] divides a layer into blocks. The [`RunContents`] select the
//! data that the run stores. So a function that takes one part shows on which parameters its result can depend.

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
pub use game::{Game, StartState};
pub use precision::Precision;
pub use record::ParamsRecord;
pub use split::TileSplit;
pub use whole::{Params, position};
