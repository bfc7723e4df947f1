//! The longest expected combo in a field four columns wide, solved exactly.
//!
//! In a field of four columns between walls, each piece must fill a row, or the combo ends. `docs/combo.md` has definitions,
//! formulas, proofs, sources and the published table.
//!
//! * [`Placements`] enumerates the reachable fields, and each field's successors for each piece, by the rules of the game.
//! * [`Sequences`] enumerates the player's possible knowledge of the next pieces.
//! * [`ComboSpace`] enumerates the states. A state has a field, the piece in hold, and the knowledge of the next pieces.
//! * [`solve`] computes each state's expected number of further placements under the best policy, with a proved interval
//!   around each value.
//! * [`minimise`] merges equivalent states.
//! * [`prune`] removes successors that are never better.

mod anderson;
mod drops;
mod field;
mod graph;
mod minimise;
mod moves;
mod piece;
mod policy;
mod prune;
mod sequence;
mod solve;
mod space;
mod sweep;

pub use drops::Drops;
pub use field::{Field, FieldError, WIDTH};
pub use graph::{Explicit, Graph, Node};
pub use minimise::{Minimised, minimise};
pub use moves::{FieldId, Placements, TooManyCells};
pub use piece::{PIECES, Piece, PieceError};
pub use policy::{Decision, Placement};
pub use prune::prune;
pub use sequence::{Draw, Outlook, Sequences};
pub use solve::{ComboProgress, Solution, SolveError, ValueSummary, memory_bytes, solve};
pub use space::{ComboProblem, ComboSpace, ComboState};
