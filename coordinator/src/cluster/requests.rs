//! Requests of clients: jobs are submitted, cancelled, resumed, forgotten and reread.

use std::sync::Arc;
use std::time::Duration;

use exact2048_solution::Commit;

use super::Cluster;
use super::checks::ShardCheck;
use super::errors::{ClusterError, Resumption};
use super::events::Event;
use super::job::{JobState, Submission};
use super::memory::LeastMemory;
use super::messages::JobId;

impl Cluster {
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
        self.schedule.pass_time(now);
        self.check_owner()?;
        self.schedule.jobs.check_new(id)?;
        let most = self.schedule.config.max_jobs;
        if self.schedule.jobs.len() >= most {
            return Err(ClusterError::Full { most });
        }
        least.map_or(Ok(()), |least| self.schedule.roster.check_memory(least))
    }

    /// Adds a previously accepted job to the queue, regardless of the current workers.
    pub fn enqueue(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        let (job, state) = (submission.job.clone(), submission.state.clone());
        self.restore(now, submission)?;
        self.schedule.jobs.outbox.report(Event::Job { job, state });
        self.advance();
        Ok(())
    }

    /// Adds a job of an earlier coordinator, without an event.
    pub fn restore(&mut self, now: Duration, submission: Submission) -> Result<(), ClusterError> {
        self.schedule.pass_time(now);
        self.check_owner()?;
        self.schedule.jobs.check_new(&submission.job)?;
        self.schedule.jobs.add(submission);
        Ok(())
    }

    /// Checks that a job can be cancelled, before the cancellation is recorded.
    pub fn check_cancel(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        self.schedule.jobs.check_cancel(id)
    }

    /// Cancels a job. The finished work of its workers is committed first.
    pub fn cancel(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.schedule.pass_time(now);
        self.check_cancel(id)?;
        let Self { schedule, .. } = self;
        if schedule.epochs.of(id).is_some() && !schedule.jobs.journal.is_stuck(id) {
            schedule.jobs.find_mut(id)?.standing.cancelling = true;
            schedule.jobs.outbox.mark_changed(id);
        } else {
            schedule.end_job(id, JobState::Cancelled);
        }
        self.advance();
        Ok(())
    }

    /// Decides how a job is resumed, before its resumption is recorded.
    pub fn resumption(&self, id: &JobId) -> Result<Resumption, ClusterError> {
        self.check_owner()?;
        self.schedule.jobs.resumption(id)
    }

    /// Moves a cancelled or failed job to the end of the queue. A job still being cancelled continues instead.
    pub fn resume(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.schedule.pass_time(now);
        let resumption = self.resumption(id)?;
        let jobs = &mut self.schedule.jobs;
        let job = jobs.find_mut(id)?;
        match resumption {
            Resumption::Reread => return Err(ClusterError::wrong_state(id, &JobState::Done, "resumed")),
            Resumption::Continue => {
                job.standing.cancelling = false;
                jobs.outbox.mark_changed(id);
            }
            Resumption::Requeue => {
                job.setbacks.pardon();
                job.disk.forget_shortage();
                jobs.requeue(id);
            }
        }
        self.advance();
        Ok(())
    }

    /// Checks that a job can be forgotten, before the removal is recorded.
    pub fn check_forget(&self, id: &JobId) -> Result<(), ClusterError> {
        self.check_owner()?;
        self.schedule.jobs.check_forget(id)
    }

    /// Removes an ended job from the list. Its run stays unchanged.
    pub fn forget(&mut self, now: Duration, id: &JobId) -> Result<(), ClusterError> {
        self.schedule.pass_time(now);
        self.check_forget(id)?;
        self.schedule.jobs.forget(id);
        Ok(())
    }

    /// Records a job's memory need. The error means that the job fits none of the workers.
    pub fn learn_memory(
        &mut self,
        now: Duration,
        id: &JobId,
        least: Arc<LeastMemory>,
    ) -> Result<(), ClusterError> {
        self.schedule.pass_time(now);
        self.schedule.jobs.find_mut(id)?.least_memory = Some(Arc::clone(&least));
        self.schedule.roster.check_memory(&least)
    }

    /// Records that the shell rereads the shards of a job. Returns false if the shell already rereads them.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Unknown`].
    pub fn begin_check(&mut self, id: &JobId) -> Result<bool, ClusterError> {
        let check = &mut self.schedule.jobs.find_mut(id)?.awaited.check;
        let is_new = !check.is_under_way();
        *check = ShardCheck::UnderWay;
        self.schedule.jobs.outbox.mark_changed(id);
        Ok(is_new)
    }

    /// Records the end of a check. `failure` is the reason why the shards could not be reread.
    pub fn end_check(&mut self, id: &JobId, failure: Option<String>) {
        if let Some(job) = self.schedule.jobs.get_mut(id) {
            job.awaited.check = failure.map_or(ShardCheck::None, ShardCheck::Failed);
            self.schedule.jobs.outbox.mark_changed(id);
        }
    }

    /// Records that these commits of a job have unreadable shards. An active job recomputes the shards at once,
    /// and a done job at its next turn. Returns whether any commit was retracted.
    pub fn shards_lost(
        &mut self,
        now: Duration,
        id: &JobId,
        commits: &[Commit],
    ) -> Result<bool, ClusterError> {
        self.schedule.pass_time(now);
        self.check_owner()?;
        let job = self.schedule.jobs.find_mut(id)?;
        let is_done = job.standing.state == JobState::Done;
        let lost = match &mut job.progress.plan {
            Some(plan) => plan.take(|commit| commits.contains(commit)),
            None if is_done => commits.to_vec(),
            // The next opening of the job's run will find the missing shards.
            None => Vec::new(),
        };
        let found = self.schedule.retract(id, lost);
        if found && is_done {
            self.schedule.jobs.requeue(id);
        }
        self.advance();
        Ok(found)
    }
}
