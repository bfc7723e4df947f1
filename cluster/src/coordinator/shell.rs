//! A coordinator's process: opens a store, and runs the parts of the coordinator until it stops.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use exact2048_coordinator::cluster::{Cluster, ClusterConfig, EpochId, Secret, Secrets, Submission};
use exact2048_storage::Location;
use parking_lot::Mutex;
use rand::Rng;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::driver::{Driver, Pending};
use super::estimates::Estimates;
use super::known::Known;
use super::ledger::Ledger;
use super::observe;
use super::queue::Queue;
use crate::random::generator;

/// A coordinator. It carries out the orders of the pure code, and answers the requests of clients.
pub struct Shell {
    pub(super) driver: Arc<Driver>,
    pub(super) ledger: Ledger,
    pub(super) estimates: Arc<Estimates>,
    pub(super) store: Location,
    /// Orders that wait for [`run`](Self::run).
    pending: Mutex<Option<Pending>>,
    /// Interval of the pure code's clock.
    step: Duration,
}

impl Shell {
    /// Takes over a store and resumes the jobs of its queue. Blocks on the store. `stop` is cancelled when another
    /// coordinator takes the store over.
    ///
    /// A run is opened at its job's turn, so this call only reads the queue.
    ///
    /// # Errors
    ///
    /// Errors of opening the queue, including [`QueueError::Owned`](super::QueueError::Owned) if another coordinator on
    /// this machine has the queue open.
    pub fn open(store: Location, config: ClusterConfig, stop: CancellationToken) -> Result<Arc<Self>> {
        let mut generator = generator()?;
        let secrets = Secrets::new(move || Secret::new(generator.random()));
        let (queue, jobs) = Queue::open(&store)?;
        tracing::info!(%store, fence = queue.fence, jobs = jobs.len(), "took over the store");
        // The numbers of epochs are above 0, because workers use 0 for no epoch.
        let (first_epoch, step) = (EpochId::first_of(queue.fence), config.lease / 5);
        let cluster = Cluster::new(first_epoch, config, secrets, Duration::ZERO);
        let (driver, pending) = Driver::new(cluster, stop);
        let driver = Arc::new(driver);
        jobs.into_iter().try_for_each(|job| restore(&driver, &store, job))?;
        driver.with(|state, now| state.cluster.tick(now));
        let ledger = Ledger::new(Arc::clone(&driver), queue);
        let (estimates, pending) = (Arc::default(), Mutex::new(Some(pending)));
        Ok(Arc::new(Self { driver, ledger, estimates, store, pending, step }))
    }

    /// Starts the parts of the coordinator, which end when the coordinator stops. The returned task then finishes the
    /// work under way. Must be called within a runtime.
    pub(super) fn run(self: &Arc<Self>) -> JoinHandle<()> {
        tokio::spawn(Arc::clone(&self.driver).keep_time(self.step));
        tokio::spawn(self.ledger.clone().keep_watch());
        let (shell, pending) = (Arc::clone(self), self.pending.lock().take());
        tokio::spawn(async move {
            let Some(Pending { work, news }) = pending else { return };
            tokio::join!(shell.ledger.clone().note_jobs(news), shell.carry_out(work));
        })
    }

    /// Publishes the state of the cluster as metrics.
    pub fn record_metrics(&self) {
        let states = self.driver.with(|state, _| state.cluster.states());
        observe::record(&self.driver.snapshot(), states);
    }
}

/// Hands a job of the queue to the cluster.
fn restore(driver: &Driver, store: &Location, queued: Submission) -> Result<()> {
    let location = store.child(&queued.job.0)?;
    let known = Known::new(queued.params.clone(), queued.disk_limit, location)?;
    Ok(driver.with(|state, now| {
        state.jobs.insert(queued.job.clone(), known);
        state.cluster.restore(now, queued)
    })?)
}
