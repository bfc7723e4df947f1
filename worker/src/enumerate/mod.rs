//! Enumeration of one block: its states from the spawns of earlier afterstates, then its afterstates from the moves of
//! its layer's states.

mod afterstates;
mod found;
mod starts;
mod states;

pub use afterstates::{FindAfterstates, move_sources, moved, rows_after};
pub use starts::Starts;
pub use states::FindStates;
