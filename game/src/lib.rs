//! Rules of 2048 on R×C boards, and the structure of its state space that the solver uses.
//!
//! The crate has two halves:
//!
//! * The *rules*, one board at a time, in their simplest form ([`rules`], [`symmetry`]), and the same rules with
//!   tables and shifts ([`packed`]). Queries, players and tests use these modules.
//! * The *product structure*: a board is a [`skeleton`] times a sequence of large exponents ([`columns`]). The
//!   skeleton gives the small tiles and the cells of the large tiles. All skeletons with the same number of large
//!   tiles and the same small sum form a [`class`](class::Class), whose [`transitions`] are computed once.
//!   [`patterns`] describe the effect of a transition on sequences, and [`maps`] its effect on columns. The kernels of
//!   the solver use these modules.
//!
//! The product structure takes the symmetries, the directions of moves, the starts and Φ from the rules. Tests compare
//! it with the rules board by board. The verifier of runs has its own implementation of both halves.
//!
//! Each part of the game that the solver needs is defined in one place:
//!
//! | Part | Modules |
//! |---|---|
//! | layers: the first one, the next one, the tile sums and weights of spawns | [`layer`] |
//! | the existing blocks, and the target lanes of moves | [`lane`], [`huge`], [`sector`] |
//! | the rows of a block | [`class`](mod@class) |
//! | the columns of a block | [`columns`] |
//! | the targets of moves, spawns and symmetries | [`transitions`], [`patterns`], [`maps`] |
//! | the value of a game | [`objective`], [`discount`], [`fixed`], [`value`], [`spawning`], [`backup`] |
//!
//! The crate reads no file, no clock and no environment variable.

pub mod backup;
pub mod bitset;
pub mod board;
pub mod certainty;
pub mod class;
pub mod columns;
pub mod configs;
pub mod discount;
mod endings;
pub mod fixed;
pub mod formation;
pub mod huge;
pub mod images;
pub mod kept;
pub mod lane;
pub mod layer;
pub mod layered;
pub mod legal;
pub mod locate;
pub mod maps;
pub mod move_bound;
pub mod objective;
pub mod packed;
pub mod params;
pub mod pattern;
pub mod patterns;
mod perspective;
pub mod placer;
pub mod ranks;
pub mod rowset;
pub mod rules;
pub mod sector;
pub mod sequence;
mod shape;
mod shapes;
pub mod skeleton;
pub mod slide;
pub mod spawn_images;
pub mod spawning;
pub mod stones;
pub mod symmetry;
pub mod table;
pub mod transitions;
mod unreachable;
pub mod value;
pub mod value_step;

pub use board::{Board, BoardError, BoardSize};
pub use discount::Discount;
pub use huge::HugeTiles;
pub use kept::KeptLayers;
pub use lane::Lane;
pub use layer::{Layer, PerSpawn, SpawnKind};
pub use objective::{Objective, Spawn4, Spawner, ValueUnit};
pub use params::{
    Game, OpenChoices, Params, ParamsBuilder, ParamsError, ParamsRecord, Precision, RunContents, StartState,
    TileSplit, position,
};
pub use perspective::{Asked, Perspective};
pub use stones::Stone;
pub use value_step::ValueStep;
