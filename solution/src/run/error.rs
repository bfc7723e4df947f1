//! Why a run cannot be opened or continued, or has no values.

use exact2048_game::ParamsError;
use exact2048_storage::{ErrorKind, Place, StorageError};

use crate::archive::Blame;
use crate::commit::LayerCounts;
use crate::segment::Segment;

/// Why a run cannot be opened or continued.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory or the store, or one of the files, cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The parameters in the manifest are not understood.
    #[error("the manifest of {place} does not describe a run: {reason}")]
    Manifest {
        /// The run.
        place: Place,
        /// The reason.
        reason: String,
    },
    /// A record of the journal is not understood.
    #[error("record {number} of the journal of {place} is not understood: {reason}")]
    Journal {
        /// The run.
        place: Place,
        /// Its number in the journal.
        number: u64,
        /// The reason.
        reason: String,
    },
    /// There are more shards that no record of the journal names than an interrupted command leaves.
    #[error(
        "{place} lacks records of its journal: {shards} of its shards ({bytes} bytes) are named by none, more than an \
         interrupted command leaves. Restore the folder journal from a copy; or have these shards discarded: \
         what they hold is computed again"
    )]
    UnnamedShards {
        /// The run.
        place: Place,
        /// How many.
        shards: usize,
        /// Their bytes together.
        bytes: u64,
    },
    /// The run is to be written to, and an earlier program made it.
    #[error(
        "{place} is a run of format {found}, which this program reads but does not continue: finish it with version 0.1, \
         or solve anew in another place"
    )]
    OlderFormat {
        /// The run.
        place: Place,
        /// Its format version.
        found: u32,
    },
    /// Layers that were enumerated again came out in another way.
    #[error(
        "layer {} of {place} has {} states and {} afterstates, and had {} and {} when it was enumerated first: the memory or \
         the processor of a machine makes mistakes, or the program does. What is committed is as it was", now.layer,
        now.states, now.afterstates, before.states, before.afterstates
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
    /// The directory holds a run of the same job that stores other things of it.
    #[error(
        "{place} holds this job with another choice of what is stored: its {field} is {found}, and {wanted} was asked for. \
         What a run stores is chosen when it is made, and never converted: go on with what this one stores, or solve the \
         job anew in another place"
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
    /// The directory holds a run with other parameters.
    #[error(
        "{place} holds another job: its {field} is {found}, and {wanted} was asked for; choose another place, or ask for \
         what it holds"
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

    /// The shard to make again, if the error comes from one.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            _ => None,
        }
    }
}

/// Why the states of a run have no values, or not all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MissingValues {
    /// The run only enumerates, up to this layer, and never gets values.
    #[error(
        "this run is not solved: it only enumerates, up to layer {0}; a run of the whole board has values"
    )]
    OnlyEnumerates(u32),
    /// Layers are still to be enumerated or backed up, this segment first.
    #[error(
        "this run is not solved: there is still to {} layers {} to {}; continue it", .0.phase.name(), .0.first, .0.last
    )]
    Unfinished(Segment),
    /// Layers are still to be enumerated or backed up, but the run has an older format, which this program does not
    /// continue.
    #[error(
        "this run is not solved: there is still to {} layers {} to {}, and it has an older format; finish it with version \
         0.1, or solve anew in another place", .0.phase.name(), .0.first, .0.last
    )]
    OlderFormat(Segment),
}
