//! Backup of one block: its afterstates' values as means over spawns, then its states' values as maxima over moves.

mod afterstates;
mod states;

pub use afterstates::BackUpAfterstates;
pub use states::BackUpStates;
