//! The coordinator of a cluster: jobs, workers, epochs and commits, in pure code.
//!
//! [`Cluster`] is a plain struct. The shell passes the current time to each call, and makes one call at a time.
//! After each call, the shell carries out the appends from [`Cluster::take_appends`] and the errands from
//! [`Cluster::take_errands`]. The time is a [`Duration`] since any fixed moment, by a clock that does not jump.
//! `docs/dev/cluster-protocol.md` states the protocol, its numbered invariants, and the effect of each failure.
//!
//! Each module below uses only modules above it:
//!
//! | Module | Owns |
//! |---|---|
//! | `config`, `ids`, `secret`, `messages`, `blame` | settings, numbers and messages |
//! | `clock` | the time, and signs that the coordinator lacked time |
//! | `journal`, `turns` | appends for the shell; the queue of jobs, and the job that has its turn |
//! | `memory`, `disk`, `setbacks`, `checks`, `summary`, `plan`, `progress` | parts of a job |
//! | `job` | a job |
//! | `errors`, `events`, `outbox` | refusals, events, and errands for the shell |
//! | `jobs` | all jobs, with their turns and with orders to the shell |
//! | `health`, `holding`, `roster` | the registered workers |
//! | `attendance`, `counts`, `layer_checks`, `epoch`, `epochs` | the current epoch, and the number of the next one |
//! | `schedule`, `steps`, `reports` | decisions that concern several of these: failures, next steps, reports |
//! | `status` | the status for people |
//! | [`Cluster`], `requests`, `pulls` | calls of the shell, for clients, for workers |

mod attendance;
mod blame;
mod checks;
mod clock;
mod config;
mod counts;
mod disk;
mod epoch;
mod epochs;
mod errors;
mod events;
mod health;
mod holding;
mod ids;
mod job;
mod jobs;
mod journal;
mod layer_checks;
mod memory;
mod messages;
mod outbox;
mod plan;
mod progress;
mod pulls;
mod reports;
mod requests;
mod roster;
mod schedule;
mod secret;
mod setbacks;
mod status;
mod steps;
mod summary;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::BTreeSet;
use std::time::Duration;

use disk::over_disk;
use schedule::Schedule;

pub use blame::{RunTrouble, TroubleKind};
pub use config::ClusterConfig;
pub use disk::{DiskUse, RunBytes};
pub use errors::{ClusterError, Resumption};
pub use events::Event;
pub use holding::PullDecision;
pub use ids::{EpochId, Incarnation, OpenTicket, Ticket};
pub use job::{JobState, Opened, Submission};
pub use memory::LeastMemory;
pub use messages::{
    Append, AppendFailure, Claim, EpochMember, EpochProgress, EpochStage, Errand, Examined, JobId, LayerPart,
    MemberShard, OpenFailure, PROTOCOL_VERSION, Pull, PullReply, Refusal, Share, StoreCheck, WorkerFailure,
    WorkerId, WorkerReport, WriteShard,
};
pub use secret::{Secret, Secrets};
pub use status::{Activity, Eta, JobStatus, Signal, Status, WorkerStatus};
pub use summary::JobSummary;

/// Decides the next steps of a cluster of workers.
///
/// Each call first advances the clock, and finally takes all steps that have become possible.
#[derive(Debug)]
pub struct Cluster {
    /// Whether another coordinator owns the store. Then this coordinator makes no decision.
    is_fenced: bool,
    schedule: Schedule,
}

impl Cluster {
    /// Creates a cluster without jobs and workers. The first epoch gets the number `first_epoch`. This number must
    /// exceed all numbers that an earlier coordinator of this store has used, or will use before it is fenced.
    pub fn new(first_epoch: EpochId, config: ClusterConfig, secrets: Secrets, now: Duration) -> Self {
        Self { is_fenced: false, schedule: Schedule::new(first_epoch, config, secrets, now) }
    }

    /// Returns the appends for the shell to make now. Call it after every other call.
    pub fn take_appends(&mut self) -> Vec<Append> {
        self.schedule.jobs.journal.take_requested()
    }

    /// Returns the errands for the shell to carry out now. Call it after every other call.
    pub fn take_errands(&mut self) -> Vec<Errand> {
        self.schedule.jobs.outbox.take_errands()
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.schedule.jobs.outbox.take_events()
    }

    /// Returns the jobs that may have changed status since the last call, including the active job.
    pub fn take_changed(&mut self) -> BTreeSet<JobId> {
        let mut changed = self.schedule.jobs.outbox.take_changed();
        changed.extend(self.schedule.jobs.turns.active().cloned());
        changed
    }

    /// Advances the time. Call it several times per lease, even when nothing happens.
    pub fn tick(&mut self, now: Duration) {
        self.schedule.pass_time(now);
        self.advance();
    }

    /// Records that a job's run is open for writing, with these contents.
    pub fn opened(&mut self, now: Duration, ticket: OpenTicket, opened: Opened) {
        self.schedule.pass_time(now);
        if let Some((id, job)) = self.schedule.jobs.opening(ticket) {
            let missing_bytes = opened.missing_bytes;
            job.open(opened);
            let exceeded = job.disk.exceeded_limit(missing_bytes);
            self.schedule.jobs.outbox.mark_changed(&id);
            if let Some(limit) = exceeded {
                let reason = over_disk(&id, limit, missing_bytes);
                self.schedule.end_job(&id, JobState::Failed { reason });
            }
        }
        self.advance();
    }

    /// Records that the run of a job cannot be opened. The next job gets its turn.
    pub fn not_opened(&mut self, now: Duration, ticket: OpenTicket, why: OpenFailure) {
        self.schedule.pass_time(now);
        if let Some((id, _)) = self.schedule.jobs.opening(ticket) {
            match why {
                OpenFailure::Later(reason) => self.schedule.wait_for_store(&id, reason),
                OpenFailure::Never(reason) => self.schedule.end_job(&id, JobState::Failed { reason }),
            }
        }
        self.advance();
    }

