//! Checks a run with code that the solver does not share.
//!
//! This module implements the rules a second time, from their text and from `docs/dev/format.md`. Its methods differ
//! from those of the solver:
//!
//! * Moves and symmetries act on whole boards as packed numbers (`geometry`).
//! * Rows and columns are numbered anew (`layout`).
//! * The bounds of the game (`game`) and the scale of values, means and rounding (`values`) are derived anew.
//! * States are looked up one by one in hash tables (`moves`). The solver's kernels traverse rows of a product
//!   structure instead.
//!
//! The verifier shares these parts with the solver:
//!
//! * opening a run: the manifest, the journal, and the shards of each layer and lane
//!   ([`Catalog`](exact2048_solution::Catalog));
//! * reading shards: headers, index, checksums, Zstandard, XXH3 (the crate `exact2048-storage`);
//! * parsing the parameters in the manifest, and writing boards in messages.
//!
//! So the verifier may miss a mistake in these parts. It misses a mistake in rules, numbering, enumeration or backup
//! only if both implementations have it. The tests of the crate `exact2048-storage` have a second, separate writer of
//! shards.
//!
//! [`Verifier::shards`] reads every byte. [`Verifier::all_states`] reads the layers downward and checks
//!
//! * that every marked entry is in the row and column of its board;
//! * that every image in the row of a marked entry is marked with the same value, so that a query finds each state;
//! * that every successor of a state is a state, and that every state but the starts is a successor;
//! * that the numbers of states and afterstates equal those in the journal;
//! * that every stored value equals the value computed from the state's successors, bit for bit;
//! * that every stored best move is the first move with the largest value;
//! * that the fingerprint of every committed range equals the fingerprint of its states and values.
//!
//! [`Verifier::sample`] checks the values of some randomly drawn states. If many layers are stored, its time does not
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
mod sectors;
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

    /// Checks every committed layer of a span, downward, until a layer has a problem.
    ///
    /// Cost: 1.5 to 5 times as long as the solve of the layers. Memory: see [`Verifier::memory_bytes`].
    pub fn all_states(&self, span: Span) -> CheckOutcome {
        self.in_pool(|| layers::check_states(self, span))
    }

    /// Estimates the largest memory of [`Verifier::all_states`] in bytes, from the counts in the journal.
    pub fn memory_bytes(&self, span: Span) -> u64 {
        layers::memory_bytes(self, span)
    }

    /// Checks `count` stored values, drawn uniformly and with repeats; none if no values are stored.
    ///
    /// Draws only values whose successors' values are committed. If there are at most `count` of them, checks each
    /// value once. Leaves out values whose check needs more than `memory_bytes`.
    ///
    /// Cost: some milliseconds for each value if at most two layers between kept layers are not kept, for a run of any
    /// size. Otherwise about half a microsecond of core time for each state between the values and the next cut. The
    /// check needs 8 bytes of memory for each of these states, and 180 more bytes for each state of the largest layer.
    pub fn sample(&self, count: u64, memory_bytes: u64) -> CheckOutcome {
        sampling::check_sample(self, count, memory_bytes)
    }
}
