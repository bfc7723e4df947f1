//! Rules of 2048 on R×C boards, and the structure of its state space that the solver is built on.
//!
//! The crate has two halves:
//!
//! * the *rules*, one board at a time, as plainly as they can be written ([`rules`], [`symmetry`]), and the same by
//!   tables and shifts ([`packed`]). Queries, players and tests use these.
//! * the *product structure*: a board is a [`skeleton`] (where the small tiles and the large tiles
//!   are) times a sequence of large exponents ([`columns`]). All skeletons with the same number of
//!   large tiles and the same small sum form a [`class`](class::Class), whose [`transitions`] are
//!   computed once; what they do to the sequences are [`patterns`], and to columns [`maps`]. The
//!   kernels of the solver use these.
//!
//! The second takes the symmetries, the directions of moves, the starts and Φ from the first, and is
//! tested against it board by board. The verifier of runs has both of its own.
//!
//! What a game owes the solver, and where it is said, each in one place:
//!
//! | | |
//! |---|---|
//! | how boards rise: the first layer, the next, what spawns add, with their weights | [`layer`] |
//! | which blocks there are, and which lanes moves lead to | [`lane`], [`huge`] |
//! | the rows of a block | [`class`](mod@class) |
//! | the columns of a block | [`columns`] |
//! | where moves, spawns and symmetries lead | [`transitions`], [`patterns`], [`maps`] |
//! | what a game is worth | [`objective`], [`discount`], [`fixed`], [`value`], [`spawning`] |
//!
//! Nothing here reads a file, a clock or the environment.

pub mod bitset;
pub mod board;
pub mod certainty;
pub mod class;
pub mod columns;
pub mod discount;
mod endings;
pub mod fixed;
pub mod huge;
pub mod images;
pub mod kept;
pub mod lane;
pub mod layer;
pub mod legal;
pub mod locate;
pub mod maps;
pub mod move_bound;
pub mod objective;
pub mod packed;
pub mod params;
pub mod patterns;
pub mod ranks;
pub mod rowset;
pub mod rules;
pub mod shapes;
pub mod skeleton;
pub mod slide;
pub mod spawn_images;
pub mod spawning;
pub mod symmetry;
pub mod table;
pub mod transitions;
mod unreachable;
pub mod value;

pub use board::{Board, BoardError, BoardSize};
pub use discount::Discount;
pub use huge::HugeTiles;
pub use kept::KeptLayers;
pub use lane::Lane;
pub use layer::{Layer, SpawnKind};
pub use objective::{Objective, Spawn4, Spawner};
pub use params::{Params, ParamsError, Precision};
pub use unreachable::why_unreachable;
