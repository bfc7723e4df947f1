//! Rules of 2048 on R×C boards, and the structure of its state space that the solver is built on.
//!
//! The crate has two halves that share nothing but [`Board`] and [`BoardSize`]:
//!
//! * the *rules*, one board at a time, as plainly as they can be written ([`rules`], [`symmetry`]).
//!   Queries, verification and tests use these.
//! * the *product structure*: a board is a [`skeleton`] (where the small tiles and the large tiles
//!   are) times a sequence of large exponents ([`columns`]). All skeletons with the same number of
//!   large tiles and the same small sum form a [`class`](class::Class), whose [`transitions`] are
//!   computed once; what they do to the sequences are [`patterns`], and to columns [`maps`]. The
//!   kernels of the solver use these.
//!
//! Nothing here reads a file, a clock or the environment.

pub mod bitset;
pub mod board;
pub mod class;
pub mod columns;
pub mod fixed;
pub mod kept;
pub mod lane;
pub mod locate;
pub mod maps;
pub mod objective;
pub mod params;
pub mod patterns;
pub mod ranks;
pub mod rowset;
pub mod rules;
pub mod shapes;
pub mod skeleton;
pub mod slide;
pub mod symmetry;
pub mod table;
pub mod transitions;
pub mod value;

pub use board::{Board, BoardError, BoardSize};
pub use kept::KeptLayers;
pub use lane::{Lane, Layer};
pub use objective::{Objective, Spawn4};
pub use params::{Params, ParamsError, Precision};
