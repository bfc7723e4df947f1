//! Reports on solved runs.
//!
//! [`gather()`] goes through the layers of a run and sums up what a report says of it, as plain numbers ([`RunReport`]).
//! [`figures()`] draws them, with a text and a table for each figure, and [`page()`] makes one HTML file of it all. The same
//! runs give the same bytes.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

mod chart;
mod escape;
mod figures;
mod gather;
mod gathered;
mod page;
mod published;
mod table;
mod words;

pub use figures::{Figure, figures};
pub use gather::{ReportError, ReportOptions, ReportProgress, SolverOfRun, gather};
pub use gathered::{
    EMPTIES, LayerReport, MoveCounts, ReportedPlay, ReportedValues, RunIdentity, RunReport, StateSums,
};
pub use page::page;
