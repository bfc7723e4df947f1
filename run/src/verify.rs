//! Checks a run with code that the solver does not share.
//!
//! This module implements the rules a second time, from their text and from `docs/dev/format.md`. Its methods differ
//! from those of the solver:
//!
//! * Moves and symmetries act on whole boards as packed numbers (`geometry`).
//! * Rows and columns are numbered anew (`layout`).
//! * The bounds of the game (`game`) and the scale of values, means and rounding (`values`) are derived anew.
//! * States are looked up one by one in hash tables (`moves`). The solver's kernels traverse rows of a product structure
//!   instead.
//!
//! Shared with the solver are
//!
//! * opening a run: manifest, journal, which shard covers which layer and lane ([`Catalog`](exact2048_solution::Catalog));
//! * reading shards: headers, index, checksums, Zstandard, XXH3 (the crate `exact2048-storage`);
//! * the parameters as they are parsed from the manifest, and the text of boards in messages.
//!
//! So a mistake in those could go unnoticed here; a mistake in rules, numbering, enumeration or backing up
//! could only if it was made twice. The crate `exact2048-storage` has a second, separate writer in its tests.
//!
//! [`Verifier::shards`] reads every byte. [`Verifier::all_states`] goes through the layers downward and checks
//!
//! * that every marked entry is in the row and column of its board;
//! * that every image in the row of a marked entry is marked with the same value, so that a query finds each state;
//! * that every successor of a state is a state, and that every state but the starts is a successor;
//! * that the numbers of states and afterstates are those of the journal;
//! * that every stored value is the one that the values of the state's successors give, bit for bit;
//! * that every stored best move is the first of those that these values make best;
//! * that the fingerprint of every committed range is that of its states and values.
//!
//! [`Verifier::sample`] checks the values of some states drawn by chance, which takes no longer for a large run where many
//! layers are stored.

mod cone;
mod fingerprint;
mod game;
mod geometry;
mod items;
mod journal;
mod layer_reader;
mod layers;
mod layout;
mod listed;
mod moves;
mod policy;
mod sampling;
mod span;
mod table;
mod values;
mod whole;

use std::sync::atomic::{AtomicBool, Ordering};

use exact2048_game::Layer;
use exact2048_solution::Run;
use exact2048_storage::{Place, StorageError};
use rayon::ThreadPool;

use game::CheckedGame;
pub use span::Span;

/// The most problems that are reported of one layer, or of the shards; more of them would say nothing new.
const MOST_PROBLEMS: usize = 8;

/// Something that is not as it must be.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file is missing, damaged or another's.
    #[error(transparent)]
    File(#[from] StorageError),
    /// The files are whole, and what they say is wrong.
    #[error("{file}{}: {what}: expected {expected}, found {found}", at(*.offset))]
    Content {
        /// The file that says it, or the folder of the journal.
        file: Place,
        /// Where the frame that says it starts in the file, where it is one frame's.
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
    /// Whether the problem is only that a file cannot be read now, which says nothing of the run.
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
    fn add_sampled(&mut self, other: &Self) {
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

/// How far a check is. Any thread may report it, and so reports may be a little out of order.
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

/// Checks a run.
pub struct Verifier<'a> {
    run: &'a Run,
    game: CheckedGame,
    pool: ThreadPool,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(CheckProgress) + Sync),
}

impl<'a> Verifier<'a> {
    /// A verifier with this number of threads. It ends early once `stop` is set.
    ///
    /// # Errors
    ///
    /// Where the threads cannot be made.
    pub fn new(
        run: &'a Run,
        threads: usize,
        stop: &'a AtomicBool,
        progress: &'a (dyn Fn(CheckProgress) + Sync),
    ) -> std::io::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(std::io::Error::other)?;
        Ok(Self { run, game: CheckedGame::new(run.params()), pool, stop, progress })
    }

    /// All layers that the run can have, committed or not.
    pub fn all_layers(&self) -> Span {
        Span { first: Layer::FIRST, last: Layer(self.game.last_layer()) }
    }

    /// The number of states of a span that the journal knows of.
    pub fn known_states(&self, span: Span) -> u64 {
        let counts = self.run.layer_counts().into_iter();
        counts.filter(|counts| span.contains(counts.layer)).map(|counts| counts.states).sum()
    }

    /// The bytes of the shards that have a layer of a span, by the journal.
    pub fn known_bytes(&self, span: Span) -> u64 {
        let shards = self.run.catalog().shards();
        shards.iter().filter(|shard| span.touches(&shard.commit)).map(|shard| shard.record.bytes).sum()
    }

    fn run(&self) -> &Run {
        self.run
    }

    fn game(&self) -> &CheckedGame {
        &self.game
    }

    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs on the threads of the verifier.
    fn in_pool<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }
}
