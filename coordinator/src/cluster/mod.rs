//! The coordinator of a cluster: jobs, workers, epochs and commits, in pure code.
//!
//! [`Cluster`] is a plain struct. The shell passes the current time to each call, and makes one call at a time.
//! After each call, the shell carries out the appends from [`Cluster::take_appends`] and the errands from
//! [`Cluster::take_errands`]. The time is a [`Duration`] since any fixed moment, by a clock that does not jump.
//! `docs/dev/cluster-protocol.md` states the protocol, its numbered invariants, and the effect of each failure.

mod attendance;
mod blame;
mod checks;
mod config;
mod counts;
mod epoch;
mod events;
mod failures;
mod holding;
mod ids;
mod job;
mod journal;
mod messages;
mod pulls;
mod roster;
mod schedule;
mod secret;
mod status;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use exact2048_game::Layer;
use exact2048_solution::Commit;
#[cfg(test)]
use exact2048_solution::Phase;

use epoch::Epoch;
use job::Job;
use journal::Journal;
use roster::Roster;

pub use blame::{RunTrouble, TroubleKind};
pub use config::ClusterConfig;
pub use events::Event;
pub use holding::PullDecision;
pub use ids::{EpochId, Incarnation, OpenTicket, Ticket};
pub use job::{DiskUse, JobState, LeastMemory, Opened, RunBytes, Submission};
pub use messages::{
    Append, AppendFailure, Claim, EpochMember, EpochProgress, EpochStage, Errand, Examined, JobId, LayerPart,
    MemberShard, OpenFailure, PROTOCOL_VERSION, Pull, PullReply, Refusal, Share, StoreCheck, WorkerFailure,
    WorkerId, WorkerReport, WriteShard,
};
pub use secret::{Secret, Secrets};
pub use status::{Activity, Eta, JobStatus, Signal, Status, WorkerStatus};
pub use summary::JobSummary;

/// Refusal of a request to a cluster.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClusterError {
    /// The job was submitted before.
    #[error(
        "job {job} already exists and is {}; {}, or choose another name", state.name(), job::advice(state)
    )]
    Exists {
        /// The job.
        job: JobId,
        /// State of the job.
        state: JobState,
    },
    /// The queue is full.
    #[error("the queue is full with {most} jobs; forget some that have ended")]
    Full {
        /// Maximum number of jobs.
        most: usize,
    },
    /// The shards of the job are being reread.
    #[error("the shards of job {0} are being reread; wait until this check ends, then forget the job")]
    Checking(JobId),
    /// The job does not exist.
    #[error("job {0} does not exist")]
    Unknown(JobId),
    /// The job's state does not allow the request.
    #[error("job {job} is {} and cannot be {wanted}", state.name())]
    State {
        /// The job.
        job: JobId,
        /// State of the job.
        state: JobState,
        /// The requested change.
        wanted: &'static str,
    },
    /// No worker has enough memory for the job.
    #[error("the job fits no worker: {}", job::too_small(*needed_bytes, *threads, *memory_bytes))]
    DoesNotFit {
        /// Least memory of a worker with `threads` threads, in bytes.
        needed_bytes: u64,
        /// Number of threads of the closest worker.
        threads: u32,
        /// Memory of that worker, in bytes.
        memory_bytes: u64,
    },
    /// Another coordinator owns the store.
    #[error("another coordinator owns the store; ask that one")]
    Fenced,
}

/// Way to resume a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resumption {
    /// The job is done, so its shards are reread.
    Reread,
    /// The job is being cancelled and continues instead.
    Continue,
    /// The job has stopped and returns to the queue.
    Requeue,
}

