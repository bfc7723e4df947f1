//! The gRPC calls of clients and workers.

use std::pin::Pin;
use std::sync::Arc;

use exact2048_coordinator::cluster::{ClusterError, JobId, Pull, WorkerReport};
use exact2048_game::OpenChoices;
use exact2048_net::status::invalid_argument;
use exact2048_proto::v1::coordinator_server::Coordinator;
use exact2048_proto::v1::{
    self, CancelRequest, CancelResponse, ForgetRequest, ForgetResponse, GetRequest, GetResponse, ListRequest,
    ListResponse, PullRequest, PullResponse, ResumeRequest, ResumeResponse, SubmitRequest, SubmitResponse,
    WatchRequest, WatchResponse,
};
use futures_util::Stream;
use tonic::{Request, Response, Status};

use super::board::{ClusterSnapshot, FRESH};
use super::driver::Driver;
use super::queue_records::new_job;
use super::shell::Shell;
use super::statuses::stopping;
use super::{observe, records};
use crate::names;
use crate::wire::{answer_message, cluster_status, params_of, pull_of};

/// Maximum number of jobs for which a client that watches all jobs receives changes five times a second.
///
/// With more jobs, changes are sent less often, because each message names all jobs.
const JOBS_AT_ONCE: u32 = 500;

/// Answers clients and workers.
#[derive(Clone)]
pub struct CoordinatorService(pub Arc<Shell>);

fn job_of(name: &str) -> Result<JobId, Status> {
    names::parse(name).map_err(|error| invalid_argument("job", error))
}

