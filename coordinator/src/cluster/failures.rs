//! Epochs that end through no fault of their job or workers, because the store is unavailable or the coordinator
//! is starved of CPU time. Such an end does not count as a failure of the job.

use std::time::Duration;

use super::Cluster;
use super::events::Event;
use super::messages::{Errand, JobId, StoreCheck};

/// Divisor of a lease that gives the longest normal gap between calls. A longer gap shows that the coordinator is
/// starved, because calls arrive at least every fifth of a lease.
const STARVED: u32 = 4;

impl Cluster {
    /// Receives the result of checking whether the store caused the end of an epoch. The failure counts only if the
    /// store was available.
    pub fn store_checked(&mut self, now: Duration, id: &JobId, found: StoreCheck) {
        self.pass_time(now);
        let doubt = self.jobs.get_mut(id).and_then(|job| job.doubt.take());
        match (doubt, found) {
            (Some(reason), StoreCheck::There) => self.count_failure(id, reason),
            (Some(_), StoreCheck::Away(reason)) => self.step_aside(id, reason, self.now + self.config.reopen),
            (None, _) => {}
        }
        self.advance();
    }

    /// Records that the store is unavailable. The status of the active job shows `reason`. If no work of the job is
    /// pending, the job waits until its run can be opened.
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

    /// Records a gap between calls.
    pub(super) fn note_delay(&mut self, silence: Duration) {
        if silence > self.config.lease / STARVED {
            self.starved_at = Some(self.now);
        }
    }

    /// Returns whether the coordinator was starved within the last two leases. An expired lease is then no
    /// evidence against a worker, because the worker may have been starved too or its pull was processed late.
    pub(super) fn is_starved(&self) -> bool {
        self.starved_at.is_some_and(|at| self.now.saturating_sub(at) <= 2 * self.config.lease)
    }

    /// Ends the epoch after a failure that neither its job nor a worker caused. The number of such failures is
    /// unlimited.
    pub(super) fn drop_epoch(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.summary.retries += 1;
            self.changed.insert(id.clone());
            self.note_progress(&id);
        }
        self.end_epoch();
    }

    /// Ends the epoch after a failure that an unavailable store may have caused.
    pub(super) fn doubt_store(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        self.check_store(&id, reason);
        self.end_epoch();
    }

    /// Reports that the epoch has failed, and returns its job.
    pub(super) fn report_failure(&mut self, reason: &str) -> Option<JobId> {
        let epoch = self.epoch.as_ref()?;
        let (job, epoch) = (epoch.share.job.clone(), epoch.number());
        self.events.push(Event::EpochFailed { job: job.clone(), epoch, reason: reason.to_owned() });
        Some(job)
    }

    /// Requests a check of the store before a failure of the job counts.
    pub(super) fn check_store(&mut self, id: &JobId, reason: String) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.doubt = Some(reason);
            self.errands.push(Errand::Look(id.clone()));
        }
    }
}
