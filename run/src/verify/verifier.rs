//! The verifier's run, threads, stop signal and progress, which all checks share.

use std::sync::atomic::{AtomicBool, Ordering};

use exact2048_game::Layer;
use exact2048_solution::Run;
use rayon::ThreadPool;

use super::game::CheckedGame;
use super::outcome::CheckProgress;
use super::span::Span;

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
    /// If the threads cannot be started.
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
        Span { first: Layer(self.game.first_layer()), last: Layer(self.game.last_layer()) }
    }

    /// The number of states of a span, from the counts in the journal.
    pub fn known_states(&self, span: Span) -> u64 {
        let counts = self.run.layer_counts().into_iter();
        counts.filter(|counts| span.contains(counts.layer)).map(|counts| counts.states).sum()
    }

    /// The bytes of the shards that have a layer of a span, from the journal.
    pub fn known_bytes(&self, span: Span) -> u64 {
        let shards = self.run.catalog().shards();
        shards.iter().filter(|shard| span.touches(&shard.commit)).map(|shard| shard.record.bytes).sum()
    }

    /// The run.
    pub(super) fn run(&self) -> &Run {
        self.run
    }

    /// The rules of the run's game.
    pub(super) fn game(&self) -> &CheckedGame {
        &self.game
    }

    /// The number of threads.
    pub(super) fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Whether the check must end early.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports progress to the caller.
    pub(super) fn report(&self, progress: CheckProgress) {
        (self.progress)(progress);
    }

    /// Runs `work` on the threads of the verifier.
    pub(super) fn in_pool<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }
}
