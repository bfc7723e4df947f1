//! What a cluster is doing, for people and dashboards.

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

/// Everything that there is to see.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// Another coordinator owns the store, and this one does nothing more.
    pub fenced: bool,
    /// Jobs in order of their turns.
    pub jobs: Vec<JobStatus>,
    /// Workers by id.
    pub workers: Vec<WorkerStatus>,
    /// States that workers have finished, of all jobs and epochs, committed or not.
    pub states: u64,
}

/// What workers may wait to hear. While it stays the same, there is nothing new to tell any of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Signal {
    /// The current epoch.
    pub epoch: Option<EpochId>,
    /// What is being written in it.
    pub write: Option<WriteShard>,
    /// Whether another coordinator owns the store.
    pub fenced: bool,
    /// How far the epoch is: the one thing that changes all the time.
    pub progress: Option<EpochProgress>,
}

/// A job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobStatus {
    /// Its name.
    pub job: JobId,
    /// Its place among all jobs: lower ones have their turn first.
    pub place: u64,
    /// What became of it.
    pub state: JobState,
    /// Whether it is to be cancelled as soon as what is finished is committed.
    pub cancelling: bool,
    /// What keeps it from going on.
    pub obstacle: Option<String>,
    /// The pass that it is in, or that comes next; `None` when nothing is missing.
    pub phase: Option<Phase>,
    /// The layers that it is going through, or comes to next.
    pub segment: Option<Segment>,
    /// The layer that it is at, or begins with.
    pub layer: Option<Layer>,
    /// States done in this pass, up to symmetry.
    pub states_done: u64,
    /// States of this pass in all, where that is known: on the way down.
    pub states_total: Option<u64>,
    /// States a second, over the last 20 seconds or so.
    pub states_per_second: f64,
    /// Part of this pass's work that is done, from 0 to 1, by what layers are foretold to cost.
    pub done: f64,
    /// Time left in this pass, and until the job is done, where there is an estimate.
    pub eta: Option<Eta>,
    /// Bytes of committed shards.
    pub bytes: u64,
    /// What its run takes of its limit, as of when it was last open; `None` where it has none, or is not known yet.
    pub disk: Option<DiskUse>,
    /// Epochs that failed, under all coordinators.
    pub retries: u64,
    /// Epochs that began, under all coordinators.
    pub epochs: u64,
    /// Workers that work on it.
    pub workers: u32,
    /// The fingerprint of a solved run.
    pub fingerprint: Option<u128>,
}

/// Time that is left, at the speed of the work so far; of long work the last twenty minutes count most. Not told before a
/// hundredth of the work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eta {
    /// Until the end of this pass.
    pub pass: Duration,
    /// Until the job is done.
    pub job: Duration,
}

/// A worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerStatus {
    /// Its name.
    pub worker: WorkerId,
    /// Threads that compute.
    pub threads: u32,
    /// Memory that it may use, in bytes.
    pub memory_bytes: u64,
    /// Where its peers reach it.
    pub address: String,
    /// What it does.
    pub activity: Activity,
    /// Time since its last pull.
    pub silent: Duration,
}

/// What a worker does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Computes.
    Working {
        /// The job.
        job: JobId,
        /// The lowest layer (the highest, on the way down) that it has not finished.
        layer: Layer,
    },
    /// Writes a shard, and computes.
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
    /// Has failed, and gets no work until it is well.
    Unwell(String),
    /// Has failed lately, and gets no work for this long.
    BackingOff(Duration),
    /// Its memory is too small for the active job.
    TooSmall,
    /// Wants to go, and is in no epoch any more.
    Leaving,
}

impl Cluster {
    /// What the cluster is doing. Costs time in proportion to jobs and workers.
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

    /// What one job is doing.
    pub fn job_status(&self, id: &JobId, now: Duration) -> Option<JobStatus> {
        self.jobs.get(id).map(|job| self.status_of(id, job, now))
    }

    /// What became of a job.
    pub fn job_state(&self, id: &JobId) -> Option<&JobState> {
        self.jobs.get(id).map(|job| &job.state)
    }

    /// The progress of a job, as the queue keeps it.
    pub fn job_summary(&self, id: &JobId) -> Option<&JobSummary> {
        self.jobs.get(id).map(|job| &job.summary)
    }

    /// How many jobs there are.
    pub fn jobs_len(&self) -> usize {
        self.jobs.len()
    }

    /// What the workers are doing.
    pub fn worker_statuses(&self, now: Duration) -> Vec<WorkerStatus> {
        let workers = self.roster.workers.iter();
        workers.map(|(&id, worker)| self.worker_status(id, worker, now)).collect()
    }

    /// States that workers have finished, of all jobs and epochs, committed or not.
    pub fn states(&self) -> u64 {
        self.states
    }

    /// Counts a job among those of which something has changed.
    pub fn touch(&mut self, id: &JobId) {
        self.changed.insert(id.clone());
    }

    /// The jobs whose status may differ from what it was when this was asked last: those of which something has
    /// changed, and the one that is being worked on.
    pub fn take_changed(&mut self) -> BTreeSet<JobId> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.extend(self.active.clone());
        changed
    }

    /// What workers may wait for.
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
            obstacle: job.obstacle.clone(),
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
            Activity::Unwell(format!("it hung in epoch {epoch} and has not left it"))
        } else if now < worker.not_before {
            Activity::BackingOff(worker.not_before - now)
        } else if active.is_some_and(|job| !job.fits(worker.threads, worker.memory_bytes)) {
            Activity::TooSmall
        } else {
            Activity::Waiting
        }
    }
}

/// How far a job is at the moment, with what is finished and not committed.
struct At {
    summary: JobSummary,
    eta: Option<Eta>,
}

impl At {
    fn new(job: &Job, plan: &Plan, epoch: Option<&Epoch>, now: Duration) -> Self {
        let states_ahead = epoch.map_or(0, Epoch::states_ahead);
        // What is finished and not committed yet is at the beginning of what comes next.
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
