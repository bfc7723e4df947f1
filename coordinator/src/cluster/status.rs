//! Status of a cluster, for people and dashboards.

use std::time::Duration;

use exact2048_game::Layer;
use exact2048_solution::{Phase, Segment};

use super::disk::DiskUse;
use super::epoch::Epoch;
use super::ids::EpochId;
use super::job::{Job, JobState};
use super::messages::{EpochProgress, JobId, WorkerId, WriteShard};
use super::plan::Plan;
use super::roster::Registered;
use super::schedule::Schedule;
use super::summary::JobSummary;
use crate::rate::is_enough;

/// The whole visible state.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// Whether another coordinator owns the store, so this coordinator is idle.
    pub fenced: bool,
    /// Jobs in the order of their turns.
    pub jobs: Vec<JobStatus>,
    /// Workers by id.
    pub workers: Vec<WorkerStatus>,
    /// Number of states that workers have finished in all jobs and epochs, committed or not.
    pub states: u64,
}

/// News for workers. No worker needs an answer while the news is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Signal {
    /// The current epoch.
    pub epoch: Option<EpochId>,
    /// The range being written.
    pub write: Option<WriteShard>,
    /// Whether another coordinator owns the store.
    pub fenced: bool,
    /// Progress of the epoch. It changes continually.
    pub progress: Option<EpochProgress>,
}

/// Status of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobStatus {
    /// Name of the job.
    pub job: JobId,
    /// Place of the job among all jobs. Jobs with lower places get their turn first.
    pub place: u64,
    /// State of the job.
    pub state: JobState,
    /// Whether the job will be cancelled as soon as its finished work is committed.
    pub cancelling: bool,
    /// Whether the shards of the done job are being reread.
    pub checking: bool,
    /// Reason why the job makes no progress, or why its shards could not be reread.
    pub obstacle: Option<String>,
    /// The current or next pass; `None` when nothing is missing.
    pub phase: Option<Phase>,
    /// The layers of the current or next segment.
    pub segment: Option<Segment>,
    /// The current or first layer.
    pub layer: Option<Layer>,
    /// Number of states done in this pass, up to symmetry.
    pub states_done: u64,
    /// Total number of states in this pass; known only in the downward pass.
    pub states_total: Option<u64>,
    /// Number of states per second, averaged over about the last 20 seconds.
    pub states_per_second: f64,
    /// Completed part of this pass, from 0 to 1, weighted by the estimated cost of each layer.
    pub done: f64,
    /// Estimated remaining time of this pass and of the job.
    pub eta: Option<Eta>,
    /// Total size of the committed shards in bytes.
    pub bytes: u64,
    /// Disk use of the job's run as of the last opening; `None` if it has no limit or the use is not known yet.
    pub disk: Option<DiskUse>,
    /// Number of failed epochs, under all coordinators.
    pub retries: u64,
    /// Number of started epochs, under all coordinators.
    pub epochs: u64,
    /// Number of workers of the job.
    pub workers: u32,
    /// The fingerprint of a solved run.
    pub fingerprint: Option<u128>,
}

/// Estimated remaining time, based on the speed so far. In long work, the last twenty minutes count most. An
/// estimate exists only after a hundredth of the work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eta {
    /// Time until the end of this pass.
    pub pass: Duration,
    /// Time until the job is done.
    pub job: Duration,
}

/// Status of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerStatus {
    /// Id of the worker.
    pub worker: WorkerId,
    /// Number of threads that compute.
    pub threads: u32,
    /// Memory limit of the worker, in bytes.
    pub memory_bytes: u64,
    /// Address for its peers.
    pub address: String,
    /// Activity of the worker.
    pub activity: Activity,
    /// Time since its last pull.
    pub silent: Duration,
}

/// Activity of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Computes.
    Working {
        /// The job.
        job: JobId,
        /// The lowest layer that the worker has not finished; in the downward pass, the highest.
        layer: Layer,
    },
    /// Writes a shard and computes.
    Writing {
        /// The job.
        job: JobId,
        /// Lowest layer of the shard.
        first: Layer,
        /// Highest layer of the shard.
        last: Layer,
    },
    /// Waits for a job, or for the next epoch.
    Waiting,
    /// Has failed and gets no work before it reports that it is well.
    Unwell(String),
    /// Has failed recently and gets no work for this time.
    BackingOff(Duration),
    /// Has too little memory for the active job.
    TooSmall,
    /// Is leaving and is in no epoch.
    Leaving,
}

