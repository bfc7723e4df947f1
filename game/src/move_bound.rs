//! How many moves a game can still take on average, proved from the parameters and the value of a state.
//!
//! `docs/dev/error-bound.md` proves both bounds. The first is what the tile bound leaves: every move adds to the tile sum.
//! The second needs the expected score: a game of many moves scores much, and no player expects more than the value.

use crate::layer::{Layer, SpawnKind};
use crate::objective::Objective;
use crate::params::{Params, tile_bound_board};
use crate::rules::exponent_potential;

/// Slopes of lines below the potential of boards, as a function of their tile sum: from 1 to this one. A board of tiles
/// 2^e has a potential of e − 1 times its sum.
const MOST_SLOPE: usize = 15;

/// The expected number of moves that are still to come, at most, whatever the player does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveBound {
    last_layer: Layer,
    /// Mean growth of the tile sum a move.
    growth: f64,
    /// Mean growth of the potential in a move that is not scored: that of a spawned 4.
    unscored: f64,
    /// For each slope the height of the line at tile sum 0; `None` where values are no scores.
    heights: Option<[f64; MOST_SLOPE]>,
}

impl MoveBound {
    pub(crate) fn new(params: &Params) -> Self {
        let spawn4 = params.spawn4.probability();
        let [two, four] = SpawnKind::ALL.map(|spawn| f64::from(spawn.tile()));
        Self {
            last_layer: params.last_layer(),
            growth: two + (four - two) * spawn4,
            unscored: SpawnKind::Four.gift() as f64 * spawn4,
            heights: (params.objective == Objective::Score)
                .then(|| std::array::from_fn(|i| height(params, i as u64 + 1) as f64)),
        }
    }

    /// The most expected moves from a state of `layer` on whose value W (score to come and potential) is off by at most
    /// `error` for each of these moves.
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

/// The highest line of a slope that is nowhere above the potential of a board within the tile bound, at tile sum 0.
fn height(params: &Params, slope: u64) -> i64 {
    let above = |e: u8| exponent_potential(e) as i64 - (slope << e) as i64;
    tile_bound_board(params).map(|most| (1..=most).map(above).min().unwrap_or(0).min(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Spawn4;
    use crate::params::Precision;

    fn move_bound(board: &str, objective: &str) -> MoveBound {
        let (board, objective) = (board.parse().unwrap(), objective.parse().unwrap());
        let params = Params::new(board, objective, Spawn4::default(), Precision::Bits32, None).unwrap();
        MoveBound::new(&params)
    }

    /// Every board of a size that the tile bound allows, as sum and potential, against every line.
    #[test]
    fn lines_are_below_the_potential_of_every_board() {
        let params =
            Params::new("3x2".parse().unwrap(), Objective::Score, Spawn4::default(), Precision::Bits32, None)
                .unwrap();
        let mut boards = vec![(0, 0, 0)];
        for most in tile_bound_board(&params) {
            let with = |&(sum, potential, largest): &(u64, u64, u8)| {
                // From the largest tile down, so that each multiset comes once.
                (0..=most).filter(move |&e| largest == 0 || e <= largest).map(move |e| {
                    (sum + if e == 0 { 0 } else { 1 << e }, potential + exponent_potential(e), e.max(1))
                })
            };
            boards = boards.iter().flat_map(with).collect();
        }
        let mut touched = 0;
        for slope in 1..=MOST_SLOPE as u64 {
            let height = height(&params, slope);
            let above =
                |&(sum, potential, _): &(u64, u64, u8)| potential as i64 - (slope * sum) as i64 - height;
            assert!(boards.iter().all(|board| above(board) >= 0), "{slope}");
            touched += usize::from(boards.iter().any(|board| above(board) == 0));
        }
        assert_eq!(touched, MOST_SLOPE, "no line could be higher");
    }

    #[test]
    fn few_moves_are_left_where_little_is_to_be_scored() {
        let moves = move_bound("4x3", "score");
        assert!((moves.most(Layer(4), 180_000.0, 0.0) - 7443.6).abs() < 0.1);
        assert!((moves.most(Layer(4), 50_724.26, 0.0) - 2643.7).abs() < 0.1);
        assert_eq!(moves.most(Layer(16_380), 180_000.0, 0.0), 0.0);
        // The probability of winning says nothing about how many moves there are.
        let moves = move_bound("3x3", "reach:512");
        assert!((moves.most(Layer(4), 0.0, 0.0) - 1016.0 / 2.2).abs() < 1e-9);
    }
}
