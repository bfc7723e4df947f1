//! Estimates from the parameters of a job, cached because they take seconds for large boards.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use exact2048_coordinator::cluster::LeastMemory;
use exact2048_coordinator::{PassCost, Workload};
use exact2048_game::Params;
use exact2048_worker::{Tuning, least_memory_bytes};
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinError, spawn_blocking};

/// Numbers of a worker's threads for which the least memory is estimated. A number between two of them needs as much
/// memory as the higher one.
const THREADS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Maximum number of cached estimates. One more drops all of them.
const KEPT: usize = 64;

/// Estimated needs of a job.
#[derive(Clone, Debug)]
pub struct JobEstimate {
    /// Least memory of a worker.
    pub least_memory: Arc<LeastMemory>,
    /// Size of each layer.
    pub workload: Arc<Workload>,
    /// Estimated cost of the passes.
    pub cost: Arc<PassCost>,
}

/// Cached estimates, by the parameters as JSON.
#[derive(Debug, Default)]
pub struct Estimates {
    /// Finished estimates and those under way. Callers with equal parameters wait for an estimate under way.
    kept: Mutex<HashMap<String, Arc<OnceLock<JobEstimate>>>>,
    /// Locked during an estimate for a client.
    for_clients: Arc<tokio::sync::Mutex<()>>,
}

impl Estimates {
    /// Estimates the needs of a job. New parameters cost up to several seconds of one thread.
    pub fn of(&self, params: &Params) -> JobEstimate {
        self.place_of(params).get_or_init(|| work_out(params)).clone()
    }

    /// Estimates the needs of a job for a client. Estimates for clients run one at a time, so that many requests occupy
    /// only one core. If the caller gives up before its turn, its estimate never starts.
    ///
    /// # Errors
    ///
    /// A panic of the estimate.
    pub async fn for_client(self: Arc<Self>, params: Params) -> Result<JobEstimate, JoinError> {
        let turn = self.turn().await;
        let estimate = spawn_blocking(move || {
            let _turn = turn;
            self.of(&params)
        });
        estimate.await
    }

    /// Waits for the turn to make an estimate for a client.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.for_clients).lock_owned().await
    }

    fn place_of(&self, params: &Params) -> Arc<OnceLock<JobEstimate>> {
        let name = serde_json::to_string(params).unwrap_or_default();
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT && !kept.contains_key(&name) {
            kept.clear();
        }
        Arc::clone(kept.entry(name).or_default())
    }
}

fn work_out(params: &Params) -> JobEstimate {
    let by_threads = THREADS.map(|threads| (threads, least_memory_bytes(params, threads as usize)));
    let least_memory = Arc::new(LeastMemory::new(by_threads.to_vec()));
    let (workload, cost) = (Workload::new(params), PassCost::new(params, Tuning::DENSE_ROWS));
    JobEstimate { least_memory, workload: Arc::new(workload), cost: Arc::new(cost) }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn equal_parameters_are_estimated_once() {
        let params = |board: &str| Params::small(board);
        let estimates = Estimates::default();
        let first = estimates.of(&params("3x3"));
        assert!(Arc::ptr_eq(&first.workload, &estimates.of(&params("3x3")).workload));
        assert!(!Arc::ptr_eq(&first.workload, &estimates.of(&params("3x2")).workload));
        assert!(first.least_memory.bytes(1) > 0);
    }

    #[test]
    fn equal_estimates_at_the_same_time_are_made_once() {
        let params = Params::small("3x3");
        let (estimates, together) = (Estimates::default(), Barrier::new(4));
        let ask = || {
            together.wait();
            estimates.of(&params)
        };
        let all: Vec<JobEstimate> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|estimate| Arc::ptr_eq(&estimate.workload, &all[0].workload)));
    }
}
