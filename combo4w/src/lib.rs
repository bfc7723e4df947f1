//! The longest expected combo in a field four columns wide, solved exactly.
//!
//! In a field of four columns between walls, each piece has to fill a row, or else the combo ends. [`Placements`] has the fields that
//! occur and where each piece leads, found by playing them with the rules of the game; [`Sequences`] what is known of the pieces to
//! come; [`ComboSpace`] the states, which are the product of both and of the piece in hold. [`solve`] finds the expected number of further
//! placements under the best policy in all states, with a proved interval around each value. [`minimise`] merges states that
//! go on alike, [`prune`] takes out successors that are never better. `docs/combo.md` has
//! definitions, formulas, proofs, sources and the published table.

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
