//! Results, problems and progress of a check.

use exact2048_game::Layer;
use exact2048_storage::{Place, StorageError};

/// Most reported problems of one layer, or of the shards. More of them have the same cause.
pub(super) const MOST_PROBLEMS: usize = 8;

/// A fault of the run.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file is missing, damaged or another's.
    #[error(transparent)]
    File(#[from] StorageError),
    /// The files are intact, and their contents are wrong.
    #[error("{file}{}: {what}: expected {expected}, found {found}", at(*.offset))]
    Content {
        /// The file with the contents, or the folder of the journal.
        file: Place,
        /// Offset of the frame with the contents in the file, if it is a single frame.
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
    /// Their bytes.
    pub bytes: u64,
    /// Their frames.
    pub frames: u64,
    /// Layers gone through.
    pub layers: u64,
    /// States whose successors were looked up, up to symmetry.
    pub states: u64,
    /// Afterstates whose spawns were looked up, up to symmetry.
    pub afterstates: u64,
    /// Stored values that were computed again and compared.
    pub values: u64,
    /// Stored values that could not be computed again, because those above them are not committed.
    pub values_left_out: u64,
    /// Stored best moves that were computed again and compared.
    pub best_moves: u64,
    /// Stored best moves that could not be computed again, because the values above them are not committed.
    pub best_moves_left_out: u64,
    /// Stored values of a sample that could not be computed again, because what they follow from takes more memory than
    /// allowed.
    pub values_too_far: u64,
    /// Answers of the oracle about states whose values are not stored, that were compared.
    pub answers: u64,
    /// Committed ranges whose fingerprint was compared.
    pub fingerprints: u64,
    /// The fingerprint of the run, where all of it was gone through.
    pub fingerprint: Option<u128>,
}

impl Checked {
    /// Adds what was checked of another part of a sample.
    pub(super) fn add_sampled(&mut self, other: &Self) {
        self.values += other.values;
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
    /// Whether it was asked to stop before it was done.
    pub stopped: bool,
    /// The lowest layer that was checked completely.
    pub done_down_to: Option<Layer>,
}

/// Progress of a check. Any thread may report it, so reports may be slightly out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckProgress {
    /// This many bytes of the shards are read.
    Bytes(u64),
    /// All states down to this layer are checked; this many so far.
    Layer(Layer, u64),
    /// Values of a sample that are checked, how many it has, and the states that were worked on for them: first listed and
    /// then valued, each time counted.
    Sample {
        /// Values that are checked.
        checked: u64,
        /// Values that the sample has.
        count: u64,
        /// States that were worked on.
        states: u64,
    },
}