/// Decides the next steps of a cluster of workers.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    /// The time of the latest call.
    now: Duration,
    /// Time of the last call that was so late that this coordinator must have been starved.
    starved_at: Option<Duration>,
    secrets: Secrets,
    next_epoch: EpochId,
    next_place: u64,
    next_opening: OpenTicket,
    fenced: bool,
    roster: Roster,
    jobs: BTreeMap<JobId, Job>,
    /// Jobs that wait for their turn, by place.
    queue: BTreeMap<u64, JobId>,
    /// Earliest known time when a job of the queue may get its turn.
    choose_at: Duration,
    /// The job that has its turn.
    active: Option<JobId>,
    epoch: Option<Epoch>,
    /// Time since which an epoch could begin.
    could_begin: Option<Duration>,
    /// Whether the last epoch completed its segment. Then the next epoch does not wait for more workers.
    in_step: bool,
    journal: Journal,
    appends: Vec<Append>,
    errands: Vec<Errand>,
    events: Vec<Event>,
    /// Jobs that have changed since the last request for changes.
    changed: BTreeSet<JobId>,
    /// Number of states that workers have finished, in all epochs.
    states: u64,
}

impl Cluster {
    /// Creates a cluster without jobs and workers. The first epoch gets the number `first_epoch`. This number must
    /// exceed all numbers that an earlier coordinator of this store has used, or will use before it is fenced.
    pub fn new(first_epoch: EpochId, config: ClusterConfig, secrets: Secrets, now: Duration) -> Self {
        Self {
            config,
            now,
            starved_at: None,
            secrets,
            next_epoch: first_epoch,
            next_place: 0,
            next_opening: OpenTicket::default(),
            fenced: false,
            roster: Roster::default(),
            jobs: BTreeMap::new(),
            queue: BTreeMap::new(),
            choose_at: Duration::ZERO,
            active: None,
            epoch: None,
            could_begin: None,
            in_step: false,
            journal: Journal::default(),
            appends: Vec::new(),
            errands: Vec::new(),
            events: Vec::new(),
            changed: BTreeSet::new(),
            states: 0,
        }
    }

    /// Returns the appends for the shell to make now. Call it after every other call.
    pub fn take_appends(&mut self) -> Vec<Append> {
        std::mem::take(&mut self.appends)
    }

    /// Returns the errands for the shell to carry out now. Call it after every other call.
    pub fn take_errands(&mut self) -> Vec<Errand> {
        std::mem::take(&mut self.errands)
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Advances the time. Call it several times per lease, even when nothing happens.
    pub fn tick(&mut self, now: Duration) {
        self.pass_time(now);
        self.advance();
    }

    /// Adds a job to the queue.
    pub fn submit(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        self.check(now, &submission.job, submission.least_memory.as_deref())?;
        self.enqueue(now, submission)
    }

    /// Checks that a job can be submitted, before anything is created for it.
    pub fn check(
        &mut self,
        now: Duration,
        id: &JobId,
        least: Option<&LeastMemory>,
    ) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        self.check_new(id)?;
        let most = self.config.max_jobs;
        if self.jobs.len() >= most {
            return Err(ClusterError::Full { most });
        }
        least.and_then(|least| self.does_not_fit(least)).map_or(Ok(()), Err)
    }

    /// Adds a previously accepted job to the queue, regardless of the current workers.
    pub fn enqueue(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        let (job, state) = (submission.job.clone(), submission.state.clone());
        self.restore(now, submission)?;
        self.events.push(Event::Job { job, state });
        self.advance();
        Ok(())
    }

    /// Adds a job of an earlier coordinator, without an event.
    pub fn restore(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        self.check_new(&submission.job)?;
        let (id, job) = Job::new(submission, self.next_place);
        if job.state == JobState::Queued {
            self.queue.insert(self.next_place, id.clone());
            self.choose_at = Duration::ZERO;
        }
        self.next_place += 1;
        self.changed.insert(id.clone());
        self.jobs.insert(id, job);
        Ok(())
    }

    /// Records that a job's run is open for writing, with these contents.
    pub fn opened(&mut self, now: Duration, ticket: OpenTicket, opened: Opened) {
        self.pass_time(now);
        if let Some((id, job)) = self.opening(ticket) {
            let missing_bytes = opened.missing_bytes;
            job.open(opened);
            // The estimate may be wrong, so the job fails only after an epoch has run out of space.
            let over = job.disk.filter(|_| job.short > 0 && missing_bytes > 0);
            self.changed.insert(id.clone());
            if let Some(disk) = over {
                let reason = job::over_disk(&id, disk.limit_bytes, missing_bytes);
                self.end_job(&id, JobState::Failed { reason });
            }
        }
        self.advance();
    }

