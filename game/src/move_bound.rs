//! Upper bounds on the expected number of remaining moves, from the parameters and the value of a state.
//!
//! `docs/dev/error-bound.md` proves both bounds. The first follows from the tile bound, because every move adds to the
//! tile sum. The second follows from the expected score: many moves score many points, and no player can expect more
//! points than the value.

use crate::board::exponent_potential;
use crate::layer::{Layer, SpawnKind};
use crate::objective::ValueUnit;
use crate::params::Game;

/// Largest slope of the lines that bound the potential of a board from below, as functions of its tile sum.
///
/// The slopes begin at 1. For comparison, a board of equal tiles 2^e has a potential of e − 1 times its tile sum.
const MOST_SLOPE: usize = 15;

/// Upper bound on the expected number of remaining moves, for any player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveBound {
    last_layer: Layer,
    /// Mean growth of the tile sum per move.
    growth: f64,
    /// Mean unscored growth of the potential per move. Spawned 4s cause this growth.
    unscored: f64,
    /// Height of the line at tile sum 0, for each slope; `None` if values are not scores.
    heights: Option<[f64; MOST_SLOPE]>,
}

impl MoveBound {
    pub(crate) fn new(game: &Game) -> Self {
        let spawn4 = game.spawn4().probability();
        let [two, four] = SpawnKind::ALL.map(|spawn| f64::from(spawn.tile()));
        Self {
            last_layer: game.last_layer(),
            growth: two + (four - two) * spawn4,
            unscored: SpawnKind::Four.unscored_potential() as f64 * spawn4,
            heights: (game.objective().unit() == ValueUnit::Points)
                .then(|| std::array::from_fn(|i| height(game, i as u64 + 1) as f64)),
        }
    }

    /// Returns the bound for a state of `layer` with value W (future score plus potential). `error` bounds the
    /// error of W per remaining move.
    pub fn most(&self, layer: Layer, value: f64, error: f64) -> f64 {
        let by_sum = f64::from(self.last_layer.0.saturating_sub(layer.0)) / self.growth;
        let by_value = self.heights.iter().flatten().zip(1..).filter_map(|(height, slope)| {
            let (slope, sum) = (f64::from(slope), f64::from(layer.0));
            let a_move = slope * self.growth - self.unscored - error;
            (a_move > 0.0).then(|| ((value - slope * sum - height) / a_move).max(0.0))
        });
        by_value.fold(by_sum, f64::min)
    }
}

/// Height, at tile sum 0, of the highest line of a slope that does not exceed the potential of any board within the
/// tile bound.
fn height(game: &Game, slope: u64) -> i64 {
    let above = |e: u8| exponent_potential(e) as i64 - (slope << e) as i64;
    game.tile_bound_board().map(|most| (1..=most).map(above).min().unwrap_or(0).min(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::params::Params;

    fn move_bound(board: &str, objective: &str) -> MoveBound {
        let params = Params::usual(board, objective).build().unwrap();
        MoveBound::new(params.game())
    }

    /// Compares every board within the tile bound, as sum and potential, with every line.
    #[test]
    fn lines_are_below_the_potential_of_every_board() {
        let params = Params::small("3x2");
        let mut boards = vec![(0, 0, 0)];
        for most in params.game().tile_bound_board() {
            let with = |&(sum, potential, largest): &(u64, u64, u8)| {
                // The exponents of a board descend, so each multiset occurs once.
                (0..=most).filter(move |&e| largest == 0 || e <= largest).map(move |e| {
                    (sum + if e == 0 { 0 } else { 1 << e }, potential + exponent_potential(e), e.max(1))
                })
            };
            boards = boards.iter().flat_map(with).collect();
        }
        let mut touched = 0;
        for slope in 1..=MOST_SLOPE as u64 {
            let height = height(params.game(), slope);
            let above =
                |&(sum, potential, _): &(u64, u64, u8)| potential as i64 - (slope * sum) as i64 - height;
            assert!(boards.iter().all(|board| above(board) >= 0), "{slope}");
            touched += usize::from(boards.iter().any(|board| above(board) == 0));
        }
        assert_eq!(touched, MOST_SLOPE, "every line touches the potential of a board");
    }

    #[test]
    fn move_bounds_fall_with_the_expected_score() {
        let moves = move_bound("4x3", "score");
        assert!((moves.most(Layer(4), 180_000.0, 0.0) - 7443.6).abs() < 0.1);
        assert!((moves.most(Layer(4), 50_724.26, 0.0) - 2643.7).abs() < 0.1);
        assert_eq!(moves.most(Layer(16_380), 180_000.0, 0.0), 0.0);
        // The probability of winning gives no bound on the number of moves.
        let moves = move_bound("3x3", "reach:512");
        assert!((moves.most(Layer(4), 0.0, 0.0) - 1016.0 / 2.2).abs() < 1e-9);
    }
}
