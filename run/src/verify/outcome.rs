//! Results, problems and progress of a check.

use exact2048_game::Layer;
use exact2048_storage::{Place, StorageError};

/// Largest number of problems that a check reports for one layer, or for the shards. Further problems usually have the
/// same cause.
pub(super) const MOST_PROBLEMS: usize = 8;

/// A fault of the run.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file is missing, damaged, or belongs to another run.
    #[error(transparent)]
    File(#[from] StorageError),
    /// The files are intact, but their contents are wrong.
    #[error("{file}{}: {what}: expected {expected}, found {found}", at(*.offset))]
    Content {
        /// The file with the contents, or the folder of the journal.
        file: Place,
        /// Offset in the file of the frame with the contents; `None` if the problem is not in a single frame.
        offset: Option<u64>,
        /// The wrong property.
        what: String,
        /// The expected content.
        expected: String,
        /// The content found.
        found: String,
    },
}

impl Problem {
    /// Whether a file cannot be read now. Such a problem does not show a fault of the run.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::File(error) if error.blames().is_none())
    }
}

fn at(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" at byte {offset}"))
}

/// Counts of the data checked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Checked {
    /// Shards read.
    pub shards: u64,
    /// Bytes of these shards.
    pub bytes: u64,
    /// Frames of these shards.
    pub frames: u64,
    /// Layers whose states were checked.
    pub layers: u64,
    /// States whose successors were looked up, up to symmetry.
    pub states: u64,
    /// Afterstates whose spawns were looked up, up to symmetry.
    pub afterstates: u64,
    /// Stored values that were computed again and compared.
    pub values: u64,
    /// Those of these values that were compared by their bounds only, because the values above them are rounded.
    pub values_by_bound: u64,
    /// Stored values that could not be computed again, because the values above them are not committed.
    pub values_left_out: u64,
    /// Stored best moves that were computed again and compared.
    pub best_moves: u64,
    /// Stored best moves that could not be computed again, because the values above them are not committed.
    pub best_moves_left_out: u64,
    /// Stored values of a sample that could not be computed again, because the computation needs more memory than
    /// allowed.
    pub values_too_far: u64,
    /// Compared answers of the oracle about states whose values are not stored.
    pub answers: u64,
    /// Committed ranges whose fingerprint was compared.
    pub fingerprints: u64,
    /// The fingerprint of the run, if all of its states were checked.
    pub fingerprint: Option<u128>,
}

impl Checked {
    /// Adds the counts of another part of a sample.
    pub(super) fn add_sampled(&mut self, other: &Self) {
        self.values += other.values;
        self.values_by_bound += other.values_by_bound;
        self.states += other.states;
        self.values_too_far += other.values_too_far;
        self.answers += other.answers;
        self.best_moves += other.best_moves;
    }
}

/// The result of a check: it passed if there are no problems and it was not stopped.
#[derive(Debug, Default)]
pub struct CheckOutcome {
    /// Counts of the data checked up to the end, or up to the layer with the first problem.
    pub checked: Checked,
    /// The problems found.
    pub problems: Vec<Problem>,
    /// Whether the caller stopped the check before its end.
    pub stopped: bool,
    /// The lowest layer that was checked completely.
    pub done_down_to: Option<Layer>,
}

/// Progress of a check. Any thread may report it, so reports may be slightly out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckProgress {
    /// The number of bytes of shards that are read.
    Bytes(u64),
    /// All layers of the span down to this layer are checked. They have this number of states.
    Layer(Layer, u64),
    /// The progress of a sample.
    Sample {
        /// The number of checked values.
        checked: u64,
        /// The number of values in the sample.
        count: u64,
        /// The number of processed states. Each state counts twice: when it is listed and when it is valued.
        states: u64,
    },
}
