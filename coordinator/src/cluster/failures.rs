//! Epochs that end by what neither their job nor their workers have done: a store that is away, a coordinator that is
//! short of time. Such an end is no failure of the job.

use std::time::Duration;

use super::Cluster;
use super::events::Event;
use super::messages::{Errand, JobId, Looked};

/// Calls come at least every fifth of a lease. One that comes later than this part of a lease shows that the coordinator is
/// short of time.
const STARVED: u32 = 4;

impl Cluster {
    /// Notes what the coordinator found when it looked whether the store is to blame for the end of an epoch. Only where it
    /// is not, that failure counts.
    pub fn looked(&mut self, now: Duration, id: &JobId, found: Looked) {
        self.pass_time(now);
        let doubt = self.jobs.get_mut(id).and_then(|job| job.doubt.take());
        match (doubt, found) {
            (Some(reason), Looked::There) => self.count_failure(id, reason),
            (Some(_), Looked::Away(reason)) => self.step_aside(id, reason, self.now + self.config.reopen),
            (None, _) => {}
        }
        self.advance();
    }

    /// Notes that the store is away, for this reason. The active job says so; where nothing is under way for it, it waits
    /// until its run can be opened.
    pub fn store_is_away(&mut self, now: Duration, reason: String) {
        self.pass_time(now);
        if let Some(id) = self.active.clone() {
            if self.epoch.is_none() && self.journal.is_idle(&id) {
                self.step_aside(&id, reason, self.now + self.config.reopen);
            } else {
                self.obstruct(&id, Some(reason));
            }
        }
        self.advance();
    }

    /// Notes how long there was no call.
    pub(super) fn note_delay(&mut self, silence: Duration) {
        if silence > self.config.lease / STARVED {
            self.starved_at = Some(self.now);
        }
    }

    /// Whether this coordinator has had too little time within the last two leases. Then a lease says nothing of a worker,
    /// which may have been as short of time, or may have been heard too late.
    pub(super) fn is_starved(&self) -> bool {
        self.starved_at.is_some_and(|at| self.now.saturating_sub(at) <= 2 * self.config.lease)
    }

    /// Ends the epoch, which has failed by nothing that its job or a worker has done: the job may go on for ever so.
    pub(super) fn drop_epoch(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.summary.retries += 1;
            self.changed.insert(id.clone());
            self.note_progress(&id);
        }
        self.end_epoch();
    }

    /// Ends the epoch, which has failed by what may come of a store that is away.
    pub(super) fn doubt_store(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        self.look_at_store(&id, reason);
        self.end_epoch();
    }

    /// Says that the epoch has failed. Returns its job.
    pub(super) fn report_failure(&mut self, reason: &str) -> Option<JobId> {
        let epoch = self.epoch.as_ref()?;
        let (job, epoch) = (epoch.share.job.clone(), epoch.number());
        self.events.push(Event::EpochFailed { job: job.clone(), epoch, reason: reason.to_owned() });
        Some(job)
    }

    /// Has the shell look for the store before a failure of a job counts.
    pub(super) fn look_at_store(&mut self, id: &JobId, reason: String) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.doubt = Some(reason);
            self.errands.push(Errand::Look(id.clone()));
        }
    }
}
