//! State that a starting coordinator restores: its queue.

use std::sync::Arc;

use anyhow::Result;
use exact2048_coordinator::cluster::{ClusterConfig, Submission};
use exact2048_storage::Location;
use tokio_util::sync::CancellationToken;

use super::queue::Queue;
use super::queue_records::QueuedJob;
use super::shell::{Known, Shell};
use crate::random;

impl Shell {
    /// Takes over a store, and goes on with what is in its queue. Blocks on the store. `stop` is cancelled when another
    /// coordinator takes the store over.
    ///
    /// No run is opened before the turn of its job comes, so that this takes no longer than
    /// reading the queue.
    ///
    /// # Errors
    ///
    /// Those of opening the queue, among them [`QueueError::Owned`](super::QueueError::Owned) if another coordinator on this
    /// machine has it.
    pub fn open(store: Location, config: ClusterConfig, stop: CancellationToken) -> Result<Arc<Self>> {
        let secrets = random::secrets()?;
        let (queue, jobs) = Queue::open(&store)?;
        tracing::info!(%store, fence = queue.fence(), jobs = jobs.len(), "took over the store");
        let shell = Arc::new(Self::new(store, queue, config, secrets, stop));
        jobs.into_iter().try_for_each(|job| shell.restore(job))?;
        shell.with(|state, now| state.cluster.tick(now));
        Ok(shell)
    }

    fn restore(self: &Arc<Self>, queued: QueuedJob) -> Result<()> {
        let QueuedJob { job, params, disk_limit, state, summary, has_run } = queued;
        let known = Known::new(params.clone(), disk_limit, self.store.child(&job.0)?)?;
        let submission =
            Submission { job: job.clone(), params, disk_limit, least_memory: None, state, summary, has_run };
        Ok(self.with(|state, now| {
            state.jobs.insert(job, known);
            state.cluster.restore(now, submission)
        })?)
    }
}
