//! Whole layers, which the kernels of the solver back up. This crate has no kernels; a program passes them to the
//! oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use exact2048_game::Layer;
use exact2048_storage::ItemKey;

use crate::parts::Parts;
use crate::read_error::ReadError;

/// Items as shards hold them, by their keys.
type Items = BTreeMap<ItemKey, Vec<u8>>;

/// Items that a [`LayerSolver`] has computed for some layers.
#[derive(Default, Debug)]
pub struct LayerItems {
    /// The reachable states of the layers whose reach the run does not store.
    pub reach: Items,
    /// The values of the states of all computed layers.
    pub values: Items,
}

/// A step that a [`LayerSolver`] has done with a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayerStep {
    /// The layer was enumerated, because the run does not store its reach.
    Enumerated,
    /// The states of the layer have values.
    BackedUp,
}

/// Whether the next steps are still wanted. The solver asks after each step.
pub type WantedStep<'a> = &'a (dyn Fn(LayerStep, Layer) -> bool + Sync);

/// Backs up whole layers that a run does not store.
pub trait LayerSolver: Send + Sync {
    /// Backs up a range of layers, and returns the items of the layers up to `highest`. The values of the next two
    /// layers above the range must be stored, if the run has such layers. First enumerates layers whose reach is not
    /// stored, from the nearest two layers below with stored reach. Uses the threads of the caller's rayon pool. Calls
    /// `goes_on` after each step; if it returns false, the result is `None`.
    ///
    /// # Errors
    ///
    /// If the run cannot be read.
    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        highest: Layer,
        goes_on: WantedStep<'_>,
    ) -> Result<Option<LayerItems>, ReadError>;

    /// Bytes of memory that the solver should have to back up a layer, without the returned items.
    fn bytes(&self, layer: Layer) -> u64;
}

/// Layers that a [`LayerSolver`] has computed.
#[derive(Default, Debug)]
pub(super) struct SolvedLayers {
    pub(super) layers: BTreeSet<Layer>,
    /// Those of the layers whose reach the run does not store.
    pub(super) lost: BTreeSet<Layer>,
    pub(super) items: LayerItems,
}

impl SolvedLayers {
    /// Removes all layers below a layer.
    pub(super) fn forget(&mut self, layer: Layer) {
        let first = ItemKey { layer: layer.0, ..ItemKey::default() };
        self.layers = self.layers.split_off(&layer);
        self.lost = self.lost.split_off(&layer);
        self.items.reach = self.items.reach.split_off(&first);
        self.items.values = self.items.values.split_off(&first);
    }

    /// The keys of the parts that have states, of a layer whose reach the run does not store.
    pub(super) fn parts_of(&self, layer: Layer) -> impl Iterator<Item = ItemKey> {
        let first = ItemKey { layer: layer.0, ..ItemKey::default() };
        self.items.reach.range(first..).map(|(key, _)| *key).take_while(move |key| key.layer == layer.0)
    }

    /// The reachable entries of a part, row by row; `None` if there are none, or if the run itself stores them.
    pub(super) fn states(&self, key: ItemKey, parts: Parts) -> Result<Option<Vec<u64>>, ReadError> {
        Ok(self.items.reach.get(&key).map(|item| parts.reach_rows(key, item)).transpose()?)
    }
}