    /// Returns whether an errand to open a run is still pending.
    pub fn is_opening(&self, ticket: OpenTicket) -> bool {
        self.schedule.jobs.active().is_some_and(|job| job.awaited.opening == Some(ticket))
    }

    /// Returns whether the run of a job must stay open: the job is active, or appends to the job's journal are pending.
    pub fn holds(&self, id: &JobId) -> bool {
        self.schedule.jobs.holds(id)
    }

    /// Returns whether the run of a job was created. Such a run is not created again.
    pub fn has_run(&self, id: &JobId) -> bool {
        self.schedule.jobs.get(id).is_some_and(|job| job.has_run)
    }

    /// Records the result of the coordinator's reading of a shard that a worker could not read.
    pub fn examined(&mut self, now: Duration, claim: &Claim, found: Examined) {
        self.schedule.pass_time(now);
        self.schedule.judge(claim, found);
        self.advance();
    }

    /// Receives the result of checking whether the store caused the end of an epoch. The failure counts only if the
    /// store was available.
    pub fn store_checked(&mut self, now: Duration, id: &JobId, found: StoreCheck) {
        self.schedule.pass_time(now);
        let doubt = self.schedule.jobs.get_mut(id).and_then(|job| job.awaited.doubt.take());
        match (doubt, found) {
            (Some(reason), StoreCheck::There) => self.schedule.count_failure(id, reason),
            (Some(_), StoreCheck::Away(reason)) => self.schedule.wait_for_store(id, reason),
            (None, _) => {}
        }
        self.advance();
    }

    /// Records that the store is unavailable. The status of the active job shows `reason`. If no work of the job is
    /// pending, the job waits until its run can be opened.
    pub fn store_is_away(&mut self, now: Duration, reason: String) {
        self.schedule.pass_time(now);
        let Schedule { jobs, epochs, .. } = &mut self.schedule;
        if let Some(id) = jobs.turns.active().cloned() {
            if epochs.current.is_none() && jobs.journal.is_idle(&id) {
                self.schedule.wait_for_store(&id, reason);
            } else {
                jobs.obstruct(&id, Some(reason));
            }
        }
        self.advance();
    }

    /// Records that an append is in the journal. `stored` is the new size of its run.
    pub fn committed(&mut self, now: Duration, ticket: Ticket, stored: RunBytes) {
        self.schedule.pass_time(now);
        if let Some(append) = self.schedule.jobs.journal.take(ticket)
            && !self.is_fenced
        {
            self.schedule.appended(append, stored);
        }
        self.advance();
    }

    /// Records that an append failed, or that its outcome is unknown.
    pub fn append_failed(&mut self, now: Duration, ticket: Ticket, failure: AppendFailure) {
        self.schedule.pass_time(now);
        self.schedule.not_appended(ticket, failure);
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
        self.schedule.pass_time(now);
        if self.schedule.jobs.journal.take(ticket).is_some() && !self.is_fenced {
            if let Some(worker) = worker {
                self.schedule.roster.back_off(worker, self.schedule.clock.now());
            }
            self.schedule.fail_epoch(reason);
        }
        self.advance();
    }

    /// Records that another coordinator owns the store. This coordinator then assigns no further work.
    pub fn fence(&mut self, now: Duration) {
        self.schedule.pass_time(now);
        self.is_fenced = true;
        self.schedule.epochs.current = None;
        self.schedule.jobs.turns.stop();
    }

    /// Returns the status of the cluster. Cost: linear in jobs and workers.
    pub fn status(&self, now: Duration) -> Status {
        Status {
            fenced: self.is_fenced,
            jobs: status::jobs(&self.schedule, now),
            workers: self.worker_statuses(now),
            states: self.states(),
        }
    }

    /// Returns the status of one job.
    pub fn job_status(&self, id: &JobId, now: Duration) -> Option<JobStatus> {
        self.schedule.jobs.get(id).map(|job| status::job(&self.schedule, id, job, now))
    }

    /// Returns the state of a job.
    pub fn job_state(&self, id: &JobId) -> Option<&JobState> {
        self.schedule.jobs.get(id).map(|job| &job.standing.state)
    }

    /// Returns the progress of a job, as the queue stores it.
    pub fn job_summary(&self, id: &JobId) -> Option<&JobSummary> {
        self.schedule.jobs.get(id).map(|job| &job.progress.summary)
    }

    /// Returns the status of all workers.
    pub fn worker_statuses(&self, now: Duration) -> Vec<WorkerStatus> {
        status::workers(&self.schedule, now)
    }

    /// Returns the number of states that workers have finished in all jobs and epochs, committed or not.
    pub fn states(&self) -> u64 {
        self.schedule.epochs.states
    }

    /// Returns the current news for workers.
    pub fn signal(&self) -> Signal {
        let epoch = self.schedule.epochs.current.as_ref();
        Signal {
            epoch: epoch.map(|epoch| epoch.number()),
            write: epoch.and_then(|epoch| epoch.ordered()),
            progress: epoch.map(|epoch| epoch.progress()),
            fenced: self.is_fenced,
        }
    }

    /// Returns whether a worker is registered.
    #[must_use]
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.schedule.roster.workers.contains_key(&worker)
    }

    /// Takes all steps that are possible now.
    fn advance(&mut self) {
        if !self.is_fenced {
            self.schedule.advance();
        }
    }

    /// Checks that this coordinator owns the store.
    fn check_owner(&self) -> Result<(), ClusterError> {
        if self.is_fenced { Err(ClusterError::Fenced) } else { Ok(()) }
    }
}
