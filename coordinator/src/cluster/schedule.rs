//! Ends of epochs and jobs, failures, and the effects of appends.

use std::time::Duration;

use exact2048_solution::Commit;

use super::clock::Clock;
use super::config::ClusterConfig;
use super::disk::RunBytes;
use super::epochs::Epochs;
use super::events::Event;
use super::ids::{EpochId, Ticket};
use super::job::JobState;
use super::jobs::Jobs;
use super::messages::{Append, AppendFailure, JobId, WorkerId};
use super::roster::Roster;
use super::secret::Secrets;

/// Workers, jobs and the current epoch, together with the time and the settings of their decisions.
#[derive(Debug)]
pub(super) struct Schedule {
    pub config: ClusterConfig,
    pub clock: Clock,
    pub roster: Roster,
    pub jobs: Jobs,
    pub epochs: Epochs,
}

impl Schedule {
    pub fn new(first_epoch: EpochId, config: ClusterConfig, secrets: Secrets, now: Duration) -> Self {
        Self {
            clock: Clock::new(config.lease, now),
            roster: Roster::new(config.backoff),
            jobs: Jobs::default(),
            epochs: Epochs::new(first_epoch, secrets),
            config,
        }
    }

    /// Advances the clock and removes workers with expired leases.
    pub fn pass_time(&mut self, now: Duration) {
        // A coordinator that was suspended received no pulls, so the workers are excused.
        if let Some(silence) = self.clock.advance(now) {
            self.roster.excuse(silence);
        }
        for (worker, leaving) in self.roster.remove_lost(self.config.lease, self.clock.now()) {
            self.jobs.outbox.report(Event::WorkerLost { worker, leaving });
            self.lose(worker, "was silent for longer than its lease", !self.clock.is_starved());
        }
    }

    /// Ends the epoch if the lost worker is a member of it. `how` completes the reason. `counts` states whether the
    /// end counts as a failure of the job.
    pub fn lose(&mut self, worker: WorkerId, how: &str, counts: bool) {
        if self.epochs.with_member(worker).is_none() {
            return;
        }
        let reason = format!("worker {worker} {how}");
        if counts { self.fail_epoch(reason) } else { self.drop_epoch(reason) }
    }

    /// Ends the epoch after a failure that counts against its job.
    pub fn fail_epoch(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        self.count_failure(&id, reason);
        self.end_epoch();
    }

