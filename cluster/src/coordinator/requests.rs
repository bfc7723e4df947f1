//! Requests of clients to a coordinator.
//!
//! A change is checked, then written to the queue, then made. So a confirmed change survives a restart, and a refused
//! change leaves no trace.
//!
//! A request changes nothing before its turn. If the caller gives up, the request is dropped and has no effect. In its
//! turn the request runs in a separate task, so queue and cluster agree whatever the caller does.

use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{
    ClusterError, JobId, JobState, JobSummary, LeastMemory, Resumption, Submission,
};
use exact2048_game::{OpenChoices, Params};
use exact2048_net::status::with_reason;
use exact2048_proto::v1;
use exact2048_solution::{Run, RunError};
use exact2048_storage::{Location, RunDir};
use tokio::task::spawn_blocking;
use tonic::{Code, Status};

use super::job_run::Contents;
use super::known::{Known, State};
use super::queue_records::{QueueRecord, new_job};
use super::recheck;
use super::shell::Shell;
use super::statuses::{gone, of_panic, of_run};
use crate::wire::{cluster_status, is_run_unknown, run_unknown_status};

impl Shell {
    /// Puts a job in the queue.
    ///
    /// # Errors
    ///
    /// A status of the gRPC call.
    pub(super) async fn submit(
        self: Arc<Self>,
        mut job: Submission,
        open: OpenChoices,
        must_exist: bool,
    ) -> Result<v1::Job, Status> {
        job.least_memory = Some(self.least_memory_of(job.params.clone()).await?);
        self.check(&job)?;
        self.ledger.require_store().await?;
        let location = self.store.child(&job.job.0).map_err(|error| of_run(&error.into()))?;
        // This precedes the turn of the request, because reading a long journal in a remote store takes minutes.
        let found = look(location.clone(), job, open, must_exist).await?;
        self.ledger.clone().in_turn(self.enqueue(found, location)).await
    }

    /// Writes a job to the queue, and hands it to the cluster.
    async fn enqueue(self: Arc<Self>, submission: Submission, location: Location) -> Result<v1::Job, Status> {
        self.check(&submission)?;
        let Submission { job, params, disk_limit, has_run, .. } = submission.clone();
        let known =
            Known::new(params.clone(), disk_limit, location).map_err(|error| of_run(&error.into()))?;
        self.ledger.note(QueueRecord::Submitted { job: job.clone(), params, disk_bytes: disk_limit }).await?;
        if has_run {
            self.ledger.note(QueueRecord::Begun { job: job.clone() }).await?;
        }
        self.decide(|state, now| {
            state.jobs.insert(job.clone(), known);
            state.cluster.enqueue(now, submission)
        })?;
        self.decided(&job)
    }

    /// Refuses a job that cannot be put in the queue.
    fn check(&self, job: &Submission) -> Result<(), Status> {
        self.decide(|state, now| state.cluster.check(now, &job.job, job.least_memory.as_deref()))
    }

    /// Stops a job.
    ///
    /// # Errors
    ///
    /// A status of the gRPC call.
    pub(super) async fn cancel(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        let ledger = self.ledger.clone();
        let change = async move {
            self.decide(|state, _| state.cluster.check_cancel(&job))?;
            self.ledger.note(QueueRecord::Cancelled { job: job.clone() }).await?;
            self.decide(|state, now| state.cluster.cancel(now, &job))?;
            self.decided(&job)
        };
        ledger.in_turn(change).await
    }

    /// Returns a stopped job to the queue. The shards of a finished job are reread first, and it
    /// returns only if one of them is lost or damaged.
    ///
    /// # Errors
    ///
    /// A status of the gRPC call.
    pub(super) async fn resume(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        if self.decide(|state, _| state.cluster.resumption(&job))? == Resumption::Requeue {
            self.require_resumable(&job).await?;
        }
        let ledger = self.ledger.clone();
        let change = async move {
            if self.decide(|state, _| state.cluster.resumption(&job))? == Resumption::Reread {
                recheck::begin(&self.ledger, &job)?;
                return self.decided(&job);
            }
            self.ledger.note(QueueRecord::Resumed { job: job.clone() }).await?;
            self.decide(|state, now| state.cluster.resume(now, &job))?;
            self.decided(&job)
        };
        ledger.in_turn(change).await
    }

