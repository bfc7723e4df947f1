//! Checks a run with code that the solver does not share.
//!
//! Shared are the formats on disk and what a row and a column of a block stand for; not shared are
//! the rules, the symmetries' use, backward induction, rounding and the fingerprint. The kernels of the
//! solver work on rows of boards; here every board is moved, spawned into and looked up by itself.
//!
//! [`shards`] reads every byte. [`all_states`] goes through the layers downward and checks for each
//!
//! * that every successor of a state is a state, and that every state but the starts is a successor;
//! * that the numbers of states and afterstates are those of the journal;
//! * that every stored value is the one that the values of the state's successors give, bit for bit;
//! * that the fingerprint of every committed range is that of its states and values.
//!
//! [`sample`] checks the values of some states drawn by chance, which takes no longer for a large run.

mod boards;
mod items;
mod layers;
mod parallel;
mod rules;
mod sampling;
mod stored;
mod whole;

use std::path::PathBuf;

use exact2048_game::Layer;
use exact2048_storage::StorageError;

use crate::{QueryError, Run};
pub use layers::all_states;
pub use sampling::sample;
pub use whole::shards;

/// Problems that are told of one layer, or of the shards; more of the same tell nothing new.
const MOST_PROBLEMS: usize = 8;

/// Something that is not as it must be.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file is missing, damaged or another's.
    #[error(transparent)]
    File(#[from] StorageError),
    /// The files are whole, and what they say is wrong.
    #[error("{}{}: {what}: expected {expected}, found {found}", .file.display(), at(*.offset))]
    Content {
        /// The file that says it.
        file: PathBuf,
        /// Where the frame that says it starts in the file, where it is one frame's.
        offset: Option<u64>,
        /// What is wrong.
        what: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A state could not be looked up.
    #[error(transparent)]
    Query(#[from] QueryError),
}

fn at(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" at byte {offset}"))
}

/// What was checked.
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
    /// The fingerprint, where all of the run was gone through.
    pub fingerprint: Option<u128>,
}

/// The result of a check: it passed if there are no problems.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was checked up to the end, or up to the layer with the first problem.
    pub checked: Checked,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// How far a check is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// So many bytes of the shards are read.
    Bytes(u64),
    /// So many states are checked, down to this layer.
    Layer(Layer, u64),
    /// So many states of a sample are checked.
    Sample(u64),
}

/// The number of states that the journal knows of.
pub fn known_states(run: &Run) -> u64 {
    run.catalog().commits().iter().flat_map(|commit| &commit.layers).map(|counts| counts.states).sum()
}
