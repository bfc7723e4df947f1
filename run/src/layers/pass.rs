//! Passes through whole layers of an existing run with the kernels, layer by layer, with all lanes of a layer in
//! parallel.

use std::sync::Arc;

use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{Archive, Run, ShardArchive};
use exact2048_storage::{ScratchPlace, ShardKind};
use exact2048_worker::{
    BlockEngine, BlockTask, Holding, Outcome, Sink, Tuning, WorkerError, new_block_engine,
};

use super::archive::{SpanArchive, packed};
use crate::lanes::{OfLane, for_lanes};

/// Divisor of the memory limit that gives the limit for frames of computed items.
const FRAMES_OF: usize = 8;

/// A worker that reads the shards of a run and the items that it has computed in addition.
pub struct LayerPasses {
    params: Params,
    lanes: Vec<Lane>,
    /// Layers whose reach is not stored, ascending.
    lost: Vec<Layer>,
    pub archive: Arc<SpanArchive>,
    pub worker: Arc<dyn BlockEngine>,
}

/// The layers of a run whose reach is not stored, ascending.
pub fn lost_layers(run: &Run) -> Vec<Layer> {
    let is_lost = |layer: &Layer| !run.catalog().covers(ShardKind::Reach, layer.0);
    run.params().layers().filter(is_lost).collect()
}

impl LayerPasses {
    /// Prepares passes through a run with these parameters. Data that does not fit into memory is moved to scratch
    /// files.
    pub fn new(
        params: Params,
        lost: Vec<Layer>,
        shards: &Arc<ShardArchive>,
        scratch: ScratchPlace,
        tuning: Tuning,
    ) -> Self {
        let most_bytes = tuning.limit_bytes / FRAMES_OF;
        let archive = Arc::new(SpanArchive::new(Arc::clone(shards), scratch.clone(), most_bytes));
        let worker = new_block_engine(&params, tuning, scratch, Arc::clone(&archive) as Arc<dyn Archive>);
        Self { lanes: lanes(&params), params, lost, archive, worker }
    }

    /// Whether the reach of a layer is not stored.
    pub fn is_lost(&self, layer: Layer) -> bool {
        self.lost.binary_search(&layer).is_ok()
    }

    /// The lowest layer of the run.
    pub fn first_layer(&self) -> Layer {
        self.params.first_layer()
    }

    /// The number of lanes.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Calls `of_lane` in parallel for each lane that may have boards in a layer. Returns the results in the order of
    /// the lanes.
    pub fn for_lanes<T: Send>(
        &self,
        layer: Layer,
        of_lane: OfLane<'_, T, WorkerError>,
    ) -> Result<Vec<T>, WorkerError> {
        let is_there = |lane: &Lane| {
            let (first, last) = layer_range(&self.params, *lane);
            (first..=last).contains(&layer)
        };
        let lanes: Vec<Lane> = self.lanes.iter().copied().filter(is_there).collect();
        for_lanes(&lanes, of_lane)
    }

    /// Enumerates the layers of a span whose reach is not stored.
    ///
    /// The reach of the two layers below the lowest of them must be stored. Calls `goes_on` after each enumerated
    /// layer. Returns `false` if `goes_on` stopped the enumeration.
    pub fn enumerate(
        &self,
        first: Layer,
        last: Layer,
        goes_on: &mut dyn FnMut(Layer) -> bool,
    ) -> Result<bool, WorkerError> {
        for layer in first.to(last) {
            if self.is_lost(layer) {
                let items = self.for_lanes(layer, &|lane, helpers| {
                    let task = BlockTask::FindStates(Sink::Items);
                    Ok(packed(self.worker.compute(task, layer, lane, helpers)?.items)?)
                })?;
                self.archive.add(ShardKind::Reach, layer, items, self.worker.is_memory_short())?;
                self.for_lanes(layer, &|lane, helpers| {
                    self.worker.compute(BlockTask::FindAfterstates, layer, lane, helpers)
                })?;
                if !goes_on(layer) {
                    return Ok(false);
                }
            }
            if let Some(passed) = layer.down(Layer::RISE) {
                self.worker.release(Holding::States(passed));
                self.worker.release(Holding::Afterstates(passed));
            }
        }
        self.worker.release(Holding::All);
        Ok(true)
    }

    /// Backs up a layer. The values of the two layers above it must be stored, or the caller has just backed them up.
    ///
    /// Calls `take` with the outcome of each lane's states. Returns the results in the order of the lanes.
    pub fn back_up<T: Send>(
        &self,
        layer: Layer,
        sink: Sink,
        take: &(dyn Fn(Outcome) -> Result<T, WorkerError> + Sync),
    ) -> Result<Vec<T>, WorkerError> {
        let above = layer.up(Layer::RISE);
        self.for_lanes(layer, &|lane, helpers| {
            self.worker.compute(BlockTask::BackUpAfterstates, layer, lane, helpers)?;
            self.worker.release(Holding::BlockStates(above, lane));
            Ok(())
        })?;
        self.worker.release(Holding::States(above));
        let found = self.for_lanes(layer, &|lane, helpers| {
            take(self.worker.compute(BlockTask::BackUpStates(sink), layer, lane, helpers)?)
        })?;
        self.worker.release(Holding::Afterstates(layer));
        Ok(found)
    }

    /// Releases the tables of the lanes that have only layers below this one.
    pub fn release_lanes_below(&self, layer: Layer) {
        let is_over = |lane: &&Lane| layer_range(&self.params, **lane).1 < layer;
        self.lanes.iter().filter(is_over).for_each(|&lane| self.worker.release(Holding::Lane(lane)));
    }
}
