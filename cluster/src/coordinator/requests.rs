//! Requests of clients to a coordinator.
//!
//! A change is checked, then written to the queue, then made. So a confirmed change survives a restart, and a refused
//! change leaves no trace.
//!
//! A request changes nothing before its turn. If the caller gives up, the request is dropped and has no effect. In its
//! turn the request runs in a separate task, so queue and cluster agree whatever the caller does.

use std::sync::Arc;

use exact2048_coordinator::cluster::{
    ClusterError, JobId, JobState, JobSummary, LeastMemory, Refusal, Submission,
};
use exact2048_game::{OpenChoices, Params};
use exact2048_net::status::unavailable;
use exact2048_net::text::with_causes;
use exact2048_proto::v1;
use exact2048_solution::{Run, RunError};
use exact2048_storage::{ErrorKind, Location, RunDir};
use tokio::sync::OwnedMutexGuard;
use tokio::task::spawn_blocking;
use tonic::{Code, Status};

use super::carry_out::gone;
use super::job_run::Contents;
use super::queue_records::{JobOutcome, QueueRecord};
use super::shell::{Known, Shell};
use super::{AppendError, is_out_of_files};
use crate::view::state_name;
use crate::wire::{cluster_status, is_run_unknown, refusal_status, run_unknown_status, status_with_reason};

/// Most jobs that a queue may have, also counting those that have ended and were not forgotten: what one message can
/// list.
const MOST_JOBS: usize = 10_000;

