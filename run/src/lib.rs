//! A run as the solver sees it: its parameters, what is committed, and what its shards hold.
//!
//! [`Run`] opens a run, in a directory or a store, and keeps the [`Catalog`] of its shards. [`Oracle`] answers what a
//! state is worth. [`crew`] runs what is missing of it on the threads of a machine. [`verify`] checks both against
//! code that the solver does not share.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

mod archive;
mod catalog;
pub mod crew;
mod leftovers;
mod mend;
mod oracle;
mod parts;
mod run;
mod search;
pub mod verify;

pub use catalog::{Catalog, CatalogShard, JournalRecord, PassTime, Record, Retraction, Took, kind_of};
pub use mend::{blamed_shard, damaged_shards};
pub use oracle::{Evaluation, MoveValue, Oracle, Outcome, QueryError, StartValues, Wanted};
pub use parts::CacheUse;
pub use run::{Run, RunError, Unnamed};
