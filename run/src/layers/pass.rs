//! Passes through whole layers of a run that is there already, by the kernels: all lanes of a layer side by side, one layer
//! after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{Archive, Run, ShardArchive};
use exact2048_storage::{ScratchPlace, ShardKind};
use exact2048_worker::{
    BlockEngine, BlockTask, Holding, Outcome, Sink, Tuning, WorkerError, new_block_engine,
};
use parking_lot::Mutex;

use super::archive::{SpanArchive, packed};

/// Of what was worked out of a span of layers, one part in this many of the memory limit stays in memory.
const FRAMES_OF: usize = 8;

/// Function that is called for each lane of a layer; the number is how many other threads may help.
type OfLane<'a, T> = &'a (dyn Fn(Lane, usize) -> Result<T, WorkerError> + Sync);

/// A worker on the shards of a run, and on what it has worked out beside them.
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
    Layer::FIRST.to(run.params().last_layer()).filter(is_lost).collect()
}

impl LayerPasses {
    /// Passes through the layers of a run with these parameters. What does not fit the memory waits in scratch files.
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

    /// Whether it is not stored which states a layer has.
    pub fn is_lost(&self, layer: Layer) -> bool {
        self.lost.binary_search(&layer).is_ok()
    }

    /// How many lanes there are.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Calls `of_lane` for each lane that may have boards in a layer, side by side; gives the results in the order of
    /// the lanes.
    pub fn for_lanes<T: Send>(&self, layer: Layer, of_lane: OfLane<'_, T>) -> Result<Vec<T>, WorkerError> {
        let is_there = |lane: &Lane| {
            let (first, last) = layer_range(&self.params, *lane);
            (first..=last).contains(&layer)
        };
        let lanes: Vec<Lane> = self.lanes.iter().copied().filter(is_there).collect();
        let (helpers, next) = (rayon::current_num_threads() - 1, AtomicUsize::new(0));
        let found = Mutex::new(Vec::new());
        // Threads that wait for pieces of a block must not take up another block: that one might wait for the memory which
        // they hold. Hence no parallel iterator.
        rayon::broadcast(|_| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(&lane) = lanes.get(number) else { break };
                let of_this = of_lane(lane, helpers);
                found.lock().push((number, of_this));
            }
        });
        let mut found = found.into_inner();
        found.sort_unstable_by_key(|&(number, _)| number);
        found.into_iter().map(|(_, of_lane)| of_lane).collect()
    }

    /// Enumerates those layers of a span again whose reach is not stored; that of the two layers below the lowest of
    /// them must be stored. After each of them `goes_on` is asked; the result says whether it never said no.
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

    /// Backs up a layer. The two layers above it must have been backed up just before, or be stored.
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

    /// Releases the tables of lanes all of whose layers lie below one.
    pub fn release_lanes_below(&self, layer: Layer) {
        let is_over = |lane: &&Lane| layer_range(&self.params, **lane).1 < layer;
        self.lanes.iter().filter(is_over).for_each(|&lane| self.worker.release(Holding::Lane(lane)));
    }
}
