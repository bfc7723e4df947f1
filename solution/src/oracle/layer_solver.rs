//! Whole layers by the kernels of the solver, which whoever links them hands in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use exact2048_cone::{self as cone, Progress, SolvedLayer, Values};
use exact2048_game::value::Value;
use exact2048_game::{Board, Layer, Precision};
use exact2048_storage::ItemKey;

use super::layers::value_bytes;
use super::{Asking, Oracle, QueryError};
use crate::archive::ReadError;

/// Values of states as shards hold them: items by their keys.
pub type ValueItems = BTreeMap<ItemKey, Vec<u8>>;

/// Backs up whole layers that a run does not store. What reads runs links no kernels: whoever has them hands them in, with
/// [`Oracle::with_layer_solver`].
pub trait LayerSolver: Send + Sync {
    /// The values of a range of layers, above which two are stored or nothing is. Threads are those of the rayon pool that it
    /// is called in. Asks before each layer whether they are still wanted, and else gives none.
    ///
    /// # Errors
    ///
    /// What of the run cannot be read.
    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        wanted: &(dyn Fn(Layer) -> bool + Sync),
    ) -> Result<Option<ValueItems>, ReadError>;

    /// Bytes that it takes at most while it is at a layer, beside the values that it gives.
    fn bytes(&self, layer: Layer) -> u64;
}

/// Values that a [`LayerSolver`] has worked out.
#[derive(Default)]
pub(super) struct SolvedLayers {
    pub(super) layers: BTreeSet<Layer>,
    pub(super) values: ValueItems,
}

impl Oracle {
    /// The same oracle, which has kernels back up whole layers.
    #[must_use]
    pub fn with_layer_solver(self, solver: Box<dyn LayerSolver>) -> Self {
        Self { layer_solver: Some(solver), ..self }
    }

    /// States of the layers from one on that are not stored, up to the next stored ones.
    pub(super) fn states_between(&self, first: Layer) -> u64 {
        let reader = self.state_reader(&|| true);
        reader.between(first).into_iter().map(|layer| reader.states_of(layer)).sum()
    }

    /// All states of the layers from the first of those that are asked for up to the next stored ones, by the kernels, where
    /// these are at hand and that fits the memory that a cone may take; of the upper layers those are left out that would
    /// take more. Also how many states were backed up.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`], [`QueryError::GivenUp`].
    pub(super) fn solve_layers(
        &self,
        asked: &[(Layer, Board)],
        asking: &Asking<'_>,
    ) -> Result<Option<(cone::Solved, u64)>, QueryError> {
        let (Some(solver), Some(&(lowest, _)), Some(&(highest, _))) =
            (&self.layer_solver, asked.first(), asked.last())
        else {
            return Ok(None);
        };
        let mut reader = self.state_reader(asking.wanted);
        let between = reader.between(lowest);
        let Some(&last) = between.last() else { return Ok(None) };
        let all: u64 = between.iter().map(|&layer| reader.states_of(layer)).sum();
        let values_bytes = value_bytes(&self.params) * all;
        let solver_bytes = between.iter().map(|&layer| solver.bytes(layer)).max().unwrap_or(0);
        let fits = values_bytes + solver_bytes <= asking.cone_bytes;
        if !fits || between.iter().any(|&layer| !self.has_reach(layer)) {
            return Ok(None);
        }
        (asking.progress)(Progress::Up(lowest, 0));
        let goes_on = |layer| {
            let left = lowest.to(layer).map(|layer| reader.states_of(layer)).sum();
            (asking.progress)(Progress::Down(left, all));
            (asking.wanted)()
        };
        let values = solver.back_up(lowest..=last, &goes_on)?.ok_or(QueryError::GivenUp)?;
        let stored: u64 = last.up(1).to(last.up(2)).map(|layer| reader.states_of(layer)).sum();
        asking.spent.add_stored(stored);
        reader.solved = SolvedLayers { layers: between.iter().copied().collect(), values };
        let (mut layers, mut bytes) = (Vec::new(), values_bytes);
        for layer in between {
            bytes += reader.states_of(layer) * (size_of::<Board>() as u64 + value_bytes(&self.params));
            if layer > highest && bytes > asking.cone_bytes {
                break;
            }
            let states = reader.states(layer)?;
            let values = states.values.iter();
            let values = match self.params.precision {
                Precision::Bits32 => Values::Bits32(values.map(|&value| u32::of_stored(value)).collect()),
                Precision::Bits64 => Values::Bits64(values.map(|&value| u64::of_stored(value)).collect()),
            };
            layers.push(SolvedLayer { layer, boards: states.boards.clone().into(), values });
        }
        Ok(Some((cone::Solved::new(layers), all)))
    }
}
