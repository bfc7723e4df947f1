//! Tables of a run for other programs: its states, its afterstates or its policy, as Parquet, NumPy or CSV files.
//!
//! [`export()`] goes through the layers in their order and writes a folder of files, each a range of layers
//! (`docs/export.md`). Rows ascend by layer and canonical board, so that a run has the same rows however it was computed.
//! [`ExportRows`] holds rows, `format` writes them, `files` says which file holds which layers and sees to it that a file is
//! there whole or not at all.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

mod columns;
mod export;
mod files;
mod format;
mod groups;
mod sample;

pub use columns::{ExportColumn, ExportRows, ExportTable};
pub use export::{ExportError, ExportOptions, ExportProgress, Exported, export};
pub use format::FileFormat;
