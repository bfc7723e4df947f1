//! What a cluster is doing, for people and dashboards.

use std::time::Duration;

use exact2048_game::Layer;
use rustc_hash::FxHashMap;

use super::job::{Job, JobState};
use super::messages::{JobId, Progress, WorkerId, WriteShard};
use super::roster::Worker;
use super::{Cluster, Epoch};
use crate::progress::{Segment, missing_segments};
use crate::task::Phase;

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
    pub epoch: Option<u64>,
    /// What is being written in it.
    pub write: Option<WriteShard>,
    /// Whether another coordinator owns the store.
    pub fenced: bool,
    /// How far the epoch is: the one thing that changes all the time.
    pub progress: Option<Progress>,
}

/// A job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobStatus {
    /// Its name.
    pub job: JobId,
    /// What became of it.
    pub state: JobState,
    /// Whether it is to be cancelled as soon as what is finished is committed.
    pub cancelling: bool,
    /// The pass that it is in, or comes next; `None` when nothing is missing.
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
    /// Part of this pass's work that is done, from 0 to 1: of its entries on the way up, of its states on the way down.
    pub done: f64,
    /// Time left in this pass, and until the job is done, where there is an estimate.
    pub eta: Option<Eta>,
    /// Bytes of committed shards.
    pub bytes: u64,
    /// Epochs that failed.
    pub retries: u64,
    /// Epochs begun, by this coordinator.
    pub epochs: u64,
    /// Workers that are at it.
    pub workers: u32,
    /// The fingerprint of a solved run.
    pub fingerprint: Option<u128>,
}

/// Time that is left, at the speed of the last 20 seconds or so.
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
    /// Gets no work for so long, because of failures.
    BackingOff(Duration),
    /// Its memory is too small for the active job.
    TooSmall,
    /// Wants to go, and is in no epoch any more.
    Leaving,
}

impl Cluster {
    /// What the cluster is doing. Costs time in proportion to the layers of all jobs.
    pub fn status(&self, now: Duration) -> Status {
        let mut jobs: Vec<(&JobId, &Job)> = self.jobs.iter().collect();
        jobs.sort_by_key(|(_, job)| job.place);
        let workers = self.roster.workers.iter().map(|(&id, worker)| self.worker_status(id, worker, now));
        Status {
            fenced: self.fenced,
            jobs: jobs.into_iter().map(|(id, job)| self.job_status(id, job, now)).collect(),
            workers: workers.collect(),
            states: self.states,
        }
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

    fn job_status(&self, id: &JobId, job: &Job, now: Duration) -> JobStatus {
        let epoch: Option<&Epoch> = self.epoch.as_ref().filter(|epoch| epoch.share.job == *id);
        let last_pass = if job.params.until_layer.is_some() { Phase::Enumerate } else { Phase::BackUp };
        let phase = job.remaining.map_or(last_pass, |segment| segment.phase);
        let counts = job.commits.iter().flat_map(|commit| &commit.layers);
        let states: FxHashMap<Layer, u64> = counts.map(|counts| (counts.layer, counts.states)).collect();
        let total: u64 = states.values().sum();
        let committed = match phase {
            Phase::Enumerate => total,
            Phase::BackUp => {
                let done = job.commits.iter().filter(|commit| commit.phase == phase);
                let layers = done.flat_map(|commit| (commit.first.0..=commit.last.0).step_by(2));
                layers.filter_map(|layer| states.get(&Layer(layer))).sum()
            }
        };
        let states_done = committed + epoch.map_or(0, Epoch::states_ahead);
        let states_total = (phase == Phase::BackUp).then_some(total);
        let Left { pass, later, whole_pass, per_second } = match phase {
            Phase::Enumerate => entries_left(job, epoch, now),
            Phase::BackUp => {
                let per_second = job.states_rate.per_second(now);
                let pass = total.saturating_sub(states_done) as f64;
                Left { pass, later: 0.0, whole_pass: total as f64, per_second }
            }
        };
        let time = |work: f64| Duration::try_from_secs_f64(work / per_second).ok();
        let eta = epoch.and_then(|_| Some(Eta { pass: time(pass)?, job: time(pass + later)? }));
        let start = job.remaining.map(|segment| match segment.phase {
            Phase::Enumerate => segment.first,
            Phase::BackUp => segment.last,
        });
        JobStatus {
            job: id.clone(),
            state: job.state.clone(),
            cancelling: job.cancelling,
            phase: job.remaining.map(|segment| segment.phase),
            segment: epoch.map(Epoch::segment).or(job.remaining),
            layer: epoch.map(Epoch::frontier_layer).or(start),
            states_done,
            states_total,
            states_per_second: job.states_rate.per_second(now),
            done: if whole_pass > 0.0 { (1.0 - pass / whole_pass).clamp(0.0, 1.0) } else { 0.0 },
            eta,
            bytes: job.bytes,
            retries: job.retries,
            epochs: job.epochs,
            workers: epoch.map_or(0, |epoch| epoch.share.members.len() as u32),
            fingerprint: job.fingerprint(),
        }
    }

    fn worker_status(&self, id: WorkerId, worker: &Worker, now: Duration) -> WorkerStatus {
        WorkerStatus {
            worker: id,
            threads: worker.threads,
            memory_bytes: worker.memory_bytes,
            address: worker.address.clone(),
            activity: self.activity(id, worker, now),
            silent: now.saturating_sub(worker.heard),
        }
    }

    fn activity(&self, id: WorkerId, worker: &Worker, now: Duration) -> Activity {
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
        } else if now < worker.not_before {
            Activity::BackingOff(worker.not_before - now)
        } else if active.is_some_and(|job| !job.fits(worker.threads, worker.memory_bytes)) {
            Activity::TooSmall
        } else {
            Activity::Waiting
        }
    }
}

/// Work that is left: on the way up in entries, on the way down in states, which are known then.
struct Left {
    pass: f64,
    /// Of what comes after this pass.
    later: f64,
    whole_pass: f64,
    per_second: f64,
}

/// What is left on the way up.
fn entries_left(job: &Job, epoch: Option<&Epoch>, now: Duration) -> Left {
    let missing = missing_segments(&job.params, &job.commits);
    let upward = missing.iter().filter(|segment| segment.phase == Phase::Enumerate);
    // What is finished and not committed yet is at the beginning of what comes next.
    let next = job.remaining.zip(epoch);
    let ahead =
        next.map_or(0.0, |(segment, epoch)| job.workload.entries(segment.first, epoch.frontier_layer()));
    Left {
        pass: upward.map(|&segment| job.workload.of(segment)).sum::<f64>() - ahead,
        later: job.workload.to_back_up(&missing),
        whole_pass: job.workload.whole(),
        per_second: job.entries_rate.per_second(now),
    }
}
