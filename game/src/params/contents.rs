//! The contents of a run: the layers, values and moves that it stores.

use crate::kept::KeptLayers;
use crate::layer::Layer;
use crate::value_step::ValueStep;

/// Contents of a run: the layers, values and moves that it stores. The contents change no value and no count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunContents {
    pub(super) until: Option<Layer>,
    pub(super) kept: KeptLayers,
    pub(super) best_moves: bool,
    pub(super) value_step: Option<ValueStep>,
}

/// Least number of layers from one checkpoint of a run with rounded values to the next.
///
/// The values of two layers are packed twice for each checkpoint. With fewer layers, that would take a notable share of
/// the time.
const LEAST_CHECKPOINT_PERIOD: u32 = 16;

impl RunContents {
    /// Last layer of a run that only enumerates; `None` for a run that enumerates and solves the whole game.
    pub fn until(&self) -> Option<Layer> {
        self.until
    }

    /// Whether the run only enumerates, and stores no value.
    pub fn enumerates_only(&self) -> bool {
        self.until.is_some()
    }

    /// Layers whose values are stored.
    pub fn kept(&self) -> KeptLayers {
        self.kept
    }

    /// Whether the best move of every state of every layer is stored.
    pub fn stores_best_moves(&self) -> bool {
        self.best_moves
    }

    /// Step to which stored values are rounded; `None` if they are stored with all their bits.
    pub fn value_step(&self) -> Option<ValueStep> {
        self.value_step
    }

    /// Whether a range of backed-up layers may end in a layer, because the rest of the pass follows from the values
    /// that are stored then.
    ///
    /// Every cut is such a layer. If values are rounded, only some cuts are: their values are also stored with all
    /// bits, in a checkpoint, until the next range is committed.
    pub fn is_resumable(&self, layer: Layer) -> bool {
        self.kept.is_cut(layer)
            && (self.value_step.is_none() || (layer.0 / Layer::STEP).is_multiple_of(self.checkpoint_period()))
    }

    /// Returns the lowest layer that is resumable and not below `layer`. It may lie above the last layer of the run.
    pub fn next_resumable(&self, layer: Layer) -> Layer {
        let mut cut = self.kept.next_cut(layer);
        while !self.is_resumable(cut) {
            cut = self.kept.next_cut(cut.up(1));
        }
        cut
    }

    /// Whether a checkpoint may hold the values of a layer with all their bits.
    pub fn is_in_checkpoint(&self, layer: Layer) -> bool {
        let is_resumable = |layer: Layer| self.is_resumable(layer);
        self.value_step.is_some() && (is_resumable(layer) || layer.down(1).is_some_and(is_resumable))
    }

    /// Whether a range of backed-up layers that begins with this layer is committed with a checkpoint.
    pub fn has_checkpoint(&self, first: Layer) -> bool {
        self.value_step.is_some() && first > Layer::FIRST && self.is_resumable(first)
    }

    /// Number of layers from one possible checkpoint to the next: a multiple of the period of the stored layers.
    fn checkpoint_period(&self) -> u32 {
        LEAST_CHECKPOINT_PERIOD.next_multiple_of(self.kept.period())
    }

    /// Returns the contents with other stored layers.
    #[must_use]
    pub fn with_kept(self, kept: KeptLayers) -> Self {
        Self { kept, ..self }
    }

    /// Whether the run keeps the reachability of a layer's states. It does if it stores their values or best moves, or
    /// if it only enumerates.
    pub fn stores_reachability(&self, layer: Layer) -> bool {
        self.enumerates_only() || self.stores_values_or_moves(layer)
    }

    /// Whether the solve stores values or best moves of a layer.
    pub fn stores_values_or_moves(&self, layer: Layer) -> bool {
        self.best_moves || self.kept.keeps(layer)
    }
}

/// Contents of a run that solves the whole game and stores the values of these layers, with all their bits.
impl From<KeptLayers> for RunContents {
    fn from(kept: KeptLayers) -> Self {
        Self { until: None, kept, best_moves: false, value_step: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint holds two layers of one range, so ranges need two layers.
    #[test]
    fn rounded_runs_have_checkpoints_in_some_cuts() {
        for (kept, sums) in [
            ("4", vec![32, 64, 96, 128]),
            ("all", vec![32, 64, 96, 128]),
            ("3", vec![36, 72, 108]),
            ("5", vec![40, 80, 120]),
            ("3/7", vec![42, 84, 126]),
            ("16", vec![32, 64, 96, 128]),
            ("starts", vec![]),
        ] {
            let kept: KeptLayers = kept.parse().unwrap();
            let exact = RunContents::from(kept);
            let rounded = RunContents { value_step: Some("1/4".parse().unwrap()), ..exact };
            let layers = || Layer(4).to(Layer(130));
            let resumable: Vec<u32> = layers().filter(|&l| rounded.is_resumable(l)).map(|l| l.0).collect();
            assert_eq!(resumable, sums, "{kept}");
            assert!(resumable.iter().all(|&sum| kept.is_cut(Layer(sum))));
            let checkpoint = |&l: &Layer| rounded.is_in_checkpoint(l);
            let both: Vec<u32> = sums.iter().flat_map(|&sum| [sum, sum + 2]).collect();
            assert_eq!(layers().filter(checkpoint).map(|l| l.0).collect::<Vec<_>>(), both, "{kept}");
            assert!(layers().all(|l| !exact.is_in_checkpoint(l) && exact.is_resumable(l) == kept.is_cut(l)));
            for sum in sums {
                assert_eq!(rounded.next_resumable(Layer(sum)), Layer(sum));
                assert!(rounded.next_resumable(Layer(sum + 2)) > Layer(sum));
            }
        }
    }
}
