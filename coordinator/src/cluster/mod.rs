//! The coordinator of a cluster: jobs, workers, epochs and commits, in pure code.
//!
//! [`Cluster`] is a plain struct. The shell around it calls its methods with the time, one at a time, and
//! after each call carries out what [`Cluster::take_appends`] returns. The time is a [`Duration`] since any
//! fixed moment, by a clock that does not jump. `docs/dev/cluster-protocol.md` states the protocol, its numbered
//! invariants, and what each failure does.

mod attendance;
mod config;
mod counts;
mod epoch;
mod events;
mod failures;
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

pub use config::ClusterConfig;
pub use events::Event;
pub use ids::{EpochId, Incarnation, OpenTicket, Ticket};
pub use job::{DiskUse, JobState, LeastMemory, Opened, RunBytes, Submission};
pub use messages::{
    Append, AppendFailure, Claim, EpochMember, EpochProgress, EpochStage, Errand, Examined, JobId, LayerPart,
    Looked, MemberShard, NotOpened, PROTOCOL_VERSION, Pull, PullReply, Refusal, Share, WorkerFailure,
    WorkerId, WorkerReport, WriteShard,
};
pub use secret::{Secret, Secrets};
pub use status::{Activity, Eta, JobStatus, Signal, Status, WorkerStatus};
pub use summary::JobSummary;

/// Why something asked of a cluster is not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClusterError {
    /// The job was submitted before.
    #[error("job {0} exists already")]
    Exists(JobId),
    /// There is no such job.
    #[error("there is no job {0}")]
    Unknown(JobId),
    /// The job's state does not allow it.
    #[error("job {job} is {}: it cannot be {wanted}", state.name())]
    State {
        /// The job.
        job: JobId,
        /// Its state.
        state: JobState,
        /// What was asked for.
        wanted: &'static str,
    },
    /// No worker has the memory for the job.
    #[error("the job fits no worker: {}", job::too_small(*needed_bytes, *threads, *memory_bytes))]
    DoesNotFit {
        /// Least memory of a worker with that many threads, in bytes.
        needed_bytes: u64,
        /// Threads of the worker that comes nearest.
        threads: u32,
        /// Its memory, in bytes.
        memory_bytes: u64,
    },
    /// Another coordinator owns the store.
    #[error("another coordinator has taken over the store: this one does nothing more")]
    Fenced,
}

/// Decides what a cluster of workers does next.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    /// The time of the latest call.
    now: Duration,
    /// When a call last came so late that this coordinator has had too little time itself.
    starved_at: Option<Duration>,
    secrets: Secrets,
    next_epoch: EpochId,
    next_place: u64,
    next_opening: OpenTicket,
    fenced: bool,
    roster: Roster,
    jobs: BTreeMap<JobId, Job>,
    /// The jobs that wait for their turn, by their places.
    queue: BTreeMap<u64, JobId>,
    /// When one of them may come to its turn at the earliest, as far as that is known.
    choose_at: Duration,
    /// The job that is being worked on.
    active: Option<JobId>,
    epoch: Option<Epoch>,
    /// Since when an epoch could begin.
    could_begin: Option<Duration>,
    /// Whether the last epoch has done all of its segment: then the next one does not wait for more workers to join.
    in_step: bool,
    journal: Journal,
    appends: Vec<Append>,
    errands: Vec<Errand>,
    events: Vec<Event>,
    /// Jobs of which something has changed since that was asked for last.
    changed: BTreeSet<JobId>,
    /// States that workers have finished, in all epochs.
    states: u64,
}

impl Cluster {
    /// A cluster without jobs and workers. Its epochs are numbered from `first_epoch`, which must be higher than any
    /// number that a coordinator of this store has used or will use before it is fenced.
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

    /// What the shell has to do now. To be asked after every other call.
    pub fn take_appends(&mut self) -> Vec<Append> {
        std::mem::take(&mut self.appends)
    }

    /// What the shell has to find out now. To be asked after every other call, too.
    pub fn take_errands(&mut self) -> Vec<Errand> {
        std::mem::take(&mut self.errands)
    }

    /// What happened since this was asked last.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Lets time pass: to be called several times a lease, also when nothing happens.
    pub fn tick(&mut self, now: Duration) {
        self.pass_time(now);
        self.advance();
    }

    /// Puts a job in the queue.
    pub fn submit(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        self.check(now, &submission.job, submission.least_memory.as_deref())?;
        self.enqueue(now, submission)
    }

