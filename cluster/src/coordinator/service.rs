//! The calls over gRPC.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{JobId, Pull, WorkerReport};
use exact2048_net::status::{invalid_argument, unavailable};
use exact2048_proto::v1::coordinator_server::Coordinator;
use exact2048_proto::v1::{
    self, CancelRequest, CancelResponse, GetRequest, GetResponse, ListRequest, ListResponse, PullRequest,
    PullResponse, ResumeRequest, ResumeResponse, SubmitRequest, SubmitResponse, WatchRequest, WatchResponse,
};
use futures_util::Stream;
use tonic::{Request, Response, Status};

use super::records;
use super::requests::Overview;
use super::shell::Shell;
use crate::names;
use crate::wire::{params_of, pull_of, refusal_status, wire_status};

/// How often those who watch are told what has changed; that a job ends or begins they hear at once.
const WATCH: Duration = Duration::from_millis(200);

/// Answers clients and workers.
#[derive(Clone)]
pub struct CoordinatorService(Arc<Shell>);

impl CoordinatorService {
    /// Answers for a coordinator.
    pub fn new(shell: Arc<Shell>) -> Self {
        Self(shell)
    }

    /// Does what changes the queue to its end, also if the client goes away meanwhile: else what is in the queue and
    /// what is done about it could differ.
    async fn change<T: Send + 'static>(
        change: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        match tokio::spawn(change).await {
            Ok(changed) => changed,
            Err(error) => {
                tracing::error!(%error, "a request failed");
                Err(Status::internal("the coordinator failed on this request; its log says how"))
            }
        }
    }
}

fn job_of(name: &str) -> Result<JobId, Status> {
    names::parse(name).map_err(|error| invalid_argument("job", error))
}

fn stopping() -> Status {
    unavailable("the coordinator is stopping; ask again, it may be started anew")
}

#[tonic::async_trait]
impl Coordinator for CoordinatorService {
    async fn submit(&self, request: Request<SubmitRequest>) -> Result<Response<SubmitResponse>, Status> {
        let SubmitRequest { parameters, name } = request.into_inner();
        let parameters = parameters.ok_or_else(|| invalid_argument("parameters", "they are missing"))?;
        let params = params_of(&parameters).map_err(|error| wire_status(&error))?;
        let job = match name.as_str() {
            "" => names::of_params(&params),
            name => names::parse(name).map_err(|error| invalid_argument("name", error))?,
        };
        let job = Self::change(Arc::clone(&self.0).submit(job, params)).await?;
        Ok(Response::new(SubmitResponse { job: Some(job) }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let job = self.0.overview().job(&job_of(&request.into_inner().job)?)?;
        Ok(Response::new(GetResponse { job: Some(job) }))
    }

    async fn list(&self, _request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let Overview { jobs, workers } = self.0.overview();
        Ok(Response::new(ListResponse { jobs, workers }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let name = request.into_inner().job;
        let job = if name.is_empty() { None } else { Some(job_of(&name)?) };
        if let Some(job) = &job {
            self.0.overview().job(job)?;
        }
        Ok(Response::new(Box::pin(watch(Arc::clone(&self.0), job))))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let job = job_of(&request.into_inner().job)?;
        let job = Self::change(Arc::clone(&self.0).cancel(job)).await?;
        Ok(Response::new(CancelResponse { job: Some(job) }))
    }

    async fn resume(&self, request: Request<ResumeRequest>) -> Result<Response<ResumeResponse>, Status> {
        let job = job_of(&request.into_inner().job)?;
        let job = Self::change(Arc::clone(&self.0).resume(job)).await?;
        Ok(Response::new(ResumeResponse { job: Some(job) }))
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullResponse>, Status> {
        let pull = pull_of(request.into_inner()).map_err(|error| {
            tracing::warn!(%error, "a worker is not understood");
            wire_status(&error)
        })?;
        check_records(&pull)?;
        match self.0.pull(&pull).await {
            Ok(answer) => Ok(Response::new(PullResponse::from(&answer))),
            Err(Some(refusal)) => {
                tracing::warn!(worker = %pull.worker, %refusal, "a worker is refused");
                Err(refusal_status(&refusal))
            }
            Err(None) => Err(stopping()),
        }
    }
}

/// Requires that what a worker says of its shards can be committed.
fn check_records(pull: &Pull) -> Result<(), Status> {
    for (i, report) in pull.reports.iter().enumerate() {
        if let WorkerReport::ShardWritten { shard, record } = report {
            records::check(record, shard).map_err(|what| {
                tracing::warn!(worker = %pull.worker, what, "a worker is not understood");
                invalid_argument(&format!("reports[{i}].shard_written.record"), what)
            })?;
        }
    }
    Ok(())
}

/// What one who watches remembers.
struct Watcher {
    shell: Arc<Shell>,
    job: Option<JobId>,
    ticks: tokio::time::Interval,
    job_states: tokio::sync::watch::Receiver<u64>,
    last: Option<WatchResponse>,
    ended: bool,
}

fn watch(shell: Arc<Shell>, job: Option<JobId>) -> impl Stream<Item = Result<WatchResponse, Status>> + Send {
    let mut ticks = tokio::time::interval(WATCH);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let job_states = shell.job_states();
    let watcher = Watcher { shell, job, ticks, job_states, last: None, ended: false };
    futures_util::stream::unfold(watcher, async |mut watcher| {
        let next = watcher.next().await?;
        Some((next, watcher))
    })
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<WatchResponse, Status>> {
        while !self.ended {
            tokio::select! {
                _ = self.ticks.tick() => {}
                Ok(()) = self.job_states.changed() => {}
                () = self.shell.stopped() => {
                    self.ended = true;
                    return Some(Err(stopping()));
                }
            }
            let Overview { mut jobs, workers } = self.shell.overview();
            if let Some(job) = &self.job {
                jobs.retain(|found| found.name == job.0);
                self.ended = jobs.iter().all(has_stopped);
            }
            let now = WatchResponse { jobs, workers };
            if self.ended || self.last.as_ref().is_none_or(|last| still(last) != still(&now)) {
                self.last = Some(now.clone());
                return Some(Ok(now));
            }
        }
        None
    }
}

/// Whether nothing happens to a job any more unless somebody asks for it.
fn has_stopped(job: &v1::Job) -> bool {
    !job.checking && !matches!(job.state(), v1::JobState::Queued | v1::JobState::Running)
}

/// A message without what changes while nothing happens.
fn still(message: &WatchResponse) -> WatchResponse {
    let mut still = message.clone();
    still.workers.iter_mut().for_each(|worker| {
        (worker.silent_seconds, worker.backoff_seconds) = (0.0, 0.0);
    });
    still
}
