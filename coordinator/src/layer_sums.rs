//! Sums over consecutive layers.

use exact2048_game::Layer;

/// Prefix sums of a quantity over the layers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LayerSums(Vec<f64>);

impl LayerSums {
    /// Sums the amounts of all layers of a run, in order.
    pub fn new(amounts: impl IntoIterator<Item = f64>) -> Self {
        let sums = amounts.into_iter().scan(0.0, |sum, amount| {
            *sum += amount;
            Some(*sum)
        });
        Self(std::iter::once(0.0).chain(sums).collect())
    }

    /// Returns the amount in the run's layers from `first` to `end`, excluding `end`.
    pub fn between(&self, first: Layer, end: Layer) -> f64 {
        let below = |layer: Layer| self.0[layer.index().min(self.0.len() - 1)];
        (below(end) - below(first)).max(0.0)
    }

    /// Returns the amount in all layers.
    pub fn whole(&self) -> f64 {
        self.0.last().copied().unwrap_or_default()
    }
}
