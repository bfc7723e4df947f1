//! Why a run cannot be opened or continued, or has no values.

use exact2048_game::ParamsError;
use exact2048_storage::{ErrorKind, Place, StorageError};

use crate::commit::LayerCounts;
use crate::read_error::Blame;
use crate::segment::Segment;

/// Why a run cannot be opened or continued.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory or the store, or one of the files, cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The parameters in the manifest are not understood.
    #[error("cannot interpret the manifest of {place}: {reason}")]
    Manifest {
        /// The run.
        place: Place,
        /// The reason.
        reason: String,
    },
    /// A record of the journal is not understood.
    #[error("cannot interpret record {number} of the journal of {place}: {reason}")]
    Journal {
        /// The run.
        place: Place,
        /// Number of the record in the journal.
        number: u64,
        /// The reason.
        reason: String,
    },
    /// More shards lack a journal record than an interrupted command leaves.
    #[error(
        "expected a journal record for every shard of {place}, found none for {shards} of its shards ({bytes} bytes), \
         more than an interrupted command leaves; restore the folder journal from a copy, or discard these shards to \
         recompute their contents"
    )]
    UnnamedShards {
        /// The run.
        place: Place,
        /// Number of shards without a record.
        shards: usize,
        /// Total bytes of these shards.
        bytes: u64,
    },
    /// The run cannot be written because an earlier version of the program created it.
    #[error(
        "{place} has format {found}, which this program can read but not resume; finish the run with version 0.1, or \
         solve the board again in another place"
    )]
    OlderFormat {
        /// The run.
        place: Place,
        /// Format version of the run.
        found: u32,
    },
    /// A repeated enumeration found other counts than before.
    #[error(
        "expected {} states and {} afterstates in layer {} of {place}, as enumerated before, found {} and {}; the \
         memory or the processor of a machine is faulty, or the program has a bug. Committed data is unchanged",
        before.states, before.afterstates, now.layer, now.states, now.afterstates
    )]
    CountedOtherwise {
        /// The run.
        place: Place,
        /// The counts in the journal.
        before: LayerCounts,
        /// The counts found now.
        now: LayerCounts,
    },
    /// No run can have these parameters.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The place holds a run of the same job with other stored data.
    #[error(
        "{place} holds this job with other stored data: expected {field} {wanted}, found {found} (stored data is never \
         converted); resume the run with its own choice, or solve the job again in another place"
    )]
    StoredOtherwise {
        /// The run.
        place: Place,
        /// The choice that differs.
        field: &'static str,
        /// The choice of the run.
        found: String,
        /// The choice asked for.
        wanted: String,
    },
    /// The place holds a run of another job.
    #[error(
        "{place} holds another job: expected {field} {wanted}, found {found}; choose another place, or request the job \
         of this run"
    )]
    OtherJob {
        /// The run.
        place: Place,
        /// The parameter that differs.
        field: &'static str,
        /// Its value in the run.
        found: String,
        /// The value asked for.
        wanted: String,
    },
}

impl RunError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Manifest { .. } | Self::Journal { .. } | Self::UnnamedShards { .. } => ErrorKind::DataLoss,
            Self::CountedOtherwise { .. } => ErrorKind::Internal,
            Self::Params(_) | Self::OlderFormat { .. } => ErrorKind::Refused,
            Self::OtherJob { .. } | Self::StoredOtherwise { .. } => ErrorKind::Occupied,
        }
    }

    /// The shard to recompute, if a shard caused the error.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            _ => None,
        }
    }
}

/// The reason why not all states of a run have values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MissingValues {
    /// The run only enumerates, up to this layer, and never gets values.
    #[error(
        "this run is not solved because it only enumerates, up to layer {0}; use a run of the whole board"
    )]
    OnlyEnumerates(u32),
    /// Some layers are not enumerated or not backed up yet. This segment is next.
    #[error(
        "this run is not solved because it must still {} layers {} to {}; resume it", .0.phase.name(), .0.first, .0.last
    )]
    Unfinished(Segment),
    /// Some layers are not enumerated or not backed up yet, but the run has an older format, which this program cannot
    /// continue.
    #[error(
        "this run is not solved because it must still {} layers {} to {}, and its format is older; finish it with \
         version 0.1, or solve the board again in another place", .0.phase.name(), .0.first, .0.last
    )]
    OlderFormat(Segment),
}