    /// Records that the run of a job cannot be opened. The next job gets its turn.
    pub fn not_opened(&mut self, now: Duration, ticket: OpenTicket, why: OpenFailure) {
        self.pass_time(now);
        if let Some((id, _)) = self.opening(ticket) {
            match why {
                OpenFailure::Later(reason) => self.step_aside(&id, reason, self.now + self.config.reopen),
                OpenFailure::Never(reason) => self.end_job(&id, JobState::Failed { reason }),
            }
        }
        self.advance();
    }

    /// Returns the job that waits for the errand with this ticket to open its run.
    fn opening(&mut self, ticket: OpenTicket) -> Option<(JobId, &mut Job)> {
        let id = self.active.clone()?;
        let job = self.jobs.get_mut(&id).filter(|job| job.opening == Some(ticket))?;
        Some((id, job))
    }

    /// Returns whether an errand to open a run is still pending.
    pub fn is_opening(&self, ticket: OpenTicket) -> bool {
        let job = self.active.as_ref().and_then(|id| self.jobs.get(id));
        job.is_some_and(|job| job.opening == Some(ticket))
    }

    /// Returns whether the run of a job must stay open: the job is active, or appends to the job's journal are pending.
    pub fn holds(&self, id: &JobId) -> bool {
        self.active.as_ref() == Some(id) || !self.journal.is_idle(id)
    }

    /// Returns whether the run of a job was created. Such a run is not created again.
    pub fn has_run(&self, id: &JobId) -> bool {
        self.jobs.get(id).is_some_and(|job| job.has_run)
    }

