//! Access to the queue for all parts of a coordinator. Each access checks that this coordinator still owns the store.
//!
//! The ends and the progress of jobs are written to the queue, so the next coordinator need not open their runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{JobId, JobSummary, Refusal, StoreCheck};
use exact2048_net::status::unavailable;
use exact2048_net::text::with_causes;
use exact2048_storage::ErrorKind;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_blocking;
use tonic::Status;

use super::AppendError;
use super::driver::Driver;
use super::queue::Queue;
use super::queue_records::{JobOutcome, QueueRecord};
use super::statuses::{of_panic, of_run};
use crate::wire::refusal_status;

/// Interval at which the coordinator checks that no other one has taken over.
///
/// Appends would notice a takeover, but only when there is something to append.
const CONFIRM: Duration = Duration::from_secs(10);

/// Pause before a failed write to the queue is repeated.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// The queue of a coordinator.
#[derive(Clone)]
pub(super) struct Ledger {
    pub driver: Arc<Driver>,
    queue: Arc<Mutex<Queue>>,
    /// Held during a change of the queue.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl Ledger {
    pub fn new(driver: Arc<Driver>, queue: Queue) -> Self {
        Self { driver, queue: Arc::new(Mutex::new(queue)), changing: Arc::default() }
    }

    /// Waits for the turn to change the queue. Only one change has the turn at a time.
    pub async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.changing).lock_owned().await
    }

    /// Makes a change of the queue in its turn, and completes it even if the caller disconnects. Otherwise queue and
    /// cluster could differ.
    pub async fn in_turn<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let turn = self.turn().await;
        let carried = tokio::spawn(async move {
            let _turn = turn;
            change.await
        });
        carried.await.unwrap_or_else(|error| Err(of_panic(&error)))
    }

    /// Writes a record to the queue.
    pub async fn note(&self, record: QueueRecord) -> Result<(), Status> {
        self.ask(move |ledger| ledger.append(&record)).await
    }

    /// Requires that the store is in its place. Otherwise the absence of a run would prove nothing.
    pub async fn require_store(&self) -> Result<(), Status> {
        self.ask(Self::confirm).await
    }

    /// Asks the queue on another thread for a client. Stops this coordinator if it is fenced off.
    async fn ask(
        &self,
        ask: impl FnOnce(&Self) -> Result<(), AppendError> + Send + 'static,
    ) -> Result<(), Status> {
        let ledger = self.clone();
        match spawn_blocking(move || ask(&ledger)).await.map_err(|error| of_panic(&error))? {
            Ok(()) => Ok(()),
            Err(AppendError::Foreign(what)) => Err(Status::internal(what)),
            Err(AppendError::Fenced(reason)) => {
                self.driver.fence(reason);
                Err(refusal_status(&Refusal::Fenced))
            }
            // The queue was written before, so the file system is read-only by now, or permissions have changed.
            Err(AppendError::Failed(error)) if error.kind() == ErrorKind::Refused => {
                Err(unavailable(with_causes(&error)))
            }
            Err(AppendError::Failed(error)) => Err(of_run(&error)),
        }
    }

    /// Writes a record to the queue. Blocks on the store.
    pub fn append(&self, record: &QueueRecord) -> Result<(), AppendError> {
        self.queue.lock().append(record)
    }

    /// Requires that this coordinator owns the store. Blocks on the store.
    pub fn confirm(&self) -> Result<(), AppendError> {
        self.queue.lock().confirm()
    }

    /// Checks that the store is in its place and writable; `None` if another coordinator owns it. Blocks on the store.
    pub fn check_store(&self) -> Option<StoreCheck> {
        let found = self.queue.lock().require_store();
        match found {
            Ok(()) => Some(StoreCheck::There),
            Err(AppendError::Fenced(reason)) => {
                self.driver.fence(reason);
                None
            }
            Err(error) => Some(StoreCheck::Away(with_causes(&error))),
        }
    }

    /// Checks regularly that no other coordinator has taken over.
    pub async fn keep_watch(self) {
        let stop = &self.driver.stop;
        while stop.run_until_cancelled(tokio::time::sleep(CONFIRM)).await.is_some() {
            let ledger = self.clone();
            match spawn_blocking(move || ledger.confirm()).await {
                Ok(Ok(())) => {}
                Ok(Err(AppendError::Fenced(reason))) => self.driver.fence(reason),
                Ok(Err(error)) => {
                    let error = with_causes(&error);
                    tracing::warn!(error, "cannot check ownership of the store");
                    self.driver.with(|state, now| state.cluster.store_is_away(now, error));
                }
                Err(error) => tracing::error!(%error, "cannot check ownership of the store"),
            }
        }
    }

    /// Writes the ends and progress of jobs until the coordinator stops, and retries failed writes. At the end, writes the
    /// progress that is not written yet.
    pub async fn note_jobs(self, mut news: UnboundedReceiver<JobId>) {
        let driver = &self.driver;
        let (mut waiting, mut written) = (BTreeSet::new(), BTreeMap::new());
        loop {
            let next = if waiting.is_empty() {
                driver.stop.run_until_cancelled(news.recv()).await
            } else {
                let soon = tokio::time::sleep(NOTE_AGAIN);
                tokio::select! {
                    next = news.recv() => Some(next),
                    () = soon => Some(waiting.first().cloned()),
                    () = driver.stop.cancelled() => None,
                }
            };
            let Some(Some(job)) = next else { break };
            waiting.insert(job.clone());
            match self.note_job(&job).await {
                Ok(progress) => {
                    waiting.remove(&job);
                    written.remove(&job);
                    written.extend(progress.map(|progress| (job, progress)));
                }
                Err(status) => tracing::warn!(%job, error = status.message(), "cannot write the queue"),
            }
        }
        for (job, before) in written {
            let now = driver.with(|state, _| state.cluster.job_summary(&job).cloned());
            if driver.fenced.get().is_none()
                && now.is_some_and(|now| now != before)
                && let Err(status) = self.note_job(&job).await
            {
                tracing::warn!(%job, error = status.message(), "cannot write the last progress of a job to the queue");
            }
        }
    }

    /// Writes the end of a job to the queue, or its progress. Returns the progress.
    async fn note_job(&self, job: &JobId) -> Result<Option<JobSummary>, Status> {
        let _turn = self.turn().await;
        let found = self.driver.with(|state, _| {
            let outcome = JobOutcome::of(state.cluster.job_state(job)?);
            Some((outcome, state.cluster.job_summary(job)?.clone()))
        });
        // The job may have been forgotten in the meantime.
        let Some((outcome, summary)) = found else { return Ok(None) };
        let job = job.clone();
        if let Some(outcome) = outcome {
            self.note(QueueRecord::Ended { job, outcome, summary }).await?;
            return Ok(None);
        }
        self.note(QueueRecord::Progress { job, summary: summary.clone() }).await?;
        Ok(Some(summary))
    }
}
