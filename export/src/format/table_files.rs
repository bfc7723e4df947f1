//! Open files of a table.

use std::fs::File;
use std::io::{self, Read};

use crate::columns::ExportRows;

/// Open files that receive the rows of some layers.
pub(crate) trait TableFiles: Send {
    /// Adds the rows of some layers.
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()>;

    /// Writes the remaining bytes and returns the files.
    fn finish(self: Box<Self>) -> io::Result<Vec<File>>;
}

/// Fills `bytes` from a file; returns `false` if the file ends earlier.
pub(super) fn read_all(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
