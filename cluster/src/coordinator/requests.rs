//! What clients ask of a coordinator.
//!
//! A change is checked, then written to the queue, then made: what a client was told survives a restart, and what it
//! was refused leaves no trace.

use std::sync::{Arc, Mutex};

use exact2048_coordinator::cluster::{
    ClusterError, JobId, JobState, JobStatus, LeastMemory, Refusal, Status as ClusterStatus,
};
use exact2048_game::Params;
use exact2048_net::status::unavailable;
use exact2048_proto::v1;
use exact2048_run::RunError;
use exact2048_storage::StorageError;
use tokio::task::spawn_blocking;
use tonic::{Code, Status};

use super::AppendError;
use super::job_run::JobRun;
use super::queue::{Queue, QueueRecord};
use super::restore::{Opened, least_memory};
use super::shell::{Known, Shell, lock};
use crate::wire::{cluster_status, job_message, refusal_status, status_with_reason, worker_message};

/// Everything that there is to see of a cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct Overview {
    /// Jobs in order of their turns; those whose runs cannot be opened last.
    pub jobs: Vec<v1::Job>,
    /// Workers in order of their ids.
    pub workers: Vec<v1::Worker>,
}

impl Overview {
    /// One job.
    ///
    /// # Errors
    ///
    /// NOT_FOUND.
    pub fn job(self, job: &JobId) -> Result<v1::Job, Status> {
        let found = self.jobs.into_iter().find(|found| found.name == job.0);
        found.ok_or_else(|| cluster_status(&ClusterError::Unknown(job.clone())))
    }
}

impl Shell {
    /// What the cluster is doing.
    #[must_use]
    pub fn overview(&self) -> Overview {
        self.with(|state, now| {
            let ClusterStatus { jobs, workers, .. } = state.cluster.status(now);
            let message = |status: &JobStatus| Some(known_message(status, state.jobs.get(&status.job)?));
            let unavailable = state.jobs.iter().filter_map(|(job, known)| unavailable_message(job, known));
            Overview {
                jobs: jobs.iter().filter_map(message).chain(unavailable).collect(),
                workers: workers.iter().map(worker_message).collect(),
            }
        })
    }

