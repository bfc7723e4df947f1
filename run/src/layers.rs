//! Values of whole layers that a run does not store, by the kernels that solve runs.

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use exact2048_coordinator::Workload;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, Precision};
use exact2048_solution::{LayerSolver, PartValues, ReadError, Run};
use exact2048_worker::{Tuning, Worker, WorkerError, least_memory_bytes};
use rayon::prelude::*;

/// What backs up layers of a run that it does not store, for [`Oracle::with_layer_solver`].
///
/// Nothing is moved to disk: who asks for whole layers holds them in memory anyway.
///
/// [`Oracle::with_layer_solver`]: exact2048_solution::Oracle::with_layer_solver
pub fn layer_solver(run: &Run) -> Box<dyn LayerSolver> {
    match run.params().precision {
        Precision::Bits32 => Box::new(Kernels::<u32>::new(run)),
        Precision::Bits64 => Box::new(Kernels::<u64>::new(run)),
    }
}

struct Kernels<V> {
    params: Params,
    workload: Workload,
    lanes: Vec<Lane>,
    tables_bytes: u64,
    /// One range at a time: blocks are let go of by layer.
    worker: Mutex<Worker<V>>,
}

impl<V: Value> Kernels<V> {
    fn new(run: &Run) -> Self {
        // Values alone are asked for, also of a run that stores best moves.
        let params = run.params().clone().with_best_moves(false);
        let tuning = Tuning {
            limit_bytes: usize::MAX / 2,
            heap_bytes: || 0,
            dense_rows: Tuning::DENSE_ROWS,
            piece_bytes: Tuning::PIECE_BYTES,
        };
        let worker = Worker::new(&params, tuning, std::env::temp_dir(), run.archive().clone());
        Self {
            workload: Workload::new(&params),
            lanes: lanes(&params),
            tables_bytes: least_memory_bytes(&params, rayon::current_num_threads()),
            worker: Mutex::new(worker),
            params,
        }
    }

    /// The lanes that may have boards in a layer.
    fn lanes_of(&self, layer: Layer) -> Vec<Lane> {
        let is_there = |lane: &Lane| {
            let (first, last) = layer_range(&self.params, *lane);
            (first..=last).contains(&layer)
        };
        self.lanes.iter().copied().filter(is_there).collect()
    }

    fn back_up_layer(&self, worker: &Worker<V>, layer: Layer) -> Result<PartValues, WorkerError> {
        let (lanes, helpers) = (self.lanes_of(layer), rayon::current_num_threads() - 1);
        lanes.par_iter().try_for_each(|&lane| worker.back_up_afterstates(layer, lane, helpers))?;
        worker.release_states(layer.up(2));
        let states = lanes.par_iter().map(|&lane| worker.back_up_items(layer, lane, helpers));
        let items: Vec<_> = states.collect::<Result<_, _>>()?;
        worker.release_afterstates(layer);
        Ok(items.into_iter().flatten().collect())
    }
}

impl<V: Value> LayerSolver for Kernels<V> {
    fn back_up(&self, layers: RangeInclusive<Layer>) -> Result<PartValues, ReadError> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = layers.into_inner();
        let mut values = PartValues::new();
        let found = first.to(last).rev().try_for_each(|layer| {
            values.append(&mut self.back_up_layer(&worker, layer)?);
            Ok(())
        });
        worker.release_all();
        let is_over = |lane: &&Lane| layer_range(&self.params, **lane).1 < first;
        self.lanes.iter().filter(is_over).for_each(|&lane| worker.release_lane(lane));
        found.map(|()| values).map_err(|error| match error {
            WorkerError::Read(error) => error,
            WorkerError::Storage(error) => error.into(),
            WorkerError::Payload(error) => error.into(),
        })
    }

    fn bytes(&self, layer: Layer) -> u64 {
        // States of this layer and the two above, and afterstates of this one.
        let entries = self.workload.entries(layer, layer.up(3)) + self.workload.entries(layer, layer.up(1));
        self.tables_bytes + (entries * size_of::<V>() as f64) as u64
    }
}
