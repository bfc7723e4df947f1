//! The tasks of a worker, each on one block or layer.
//!
//! A worker enumerates blocks upward, states before afterstates, and backs them up downward, afterstates before states
//! ([`BlockTask`]). It seals finished layers into shard frames ([`BlockEngine::seal`]). Its caller decides which task
//! is next.
//!
//! Every task on a block is a *stage*: it gathers inputs, plans, runs the kernels, and settles the result. Most
//! results also enter a [`Sink`]. The parts of a worker own one thing each:
//!
//! | File | Thing |
//! |---|---|
//! | `store` | the held blocks, and the memory for them |
//! | `sources` | the origin of an input: held, read or computed again |
//! | `notes` | the afterstates to which states of other members lead |
//! | `tables` | data that follows from the parameters |
//! | `stage` | the steps that all stages share, in `enumerate` and `backup` |
//! | `sink` | the uses of a result |
//! | `seal` | the items of layers that are not sealed |
//! | `kernels` | the operations on rows |

mod backup;
pub mod bits;
mod blocks;
mod bytes_list;
mod dense;
mod enumerate;
mod error;
mod exchange;
mod fingerprint;
mod follow;
mod footprint;
mod held;
pub mod kernels;
mod memory;
mod moves;
mod notes;
mod occurring;
mod open_block;
pub mod pieces;
mod policy;
mod seal;
mod shared;
mod sink;
mod sources;
mod stage;
mod store;
mod tables;
mod tuning;
mod worker;

pub use bytes_list::BytesList;
pub use error::WorkerError;
pub use follow::{BestMoves, FollowSums, Follower};
pub use footprint::{heap_limit_bytes, least_heap_bytes, least_memory_bytes};
pub use seal::Sealed;
pub use sink::{EncodedItems, Outcome, Sink};
pub use store::Holding;
pub use tuning::{Heap, Tuning};
pub use worker::{BlockEngine, BlockTask, Worker, new_block_engine};
