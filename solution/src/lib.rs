//! The content of a run, and how it is read.
//!
//! Blocks are stored in [`Parts`], as items of shards. The journal's records name the shards of finished ranges of
//! layers ([`Commit`]). [`Run`] reads these records from a directory or a store, and appends new ones. The [`Catalog`]
//! has the shards that *count*: those whose record no later record replaces, retracts or removes. [`ShardArchive`]
//! reads items, and [`Oracle`] returns the values of states. This crate neither computes a run nor decides the next
//! step. [`Recipe`] only lists the missing steps of a run and the data that the run no longer needs.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

mod archive;
pub mod best_moves;
pub mod cache;
mod catalog;
mod commit;
mod dead;
mod decisions;
mod leftovers;
mod oracle;
mod owners;
pub mod packing;
mod parts;
mod read_error;
mod recipe;
mod records;
mod run;
mod segment;
mod sums;
mod view;

pub use archive::{Archive, NoItems, ResumeArchive, ShardArchive};
pub use catalog::{Catalog, CatalogShard, PassTime};
pub use commit::{Commit, LayerCounts, Phase, fingerprint_of, fingerprint_text};
pub use dead::DeadStates;
pub use exact2048_cone as cone;
pub use exact2048_cone::{LayerMoves, LayerTable, Progress as ConeProgress, TooLarge};
pub use oracle::{
    Advice, CacheUse, ConeEstimate, ConeJob, ConeKernels, CostSum, Evaluation, KernelCone, KernelsOfRun,
    LayerItems, LayerSolver, LayerStates, LayerStep, MoveOutcome, MoveValue, Oracle, OracleOptions,
    QueryError, QuestionLimits, RunKernels, StartValues, StateReader, StoredValues, Wanted, WantedStep,
};
pub use owners::{LaneWork, MOST_MEMBERS, Owners, assign};
pub use parts::{ItemKind, PART_ENTRIES, Parts, PayloadError};
pub use read_error::{Blame, ReadError};
pub use recipe::{CommittedRange, Holdings, LayerRange, ReachSource, Recipe};
pub use records::{Amended, Amendment, JournalRecord, Record, Removal, Retraction, WorkTime, WrittenShards};
pub use run::{MissingValues, Run, RunError, UnnamedPolicy};
pub use segment::Segment;
pub use sums::ValueSums;
pub use view::{MoveView, StateAnswer, StateView, shown_best, shown_moves};