    /// Puts a job in the queue.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn submit(self: Arc<Self>, job: JobId, params: Params) -> Result<v1::Job, Status> {
        let least = least_memory_of(params.clone()).await?;
        let _one = self.changing.lock().await;
        self.check(&job, &least)?;
        self.confirm().await?;
        let location = self.store.child(&job.0).map_err(|error| of_run(&error.into()))?;
        let (id, wanted) = (job.clone(), params.clone());
        let opened = spawn_blocking(move || Opened::new(location, id, &wanted, true, || least)).await;
        let Opened { known, submission } = opened.map_err(|e| of_panic(&e))?.map_err(|e| of_any(&e))?;
        let params = known.params.clone();
        self.note(QueueRecord::Submitted { job: job.clone(), params }).await?;
        self.with(|state, now| {
            state.jobs.insert(job.clone(), known);
            state.cluster.enqueue(now, submission)
        })
        .map_err(|error| cluster_status(&error))?;
        self.overview().job(&job)
    }

    /// Why a job would not be taken.
    fn check(&self, job: &JobId, least: &LeastMemory) -> Result<(), Status> {
        if let Ok(found) = self.overview().job(job) {
            return Err(exists(&found));
        }
        self.with(|state, now| state.cluster.check(now, job, least)).map_err(|error| cluster_status(&error))
    }

    /// Stops a job.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn cancel(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        let _one = self.changing.lock().await;
        if let Some(JobState::Queued | JobState::Running) = self.state_of(&job)? {
            self.note(QueueRecord::Cancelled { job: job.clone() }).await?;
        }
        // Where it is neither, that is what the cluster says.
        self.with(|state, now| state.cluster.cancel(now, &job)).map_err(|error| cluster_status(&error))?;
        self.overview().job(&job)
    }

    /// Puts a job that has stopped back in the queue. Of one that is done, the shards are read again first.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn resume(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        self.require_memory(&job).await?;
        let _one = self.changing.lock().await;
        match self.state_of(&job)? {
            None => self.make_available(&job).await?,
            Some(JobState::Cancelled | JobState::Failed { .. }) => {
                self.reopen(&job).await?;
                self.note(QueueRecord::Resumed { job: job.clone() }).await?;
                self.with(|state, now| state.cluster.resume(now, &job)).map_err(|e| cluster_status(&e))?;
            }
            Some(JobState::Done) => self.recheck(&job),
            // One that is still being cancelled goes on; of the others the cluster says what is wrong.
            Some(JobState::Queued | JobState::Running) => {
                self.with(|state, now| state.cluster.resume(now, &job)).map_err(|e| cluster_status(&e))?;
                self.note(QueueRecord::Resumed { job: job.clone() }).await?;
            }
        }
        self.overview().job(&job)
    }

    /// Requires that a job which has stopped fits some worker, if there are any.
    async fn require_memory(&self, job: &JobId) -> Result<(), Status> {
        let Some(JobState::Cancelled | JobState::Failed { .. }) = self.state_of(job)? else { return Ok(()) };
        let params = self.with(|state, _| state.jobs.get(job).map(|known| known.params.clone()));
        let Some(params) = params else { return Ok(()) };
        let least = least_memory_of(params).await?;
        self.with(|state, now| state.cluster.learn_memory(now, job, least)).map_err(|e| cluster_status(&e))
    }

    /// Opens the run of a job that has stopped, and tells the cluster what is in it.
    async fn reopen(&self, job: &JobId) -> Result<(), Status> {
        let found = self.with(|state, _| {
            // One that stopped just now is still held, and what has become of its shards since is not known.
            state.let_go();
            let known = state.jobs.get(job)?;
            Some((known.run.is_some(), known.location.clone(), known.params.clone()))
        });
        let Some((false, location, params)) = found else { return Ok(()) };
        self.confirm().await?;
        let begun = spawn_blocking(move || JobRun::begin(&location, &params)).await;
        let (run, contents) = begun.map_err(|e| of_panic(&e))?.map_err(|e| of_run(&e))?;
        self.with(|state, now| {
            if let Some(known) = state.jobs.get_mut(job) {
                known.opening = run.opening();
                known.run = Some(Arc::new(Mutex::new(run)));
                known.stopped = false;
            }
            state.cluster.refresh(now, job, contents.commits, contents.bytes)
        })
        .map_err(|error| cluster_status(&error))
    }

    /// Tries again to open the run of a job that could not be opened when the coordinator started.
    async fn make_available(&self, job: &JobId) -> Result<(), Status> {
        let found = self.with(|state, _| {
            let known = state.jobs.get(job)?;
            Some((known.location.clone(), known.params.clone()))
        });
        let (location, params) = found.ok_or_else(|| cluster_status(&ClusterError::Unknown(job.clone())))?;
        self.confirm().await?;
        let id = job.clone();
        let opened =
            spawn_blocking(move || Opened::new(location, id, &params, true, || least_memory(&params))).await;
        let Opened { known, submission } = opened.map_err(|e| of_panic(&e))?.map_err(|e| of_any(&e))?;
        self.note(QueueRecord::Resumed { job: job.clone() }).await?;
        self.with(|state, now| {
            state.jobs.insert(job.clone(), known);
            state.cluster.enqueue(now, submission)
        })
        .map_err(|error| cluster_status(&error))
    }

    /// The state of a job; `None` if its run cannot be opened.
    fn state_of(&self, job: &JobId) -> Result<Option<JobState>, Status> {
        self.with(|state, now| {
            let known = state.jobs.get(job).ok_or_else(|| ClusterError::Unknown(job.clone()))?;
            if known.unavailable.is_some() {
                return Ok(None);
            }
            let status = state.cluster.status(now).jobs.into_iter().find(|status| status.job == *job);
            Ok(status.map(|status| status.state))
        })
        .map_err(|error: ClusterError| cluster_status(&error))
    }

    /// Writes a record to the queue.
    async fn note(&self, record: QueueRecord) -> Result<(), Status> {
        self.with_queue(move |queue| queue.append(&record)).await
    }

    /// Requires that this coordinator owns the store: before it opens a run, which fences others off.
    async fn confirm(&self) -> Result<(), Status> {
        self.with_queue(Queue::confirm).await
    }

    async fn with_queue(
        &self,
        call: impl FnOnce(&mut Queue) -> Result<(), AppendError> + Send + 'static,
    ) -> Result<(), Status> {
        let queue = Arc::clone(&self.queue);
        let called = spawn_blocking(move || call(&mut lock(&queue))).await;
        match called.map_err(|error| of_panic(&error))? {
            Ok(()) => Ok(()),
            Err(AppendError::Fenced(reason)) => {
                self.fence(reason);
                Err(refusal_status(&Refusal::Fenced))
            }
            Err(AppendError::Failed(error)) => Err(of_run(&error)),
        }
    }
}

