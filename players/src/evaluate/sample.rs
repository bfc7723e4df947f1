//! Estimates of a player's expected result and losses, from sampled games.

use std::sync::Arc;

use exact2048_game::Board;
use exact2048_solution::Oracle;
use rayon::prelude::*;

use super::EvaluateError;
use super::losses::{ChosenMove, LossTable};
use crate::engine::Engine;
use crate::game::{GameId, Rules, play};
use crate::player::{PlayerError, PlayerSpec};
use crate::stats::{Stats, interval};

/// Number of games that one player object plays in sequence.
const BATCH: u64 = 16;

/// Number of batches to play before their results are summed. The results of a batch take at most about ten kilobytes.
const BATCHES_AT_ONCE: usize = 256;

/// Results of a player's games.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Statistics of the games.
    pub stats: Stats,
    /// Total loss of a game's moves: the mean, and half the width of its 95% confidence interval.
    ///
    /// The expected total loss is exactly the player's shortfall from perfect play. For good players, the total loss
    /// varies less than the score. If [few games](Self::lossy_games) have a loss, the interval is unreliable.
    pub lost: (f64, f64),
    /// Number of games in which a move had a loss.
    pub lossy_games: u64,
    /// Losses of the moves.
    pub losses: LossTable,
    /// Description of the first failure of the player.
    pub first_failure: Option<String>,
}

/// Plays games and looks up the value of each move. Calls `played` after each game.
///
/// Uses the threads of the caller's rayon pool, but the result depends on the seed alone. A move costs a few tens of
/// microseconds plus the player's time.
///
/// # Errors
///
/// Errors of the run, and of starting the player. A player that fails during a game causes no error; the game is
/// counted.
pub fn sampled(
    engine: &Engine,
    player: &PlayerSpec,
    oracle: &Arc<Oracle>,
    seed: u64,
    games: u64,
    played: impl Fn() + Sync,
) -> Result<Sample, EvaluateError> {
    let empty = || Found {
        stats: Stats::default(),
        lost: Vec::new(),
        losses: LossTable::new(oracle.params().game().objective()),
        first_failure: None,
    };
    let game = oracle.params().game();
    let rules = Rules { from: game.from(), ..Rules::until(game.winning_exponent()) };
    let batch = |batch: u64| -> Result<Found, EvaluateError> {
        let mut player = player.player(engine, Some(oracle))?;
        let mut found = empty();
        for number in batch * BATCH..games.min((batch + 1) * BATCH) {
            let mut boards = Vec::new();
            let id = GameId { seed, number };
            let (game, failure) = play(engine, id, &mut *player, &rules, |board, _| boards.push(board));
            found.stats.add(&game);
            if let Some(failure) = failure {
                found.first_failure.get_or_insert_with(|| described(number, &failure));
            } else {
                boards.truncate(game.steps.len());
                found.add_moves(engine, oracle, &boards, &game)?;
            }
            played();
        }
        Ok(found)
    };
    let mut all = empty();
    let batches = games.div_ceil(BATCH);
    for first in (0..batches).step_by(BATCHES_AT_ONCE) {
        let some = (first..batches.min(first + BATCHES_AT_ONCE as u64)).into_par_iter();
        for found in some.map(batch).collect::<Vec<_>>() {
            all = all.with(engine, found?);
        }
    }
    let Found { stats, lost, mut losses, first_failure } = all;
    losses.divide(stats.games().max(1));
    let lossy_games = lost.iter().filter(|&&lost| lost > 0.0).count() as u64;
    Ok(Sample { lost: interval(&lost), lossy_games, stats, losses, first_failure })
}

fn described(number: u64, failure: &PlayerError) -> String {
    format!("game {number} ended early: {failure}")
}

/// Results of a batch of games.
struct Found {
    stats: Stats,
    /// Total loss of each game's moves.
    lost: Vec<f64>,
    losses: LossTable,
    first_failure: Option<String>,
}

impl Found {
    fn add_moves(
        &mut self,
        engine: &Engine,
        oracle: &Oracle,
        boards: &[Board],
        game: &crate::PlayedGame,
    ) -> Result<(), EvaluateError> {
        let mut sum = 0.0;
        let evaluations = oracle.evaluate_all(boards, &|| true)?;
        for (evaluation, step) in evaluations.into_iter().zip(&game.steps) {
            let evaluation = evaluation?;
            let (board, direction) = (evaluation.board, step.direction);
            let outcome = evaluation.moves.iter().find(|made| made.direction == direction);
            let Some(outcome) = outcome.and_then(|made| made.outcome) else { continue };
            let loss = (!outcome.is_best).then_some(evaluation.value - outcome.value);
            sum += loss.unwrap_or(0.0);
            let made = ChosenMove { layer: evaluation.layer.0, board, direction, times: 1.0, loss };
            self.losses.add(engine, &made);
        }
        self.lost.push(sum);
        Ok(())
    }

    fn with(mut self, engine: &Engine, mut later: Self) -> Self {
        self.losses.take_in(engine, &later.losses);
        self.lost.append(&mut later.lost);
        self.first_failure = self.first_failure.or(later.first_failure);
        Self { stats: self.stats.with(later.stats), ..self }
    }
}
