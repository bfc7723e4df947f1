//! The coordinator of a cluster: jobs, workers, epochs and commits, in pure code.
//!
//! [`Cluster`] is a plain struct. The shell around it calls its methods with the time, one at a time, and
//! after each call carries out what [`Cluster::take_actions`] returns. The time is a [`Duration`] since any
//! fixed moment, by a clock that does not jump. `docs/dev/cluster-protocol.md` states the protocol, its numbered
//! invariants, and what each failure does.

mod assign;
mod counts;
mod epoch;
mod events;
mod job;
mod journal;
mod messages;
mod rate;
mod roster;
mod schedule;
mod secret;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use exact2048_game::Layer;

use crate::progress::Commit;
use crate::sizes;
use crate::task::Phase;
use epoch::Epoch;
use job::Job;
use journal::Journal;
use roster::{Registration, Roster};

pub use assign::{Owners, assign};
pub use events::Event;
pub use job::{JobState, LeastMemory, Submission};
pub use messages::{
    Action, EpochStage, Failure, JobId, LayerPart, Member, PROTOCOL_VERSION, Progress, Pull, PullReply,
    Refusal, ShardRecord, Share, WorkerId, WorkerReport, WriteShard,
};
pub use secret::{Secret, Secrets};
pub use status::{Activity, Eta, JobStatus, Signal, Status, WorkerStatus};

/// How a cluster is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// A worker that was not heard for longer is lost.
    pub lease: Duration,
    /// An epoch begins when no worker has registered for so long, so that workers that start together work
    /// together. It does not wait for longer than the lease, and not at all where the last epoch has done its segment.
    pub settle: Duration,
    /// What is finished is committed at least so often, however little; twice as often after each failed epoch in a row.
    pub commit_interval: Duration,
    /// Bytes of a shard of one worker: a range is written when its shards reach it on average. Up to eight times as much
    /// where more waits to be written.
    pub shard_bytes: u64,
    /// Layers that a worker may compute past the lowest one that not all have finished: no more than a bound, as workers
    /// limit themselves by what their peers are at.
    pub window_layers: u32,
    /// An epoch in which nobody finishes anything for so long has failed.
    pub stall: Duration,
    /// A job fails with so many failed epochs in a row without a commit.
    pub max_failed_epochs: u32,
    /// For how long a worker gets no work after its first failure; twice as long after each further one.
    pub backoff: Duration,
    /// After how long an append of unknown outcome is repeated.
    pub retry: Duration,
    /// A worker that has joined is waited for until the next segment if the present one takes less time than this.
    pub worth_rebalancing: Duration,
    /// When a worker with work pulls again.
    pub pause_busy: Duration,
    /// When a worker without work pulls again.
    pub pause_idle: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(5),
            settle: Duration::from_secs(1),
            commit_interval: Duration::from_secs(10),
            shard_bytes: 8 << 20,
            window_layers: 512,
            stall: Duration::from_secs(15 * 60),
            max_failed_epochs: 5,
            backoff: Duration::from_secs(1),
            retry: Duration::from_secs(1),
            worth_rebalancing: Duration::from_secs(30),
            pause_busy: Duration::from_millis(100),
            pause_idle: Duration::from_millis(500),
        }
    }
}

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
    #[error(
        "the job fits no worker: with {threads} threads it needs {} of memory, and the worker that comes nearest has \
         {}; give workers more --memory, or fewer --threads",
        sizes::needed(*needed_bytes), sizes::available(*memory_bytes)
    )]
    DoesNotFit {
        /// Least memory with so many threads, in bytes.
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
    config: Config,
    /// The time of the latest call.
    now: Duration,
    secrets: Secrets,
    next_epoch: u64,
    next_place: u64,
    fenced: bool,
    roster: Roster,
    jobs: BTreeMap<JobId, Job>,
    /// The job that is being worked on.
    active: Option<JobId>,
    epoch: Option<Epoch>,
    /// Since when an epoch could begin.
    could_begin: Option<Duration>,
    /// The last epoch has done all of its segment: who worked in it waits for nobody.
    in_step: bool,
    journal: Journal,
    actions: Vec<Action>,
    events: Vec<Event>,
    /// States that workers have finished, in all epochs.
    states: u64,
}

