//! Tables of a run for other programs: its states, its afterstates or its policy, as Parquet, NumPy or CSV files.
//!
//! The function [`export()`] writes a folder of files, each with a range of layers (`docs/export.md`). Rows ascend by
//! layer and canonical board, so their order does not depend on how the run was computed. The type [`ExportRows`] holds
//! rows, and the module `format` writes them. The module `files` divides layers into files. Each file appears only when
//! complete.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod columns;
mod error;
mod export;
mod files;
mod format;
mod groups;
mod options;
mod sample;

pub use columns::{ExportColumn, ExportRows, ExportTable};
pub use error::ExportError;
pub use export::{Exported, export};
pub use format::FileFormat;
pub use groups::ExportProgress;
pub use options::ExportOptions;
