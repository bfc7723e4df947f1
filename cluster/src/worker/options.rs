//! Settings of a worker.

use std::path::PathBuf;

use exact2048_net::client::ClientOptions;
use exact2048_storage::StoreSettings;
use exact2048_worker::Tuning;

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Address of the coordinator, and the credentials for the coordinator and for other workers.
    pub client: ClientOptions,
    /// Address at which other workers reach this worker.
    pub advertise: String,
    /// Number of threads that compute.
    pub threads: usize,
    /// Memory that this worker may use, in bytes.
    pub memory_bytes: u64,
    /// Settings of the solver, including its use of the memory.
    pub tuning: Tuning,
    /// Settings of stores.
    pub store: StoreSettings,
    /// Folder for the worker's identity and for scratch files.
    pub folder: PathBuf,
}