impl Cluster {
    /// A cluster without jobs and workers. Its epochs are numbered from `first_epoch`, which must be higher than any
    /// number that a coordinator of this store has used or will use before it is fenced.
    pub fn new(first_epoch: u64, config: Config, secrets: Secrets, now: Duration) -> Self {
        Self {
            config,
            now,
            secrets,
            next_epoch: first_epoch,
            next_place: 0,
            fenced: false,
            roster: Roster::default(),
            jobs: BTreeMap::new(),
            active: None,
            epoch: None,
            could_begin: None,
            in_step: false,
            journal: Journal::default(),
            actions: Vec::new(),
            events: Vec::new(),
            states: 0,
        }
    }

    /// What the shell has to do now. To be asked after every other call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
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
        self.check(now, &submission.job, &submission.least_memory)?;
        self.enqueue(now, submission)
    }

    /// Why a job would not be taken; it is told before anything is made for it.
    pub fn check(&mut self, now: Duration, id: &JobId, least: &LeastMemory) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        if self.jobs.contains_key(id) {
            return Err(ClusterError::Exists(id.clone()));
        }
        self.does_not_fit(least).map_or(Ok(()), Err)
    }

    /// Puts a job in the queue that was accepted before, whatever workers there are now.
    pub fn enqueue(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        if self.jobs.contains_key(&submission.job) {
            return Err(ClusterError::Exists(submission.job));
        }
        let (id, job) = Job::new(submission, self.next_place);
        self.next_place += 1;
        self.events.push(Event::Job { job: id.clone(), state: job.state.clone() });
        self.jobs.insert(id, job);
        self.advance();
        Ok(())
    }

    /// Takes in what the journal of a job says, which has stopped: others may have gone on with its run meanwhile.
    pub fn refresh(
        &mut self,
        now: Duration,
        id: &JobId,
        commits: Vec<Commit>,
        bytes: u64,
    ) -> Result<(), ClusterError> {
        self.pass_time(now);
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        match &job.state {
            JobState::Cancelled | JobState::Failed { .. } => {
                job.commits = commits;
                job.bytes = bytes;
                job.replan();
                Ok(())
            }
            state => Err(wrong_state(id, state, "refreshed")),
        }
    }

    /// Cancels a job. What its workers have finished is committed first.
    pub fn cancel(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        let running = self.epoch.as_ref().is_some_and(|epoch| epoch.share.job == *id);
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        match &job.state {
            JobState::Running if running => job.cancelling = true,
            JobState::Running | JobState::Queued => {
                self.set_state(id, JobState::Cancelled);
                self.active.take_if(|active| active == id);
            }
            state => return Err(wrong_state(id, state, "cancelled")),
        }
        self.advance();
        Ok(())
    }

    /// Puts a job that was cancelled or has failed at the end of the queue; one that is still being cancelled goes on.
    pub fn resume(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        match &job.state {
            JobState::Running if job.cancelling => job.cancelling = false,
            JobState::Cancelled | JobState::Failed { .. } => {
                job.failures = 0;
                self.requeue(id);
            }
            state => return Err(wrong_state(id, state, "resumed")),
        }
        self.advance();
        Ok(())
    }

    /// Takes in what memory a job needs, and says why it would not be worked on, if it fits none of the workers that there
    /// are.
    pub fn learn_memory(
        &mut self,
        now: Duration,
        id: &JobId,
        least: LeastMemory,
    ) -> Result<(), ClusterError> {
        self.pass_time(now);
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        job.least_memory = least.clone();
        self.does_not_fit(&least).map_or(Ok(()), Err)
    }

    /// Takes in that committed layers of a job cannot be read: the commits that hold them are computed again, at once
    /// where the job is active, at its turn where it was done. Says whether there was such a commit.
    pub fn shard_lost(
        &mut self,
        now: Duration,
        id: &JobId,
        phase: Phase,
        first: Layer,
        last: Layer,
    ) -> Result<bool, ClusterError> {
        self.pass_time(now);
        self.check_owner()?;
        if !self.jobs.contains_key(id) {
            return Err(ClusterError::Unknown(id.clone()));
        }
        let found = self.retract(id, phase, first, last);
        self.advance();
        Ok(found)
    }

    /// The append with this ticket is in the journal, whose run has so many bytes of shards now.
    pub fn committed(&mut self, now: Duration, ticket: u64, committed_bytes: u64) {
        self.pass_time(now);
        if let Some(append) = self.journal.succeeded(ticket)
            && !self.fenced
        {
            self.appended(append, committed_bytes);
        }
        self.advance();
    }

    /// The append failed, or its outcome is not known: it is asked for again. `fenced`: the journal holds something else in
    /// its place, so that another coordinator owns the store.
    pub fn commit_failed(&mut self, now: Duration, ticket: u64, fenced: bool) {
        self.pass_time(now);
        if fenced {
            self.fenced = true;
            self.epoch = None;
            self.active = None;
        } else {
            self.journal.retry(ticket, now + self.config.retry);
        }
        self.advance();
    }

    /// The append can never be made, because of what a worker says of its shard: the range is not done. The worker is
    /// to blame where it is known which one.
    pub fn commit_refused(&mut self, now: Duration, ticket: u64, worker: Option<WorkerId>, reason: String) {
        self.pass_time(now);
        if self.journal.succeeded(ticket).is_some() && !self.fenced {
            if let Some(worker) = worker {
                self.roster.back_off(worker, self.config.backoff, self.now);
            }
            self.fail_epoch(reason);
        }
        self.advance();
    }

    /// Takes in a worker's pull.
    pub fn pull(&mut self, now: Duration, pull: &Pull) -> Result<PullReply, Refusal> {
        self.pass_time(now);
        if pull.version != PROTOCOL_VERSION {
            return Err(Refusal::Version { expected: PROTOCOL_VERSION, got: pull.version });
        }
        if self.fenced {
            return Err(Refusal::Fenced);
        }
        if let Some(epoch) = pull.epoch.filter(|&epoch| epoch >= self.next_epoch) {
            return Err(Refusal::Superseded { epoch });
        }
        let registration = self.roster.hear(pull, now)?;
        if registration != Registration::Known {
            self.events.push(Event::WorkerJoined {
                worker: pull.worker,
                threads: pull.threads,
                memory_bytes: pull.memory_bytes,
                address: pull.address.clone(),
                again: registration == Registration::Replaced,
            });
        }
        if registration == Registration::Replaced {
            self.lose(pull.worker, "was started again");
        }
        for report in self.roster.new_reports(pull) {
            self.report(pull.worker, report);
        }
        self.advance();
        Ok(self.reply(pull))
    }

    fn reply(&self, pull: &Pull) -> PullReply {
        let mut reply = PullReply {
            acknowledged: self.roster.workers.get(&pull.worker).map_or(0, |worker| worker.next_report),
            withdrawn: pull.epoch,
            share: None,
            progress: None,
            write: None,
            needed_memory: None,
            pause: self.config.pause_idle,
        };
        if let Some(epoch) = &self.epoch
            && let Some(member) = epoch.share.member(pull.worker)
        {
            reply.pause = self.config.pause_busy;
            if pull.epoch == Some(epoch.number()) {
                reply.withdrawn = None;
                reply.progress = Some(epoch.progress());
                reply.write = epoch.order_for(member);
            } else {
                reply.share = Some(epoch.share.clone());
            }
        } else {
            let active = self.active.as_ref().and_then(|job| self.jobs.get(job));
            let needed = active.map(|job| job.least_memory.bytes(pull.threads));
            reply.needed_memory = needed.filter(|&needed| needed > pull.memory_bytes);
        }
        reply
    }

    fn check_owner(&self) -> Result<(), ClusterError> {
        if self.fenced { Err(ClusterError::Fenced) } else { Ok(()) }
    }

    /// Why a job fits none of the workers that there are; `None` where it fits one, or there are none.
    fn does_not_fit(&self, least: &LeastMemory) -> Option<ClusterError> {
        let missing =
            |worker: &roster::Worker| least.bytes(worker.threads).saturating_sub(worker.memory_bytes);
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