impl Shell {
    /// Puts a job in the queue.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn submit(self: Arc<Self>, job: JobId, wanted: WantedJob) -> Result<v1::Job, Status> {
        let WantedJob { params, disk_limit, .. } = wanted.clone();
        let least = self.least_memory_of(params.clone()).await?;
        self.check(&job, &least)?;
        self.require_store().await?;
        let location = self.store.child(&job.0).map_err(|error| of_run(&error.into()))?;
        // Before it is this request's turn: reading a long journal in a distant store takes minutes.
        let found = look(location.clone(), wanted).await?;
        let turn = self.turn().await;
        carry_through(turn, self.enqueue(job, found, disk_limit, least, location)).await
    }

    /// Writes a job to the queue, and hands it to the cluster.
    async fn enqueue(
        self: Arc<Self>,
        job: JobId,
        found: Found,
        disk_limit: Option<u64>,
        least: Arc<LeastMemory>,
        location: Location,
    ) -> Result<v1::Job, Status> {
        self.check(&job, &least)?;
        let known =
            Known::new(found.params.clone(), disk_limit, location).map_err(|error| of_run(&error.into()))?;
        let (params, disk_bytes) = (found.params.clone(), disk_limit);
        self.note(QueueRecord::Submitted { job: job.clone(), params, disk_bytes }).await?;
        let Found { params, summary, has_run } = found;
        if has_run {
            self.note(QueueRecord::Begun { job: job.clone() }).await?;
        }
        let state = if summary.is_some() { JobState::Done } else { JobState::Queued };
        let submission = Submission {
            job: job.clone(),
            params,
            disk_limit,
            least_memory: Some(least),
            state,
            summary: summary.unwrap_or_default(),
            has_run,
        };
        self.with(|state, now| {
            state.jobs.insert(job.clone(), known);
            state.cluster.enqueue(now, submission)
        })
        .map_err(|error| cluster_status(&error))?;
        self.decided(&job)
    }

    /// Refuses a job that cannot be put in the queue.
    fn check(self: &Arc<Self>, job: &JobId, least: &LeastMemory) -> Result<(), Status> {
        if let Ok(found) = self.job_view(job) {
            return Err(exists(&found));
        }
        self.with(|state, now| match state.cluster.jobs_len() {
            MOST_JOBS.. => Err(too_many_jobs()),
            _ => state.cluster.check(now, job, Some(least)).map_err(|error| cluster_status(&error)),
        })
    }

    /// Stops a job.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn cancel(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        let turn = self.turn().await;
        carry_through(turn, async move {
            if !self.state_of(&job)?.has_ended() {
                self.note(QueueRecord::Cancelled { job: job.clone() }).await?;
            }
            // Where the job has ended already, the cluster refuses.
            self.with(|state, now| state.cluster.cancel(now, &job))
                .map_err(|error| cluster_status(&error))?;
            self.decided(&job)
        })
        .await
    }

    /// Puts a job that has stopped back in the queue. Of one that is done, the shards are read again first.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn resume(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        if let JobState::Cancelled | JobState::Failed { .. } = self.state_of(&job)? {
            self.require_resumable(&job).await?;
        }
        let turn = self.turn().await;
        carry_through(turn, async move {
            if self.state_of(&job)? == JobState::Done {
                self.recheck(&job);
                return self.decided(&job);
            }
            self.with(|state, _| state.cluster.check_resume(&job)).map_err(|error| cluster_status(&error))?;
            self.note(QueueRecord::Resumed { job: job.clone() }).await?;
            self.with(|state, now| state.cluster.resume(now, &job))
                .map_err(|error| cluster_status(&error))?;
            self.decided(&job)
        })
        .await
    }

    /// Requires that a job which has stopped fits some worker, if there are any, and that its run can be read.
    async fn require_resumable(self: &Arc<Self>, job: &JobId) -> Result<(), Status> {
        let found = self.with(|state, _| {
            let known = state.jobs.get(job)?;
            Some((known.location.clone(), known.params.clone(), state.cluster.has_run(job)))
        });
        let Some((location, params, must_exist)) = found else { return Ok(()) };
        self.require_store().await?;
        let least = self.least_memory_of(params.clone()).await?;
        self.with(|state, now| state.cluster.learn_memory(now, job, least))
            .map_err(|e| cluster_status(&e))?;
        let looked = look(location, WantedJob { must_exist, ..WantedJob::new(params) }).await;
        match looked {
            Err(status) if is_run_unknown(&status) => {
                Err(status_with_reason(Code::FailedPrecondition, "NO_RUN", gone(job)))
            }
            looked => looked.map(drop),
        }
    }

    /// Requires that the store is in its place: else what is missing there says nothing.
    async fn require_store(self: &Arc<Self>) -> Result<(), Status> {
        let queue = Arc::clone(&self.queue);
        let found = spawn_blocking(move || queue.lock().confirm()).await;
        self.answered(found.map_err(|error| of_panic(&error))?)
    }

    /// Converts the queue's answer to a request.
    fn answered(self: &Arc<Self>, answer: Result<(), AppendError>) -> Result<(), Status> {
        match answer {
            Ok(()) => Ok(()),
            Err(AppendError::Foreign(what)) => Err(Status::internal(what)),
            Err(AppendError::Fenced(reason)) => {
                self.fence(reason);
                Err(refusal_status(&Refusal::Fenced))
            }
            // It was written before: the file system is read-only by now, or permissions have changed.
            Err(AppendError::Failed(error)) if error.kind() == ErrorKind::Refused => {
                Err(unavailable(with_causes(&error)))
            }
            Err(AppendError::Failed(error)) => Err(of_run(&error)),
        }
    }

    /// Takes a job that has ended out of the queue. Its run stays.
    ///
    /// # Errors
    ///
    /// Those of the calls of the service.
    pub async fn forget(self: Arc<Self>, job: JobId) -> Result<v1::Job, Status> {
        let turn = self.turn().await;
        carry_through(turn, async move {
            let last = self.job_view(&job)?;
            self.with(|state, _| state.cluster.check_forget(&job)).map_err(|error| cluster_status(&error))?;
            if last.checking {
                let what =
                    format!("the shards of job {job} are being reread; wait until that ends, then forget it");
                return Err(status_with_reason(Code::FailedPrecondition, "JOB_STATE", what));
            }
            self.note(QueueRecord::Forgotten { job: job.clone() }).await?;
            self.with(|state, now| {
                state.jobs.remove(&job);
                state.cluster.forget(now, &job)
            })
            .map_err(|error| cluster_status(&error))?;
            self.mark_stale();
            Ok(last)
        })
        .await
    }

    /// Waits for the turn to change the queue, which one request has at a time.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.changing).lock_owned().await
    }

    /// Writes the end of a job to the queue, or its progress, which is returned then.
    pub(super) async fn note_job(self: Arc<Self>, job: &JobId) -> Result<Option<JobSummary>, Status> {
        let _turn = self.turn().await;
        let found = self.with(|state, _| {
            let outcome = JobOutcome::of(state.cluster.job_state(job)?);
            Some((outcome, state.cluster.job_summary(job)?.clone()))
        });
        // It may have been forgotten meanwhile.
        let Some((outcome, summary)) = found else { return Ok(None) };
        let job = job.clone();
        if let Some(outcome) = outcome {
            self.note(QueueRecord::Ended { job, outcome, summary }).await?;
            return Ok(None);
        }
        self.note(QueueRecord::Progress { job, summary: summary.clone() }).await?;
        Ok(Some(summary))
    }

    /// Shows a job after something was decided about it, and has the next look at the cluster show it, too.
    fn decided(self: &Arc<Self>, job: &JobId) -> Result<v1::Job, Status> {
        self.mark_stale();
        self.job_view(job)
    }

    fn state_of(self: &Arc<Self>, job: &JobId) -> Result<JobState, Status> {
        let state = self.with(|state, _| state.cluster.job_state(job).cloned());
        state.ok_or_else(|| cluster_status(&ClusterError::Unknown(job.clone())))
    }

    /// Estimates the memory need of a job, while other requests are answered.
    async fn least_memory_of(&self, params: Params) -> Result<Arc<LeastMemory>, Status> {
        let estimate = Arc::clone(&self.estimates).for_client(params).await;
        estimate.map(|estimate| estimate.least_memory).map_err(|error| of_panic(&error))
    }

    /// Writes a record to the queue.
    pub(super) async fn note(self: &Arc<Self>, record: QueueRecord) -> Result<(), Status> {
        let queue = Arc::clone(&self.queue);
        let noted = spawn_blocking(move || queue.lock().append(&record)).await;
        self.answered(noted.map_err(|error| of_panic(&error))?)
    }
}

