//! What follows games of perfect play, and how far it is.

use exact2048_game::{Discount, Objective, Params, Spawner};
use exact2048_solution::{QueryError, Run};

use crate::outcome::PlayStatistics;

/// Chances below this are not followed unless told otherwise.
pub const LEAST_FOLLOWED: f64 = 1e-18;

/// Whether a run's values are what games with random spawns are worth in the mean, as a score or a chance of a tile.
/// Runs with a discount, the worst spawns or chances to lose have no statistics.
#[must_use]
pub fn has_usual_rules(params: &Params) -> bool {
    let is_loss = matches!(params.objective, Objective::Lose { .. });
    !is_loss && params.discount == Discount::NONE && params.spawner == Spawner::Random
}

/// How far the statistics are.
#[derive(Clone, Copy, Debug)]
pub struct StatsProgress {
    /// The layer that was worked on last: layers come several times, since which moves are best is found downward.
    pub layer: u32,
    /// The last layer that there can be.
    pub last_layer: u32,
    /// States that games came to so far.
    pub states: u64,
    /// The share of the work that is done.
    pub share: f64,
}

/// Follows games of perfect play through a solved run. Crates that read runs link no kernels of the solver: a program
/// that has them hands them in by this trait.
///
/// Perfect play makes in each state the best move that a run of best moves would store: of equal ones the first, of the
/// image of the board that is stored. The result is the same whatever the threads, which are those of the rayon pool that
/// this is called in, and whatever the run keeps.
pub trait FollowPlay: Send + Sync {
    /// Statistics of a run with [usual rules](has_usual_rules); boards that games come to with a chance below
    /// `least_chance` are left out.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`].
    fn follow(
        &self,
        least_chance: f64,
        progress: &mut dyn FnMut(StatsProgress),
    ) -> Result<PlayStatistics, QueryError>;
}

/// Makes what follows games through a run, within `memory_bytes` bytes of memory.
pub type FollowerOfRun = fn(run: &Run, memory_bytes: u64) -> Result<Box<dyn FollowPlay>, QueryError>;