    /// Checks that a job can be cancelled, before the cancellation is recorded.
    pub fn check_cancel(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        let job = self.jobs.get(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        if job.state.has_ended() { Err(wrong_state(id, &job.state, "cancelled")) } else { Ok(()) }
    }

    /// Cancels a job. The finished work of its workers is committed first.
    pub fn cancel(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_cancel(id)?;
        let running = self.epoch.as_ref().is_some_and(|epoch| epoch.share.job == *id);
        let is_stuck = self.journal.is_stuck(id);
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        if running && !is_stuck {
            job.cancelling = true;
            self.changed.insert(id.clone());
        } else {
            self.end_job(id, JobState::Cancelled);
        }
        self.advance();
        Ok(())
    }

    /// Moves a cancelled or failed job to the end of the queue. A job still being cancelled continues instead.
    pub fn resume(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_resume(id)?;
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        if job.cancelling {
            job.cancelling = false;
            self.changed.insert(id.clone());
        } else {
            (job.failures, job.slowness, job.short) = (0, 0, 0);
            self.requeue(id);
        }
        self.advance();
        Ok(())
    }

    /// Decides how a job is resumed, before its resumption is recorded.
    pub fn resumption(&self, id: &JobId) -> Result<Resumption, ClusterError> {
        match self.job_state(id) {
            Some(JobState::Done) => Ok(Resumption::Reread),
            Some(JobState::Running) => self.check_resume(id).map(|()| Resumption::Continue),
            _ => self.check_resume(id).map(|()| Resumption::Requeue),
        }
    }

    /// Checks that a job can be resumed.
    fn check_resume(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        let job = self.jobs.get(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        match &job.state {
            JobState::Running if job.cancelling => Ok(()),
            JobState::Cancelled | JobState::Failed { .. } => Ok(()),
            state => Err(wrong_state(id, state, "resumed")),
        }
    }

    /// Checks that a job can be forgotten, before the removal is recorded.
    pub fn check_forget(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        let job = self.jobs.get(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        if !job.state.has_ended() || self.holds(id) {
            return Err(wrong_state(id, &job.state, "forgotten before it has ended; cancel it first"));
        }
        if job.check.is_under_way() {
            return Err(ClusterError::Checking(id.clone()));
        }
        Ok(())
    }

    /// Removes an ended job from the list. Its run stays unchanged.
    pub fn forget(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_forget(id)?;
        self.jobs.remove(id);
        self.changed.insert(id.clone());
        self.events.push(Event::Forgotten { job: id.clone() });
        Ok(())
    }

    /// Records a job's memory need. The error means that the job fits none of the workers.
    pub fn learn_memory(
        &mut self,
        now: Duration,
        id: &JobId,
        least: Arc<LeastMemory>,
    ) -> Result<(), ClusterError> {
        self.pass_time(now);
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        job.least_memory = Some(Arc::clone(&least));
        self.does_not_fit(&least).map_or(Ok(()), Err)
    }

    /// Records that these commits of a job have unreadable shards. An active job recomputes the shards at once,
    /// and a done job at its next turn. Returns whether any commit was retracted.
    pub fn shards_lost(
        &mut self,
        now: Duration,
        id: &JobId,
        commits: &[Commit],
    ) -> Result<bool, ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        let (params, is_done) = (&job.params, job.state == JobState::Done);
        let lost = match &mut job.plan {
            Some(plan) => plan.take(params, |commit| commits.contains(commit)),
            None if is_done => commits.to_vec(),
            // The next opening of the job's run will find the missing shards.
            None => Vec::new(),
        };
        let found = self.retract(id, lost);
        if found && is_done {
            self.requeue(id);
        }
        self.advance();
        Ok(found)
    }

    /// Records the result of the coordinator's reading of a shard that a worker could not read.
    pub fn examined(&mut self, now: Duration, claim: &Claim, found: Examined) {
        self.pass_time(now);
        self.judge(claim, found);
        self.advance();
    }

    /// Records that an append is in the journal. `stored` is the new size of its run.
    pub fn committed(&mut self, now: Duration, ticket: Ticket, stored: RunBytes) {
        self.pass_time(now);
        if let Some(append) = self.journal.take(ticket)
            && !self.fenced
        {
            self.appended(append, stored);
        }
        self.advance();
    }

    /// Records that an append failed, or that its outcome is unknown.
    pub fn append_failed(&mut self, now: Duration, ticket: Ticket, failure: AppendFailure) {
        self.pass_time(now);
        self.not_appended(ticket, failure);
        self.advance();
    }

    /// Records that an append is impossible because a worker's report of its shard is wrong. The epoch fails, and
    /// the worker is blamed if it is known.
    pub fn commit_refused(
        &mut self,
        now: Duration,
        ticket: Ticket,
        worker: Option<WorkerId>,
        reason: String,
    ) {
        self.pass_time(now);
        if self.journal.take(ticket).is_some() && !self.fenced {
            if let Some(worker) = worker {
                self.roster.back_off(worker, self.config.backoff, self.now);
            }
            self.fail_epoch(reason);
        }
        self.advance();
    }

    /// Records that another coordinator owns the store. This coordinator then assigns no further work.
    pub fn fence(&mut self, now: Duration) {
        self.pass_time(now);
        (self.fenced, self.epoch, self.active) = (true, None, None);
    }

    /// Returns whether a worker is registered.
    #[must_use]
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.roster.workers.contains_key(&worker)
    }

    /// Returns whether a worker is a member of the current epoch.
    fn is_member(&self, worker: WorkerId) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.share.member(worker).is_some())
    }

    fn check_new(&self, id: &JobId) -> Result<(), ClusterError> {
        let exists = |job: &Job| ClusterError::Exists { job: id.clone(), state: job.state.clone() };
        self.jobs.get(id).map_or(Ok(()), |job| Err(exists(job)))
    }

    fn check_owner(&self) -> Result<(), ClusterError> {
        if self.fenced { Err(ClusterError::Fenced) } else { Ok(()) }
    }

    /// Returns why a job fits none of the workers; `None` if it fits a worker or if no worker is registered.
    fn does_not_fit(&self, least: &LeastMemory) -> Option<ClusterError> {
        let missing =
            |worker: &roster::Registered| least.bytes(worker.threads).saturating_sub(worker.memory_bytes);
        let nearest = self.roster.workers.values().min_by_key(|worker| missing(worker))?;
        (missing(nearest) > 0).then(|| ClusterError::DoesNotFit {
            needed_bytes: least.bytes(nearest.threads),
            threads: nearest.threads,
            memory_bytes: nearest.memory_bytes,
        })
    }
}

fn wrong_state(job: &JobId, state: &JobState, wanted: &'static str) -> ClusterError {
    ClusterError::State { job: job.clone(), state: state.clone(), wanted }
}