/// Carries a change of the queue through in its turn, even if the caller goes away meanwhile: else the queue could say
/// one thing, and the coordinator do another.
async fn carry_through<T: Send + 'static>(
    turn: OwnedMutexGuard<()>,
    change: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let carried = tokio::spawn(async move {
        let _turn = turn;
        change.await
    });
    carried.await.unwrap_or_else(|error| Err(of_panic(&error)))
}

/// A requested job.
#[derive(Clone, Debug)]
pub struct WantedJob {
    /// Parameters of the run.
    pub params: Params,
    /// How many bytes the run may take of the disk, if there is a limit.
    pub disk_limit: Option<u64>,
    /// Whether a run that is there already may keep other layers.
    pub any_kept: bool,
    /// Whether such a run may store best moves where this job does not, and the other way round.
    pub any_values: bool,
    /// Whether values of such a run may have another precision.
    pub any_precision: bool,
    /// Whether such a run must be there already.
    pub must_exist: bool,
}

impl WantedJob {
    /// A job without a limit of the disk, which a run that is there already has to be as it is.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            disk_limit: None,
            any_kept: false,
            any_values: false,
            any_precision: false,
            must_exist: false,
        }
    }
}

/// The existing run in the place of a job's run.
struct Found {
    /// Its parameters. Those that do not change results may differ from what was asked for.
    params: Params,
    /// How far the run is, if nothing of it is missing.
    summary: Option<JobSummary>,
    /// Whether there is a run.
    has_run: bool,
}

