//! What is worked out from the parameters of a job, once for the same ones: it takes seconds for large boards.

use std::collections::HashMap;
use std::sync::Arc;

use exact2048_coordinator::cluster::LeastMemory;
use exact2048_coordinator::{PassCost, Workload};
use exact2048_game::Params;
use exact2048_worker::{Tuning, least_memory_bytes};
use parking_lot::Mutex;

/// Numbers of threads of a worker for which the least memory is worked out. A number in between needs what the next
/// higher one does.
const THREADS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// For how many parameters estimates are kept: when there are more, all of them are dropped.
const KEPT: usize = 64;

/// What a job will take.
#[derive(Clone, Debug)]
pub struct JobEstimate {
    /// Least memory of a worker.
    pub least_memory: Arc<LeastMemory>,
    /// The entries of its layers.
    pub workload: Arc<Workload>,
    /// What its passes cost.
    pub cost: Arc<PassCost>,
}

/// What jobs will take, by their parameters as JSON.
#[derive(Debug, Default)]
pub struct Estimates(Mutex<HashMap<String, JobEstimate>>);

impl Estimates {
    /// What a job will take. Costs up to seconds of one thread for parameters that were not asked for before.
    pub fn of(&self, params: &Params) -> JobEstimate {
        let name = serde_json::to_string(params).unwrap_or_default();
        if let Some(known) = self.0.lock().get(&name) {
            return known.clone();
        }
        let by_threads = THREADS.map(|threads| (threads, least_memory_bytes(params, threads as usize)));
        let least_memory = Arc::new(LeastMemory::new(by_threads.to_vec()));
        let (workload, cost) = (Workload::new(params), PassCost::new(params, Tuning::DENSE_ROWS));
        let estimate = JobEstimate { least_memory, workload: Arc::new(workload), cost: Arc::new(cost) };
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(name, estimate.clone());
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Objective, Precision, Spawn4};

    #[test]
    fn the_same_parameters_are_worked_out_once() {
        let params = |board: &str| {
            let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
            Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap()
        };
        let estimates = Estimates::default();
        let first = estimates.of(&params("3x3"));
        assert!(Arc::ptr_eq(&first.workload, &estimates.of(&params("3x3")).workload));
        assert!(!Arc::ptr_eq(&first.workload, &estimates.of(&params("3x2")).workload));
        assert!(first.least_memory.bytes(1) > 0);
    }
}
