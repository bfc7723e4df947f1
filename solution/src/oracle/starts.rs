//! The values of the starts of the game.

use exact2048_game::value::FutureValue;
use exact2048_game::{Board, Layer, Spawner};

use super::{CostSum, Oracle, QueryError, QuestionLimits};

/// Values of the starts.
#[derive(Debug, Clone, PartialEq)]
pub struct StartValues {
    /// Mean over all starts with their probabilities. If an adversary spawns the tiles, the least value of a start.
    pub expected: f64,
    /// Bound on the absolute error of any of these values.
    pub error_bound: f64,
    /// Mean over the starts in each of the layers 4, 6 and 8, with each ordered placement counted once. If an adversary
    /// spawns the tiles, the least value in the layer. A run from a position has one start and one layer.
    pub by_layer: Vec<(Layer, f64)>,
}

/// A start: its layer, its weight among all, and its value.
struct Start {
    layer: Layer,
    weight: u64,
    value: FutureValue,
}

impl Oracle {
    /// Values of the starts of the game. In fixed point, stored values are summed exactly, and each sum is divided
    /// once.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`].
    pub fn starts(&self) -> Result<StartValues, QueryError> {
        let size = self.params().game().board();
        let (boards, weights): (Vec<Board>, Vec<u64>) =
            self.params().game().starts().into_iter().map(|start| (start.board, start.weight)).unzip();
        let spent = CostSum::default();
        let values =
            self.stored_values(&boards, &QuestionLimits::new(&|| true, self.cones.most_bytes, &spent))?;
        let (mut starts, mut error_bound) = (Vec::with_capacity(boards.len()), 0.0f64);
        for ((board, weight), stored) in boards.into_iter().zip(weights).zip(values) {
            let stored = stored.ok_or_else(|| self.stored.refusal(board))?;
            let layer = Layer(board.tile_sum(size));
            error_bound = self.scale.error_bound(layer, stored).max(error_bound);
            starts.push(Start { layer, weight, value: stored.future_value(self.past(board)) });
        }
        let worth =
            |weighted: &mut dyn Iterator<Item = (FutureValue, u64)>| match self.params().game().spawner() {
                Spawner::Random => self.scale.mean(weighted),
                Spawner::Worst => {
                    self.scale.number(weighted.map(|(value, _)| value).min().unwrap_or_default())
                }
            };
        let layers = self.params().first_layer().to(self.params().game().last_start());
        let of_layer = |layer: Layer| {
            let mut of_layer =
                starts.iter().filter(|start| start.layer == layer).map(|start| (start.value, 1));
            (layer, worth(&mut of_layer))
        };
        let by_layer: Vec<_> = layers.map(of_layer).collect();
        let mut all = starts.iter().filter(|start| start.weight > 0).map(|start| (start.value, start.weight));
        Ok(StartValues { expected: worth(&mut all), error_bound, by_layer })
    }
}
