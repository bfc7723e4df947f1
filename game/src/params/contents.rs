//! The contents of a run: the layers, values and moves that it stores.

use crate::kept::KeptLayers;
use crate::layer::Layer;

/// Contents of a run: the layers, values and moves that it stores. The contents change no value and no count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunContents {
    pub(super) until: Option<Layer>,
    pub(super) kept: KeptLayers,
    pub(super) best_moves: bool,
}

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