    /// Refuses a job that cannot be submitted, before anything is made for it.
    pub fn check(
        &mut self,
        now: Duration,
        id: &JobId,
        least: Option<&LeastMemory>,
    ) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        if self.jobs.contains_key(id) {
            return Err(ClusterError::Exists(id.clone()));
        }
        least.and_then(|least| self.does_not_fit(least)).map_or(Ok(()), Err)
    }

    /// Puts a job in the queue that was accepted before, whatever workers there are now.
    pub fn enqueue(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        let (job, state) = (submission.job.clone(), submission.state.clone());
        self.restore(now, submission)?;
        self.events.push(Event::Job { job, state });
        self.advance();
        Ok(())
    }

    /// Adds a job that an earlier coordinator had. There is no event for it: it was submitted long ago.
    pub fn restore(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        if self.jobs.contains_key(&submission.job) {
            return Err(ClusterError::Exists(submission.job));
        }
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

    /// Notes that the run of a job is open for writing, and what it holds.
    pub fn opened(&mut self, now: Duration, ticket: OpenTicket, opened: Opened) {
        self.pass_time(now);
        if let Some((id, job)) = self.opening(ticket) {
            let missing_bytes = opened.missing_bytes;
            job.open(opened);
            // A forecast may be wrong, but an epoch has found no room.
            let over = job.disk.filter(|_| job.short > 0 && missing_bytes > 0);
            self.changed.insert(id.clone());
            if let Some(disk) = over {
                let reason = job::over_disk(&id, disk.limit_bytes, missing_bytes);
                self.end_job(&id, JobState::Failed { reason });
            }
        }
        self.advance();
    }

    /// Notes that the run of a job cannot be opened: another job has its turn.
    pub fn not_opened(&mut self, now: Duration, ticket: OpenTicket, why: NotOpened) {
        self.pass_time(now);
        if let Some((id, _)) = self.opening(ticket) {
            match why {
                NotOpened::Later(reason) => self.step_aside(&id, reason, self.now + self.config.reopen),
                NotOpened::Never(reason) => self.end_job(&id, JobState::Failed { reason }),
            }
        }
        self.advance();
    }

    /// The job whose run is to be opened by an errand with this ticket, and was not yet.
    fn opening(&mut self, ticket: OpenTicket) -> Option<(JobId, &mut Job)> {
        let id = self.active.clone()?;
        let job = self.jobs.get_mut(&id).filter(|job| job.opening == Some(ticket))?;
        Some((id, job))
    }

    /// Whether an errand to open a run is still to be answered.
    pub fn is_opening(&self, ticket: OpenTicket) -> bool {
        let job = self.active.as_ref().and_then(|id| self.jobs.get(id));
        job.is_some_and(|job| job.opening == Some(ticket))
    }

    /// Whether the run of a job is to be kept open: it is being worked on, or something is to be appended to its journal.
    pub fn holds(&self, id: &JobId) -> bool {
        self.active.as_ref() == Some(id) || !self.journal.is_idle(id)
    }

    /// Whether the run of a job was made, so that it is not made again.
    pub fn has_run(&self, id: &JobId) -> bool {
        self.jobs.get(id).is_some_and(|job| job.has_run)
    }

    /// Cancels a job. What its workers have finished is committed first.
    pub fn cancel(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        let running = self.epoch.as_ref().is_some_and(|epoch| epoch.share.job == *id);
        let is_stuck = self.journal.is_stuck(id);
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        match &job.state {
            JobState::Running if running && !is_stuck => {
                job.cancelling = true;
                self.changed.insert(id.clone());
            }
            JobState::Running | JobState::Queued => self.end_job(id, JobState::Cancelled),
            state => return Err(wrong_state(id, state, "cancelled")),
        }
        self.advance();
        Ok(())
    }

    /// Puts a job that was cancelled or has failed at the end of the queue; one that is still being cancelled goes on.
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

    /// Refuses a job that cannot be resumed, before its resumption is noted anywhere.
    pub fn check_resume(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        let job = self.jobs.get(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        match &job.state {
            JobState::Running if job.cancelling => Ok(()),
            JobState::Cancelled | JobState::Failed { .. } => Ok(()),
            state => Err(wrong_state(id, state, "resumed")),
        }
    }

    /// Refuses a job that cannot be forgotten, before that is noted anywhere.
    pub fn check_forget(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        let job = self.jobs.get(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        if !job.state.has_ended() || self.holds(id) {
            return Err(wrong_state(id, &job.state, "forgotten before it has ended; cancel it first"));
        }
        Ok(())
    }

    /// Takes a job that has ended out of the list. Its run stays as it is.
    pub fn forget(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_forget(id)?;
        self.jobs.remove(id);
        self.changed.insert(id.clone());
        self.events.push(Event::Forgotten { job: id.clone() });
        Ok(())
    }

    /// Notes what memory a job needs. The error says that it fits none of the workers that there are.
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

    /// Notes that these commits of a job hold shards that cannot be read. They are computed again, at once where the
    /// job is active, at its turn where it was done. Returns whether any commit was retracted.
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
            // What is wrong with it is found when its run is opened.
            None => Vec::new(),
        };
        let found = self.retract(id, lost);
        if found && is_done {
            self.requeue(id);
        }
        self.advance();
        Ok(found)
    }

    /// Notes what the coordinator found when it read a shard that a worker could not read.
    pub fn examined(&mut self, now: Duration, claim: &Claim, found: Examined) {
        self.pass_time(now);
        self.judge(claim, found);
        self.advance();
    }

    /// Notes that the append with this ticket is in the journal, and what its run takes now.
    pub fn committed(&mut self, now: Duration, ticket: Ticket, stored: RunBytes) {
        self.pass_time(now);
        if let Some(append) = self.journal.take(ticket)
            && !self.fenced
        {
            self.appended(append, stored);
        }
        self.advance();
    }

    /// Notes that the append with this ticket failed, or that its outcome is not known.
    pub fn append_failed(&mut self, now: Duration, ticket: Ticket, failure: AppendFailure) {
        self.pass_time(now);
        self.not_appended(ticket, failure);
        self.advance();
    }

    /// Notes that an append can never be made, because what a worker says of its shard is wrong: the epoch has failed.
    /// The worker is to blame where it is known which one.
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

    /// Notes that another coordinator owns the store: this one gives out no more work.
    pub fn fence(&mut self, now: Duration) {
        self.pass_time(now);
        (self.fenced, self.epoch, self.active) = (true, None, None);
    }

    /// Whether a worker is registered.
    #[must_use]
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.roster.workers.contains_key(&worker)
    }

    /// Whether a worker has a part in the current epoch.
    fn is_member(&self, worker: WorkerId) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.share.member(worker).is_some())
    }

    fn check_owner(&self) -> Result<(), ClusterError> {
        if self.fenced { Err(ClusterError::Fenced) } else { Ok(()) }
    }

    /// Why a job fits none of the workers that there are; `None` where it fits one, or there are none.
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