#[tonic::async_trait]
impl Coordinator for CoordinatorService {
    async fn submit(&self, request: Request<SubmitRequest>) -> Result<Response<SubmitResponse>, Status> {
        let SubmitRequest {
            parameters,
            name,
            disk_bytes: disk_limit,
            any_kept,
            any_values,
            any_precision,
            any_value_step,
            must_exist,
        } = request.into_inner();
        let parameters =
            parameters.ok_or_else(|| invalid_argument("parameters", "expected parameters, found none"))?;
        let params = params_of(&parameters)?;
        let job = match name.as_str() {
            "" => names::of_params(&params),
            name => names::parse(name).map_err(|error| invalid_argument("name", error))?,
        };
        if disk_limit == Some(0) {
            return Err(invalid_argument(
                "disk_bytes",
                "expected a limit above 0, found 0; omit it for no limit",
            ));
        }
        let open = OpenChoices {
            kept: any_kept,
            best_moves: any_values,
            precision: any_precision,
            value_step: any_value_step,
        };
        let job = new_job(job, params, disk_limit);
        let job = Arc::clone(&self.0).submit(job, open, must_exist).await?;
        Ok(Response::new(SubmitResponse { job: Some(job) }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let job = self.0.driver.job_view(&job_of(&request.into_inner().job)?)?;
        Ok(Response::new(GetResponse { job: Some(job) }))
    }

    async fn list(&self, _request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let all = self.0.driver.snapshot();
        Ok(Response::new(ListResponse { jobs: all.in_turn(), workers: all.workers.to_vec() }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let name = request.into_inner().job;
        let job = if name.is_empty() { None } else { Some(job_of(&name)?) };
        if let Some(job) = &job {
            self.0.driver.job_view(job)?;
        }
        Ok(Response::new(Box::pin(watch(Arc::clone(&self.0.driver), job))))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let job = job_of(&request.into_inner().job)?;
        let job = Arc::clone(&self.0).cancel(job).await?;
        Ok(Response::new(CancelResponse { job: Some(job) }))
    }

    async fn resume(&self, request: Request<ResumeRequest>) -> Result<Response<ResumeResponse>, Status> {
        let job = job_of(&request.into_inner().job)?;
        let job = Arc::clone(&self.0).resume(job).await?;
        Ok(Response::new(ResumeResponse { job: Some(job) }))
    }

    async fn forget(&self, request: Request<ForgetRequest>) -> Result<Response<ForgetResponse>, Status> {
        let job = job_of(&request.into_inner().job)?;
        let job = Arc::clone(&self.0).forget(job).await?;
        Ok(Response::new(ForgetResponse { job: Some(job) }))
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullResponse>, Status> {
        let pull = pull_of(request.into_inner());
        let pull = pull.inspect_err(|error| observe::not_understood(None, error))?;
        check_records(&pull)?;
        let answer = self.0.driver.pull(&pull).await?;
        Ok(Response::new(answer_message(&answer)))
    }
}

/// Requires that the records of shards in a worker's reports can be committed.
fn check_records(pull: &Pull) -> Result<(), Status> {
    for (i, report) in pull.reports.iter().enumerate() {
        if let WorkerReport::ShardWritten { shard, record } = report {
            records::check(record, shard, pull.worker).map_err(|what| {
                observe::not_understood(Some(pull.worker), &what);
                invalid_argument(&format!("reports[{i}].shard_written.record"), what)
            })?;
        }
    }
    Ok(())
}

/// A client that watches jobs, and the last snapshot that it received.
struct Watcher {
    driver: Arc<Driver>,
    job: Option<JobId>,
    job_states: tokio::sync::watch::Receiver<u64>,
    last: Option<Arc<ClusterSnapshot>>,
    ended: bool,
}

fn watch(
    driver: Arc<Driver>,
    job: Option<JobId>,
) -> impl Stream<Item = Result<WatchResponse, Status>> + Send {
    let job_states = driver.signals.job_states.subscribe();
    let watcher = Watcher { driver, job, job_states, last: None, ended: false };
    futures_util::stream::unfold(watcher, async |mut watcher| {
        let next = watcher.next().await?;
        Some((next, watcher))
    })
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<WatchResponse, Status>> {
        while !self.ended {
            self.job_states.mark_unchanged();
            let now = self.driver.snapshot();
            if self.last.as_ref().is_none_or(|last| self.is_news(last, &now)) {
                self.last = Some(Arc::clone(&now));
                return Some(self.response(&now));
            }
            if let Some(stopped) = self.wait(&now).await {
                return Some(Err(stopped));
            }
        }
        None
    }

    /// Waits until a new snapshot may contain news. Returns a status if the coordinator stops.
    async fn wait(&mut self, last: &ClusterSnapshot) -> Option<Status> {
        let is_one = self.job.is_some();
        let jobs = if is_one { 1 } else { u32::try_from(last.jobs.len()).unwrap_or(u32::MAX) };
        let pause = FRESH * jobs.div_ceil(JOBS_AT_ONCE).max(1);
        tokio::select! {
            () = tokio::time::sleep(pause) => None,
            Ok(()) = self.job_states.changed(), if is_one => None,
            () = self.driver.stop.cancelled() => {
                self.ended = true;
                Some(stopping())
            }
        }
    }

    /// Returns whether jobs or workers have changed. Workers' times of silence and of backoff do not count.
    fn is_news(&self, last: &ClusterSnapshot, now: &ClusterSnapshot) -> bool {
        let jobs = match &self.job {
            Some(job) => last.job(job) != now.job(job),
            None => last.jobs_version != now.jobs_version,
        };
        jobs || last.workers_version != now.workers_version
    }

    fn response(&mut self, now: &ClusterSnapshot) -> Result<WatchResponse, Status> {
        let workers = now.workers.to_vec();
        let Some(job) = &self.job else { return Ok(WatchResponse { jobs: now.in_turn(), workers }) };
        let Some(found) = now.job(job) else {
            self.ended = true;
            return Err(cluster_status(&ClusterError::Unknown(job.clone())));
        };
        // Only a request can change a job that has ended.
        self.ended =
            !found.checking && !matches!(found.state(), v1::JobState::Queued | v1::JobState::Running);
        Ok(WatchResponse { jobs: vec![v1::Job::clone(found)], workers })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use exact2048_coordinator::cluster::ClusterConfig;
    use exact2048_game::Params;
    use exact2048_storage::Location;
    use tokio_util::sync::CancellationToken;
    use tonic::Code;

    use super::*;

    /// A request may be cancelled while it waits for the estimate or for its turn.
    #[tokio::test]
    async fn a_caller_that_gave_up_has_changed_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (store, stop) = (Location::from(place.path()), CancellationToken::new());
        let shell = Shell::open(store, ClusterConfig::default(), stop).unwrap();
        let service = CoordinatorService(Arc::clone(&shell));
        let params = Params::small("2x2");
        let submit = |name: &str| {
            let (parameters, name) = (Some((&params).into()), name.to_owned());
            service.submit(Request::new(SubmitRequest { parameters, name, ..SubmitRequest::default() }))
        };
        let give_up_after = Duration::from_millis(50);
        let estimating = shell.estimates.turn().await;
        assert!(tokio::time::timeout(give_up_after, submit("a")).await.is_err());
        drop(estimating);
        let changing = shell.ledger.turn().await;
        assert!(tokio::time::timeout(give_up_after, submit("b")).await.is_err());
        drop(changing);
        // Requests get their turns in order of arrival. If the first two had continued, they would be over by now.
        submit("c").await.unwrap();
        let cancel = |job: &str| service.cancel(Request::new(CancelRequest { job: job.to_owned() }));
        let changing = shell.ledger.turn().await;
        assert!(tokio::time::timeout(give_up_after, cancel("c")).await.is_err());
        drop(changing);
        submit("d").await.unwrap();
        let jobs = shell.driver.snapshot().in_turn();
        let names: Vec<(&str, v1::JobState)> =
            jobs.iter().map(|job| (job.name.as_str(), job.state())).collect();
        assert!(
            matches!(names[..], [("c", v1::JobState::Running), ("d", v1::JobState::Queued)]),
            "{names:?}"
        );
        assert_eq!(submit("c").await.unwrap_err().code(), Code::AlreadyExists);
    }
}
