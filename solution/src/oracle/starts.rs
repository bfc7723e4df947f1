//! The values of the starts of the game.

use exact2048_game::board::Board;
use exact2048_game::value::FutureValue;
use exact2048_game::{Layer, SpawnKind, Spawner, rules};

use super::{CostSum, Oracle, QueryError, QuestionLimits};

/// Values of the starts.
#[derive(Debug, Clone, PartialEq)]
pub struct StartValues {
    /// Mean over all starts with their probabilities. If an adversary spawns the tiles, the least value of a start.
    pub expected: f64,
    /// Bound on the absolute error of any of these values.
    pub error_bound: f64,
    /// Mean over the starts in each of the layers 4, 6 and 8, with each ordered placement counted once. If an adversary
    /// spawns the tiles, the least value in the layer.
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
        let (cells, spawn4) = (self.params().game().cells(), self.params().game().spawn4());
        let weight = |spawn: SpawnKind| u64::from(spawn.weight(spawn4));
        let (boards, spawns): (Vec<Board>, Vec<_>) = rules::starts(self.params().game().board()).unzip();
        let spent = CostSum::default();
        let values =
            self.stored_values(&boards, &QuestionLimits::new(&|| true, self.cones.most_bytes, &spent))?;
        let (mut starts, mut error_bound) = (Vec::with_capacity(boards.len()), 0.0f64);
        for ((board, [first, second]), stored) in boards.into_iter().zip(spawns).zip(values) {
            let stored = stored.ok_or_else(|| self.stored.refusal(board))?;
            let layer = Layer(board.tile_sum(cells));
            error_bound = self.scale.error_bound(layer, stored).max(error_bound);
            starts.push(Start {
                layer,
                weight: weight(first) * weight(second),
                value: stored.future_value(self.past(board)),
            });
        }
        let worth =
            |weighted: &mut dyn Iterator<Item = (FutureValue, u64)>| match self.params().game().spawner() {
                Spawner::Random => self.scale.mean(weighted),
                Spawner::Worst => {
                    self.scale.number(weighted.map(|(value, _)| value).min().unwrap_or_default())
                }
            };
        let layers = Layer::FIRST.to(Layer::LAST_START);
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
