//! 2048 without a board: a lower bound on the mean number of moves to a win, for any player.
//!
//! A [`Chain`] has the states of a bag of tiles. At each move, every pair in the bag merges. `docs/bag.md` has definitions,
//! formulas, sources and the published table.
//!
//! * [`moments`] computes the mean and the variance of the number of moves.
//! * [`absorption`] computes the probabilities of the absorbing states.
//! * [`times`] computes the distribution of the number of moves.
//! * [`extremes`] finds the best and the worst case.
//!
//! The same passes compute expectations in f64 with an error bound ([`Floating`]) or in fractions ([`Exact`]).

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
