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
//! [`Verifier::sample`] checks the values of some states drawn by chance. If many layers are stored, its time does not
//! depend on the size of the run.

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
mod outcome;
mod policy;
mod sampling;
mod span;
mod table;
mod values;
mod verifier;
mod whole;

pub use outcome::{CheckOutcome, CheckProgress, Checked, Problem};
pub use span::Span;
pub use verifier::Verifier;

impl Verifier<'_> {
    /// Reads every frame of every committed shard that has a layer of a span, and checks each commit of the
    /// journal separately.
    pub fn shards(&self, span: Span) -> CheckOutcome {
        whole::check_shards(self, span)
    }

    /// Checks every committed layer of a span, from the highest down to the first one with a problem.
    ///
    /// Cost: about the time in which the layers were solved. Memory: see [`Verifier::memory_bytes`].
    pub fn all_states(&self, span: Span) -> CheckOutcome {
        self.in_pool(|| layers::check_states(self, span))
    }

    /// Estimates the bytes of memory that [`Verifier::all_states`] takes at most, by the counts of the journal.
    pub fn memory_bytes(&self, span: Span) -> u64 {
        layers::memory_bytes(self, span)
    }

    /// Checks `count` stored values, drawn evenly and with repeats; none if no values are stored.
    ///
    /// Draws only values whose successors' values are committed. If there are at most `count` of them, checks each value
    /// once. Leaves out values that need more than `memory_bytes`.
    ///
    /// Cost: some milliseconds for each value if at most two layers between kept layers are not kept, for a run of any
    /// size. Otherwise about half a microsecond of a core for each state between the values and the next cut. Memory is 8
    /// bytes for each of these states, and 180 more bytes for each state of the largest layer.
    pub fn sample(&self, count: u64, memory_bytes: u64) -> CheckOutcome {
        sampling::check_sample(self, count, memory_bytes)
    }
}
