//! Callbacks of solving.

use exact2048_game::Layer;
use exact2048_solution::{LayerCounts, Segment};

use crate::member::CrewError;

/// Callbacks for a run that is being solved. Any thread may call them, and they must return soon.
pub trait SolveWatch: Send + Sync {
    /// A segment begins. The `later` segments follow it. `states` has the counts of the enumerated layers.
    fn begins(&self, _segment: Segment, _later: &[Segment], _states: &[LayerCounts]) {}

    /// This many more states are done. `frontier` is the first unfinished layer.
    fn progressed(&self, states: u64, frontier: Layer);

    /// This many more bytes are on the disk.
    fn written(&self, _bytes: u64) {}

    /// The segment has ended.
    fn ends(&self) {}

    /// A shard cannot be read, so it is computed again.
    fn repeats(&self, _error: &CrewError) {}
}
