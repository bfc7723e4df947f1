//! Reasons why an export fails.

use std::io;
use std::path::PathBuf;

use exact2048_game::Layer;
use exact2048_solution::QueryError;

/// Reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run could not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The requested range contains no layer of the run.
    #[error(
        "expected some of the layers {run_first} to {run_last} of the run, which are even, found the range {first} to {}",
        if *last == Layer(u32::MAX) { "the last".to_owned() } else { last.to_string() }
    )]
    NoLayers {
        /// First requested layer.
        first: Layer,
        /// Last requested layer.
        last: Layer,
        /// First layer of the run.
        run_first: Layer,
        /// Last layer of the run.
        run_last: Layer,
    },
    /// The layers exceed the memory limit.
    #[error(
        "expected at most {limit_bytes} bytes for the largest exported layers, found up to {needed_bytes}; raise the \
         limit, or export fewer layers"
    )]
    Memory {
        /// Largest number of bytes needed at once.
        needed_bytes: u64,
        /// Bytes allowed.
        limit_bytes: u64,
    },
    /// The number of a layer's rows differs from the run's count.
    #[error("expected {expected} rows in layer {layer}, as the run counted, found {found}; verify the run")]
    Count {
        /// The layer.
        layer: Layer,
        /// Rows found.
        found: u64,
        /// Rows counted by the run.
        expected: u64,
    },
    /// The folder has other contents.
    #[error("expected {} to be empty or to hold an export of {wanted}; found {held}", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// Its contents.
        held: String,
        /// Description of this export.
        wanted: String,
    },
    /// Another process exports to the folder.
    #[error("expected no other export into {}, found one that runs; wait for its end, or name another folder", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or the folder.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}
