//! Whole layers, by the kernels of the solver. This crate has none: they are handed in.

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
    /// Which states there are, of the layers whose reach the run does not store.
    pub reach: Items,
    /// The values of the states of all these layers.
    pub values: Items,
}

/// A step that a [`LayerSolver`] has done with a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayerStep {
    /// Its states were found, since the run does not store them.
    Enumerated,
    /// Its states have values.
    BackedUp,
}

/// Whether what follows a step is still wanted; asked after each.
pub type WantedStep<'a> = &'a (dyn Fn(LayerStep, Layer) -> bool + Sync);

/// Backs up whole layers that a run does not store.
pub trait LayerSolver: Send + Sync {
    /// Backs up a range of layers, and gives what it found of those up to `highest`. The values of the next two layers
    /// above the range must be stored, as far as there are any. Layers whose reach is not stored are enumerated first,
    /// from the next two layers below whose reach is. The threads are those of the rayon pool that this is called in.
    /// After each step `goes_on` is asked; if it says no, the result is `None`.
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

    /// Bytes of memory that backing up a layer should have, beside what is given in the end.
    fn bytes(&self, layer: Layer) -> u64;
}

/// Layers that a [`LayerSolver`] has worked out.
#[derive(Default, Debug)]
pub(super) struct SolvedLayers {
    pub(super) layers: BTreeSet<Layer>,
    /// Those among them whose reach the run does not store.
    pub(super) lost: BTreeSet<Layer>,
    pub(super) items: LayerItems,
}

impl SolvedLayers {
    /// Releases what is below a layer.
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

    /// Which entries of a part are reachable, row by row; `None` where none is, or where the run itself stores that.
    pub(super) fn states(&self, key: ItemKey, parts: Parts) -> Result<Option<Vec<u64>>, ReadError> {
        Ok(self.items.reach.get(&key).map(|item| parts.reach_rows(key, item)).transpose()?)
    }
}
