//! Computes the values of whole layers that a run does not store, with the kernels that solve runs.

mod archive;
mod pass;

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use exact2048_coordinator::Workload;
use exact2048_game::{Layer, Params};
use exact2048_solution::{
    Archive, LayerItems, LayerSolver, LayerStep, ReadError, Run, ShardArchive, WantedStep,
};
use exact2048_storage::ShardKind;
use exact2048_worker::{Holding, Sink, Tuning, WorkerError, least_memory_bytes};
use parking_lot::Mutex;

pub(crate) use archive::packed;
pub(crate) use pass::{LayerPasses, lost_layers};

/// Backs up layers of a run that it does not store.
pub fn layer_solver(run: &Run, tuning: Tuning) -> Box<dyn LayerSolver> {
    Box::new(WhenNeeded::new(run, tuning))
}

/// The kernels, which are set up when they are first needed, because most queries do not need them.
struct WhenNeeded {
    params: Params,
    lost: Vec<Layer>,
    shards: Arc<ShardArchive>,
    tuning: Tuning,
    loaded: OnceLock<Loaded>,
}

impl WhenNeeded {
    fn new(run: &Run, tuning: Tuning) -> Self {
        // Only values are requested, also for a run that stores best moves.
        let params = run.params().without_best_moves();
        let (lost, shards) = (lost_layers(run), Arc::clone(run.archive()));
        Self { params, lost, shards, tuning, loaded: OnceLock::new() }
    }

    fn loaded(&self) -> &Loaded {
        self.loaded.get_or_init(|| Loaded {
            workload: Workload::new(&self.params),
            value_bytes: self.params.game().precision().bytes(),
            least_bytes: least_memory_bytes(&self.params, rayon::current_num_threads()),
            passes: Mutex::new(LayerPasses::new(
                self.params.clone(),
                self.lost.clone(),
                &self.shards,
                std::env::temp_dir().into(),
                self.tuning,
            )),
        })
    }
}

impl LayerSolver for WhenNeeded {
    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        highest: Layer,
        goes_on: WantedStep<'_>,
    ) -> Result<Option<LayerItems>, ReadError> {
        self.loaded().back_up(layers, highest, goes_on).map_err(ReadError::from)
    }

    fn bytes(&self, layer: Layer) -> u64 {
        self.loaded().bytes(layer)
    }
}

/// Kernels that are set up.
struct Loaded {
    workload: Workload,
    value_bytes: u64,
    /// The least memory that the kernels need, in bytes.
    least_bytes: u64,
    /// Locked during the work on a range, because a range releases blocks of whole layers.
    passes: Mutex<LayerPasses>,
}

impl Loaded {
    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        highest: Layer,
        goes_on: WantedStep<'_>,
    ) -> Result<Option<LayerItems>, WorkerError> {
        let passes = self.passes.lock();
        let (first, last) = layers.into_inner();
        let found = enumerate(&passes, first, last, goes_on).and_then(|was_wanted| {
            if was_wanted { back_up(&passes, first, last, highest, goes_on) } else { Ok(None) }
        });
        passes.worker.release(Holding::All);
        passes.archive.release_all();
        passes.release_lanes_below(first);
        found
    }

    fn bytes(&self, layer: Layer) -> u64 {
        // The states of this layer and the two above it, and the afterstates of this layer. If they do not fit into
        // memory, some are moved to files.
        let entries = self.workload.entries(layer, layer.up(3)) + self.workload.entries(layer, layer.up(1));
        self.least_bytes + ((entries * self.value_bytes as f64) as u64).min(self.least_bytes)
    }
}

/// Enumerates the layers of a range whose reach is not stored.
///
/// The enumeration begins above the nearest two lower layers with stored reach. Returns `false` if `goes_on` stopped
/// it.
fn enumerate(
    passes: &LayerPasses,
    first: Layer,
    last: Layer,
    goes_on: WantedStep<'_>,
) -> Result<bool, WorkerError> {
    let Some(lowest_lost) = first.to(last).find(|&layer| passes.is_lost(layer)) else { return Ok(true) };
    let is_stored = |layer: Option<Layer>| layer.is_none_or(|layer| !passes.is_lost(layer));
    let can_begin = |layer: &Layer| is_stored(layer.down(1)) && is_stored(layer.down(Layer::RISE));
    let lowest = passes.first_layer();
    let begin = lowest.to(lowest_lost).rev().find(can_begin).unwrap_or(lowest);
    passes.enumerate(begin, last, &mut |layer| {
        // A layer leads only to the two layers above it, which are enumerated now. So its reach is no longer needed.
        if let Some(passed) = layer.down(Layer::RISE).filter(|&passed| passed < first) {
            passes.archive.release(passed);
        }
        goes_on(LayerStep::Enumerated, layer)
    })
}

/// Backs up a range of layers. Returns the items of its layers up to `highest`, or `None` if `goes_on` stopped it.
fn back_up(
    passes: &LayerPasses,
    first: Layer,
    last: Layer,
    highest: Layer,
    goes_on: WantedStep<'_>,
) -> Result<Option<LayerItems>, WorkerError> {
    let mut found = LayerItems::default();
    for layer in first.to(last).rev() {
        if layer > highest {
            passes.back_up(layer, Sink::Nothing, &|_| Ok(()))?;
        } else {
            let items = passes.back_up(layer, Sink::Items, &|outcome| Ok(outcome.items))?;
            found.values.extend(items.into_iter().flatten());
            for key in passes.archive.keys(ShardKind::Reach, layer) {
                let item = passes.archive.read(ShardKind::Reach, key)?;
                found.reach.extend(item.map(|item| (key, item)));
            }
        }
        passes.archive.release(layer.up(Layer::RISE));
        if !goes_on(LayerStep::BackedUp, layer) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}
