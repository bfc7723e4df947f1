//! A coordinator's process: opens a store, and runs the parts of the coordinator until it stops.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use exact2048_coordinator::cluster::{Cluster, ClusterConfig, EpochId, JobId, Secret, Secrets, Submission};
use exact2048_proto::v1;
use exact2048_storage::Location;
use parking_lot::Mutex;
use rand::Rng;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::carry_out::Carrier;
use super::driver::{Driver, Pending};
use super::estimates::Estimates;
use super::known::Known;
use super::ledger::Ledger;
use super::notes::note_jobs;
use super::queue::Queue;
use super::requests::{Requests, WantedJob};
use crate::random::generator;

/// A coordinator.
pub struct Shell {
    pub(super) driver: Arc<Driver>,
    pub(super) ledger: Ledger,
    pub(super) estimates: Arc<Estimates>,
    pub(super) requests: Arc<Requests>,
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
        tracing::info!(%store, fence = queue.fence(), jobs = jobs.len(), "took over the store");
        // The numbers of epochs are above 0, because workers use 0 for no epoch.
        let (first_epoch, step) = (EpochId::first_of(queue.fence()), config.lease / 5);
        let cluster = Cluster::new(first_epoch, config, secrets, Duration::ZERO);
        let (driver, pending) = Driver::new(cluster, stop);
        let driver = Arc::new(driver);
        jobs.into_iter().try_for_each(|job| restore(&driver, &store, job))?;
        driver.with(|state, now| state.cluster.tick(now));
        let ledger = Ledger::new(Arc::clone(&driver), queue);
        let estimates = Arc::<Estimates>::default();
        let requests = Requests::new(Arc::clone(&driver), ledger.clone(), Arc::clone(&estimates), store);
        let (requests, pending) = (Arc::new(requests), Mutex::new(Some(pending)));
        Ok(Arc::new(Self { driver, ledger, estimates, requests, pending, step }))
    }

    /// Starts the parts of the coordinator, which end when the coordinator stops. The returned task then finishes the
    /// work under way. Must be called within a runtime.
    pub(super) fn run(&self) -> JoinHandle<()> {
        tokio::spawn(Arc::clone(&self.driver).keep_time(self.step));
        tokio::spawn(self.ledger.clone().keep_watch());
        let (driver, ledger, estimates) =
            (Arc::clone(&self.driver), self.ledger.clone(), Arc::clone(&self.estimates));
        let pending = self.pending.lock().take();
        tokio::spawn(async move {
            let Some(Pending { work, news }) = pending else { return };
            let carrier = Carrier { driver, ledger: ledger.clone(), estimates };
            tokio::join!(carrier.carry_out(work), note_jobs(ledger, news));
        })
    }

    /// Puts a job in the queue.
    ///
    /// # Errors
    ///
    /// A status of the call `Submit`.
    pub async fn submit(&self, job: JobId, wanted: WantedJob) -> Result<v1::Job, Status> {
        Arc::clone(&self.requests).submit(job, wanted).await
    }

    /// Returns the current state of a job.
    ///
    /// # Errors
    ///
    /// NOT_FOUND.
    pub fn job_view(&self, job: &JobId) -> Result<v1::Job, Status> {
        self.driver.job_view(job)
    }

    /// Publishes the state of the cluster as metrics.
    pub fn record_metrics(&self) {
        self.driver.record_metrics();
    }

    /// Returns why this coordinator stopped working, if another one owns the store.
    #[must_use]
    pub fn fenced(&self) -> Option<&str> {
        self.driver.fenced.get().map(String::as_str)
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
