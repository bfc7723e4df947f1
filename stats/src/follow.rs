//! Interface of the solver's follower of perfect play, and its progress.

use exact2048_game::{Discount, Game, Spawner};
use exact2048_solution::{QueryError, Run};

use crate::outcome::PlayStatistics;

/// Smallest probability that is followed by default.
pub const LEAST_FOLLOWED: f64 = 1e-18;

/// Whether a game's values are the mean score of random games, or the probability of a tile.
///
/// Runs with a discount, worst-case spawns or probabilities of losing have no statistics.
#[must_use]
pub fn has_usual_rules(game: &Game) -> bool {
    let is_random = game.discount() == Discount::NONE && game.spawner() == Spawner::Random;
    is_random && game.objective().is_mean_of_games()
}

/// Progress of the statistics.
#[derive(Clone, Copy, Debug)]
pub struct StatsProgress {
    /// The layer processed last. Layers occur several times, because a downward pass finds the best moves.
    pub layer: u32,
    /// The highest layer possible.
    pub last_layer: u32,
    /// Number of states that games have reached so far.
    pub states: u64,
    /// The completed share of the work.
    pub share: f64,
}

/// Follows games of perfect play through a solved run.
///
/// Crates that read runs do not link the kernels of the solver, so a program with kernels passes them through this trait.
///
/// In each state, perfect play makes the best move that a run with best moves would store. Of several best moves, it makes
/// the first on the stored image of the board. Following uses the threads of the caller's rayon pool. The result depends
/// neither on the threads nor on the layers that the run keeps.
pub trait FollowPlay: Send + Sync {
    /// Computes the statistics of a run with [usual rules](has_usual_rules).
    ///
    /// Leaves out boards that games reach with a probability below `least_chance`.
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

/// Creates a follower of games through a run that uses at most `memory_bytes` bytes of memory.
pub type FollowerOfRun = fn(run: &Run, memory_bytes: u64) -> Result<Box<dyn FollowPlay>, QueryError>;
