//! Values of whole layers that a run does not store, by the kernels that solve runs.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use exact2048_coordinator::Workload;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, Precision};
use exact2048_solution::{Archive, LayerSolver, ReadError, Run, ShardArchive, ValueItems};
use exact2048_worker::{Tuning, Worker, WorkerError, least_memory_bytes};
use rayon::prelude::*;

/// What backs up layers of a run that it does not store, for [`Oracle::with_layer_solver`].
///
/// Nothing is moved to disk: who asks for whole layers holds them in memory anyway.
///
/// [`Oracle::with_layer_solver`]: exact2048_solution::Oracle::with_layer_solver
pub fn layer_solver(run: &Run) -> Box<dyn LayerSolver> {
    match run.params().precision {
        Precision::Bits32 => Box::new(WhenNeeded::<u32>::new(run)),
        Precision::Bits64 => Box::new(WhenNeeded::<u64>::new(run)),
    }
}

/// Kernels that are set up when they are first asked for: most questions need none.
struct WhenNeeded<V> {
    params: Params,
    archive: Arc<ShardArchive>,
    kernels: OnceLock<Kernels<V>>,
}

impl<V: Value> WhenNeeded<V> {
    fn new(run: &Run) -> Self {
        // Values alone are asked for, also of a run that stores best moves.
        let params = run.params().clone().with_best_moves(false);
        Self { params, archive: Arc::clone(run.archive()), kernels: OnceLock::new() }
    }

    fn kernels(&self) -> &Kernels<V> {
        self.kernels.get_or_init(|| Kernels::new(&self.params, &self.archive))
    }
}

impl<V: Value> LayerSolver for WhenNeeded<V> {
    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        wanted: &(dyn Fn(Layer) -> bool + Sync),
    ) -> Result<Option<ValueItems>, ReadError> {
        self.kernels().back_up(layers, wanted).map_err(|error| match error {
            WorkerError::Read(error) => error,
            WorkerError::Storage(error) => error.into(),
            WorkerError::Payload(error) => error.into(),
        })
    }

    fn bytes(&self, layer: Layer) -> u64 {
        self.kernels().bytes(layer)
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
    fn new(params: &Params, archive: &Arc<ShardArchive>) -> Self {
        let tuning = Tuning {
            limit_bytes: usize::MAX / 2,
            heap_bytes: || 0,
            dense_rows: Tuning::DENSE_ROWS,
            piece_bytes: Tuning::PIECE_BYTES,
        };
        let worker =
            Worker::new(params, tuning, std::env::temp_dir(), Arc::clone(archive) as Arc<dyn Archive>);
        Self {
            params: params.clone(),
            workload: Workload::new(params),
            lanes: lanes(params),
            tables_bytes: least_memory_bytes(params, rayon::current_num_threads()),
            worker: Mutex::new(worker),
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

    fn back_up_layer(&self, worker: &Worker<V>, layer: Layer) -> Result<ValueItems, WorkerError> {
        let (lanes, helpers) = (self.lanes_of(layer), rayon::current_num_threads() - 1);
        lanes.par_iter().try_for_each(|&lane| worker.back_up_afterstates(layer, lane, helpers))?;
        worker.release_states(layer.up(2));
        let states = lanes.par_iter().map(|&lane| worker.back_up_items(layer, lane, helpers));
        let items: Vec<_> = states.collect::<Result<_, _>>()?;
        worker.release_afterstates(layer);
        Ok(items.into_iter().flatten().collect())
    }

    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        wanted: &(dyn Fn(Layer) -> bool + Sync),
    ) -> Result<Option<ValueItems>, WorkerError> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = layers.into_inner();
        let mut values = ValueItems::new();
        let found = first.to(last).rev().try_fold(true, |goes_on, layer| {
            let goes_on = goes_on && wanted(layer);
            if goes_on {
                values.append(&mut self.back_up_layer(&worker, layer)?);
            }
            Ok(goes_on)
        });
        worker.release_all();
        let is_over = |lane: &&Lane| layer_range(&self.params, **lane).1 < first;
        self.lanes.iter().filter(is_over).for_each(|&lane| worker.release_lane(lane));
        found.map(|all| all.then_some(values))
    }

    fn bytes(&self, layer: Layer) -> u64 {
        // States of this layer and the two above, and afterstates of this one.
        let entries = self.workload.entries(layer, layer.up(3)) + self.workload.entries(layer, layer.up(1));
        self.tables_bytes + (entries * size_of::<V>() as f64) as u64
    }
}