/// Looks what is in the place of a job's run, and changes nothing.
async fn look(location: Location, wanted: WantedJob) -> Result<Found, Status> {
    let found = spawn_blocking(move || {
        let WantedJob { params: wanted, any_kept, any_values, any_precision, must_exist, .. } = wanted;
        if RunDir::find(&location)?.is_none() {
            RunDir::require_unused(&location)?;
            return Ok((!must_exist).then_some(Found { params: wanted, summary: None, has_run: false }));
        }
        let run = Run::open(&location)?;
        let open = OpenChoices { kept: any_kept, best_moves: any_values, precision: any_precision };
        let wanted = wanted.resuming(run.params(), open);
        let params = run.continued_as(&wanted)?;
        // A finished run is accepted under any limit, because it keeps its contents.
        let is_done = run.missing().is_empty() && run.absent()?.is_empty();
        if !is_done {
            run.require_own_format()?;
        }
        Ok(Some(Found { params, summary: is_done.then(|| summary_of(&run)), has_run: true }))
    });
    let found = found.await.map_err(|error| of_panic(&error))?.map_err(|error: RunError| of_run(&error))?;
    found.ok_or_else(run_unknown_status)
}

/// The summary of a run that lacks nothing.
fn summary_of(run: &Run) -> JobSummary {
    let bytes = Contents::of(run).stored.committed_bytes;
    let states = run.layer_counts().iter().map(|counts| counts.states).sum();
    let states_total = (!run.params().contents().enumerates_only()).then_some(states);
    let fingerprint = run.fingerprint();
    JobSummary { states_done: states, states_total, done: 1.0, bytes, fingerprint, ..JobSummary::default() }
}

/// The status of a queue that is full.
fn too_many_jobs() -> Status {
    let what = format!("the queue is full with {MOST_JOBS} jobs; forget some that have ended");
    status_with_reason(Code::ResourceExhausted, "TOO_MANY_JOBS", what)
}

/// The status of a job that is there already: what it is, and what to do.
fn exists(job: &v1::Job) -> Status {
    let advice = match job.state() {
        v1::JobState::Cancelled | v1::JobState::Failed => "resume it",
        _ => "see its status",
    };
    let state = state_name(job.state());
    let what = format!("job {} already exists and is {state}; {advice}, or choose another name", job.name);
    status_with_reason(Code::AlreadyExists, "JOB_EXISTS", what)
}

/// The status of a failure of a run. What the store says goes to the log as well.
pub(super) fn of_run(error: &RunError) -> Status {
    let what = with_causes(error);
    if let RunError::OtherJob { field, found, wanted, .. }
    | RunError::StoredOtherwise { field, found, wanted, .. } = error
    {
        let why = match error {
            RunError::StoredOtherwise { .. } => " (stored data is never converted)",
            _ => "",
        };
        let what = format!(
            "the store holds another run of this name: expected {field} {wanted}, found {found}{why}; choose \
             another name"
        );
        return status_with_reason(Code::FailedPrecondition, "OTHER_RUN", what);
    }
    match error.kind() {
        _ if is_out_of_files(error) => {
            tracing::warn!(error = what, "limit of open files reached");
            let what = "the coordinator has reached its limit of open files; try again later, or start it with a higher \
                        limit (ulimit -n)";
            status_with_reason(Code::ResourceExhausted, "TOO_MANY_FILES", what)
        }
        ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::OverLimit | ErrorKind::NotFound => {
            tracing::warn!(error = what, "store failed");
            unavailable(what)
        }
        ErrorKind::Occupied => status_with_reason(Code::FailedPrecondition, "NO_RUN", what),
        ErrorKind::Busy | ErrorKind::Fenced => Status::failed_precondition(what),
        ErrorKind::DataLoss | ErrorKind::NewerVersion | ErrorKind::Refused | ErrorKind::UnsafeCache => {
            tracing::warn!(error = what, "cannot read a run");
            status_with_reason(Code::FailedPrecondition, "UNREADABLE_RUN", what)
        }
        _ => {
            tracing::error!(error = what, "cannot read a run");
            Status::internal(what)
        }
    }
}

/// The status of a task that panicked.
fn of_panic(error: &tokio::task::JoinError) -> Status {
    tracing::error!(%error, "request failed");
    Status::internal("the coordinator failed on this request; see its log")
}