    /// Ends the epoch after a failure that neither its job nor a worker caused. The number of such failures is
    /// unlimited.
    fn drop_epoch(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.progress.summary.retries += 1;
            self.jobs.outbox.mark_changed(&id);
            self.jobs.note_progress(&id);
        }
        self.end_epoch();
    }

    /// Ends the epoch after a failure that an unavailable store may have caused.
    pub fn doubt_store(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        self.jobs.check_store(&id, reason);
        self.end_epoch();
    }

    /// Reports that the epoch has failed, and returns its job.
    fn report_failure(&mut self, reason: &str) -> Option<JobId> {
        let epoch = self.epochs.current.as_ref()?;
        let (job, epoch, reason) = (epoch.share.job.clone(), epoch.number(), reason.to_owned());
        self.jobs.outbox.report(Event::EpochFailed { job: job.clone(), epoch, reason });
        Some(job)
    }

    /// Counts a failed epoch of a job. Too many failed epochs in a row fail the job.
    pub fn count_failure(&mut self, id: &JobId, reason: String) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.progress.summary.retries += 1;
        let failures = job.setbacks.count(self.config.lease, self.clock.now());
        self.jobs.outbox.mark_changed(id);
        if failures >= self.config.max_failed_epochs {
            self.end_job(id, JobState::Failed { reason });
        } else {
            self.jobs.note_progress(id);
        }
    }

    /// Ends the epoch for all its members.
    pub fn end_epoch(&mut self) {
        let Some(epoch) = self.epochs.end() else { return };
        let (id, number) = (epoch.share.job.clone(), epoch.number());
        let mut is_cancelling = false;
        if let Some(job) = self.jobs.get_mut(&id) {
            job.disk.epoch_ended(epoch.stray_bytes());
            is_cancelling = job.standing.cancelling;
        }
        self.jobs.outbox.report(Event::EpochEnded { job: id.clone(), epoch: number });
        self.jobs.outbox.mark_changed(&id);
        if is_cancelling {
            self.jobs.end(&id, JobState::Cancelled);
        }
    }

    /// Ends all work on a job and drops its pending appends.
    pub fn end_job(&mut self, id: &JobId, state: JobState) {
        if let Some(epoch) = self.epochs.of(id).map(|epoch| epoch.number()) {
            self.epochs.end();
            self.jobs.outbox.report(Event::EpochEnded { job: id.clone(), epoch });
        }
        self.jobs.end(id, state);
    }

    /// Gives other jobs their turn until the store may be available again.
    pub fn wait_for_store(&mut self, id: &JobId, reason: String) {
        self.jobs.step_aside(id, reason, self.clock.now() + self.config.reopen);
    }

    /// Retracts commits of a job. The job's epoch ends, because its inputs may be lost. Returns whether `lost`
    /// contains any commits.
    pub fn retract(&mut self, id: &JobId, lost: Vec<Commit>) -> bool {
        let found = !lost.is_empty();
        self.jobs.retract(id, lost, self.epochs.next());
        if found && self.epochs.of(id).is_some() {
            self.end_epoch();
        }
        found
    }

    /// Applies an append that is now in the journal. Until then, an append has no effect.
    pub fn appended(&mut self, append: Append, stored: RunBytes) {
        self.jobs.outbox.report(Event::Appended(append.clone()));
        let id = append.job().clone();
        self.jobs.outbox.mark_changed(&id);
        self.jobs.turns.reconsider();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.note_bytes(stored);
        job.standing.obstacle = None;
        let is_commit = matches!(append, Append::Commit { .. });
        job.apply(append);
        if is_commit {
            self.reward(&id);
            self.rebalance();
        }
        self.jobs.note_progress(&id);
        self.jobs.make_room(&id);
    }

    /// After a commit of a job, clears earlier failures of the job and of the epoch's members.
    fn reward(&mut self, id: &JobId) {
        let (Some(epoch), Some(job)) = (self.epochs.of(id), self.jobs.get_mut(id)) else { return };
        let lasted = self.clock.since(epoch.started);
        job.setbacks.relax(lasted, self.config.commit_interval, self.config.step);
        for member in &epoch.share.members {
            if let Some(health) = self.roster.health(member.worker) {
                health.forgive();
            }
        }
    }

    /// After a commit, closes the epoch if a new epoch would be better. The new epoch includes workers that have
    /// joined and excludes members that are leaving.
    fn rebalance(&mut self) {
        let Some(epoch) = &mut self.epochs.current else { return };
        let Some(job) = self.jobs.get(&epoch.share.job) else { return };
        let has_left = epoch.share.members.iter().any(|member| self.roster.is_leaving(member.worker));
        let mut available = self.roster.available(job, self.clock.now());
        let has_joined = available.any(|(worker, _)| epoch.share.member(worker).is_none());
        let left = self.clock.since(epoch.started).as_secs_f64() * f64::from(epoch.len() - epoch.written())
            / f64::from(epoch.written().max(1));
        let is_worth_it = left > self.config.worth_rebalancing.as_secs_f64();
        epoch.closing |= has_left || (has_joined && is_worth_it);
    }

    /// Retries a failed append, unless a retry is hopeless or the job is being cancelled.
    pub fn not_appended(&mut self, ticket: Ticket, failure: AppendFailure) {
        let Some(id) = self.jobs.journal.job_of(ticket) else { return };
        self.jobs.turns.reconsider();
        let is_cancelling = self.jobs.get(&id).is_some_and(|job| job.standing.cancelling);
        let (patience, now) = (self.config.journal_patience, self.clock.now());
        let reason = match failure {
            AppendFailure::Foreign(reason) => reason,
            _ if is_cancelling => return self.end_job(&id, JobState::Cancelled),
            AppendFailure::Journal(reason) if self.jobs.journal.has_failed_for(ticket, patience, now) => {
                format!("cannot write its journal: {reason}")
            }
            AppendFailure::Journal(reason) | AppendFailure::Store(reason) => {
                self.jobs.journal.retry(ticket, now + self.config.retry);
                let obstacle = format!("cannot write its journal, retrying: {reason}");
                return self.jobs.obstruct(&id, Some(obstacle));
            }
        };
        self.end_job(&id, JobState::Failed { reason });
    }
}
