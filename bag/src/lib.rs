//! 2048 without a board: how many moves a win takes at least on average, whatever the player does.
//!
//! A [`Chain`] holds the states of a bag of tiles in which every pair merges at each move. [`moments`] are mean and
//! variance of the number of moves, [`absorption`] says where the chain ends, [`times`] how likely each number of moves
//! is, [`extremes`] what can happen at best and at worst. `docs/bag.md` has definitions, formulas, sources and the
//! published table.
//!
//! Expectations are computed in f64 with a bound of the error ([`Floating`]) or in fractions ([`Exact`]), by the same
//! passes.

mod absorption;
mod arithmetic;
mod bag;
mod chain;
mod dot;
mod moments;
mod paths;
mod simulate;
mod times;

pub use absorption::{Absorption, absorption};
pub use arithmetic::{Arithmetic, Bounded, Exact, Floating};
pub use bag::Bag;
pub use chain::{BagState, Chain, ChainError, StateId};
pub use dot::Dot;
pub use moments::{Moments, moments};
pub use num_rational::BigRational;
pub use paths::{Extremes, extremes};
pub use simulate::{Estimate, SampledCounts, simulate};
pub use times::{Time, Times, times, times_with};