/// Returns the status of all jobs, in the order of their turns.
pub(super) fn jobs(schedule: &Schedule, now: Duration) -> Vec<JobStatus> {
    let mut jobs: Vec<(&JobId, &Job)> = schedule.jobs.iter().collect();
    jobs.sort_by_key(|(_, job)| job.standing.place);
    jobs.into_iter().map(|(id, found)| job(schedule, id, found, now)).collect()
}

/// Returns the status of all workers.
pub(super) fn workers(schedule: &Schedule, now: Duration) -> Vec<WorkerStatus> {
    let workers = schedule.roster.workers.iter();
    workers.map(|(&id, worker)| worker_status(schedule, id, worker, now)).collect()
}

/// Returns the status of one job.
pub(super) fn job(schedule: &Schedule, id: &JobId, job: &Job, now: Duration) -> JobStatus {
    let (epoch, standing, progress) = (schedule.epochs.of(id), &job.standing, &job.progress);
    let now_at = progress.plan.as_ref().map(|plan| At::new(job, plan, epoch, now));
    let summary = now_at.as_ref().map_or(&progress.summary, |at| &at.summary);
    let next = progress.remaining();
    let start = next.map(|segment| match segment.phase {
        Phase::Enumerate => segment.first,
        Phase::BackUp => segment.last,
    });
    JobStatus {
        job: id.clone(),
        place: standing.place,
        state: standing.state.clone(),
        cancelling: standing.cancelling,
        checking: job.awaited.check.is_under_way(),
        obstacle: standing.obstacle.clone().or_else(|| job.awaited.check.trouble()),
        phase: summary.phase,
        segment: epoch.map(Epoch::segment).or(next),
        layer: epoch.map(Epoch::frontier_layer).or(start),
        states_done: summary.states_done,
        states_total: summary.states_total,
        states_per_second: progress.states_rate.per_second(now),
        done: summary.done,
        eta: now_at.as_ref().and_then(|at| at.eta).filter(|_| epoch.is_some()),
        bytes: summary.bytes,
        disk: job.disk.usage,
        retries: summary.retries,
        epochs: summary.epochs,
        workers: epoch.map_or(0, |epoch| epoch.share.members.len() as u32),
        fingerprint: summary.fingerprint,
    }
}

fn worker_status(schedule: &Schedule, id: WorkerId, worker: &Registered, now: Duration) -> WorkerStatus {
    WorkerStatus {
        worker: id,
        threads: worker.threads,
        memory_bytes: worker.memory_bytes,
        address: worker.address.clone(),
        activity: activity(schedule, id, worker, now),
        silent: now.saturating_sub(worker.heard),
    }
}

fn activity(schedule: &Schedule, id: WorkerId, worker: &Registered, now: Duration) -> Activity {
    if let Some((epoch, member)) = schedule.epochs.with_member(id) {
        let job = epoch.share.job.clone();
        return match epoch.order_for(member) {
            Some(shard) => Activity::Writing { job, first: shard.first, last: shard.last },
            None => Activity::Working { job, layer: epoch.member_layer(member) },
        };
    }
    let (active, health) = (schedule.jobs.active(), &worker.health);
    if worker.leaving {
        Activity::Leaving
    } else if let Some(reason) = &health.unwell {
        Activity::Unwell(reason.clone())
    } else if let Some(epoch) = health.hangs_in {
        Activity::Unwell(format!("hung in epoch {epoch} and has not left it"))
    } else if now < health.not_before {
        Activity::BackingOff(health.not_before - now)
    } else if active.is_some_and(|job| !job.fits(worker.threads, worker.memory_bytes)) {
        Activity::TooSmall
    } else {
        Activity::Waiting
    }
}

/// Current progress of a job, including finished work that is not committed.
struct At {
    summary: JobSummary,
    eta: Option<Eta>,
}

impl At {
    fn new(job: &Job, plan: &Plan, epoch: Option<&Epoch>, now: Duration) -> Self {
        let states_ahead = epoch.map_or(0, Epoch::states_ahead);
        // Finished but uncommitted work is at the beginning of the next segment.
        let ahead = plan.remaining.zip(epoch);
        let work_ahead =
            ahead.map_or(0.0, |(segment, epoch)| plan.cost.of_finished(segment, epoch.frontier_layer()));
        let (left, whole) = plan.work_left(work_ahead);
        let later = plan.left.later;
        let time = |work: f64| job.progress.pace.time_for(work, now);
        let is_known = is_enough(whole - left, whole + later);
        let eta = time(left).zip(time(left + later)).map(|(pass, job)| Eta { pass, job });
        let eta = eta.filter(|_| is_known);
        let summary = plan.summary(&job.progress.summary, work_ahead, states_ahead);
        Self { summary, eta }
    }
}
