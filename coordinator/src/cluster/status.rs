//! Status of a cluster, for people and dashboards.

use std::collections::BTreeSet;
use std::time::Duration;

use exact2048_game::Layer;
use exact2048_solution::{Phase, Segment};

use super::ids::EpochId;
use super::job::{DiskUse, Job, JobState, Plan};
use super::messages::{EpochProgress, JobId, WorkerId, WriteShard};
use super::roster::Registered;
use super::summary::JobSummary;
use super::{Cluster, Epoch};
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

impl Cluster {
    /// Returns the status of the cluster. Cost: linear in jobs and workers.
    pub fn status(&self, now: Duration) -> Status {
        let mut jobs: Vec<(&JobId, &Job)> = self.jobs.iter().collect();
        jobs.sort_by_key(|(_, job)| job.place);
        Status {
            fenced: self.fenced,
            jobs: jobs.into_iter().map(|(id, job)| self.status_of(id, job, now)).collect(),
            workers: self.worker_statuses(now),
            states: self.states,
        }
    }

    /// Returns the status of one job.
    pub fn job_status(&self, id: &JobId, now: Duration) -> Option<JobStatus> {
        self.jobs.get(id).map(|job| self.status_of(id, job, now))
    }

    /// Returns the state of a job.
    pub fn job_state(&self, id: &JobId) -> Option<&JobState> {
        self.jobs.get(id).map(|job| &job.state)
    }

    /// Returns the progress of a job, as the queue stores it.
    pub fn job_summary(&self, id: &JobId) -> Option<&JobSummary> {
        self.jobs.get(id).map(|job| &job.summary)
    }

    /// Returns the status of all workers.
    pub fn worker_statuses(&self, now: Duration) -> Vec<WorkerStatus> {
        let workers = self.roster.workers.iter();
        workers.map(|(&id, worker)| self.worker_status(id, worker, now)).collect()
    }

    /// Returns the number of states that workers have finished in all jobs and epochs, committed or not.
    pub fn states(&self) -> u64 {
        self.states
    }

    /// Returns the jobs that may have changed status since the last call, including the active job.
    pub fn take_changed(&mut self) -> BTreeSet<JobId> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.extend(self.active.clone());
        changed
    }

    /// Returns the current news for workers.
    pub fn signal(&self) -> Signal {
        let epoch = self.epoch.as_ref();
        Signal {
            epoch: epoch.map(Epoch::number),
            write: epoch.and_then(Epoch::ordered),
            progress: epoch.map(Epoch::progress),
            fenced: self.fenced,
        }
    }

    fn status_of(&self, id: &JobId, job: &Job, now: Duration) -> JobStatus {
        let epoch: Option<&Epoch> = self.epoch.as_ref().filter(|epoch| epoch.share.job == *id);
        let now_at = job.plan.as_ref().map(|plan| At::new(job, plan, epoch, now));
        let summary = now_at.as_ref().map_or(&job.summary, |at| &at.summary);
        let next = job.plan.as_ref().and_then(|plan| plan.remaining);
        let start = next.map(|segment| match segment.phase {
            Phase::Enumerate => segment.first,
            Phase::BackUp => segment.last,
        });
        JobStatus {
            job: id.clone(),
            place: job.place,
            state: job.state.clone(),
            cancelling: job.cancelling,
            checking: job.check.is_under_way(),
            obstacle: job.obstacle.clone().or_else(|| job.check.trouble()),
            phase: summary.phase,
            segment: epoch.map(Epoch::segment).or(next),
            layer: epoch.map(Epoch::frontier_layer).or(start),
            states_done: summary.states_done,
            states_total: summary.states_total,
            states_per_second: job.states_rate.per_second(now),
            done: summary.done,
            eta: now_at.as_ref().and_then(|at| at.eta).filter(|_| epoch.is_some()),
            bytes: summary.bytes,
            disk: job.disk,
            retries: summary.retries,
            epochs: summary.epochs,
            workers: epoch.map_or(0, |epoch| epoch.share.members.len() as u32),
            fingerprint: summary.fingerprint,
        }
    }

    fn worker_status(&self, id: WorkerId, worker: &Registered, now: Duration) -> WorkerStatus {
        WorkerStatus {
            worker: id,
            threads: worker.threads,
            memory_bytes: worker.memory_bytes,
            address: worker.address.clone(),
            activity: self.activity(id, worker, now),
            silent: now.saturating_sub(worker.heard),
        }
    }

    fn activity(&self, id: WorkerId, worker: &Registered, now: Duration) -> Activity {
        if let Some(epoch) = &self.epoch
            && let Some(member) = epoch.share.member(id)
        {
            let job = epoch.share.job.clone();
            return match epoch.order_for(member) {
                Some(shard) => Activity::Writing { job, first: shard.first, last: shard.last },
                None => Activity::Working { job, layer: epoch.member_layer(member) },
            };
        }
        let active = self.active.as_ref().and_then(|job| self.jobs.get(job));
        if worker.leaving {
            Activity::Leaving
        } else if let Some(reason) = &worker.unwell {
            Activity::Unwell(reason.clone())
        } else if let Some(epoch) = worker.hangs_in {
            Activity::Unwell(format!("hung in epoch {epoch} and has not left it"))
        } else if now < worker.not_before {
            Activity::BackingOff(worker.not_before - now)
        } else if active.is_some_and(|job| !job.fits(worker.threads, worker.memory_bytes)) {
            Activity::TooSmall
        } else {
            Activity::Waiting
        }
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
        let time = |work: f64| job.pace.time_for(work, now);
        let is_known = is_enough(whole - left, whole + later);
        let eta = time(left).zip(time(left + later)).map(|(pass, job)| Eta { pass, job });
        let eta = eta.filter(|_| is_known);
        let summary = plan.summary(&job.params, &job.summary, work_ahead, states_ahead);
        Self { summary, eta }
    }
}
