//! Reports on solved runs.
//!
//! First, [`gather()`] reads the layers of a run and sums them into plain numbers ([`RunReport`]). Then [`figures()`]
//! draws these numbers, with a text and a table for each figure. Finally, [`page()`] combines everything in one HTML file.
//! The same runs give the same bytes.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

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
pub use gather::{ReportError, ReportOptions, ReportProgress, gather};
pub use gathered::{
    EMPTIES, LayerReport, MoveCounts, ReportedPlay, ReportedValues, RunIdentity, RunReport, StateSums,
};
pub use page::page;