    /// Requires that a stopped job fits a worker, if there are workers, and that its run is readable.
    async fn require_resumable(&self, job: &JobId) -> Result<(), Status> {
        let found = self.driver.with(|state, _| {
            let known = state.jobs.get(job)?;
            Some((known.location.clone(), known.params.clone(), state.cluster.has_run(job)))
        });
        let Some((location, params, must_exist)) = found else { return Ok(()) };
        self.ledger.require_store().await?;
        let least = self.least_memory_of(params.clone()).await?;
        self.decide(|state, now| state.cluster.learn_memory(now, job, least))?;
        let job_without_limit = new_job(job.clone(), params, None);
        let looked = look(location, job_without_limit, OpenChoices::default(), must_exist).await;
        match looked {
            Err(status) if is_run_unknown(&status) => {
                Err(with_reason(Code::FailedPrecondition, "NO_RUN", gone(job), []))
            }
            looked => looked.map(drop),
        }
    }

    /// Removes an ended job from the queue. Its run stays.
    ///
    /// # Errors
    ///
    /// A status of the gRPC call.
    pub(super) async fn forget(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        let ledger = self.ledger.clone();
        let change = async move {
            let last = self.driver.job_view(&job)?;
            self.decide(|state, _| state.cluster.check_forget(&job))?;
            self.ledger.note(QueueRecord::Forgotten { job: job.clone() }).await?;
            self.decide(|state, now| {
                state.jobs.remove(&job);
                state.cluster.forget(now, &job)
            })?;
            self.driver.board.mark_stale();
            Ok(last)
        };
        ledger.in_turn(change).await
    }

    /// Asks the pure code for a decision.
    fn decide<T>(
        &self,
        ask: impl FnOnce(&mut State, Duration) -> Result<T, ClusterError>,
    ) -> Result<T, Status> {
        self.driver.with(ask).map_err(|error| cluster_status(&error))
    }

    /// Returns a job after a decision about it. The next snapshot shows the decision too.
    fn decided(&self, job: &JobId) -> Result<v1::Job, Status> {
        self.driver.board.mark_stale();
        self.driver.job_view(job)
    }

    /// Estimates the memory need of a job, while other requests are answered.
    async fn least_memory_of(&self, params: Params) -> Result<Arc<LeastMemory>, Status> {
        let estimate = Arc::clone(&self.estimates).for_client(params).await;
        estimate.map(|estimate| estimate.least_memory).map_err(|error| of_panic(&error))
    }
}

/// Checks for an existing run in the place of a job's run, and returns the job as the run decides it. Parameters that do
/// not change results may then differ from the requested ones. `open` has the choices that the run decides. If
/// `must_exist` is set, a missing run is an error. Changes nothing.
async fn look(
    location: Location,
    job: Submission,
    open: OpenChoices,
    must_exist: bool,
) -> Result<Submission, Status> {
    let found = spawn_blocking(move || {
        if RunDir::find(&location)?.is_none() {
            RunDir::require_unused(&location)?;
            return Ok((!must_exist).then_some(job));
        }
        let run = Run::open(&location)?;
        let params = run.continued_as(&job.params.clone().resuming(run.params(), open))?;
        let found = Submission { params, has_run: true, ..job };
        // A finished run is accepted under any limit, because it keeps its contents.
        if run.missing().is_empty() && run.absent()?.is_empty() {
            return Ok(Some(Submission { state: JobState::Done, summary: summary_of(&run), ..found }));
        }
        run.require_own_format()?;
        Ok(Some(found))
    });
    let found = found.await.map_err(|error| of_panic(&error))?.map_err(|error: RunError| of_run(&error))?;
    found.ok_or_else(run_unknown_status)
}

/// Summarizes a finished run.
fn summary_of(run: &Run) -> JobSummary {
    let bytes = Contents::of(run).stored.committed_bytes;
    let states = run.layer_counts().iter().map(|counts| counts.states).sum();
    let states_total = (!run.params().contents().enumerates_only()).then_some(states);
    let fingerprint = run.fingerprint();
    JobSummary { states_done: states, states_total, done: 1.0, bytes, fingerprint, ..JobSummary::default() }
}
