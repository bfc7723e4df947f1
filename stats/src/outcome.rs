//! Statistics of perfect play.

use exact2048_game::board::EXPONENTS;
use serde::Serialize;

/// Shares of games that reach a layer and end in it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayerStatistics {
    /// The layer.
    pub layer: u32,
    /// Number of states with a probability of at least the cutoff, up to symmetry. Only these states are *followed*.
    pub states: u64,
    /// Share of games that reach a state of the layer.
    pub reached: f64,
    /// Share of games that end in the layer, by the exponent of their largest tile.
    ///
    /// A game ends with a state that has no legal move, or with the move that makes the target tile.
    pub ended: [f64; EXPONENTS],
}

impl LayerStatistics {
    /// Share of games that end in the layer.
    pub fn ended_in_all(&self) -> f64 {
        self.ended.iter().sum()
    }
}

/// Statistics of perfect play.
#[derive(Clone, PartialEq, Debug)]
pub struct PlayStatistics {
    /// The layers that games reach, ascending.
    pub layers: Vec<LayerStatistics>,
    /// Expected score, or the probability of reaching the tile, computed from the probabilities of states.
    pub value: f64,
    /// Bound on the error of `value` from rounding and from probabilities that were not followed.
    pub value_error: f64,
    /// Mean number of moves of a game.
    pub moves: f64,
    /// Bound on the error of `moves`.
    pub moves_error: f64,
    /// The share of games that was not followed. These games may end in any layer, with any tiles.
    pub dropped: f64,
    /// Bound on the relative error of any share from rounding.
    pub rounding: f64,
}

impl PlayStatistics {
    /// Number of followed states, up to symmetry.
    pub fn states(&self) -> u64 {
        self.layers.iter().map(|layer| layer.states).sum()
    }

    /// For each largest tile, the share of games that end with it and the share of games that reach it.
    ///
    /// The exponents of the tiles are in descending order.
    pub fn tiles(&self) -> Vec<(u8, f64, f64)> {
        let ended = |exponent: usize| self.layers.iter().map(|layer| layer.ended[exponent]).sum::<f64>();
        let mut reached = 0.0;
        let share = |exponent: usize| {
            let ended = ended(exponent);
            reached += ended;
            (ended > 0.0).then_some((exponent as u8, ended, reached))
        };
        (1..EXPONENTS).rev().filter_map(share).collect()
    }

    /// Mean and standard deviation of the last layer of a game; `None` if no game was followed to its end.
    pub fn last_layer(&self) -> Option<(f64, f64)> {
        let over_games = |of: &dyn Fn(f64) -> f64| {
            let layers = self.layers.iter();
            layers.map(|layer| layer.ended_in_all() * of(f64::from(layer.layer))).sum::<f64>()
        };
        let all = over_games(&|_| 1.0);
        if all == 0.0 {
            return None;
        }
        let mean = over_games(&|layer| layer) / all;
        let variance = over_games(&|layer| (layer - mean) * (layer - mean)) / all;
        Some((mean, variance.sqrt()))
    }

    /// Lowest layer by which `share` of the completely followed games have ended; `None` without such games.
    pub fn ended_by(&self, share: f64) -> Option<u32> {
        let all: f64 = self.layers.iter().map(LayerStatistics::ended_in_all).sum();
        let mut ended = 0.0;
        let layer = self.layers.iter().find(|layer| {
            ended += layer.ended_in_all();
            all > 0.0 && ended >= share * all
        });
        layer.map(|layer| layer.layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_and_layers_follow_from_the_ends_of_games() {
        let layer = |layer, ended: [(usize, f64); 2]| {
            let mut all = [0.0; EXPONENTS];
            ended.iter().for_each(|&(exponent, share)| all[exponent] = share);
            LayerStatistics { layer, states: 1, reached: 1.0, ended: all }
        };
        let found = PlayStatistics {
            layers: vec![layer(20, [(3, 0.25), (4, 0.25)]), layer(40, [(4, 0.125), (5, 0.375)])],
            value: 0.0,
            value_error: 0.0,
            moves: 0.0,
            moves_error: 0.0,
            dropped: 0.0,
            rounding: 0.0,
        };
        assert_eq!(found.tiles(), [(5, 0.375, 0.375), (4, 0.375, 0.75), (3, 0.25, 1.0)]);
        assert_eq!(found.last_layer(), Some((30.0, 10.0)));
        assert_eq!([0.1, 0.5, 0.51, 1.0].map(|share| found.ended_by(share)), [20, 20, 40, 40].map(Some));
        assert_eq!(found.states(), 2);
        let unended = PlayStatistics { layers: vec![layer(4, [(1, 0.0), (2, 0.0)])], ..found };
        assert_eq!((unended.last_layer(), unended.ended_by(0.5)), (None, None));
    }
}
