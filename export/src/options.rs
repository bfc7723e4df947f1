//! Options of an export.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use exact2048_game::Layer;

use crate::columns::ExportTable;
use crate::format::FileFormat;

/// Options of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The table.
    pub table: ExportTable,
    /// The layers; all of them if `None`.
    pub layers: Option<RangeInclusive<Layer>>,
    /// Number of rows of an evenly spread sample; all rows if `None`.
    pub sample: Option<u64>,
    /// The format of the files.
    pub format: FileFormat,
    /// The output folder.
    pub folder: PathBuf,
    /// Memory limit in bytes for the layers in progress.
    pub memory_bytes: u64,
}