/// What memory a job needs, worked out beside whatever else is asked for.
async fn least_memory_of(params: Params) -> Result<LeastMemory, Status> {
    spawn_blocking(move || least_memory(&params)).await.map_err(|error| of_panic(&error))
}

/// The message of a job, with what only the shell knows of it.
fn known_message(status: &JobStatus, known: &Known) -> v1::Job {
    let mut message = job_message(status, &known.params, &known.url);
    message.checking = known.checking;
    if let Some(trouble) = &known.trouble {
        message.trouble = trouble.clone();
        // At the speed of a moment ago it would be done soon, and it stands still.
        (message.eta_seconds, message.job_eta_seconds) = (None, None);
    }
    message
}

fn unavailable_message(job: &JobId, known: &Known) -> Option<v1::Job> {
    let reason = known.unavailable.as_ref()?;
    Some(v1::Job {
        name: job.0.clone(),
        parameters: Some((&known.params).into()),
        run_url: known.url.clone(),
        state: v1::JobState::Failed.into(),
        failure: reason.clone(),
        ..v1::Job::default()
    })
}

/// The status of a job that is there already: what it is, and what to do.
fn exists(job: &v1::Job) -> Status {
    let advice = match job.state() {
        v1::JobState::Cancelled | v1::JobState::Failed => "go on with it by resume",
        _ => "look at it with status",
    };
    let state = job.state().as_str_name().trim_start_matches("JOB_STATE_").to_lowercase();
    let what = format!("job {} exists already and is {state}: {advice}, or choose another name", job.name);
    status_with_reason(Code::AlreadyExists, "JOB_EXISTS", what)
}

/// What a failure of a run is called. What the store says goes to the log as well.
fn of_run(error: &RunError) -> Status {
    let what = chain(error);
    match error {
        RunError::OtherJob { field, found, wanted, .. } => {
            let what = format!(
                "the store holds another run of this name: its {field} is {found}, and {wanted} was asked for; choose \
                 another name"
            );
            status_with_reason(Code::FailedPrecondition, "OTHER_RUN", what)
        }
        RunError::Storage(StorageError::Locked { .. }) => Status::failed_precondition(what),
        RunError::Storage(
            StorageError::Store { .. } | StorageError::Io { .. } | StorageError::Full { .. },
        ) => {
            tracing::warn!(error = what, "the store failed");
            unavailable(what)
        }
        _ => {
            tracing::error!(error = what, "a run cannot be opened");
            Status::internal(what)
        }
    }
}

fn of_any(error: &anyhow::Error) -> Status {
    if let Some(error) = error.downcast_ref::<RunError>() {
        return of_run(error);
    }
    tracing::error!(error = format!("{error:#}"), "a run cannot be opened");
    Status::internal(format!("{error:#}"))
}

/// The status of a task that panicked.
fn of_panic(error: &tokio::task::JoinError) -> Status {
    tracing::error!(%error, "a request failed");
    Status::internal("the coordinator failed on this request; its log says how")
}

/// An error and what it came from.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
