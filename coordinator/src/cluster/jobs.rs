//! All jobs: their standing, their turns, and what the shell must do for them.

use std::collections::BTreeMap;
use std::time::Duration;

use exact2048_solution::Commit;

use super::errors::{ClusterError, Resumption};
use super::events::Event;
use super::ids::{EpochId, OpenTicket};
use super::job::{Job, JobState, Submission};
use super::journal::Journal;
use super::messages::{Append, Errand, JobId};
use super::outbox::Outbox;
use super::turns::{Readiness, Turns};

#[derive(Default, Debug)]
pub(super) struct Jobs {
    list: BTreeMap<JobId, Job>,
    pub turns: Turns,
    pub journal: Journal,
    pub outbox: Outbox,
}

impl Jobs {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&JobId, &Job)> {
        self.list.iter()
    }

    pub fn get(&self, id: &JobId) -> Option<&Job> {
        self.list.get(id)
    }

    pub fn get_mut(&mut self, id: &JobId) -> Option<&mut Job> {
        self.list.get_mut(id)
    }

    /// Returns a job that a client has named.
    pub fn find(&self, id: &JobId) -> Result<&Job, ClusterError> {
        self.list.get(id).ok_or_else(|| ClusterError::Unknown(id.clone()))
    }

    /// Returns a job that a client has named, to change it.
    pub fn find_mut(&mut self, id: &JobId) -> Result<&mut Job, ClusterError> {
        self.list.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))
    }

    /// Returns the job that has its turn.
    pub fn active(&self) -> Option<&Job> {
        self.get(self.turns.active()?)
    }

    /// Returns the job that waits for the errand with this ticket to open its run.
    pub fn opening(&mut self, ticket: OpenTicket) -> Option<(JobId, &mut Job)> {
        let id = self.turns.active()?.clone();
        let job = self.list.get_mut(&id).filter(|job| job.awaited.opening == Some(ticket))?;
        Some((id, job))
    }

    /// Returns whether the run of a job must stay open.
    pub fn holds(&self, id: &JobId) -> bool {
        self.turns.active() == Some(id) || !self.journal.is_idle(id)
    }

    /// Checks that the name of a new job is free.
    pub fn check_new(&self, id: &JobId) -> Result<(), ClusterError> {
        let exists = |job: &Job| ClusterError::Exists { job: id.clone(), state: job.standing.state.clone() };
        self.get(id).map_or(Ok(()), |job| Err(exists(job)))
    }

    /// Checks that a job can be cancelled.
    pub fn check_cancel(&self, id: &JobId) -> Result<(), ClusterError> {
        let state = &self.find(id)?.standing.state;
        if state.has_ended() { Err(ClusterError::wrong_state(id, state, "cancelled")) } else { Ok(()) }
    }

    /// Decides how a job is resumed.
    pub fn resumption(&self, id: &JobId) -> Result<Resumption, ClusterError> {
        let standing = &self.find(id)?.standing;
        match &standing.state {
            JobState::Done => Ok(Resumption::Reread),
            JobState::Running if standing.cancelling => Ok(Resumption::Continue),
            JobState::Cancelled | JobState::Failed { .. } => Ok(Resumption::Requeue),
            state => Err(ClusterError::wrong_state(id, state, "resumed")),
        }
    }

    /// Checks that a job can be forgotten.
    pub fn check_forget(&self, id: &JobId) -> Result<(), ClusterError> {
        let job = self.find(id)?;
        if !job.standing.state.has_ended() || self.holds(id) {
            let wanted = "forgotten before it has ended; cancel it first";
            return Err(ClusterError::wrong_state(id, &job.standing.state, wanted));
        }
        if job.awaited.check.is_under_way() {
            return Err(ClusterError::Checking(id.clone()));
        }
        Ok(())
    }

    /// Adds a job. A job with remaining work enters the queue at its end.
    pub fn add(&mut self, submission: Submission) {
        let place = self.turns.last_place();
        let (id, job) = Job::new(submission, place);
        if job.standing.state == JobState::Queued {
            self.turns.wait(place, &id);
        }
        self.outbox.mark_changed(&id);
        self.list.insert(id, job);
    }

    /// Removes a job from the list.
    pub fn forget(&mut self, id: &JobId) {
        self.list.remove(id);
        self.outbox.mark_changed(id);
        self.outbox.report(Event::Forgotten { job: id.clone() });
    }

    fn set_state(&mut self, id: &JobId, state: JobState) {
        let Some(job) = self.list.get_mut(id).filter(|job| job.standing.state != state) else { return };
        self.outbox.report(Event::Job { job: id.clone(), state: state.clone() });
        job.standing.state = state;
        self.outbox.mark_changed(id);
    }

    /// Records the obstacle of a job, or that it has none.
    pub fn obstruct(&mut self, id: &JobId, obstacle: Option<String>) {
        let Some(job) = self.list.get_mut(id).filter(|job| job.standing.obstacle != obstacle) else { return };
        job.standing.obstacle = obstacle;
        self.outbox.mark_changed(id);
    }

    /// Moves a job to the end of the queue.
    pub fn requeue(&mut self, id: &JobId) {
        self.set_state(id, JobState::Queued);
        if let Some(job) = self.list.get_mut(id) {
            (job.standing.place, job.standing.not_before) = (self.turns.last_place(), Duration::ZERO);
            self.turns.wait(job.standing.place, id);
        }
    }

    /// Gives other jobs their turn until work on this job is possible. This job retains its place.
    pub fn step_aside(&mut self, id: &JobId, obstacle: String, not_before: Duration) {
        self.set_state(id, JobState::Queued);
        if let Some(job) = self.list.get_mut(id) {
            job.close();
            job.standing.not_before = not_before;
            self.turns.wait(job.standing.place, id);
        }
        self.obstruct(id, Some(obstacle));
    }

    /// Ends a job and drops its pending appends.
    pub fn end(&mut self, id: &JobId, state: JobState) {
        self.journal.drop_job(id);
        if let Some(job) = self.list.get_mut(id) {
            job.close();
            job.standing.obstacle = None;
            self.turns.end(job.standing.place, id);
        }
        self.set_state(id, state);
    }

    /// Gives the turn to the first job in the queue that can proceed. Returns whether there is one. Earlier jobs that
    /// fit no worker get an obstacle with the reason from `memory_obstacle`.
    pub fn choose(&mut self, now: Duration, memory_obstacle: impl Fn(&Job) -> Option<String>) -> bool {
        let (list, journal) = (&self.list, &self.journal);
        let mut too_large = Vec::new();
        let chosen = self.turns.choose(now, |id| {
            let Some(job) = list.get(id) else { return Readiness::Blocked };
            if job.standing.not_before > now {
                return Readiness::NotBefore(job.standing.not_before);
            }
            if let Some(obstacle) = memory_obstacle(job) {
                too_large.push((id.clone(), obstacle));
                return Readiness::Blocked;
            }
            if journal.is_idle(id) { Readiness::Ready } else { Readiness::Blocked }
        });
        too_large.into_iter().for_each(|(id, obstacle)| self.obstruct(&id, Some(obstacle)));
        let Some(id) = chosen else { return false };
        self.obstruct(&id, None);
        self.open_run(&id);
        self.set_state(&id, JobState::Running);
        true
    }

    /// Requests that the run of a job be opened.
    pub fn open_run(&mut self, id: &JobId) {
        let Some(job) = self.list.get_mut(id) else { return };
        job.close();
        let ticket = self.outbox.opening();
        job.awaited.opening = Some(ticket);
        let (times, may_make) = (job.disk.times(), !job.has_run);
        self.outbox.request(Errand::Open { ticket, job: id.clone(), times, may_make });
    }

    /// Requests a check of the store before a failure of the job counts.
    pub fn check_store(&mut self, id: &JobId, reason: String) {
        if let Some(job) = self.list.get_mut(id) {
            job.awaited.doubt = Some(reason);
            self.outbox.request(Errand::Look(id.clone()));
        }
    }

    /// Requests that the progress of a job be written to the queue, if it has changed enough.
    pub fn note_progress(&mut self, id: &JobId) {
        if self.list.get_mut(id).is_some_and(|job| job.progress.has_news()) {
            self.outbox.report(Event::Progress { job: id.clone() });
        }
    }

    /// Retracts commits of a job. `epoch` is the number of the next epoch.
    pub fn retract(&mut self, id: &JobId, lost: Vec<Commit>, epoch: EpochId) {
        for commit in lost {
            self.journal.push(|ticket| Append::Retract { ticket, job: id.clone(), epoch, commit });
        }
        self.outbox.mark_changed(id);
    }

    /// Removes unneeded data of a run with a disk limit.
    pub fn make_room(&mut self, id: &JobId) {
        if !self.journal.is_idle(id) {
            // The pending appends change which data is unneeded.
            return;
        }
        let removed = self.get(id).map(Job::to_remove).unwrap_or_default();
        if !removed.is_empty() {
            self.journal.push(|ticket| Append::Remove { ticket, job: id.clone(), removed });
        }
    }
}
