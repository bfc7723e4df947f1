//! The next steps: a job gets its turn, an epoch begins, a range is written, an epoch ends.

use std::sync::Arc;
use std::time::Duration;

use super::attendance::{Culprit, Limits};
use super::counts::PossibleCounts;
use super::disk::over_disk;
use super::epoch::Epoch;
use super::errors::ClusterError;
use super::events::Event;
use super::job::{Job, JobState};
use super::memory::too_small;
use super::messages::{EpochMember, Share};
use super::roster::Roster;
use super::schedule::Schedule;
use crate::ranges::{RangeOrder, RangePolicy};
use crate::room;

/// Maximum growth of ranges while much data waits. Larger ranges save pulls, checks and appends.
const MOST_GROWTH: u64 = 32;

impl Schedule {
    /// Takes all steps that are possible now.
    pub fn advance(&mut self) {
        self.advance_epoch();
        while self.epochs.current.is_none() && self.choose_job() && !self.begin_epoch() {}
        self.jobs.journal.request_next(self.clock.now());
    }

    fn advance_epoch(&mut self) {
        let Some(epoch) = &self.epochs.current else { return };
        let setbacks = self.jobs.get(&epoch.share.job).map(|job| job.setbacks).unwrap_or_default();
        let limits = Limits { least: self.config.step, patience: setbacks.step(self.config.step) };
        let culprits = epoch.blocking_members(limits, self.clock.now());
        if !culprits.is_empty() {
            return self.end_blocked(&culprits);
        }
        if self.clock.since(epoch.progressed()) > self.config.stall {
            let reason = format!("no member finished anything for longer than {:?}", self.config.stall);
            return self.doubt_store(reason);
        }
        if !self.order_range(setbacks.commit_interval(self.config.commit_interval)) {
            return self.run_short();
        }
        let Some(epoch) = &self.epochs.current else { return };
        let is_over = epoch.closing || epoch.is_written();
        if is_over && !epoch.has_order() && self.jobs.journal.is_idle(&epoch.share.job) {
            self.end_epoch();
        }
    }

    /// Ends an epoch that these members block.
    fn end_blocked(&mut self, culprits: &[Culprit]) {
        let (Some(epoch), Some(first)) = (&self.epochs.current, culprits.first()) else { return };
        let worker = |culprit: &Culprit| epoch.share.members[culprit.member].worker;
        let mut reason =
            format!("worker {} {} for {} s", worker(first), first.what, first.limit.as_secs_f64());
        if culprits.len() > 1 {
            reason += &format!(", and {} more likewise", culprits.len() - 1);
        }
        for culprit in culprits {
            if let Some(health) = self.roster.health(worker(culprit)) {
                health.note_hang(epoch.number(), self.clock.now());
            }
        }
        if let Some(job) = self.jobs.get_mut(&epoch.share.job).filter(|_| first.at_work) {
            job.setbacks.slow_down();
        }
        self.doubt_store(reason);
    }

    /// Orders the next range to be written, if a range is large enough and the space suffices. Returns whether the
    /// space suffices.
    fn order_range(&mut self, interval: Duration) -> bool {
        let Some(epoch) = self.epochs.current.as_mut().filter(|epoch| !epoch.closing) else { return true };
        let Some(job) = self.jobs.get(&epoch.share.job) else { return true };
        let (disk, now) = (&job.disk, self.clock.now());
        // Pending appends change the available space.
        if disk.usage.is_some() && !self.jobs.journal.is_idle(&epoch.share.job) {
            return true;
        }
        let members = epoch.share.members.len() as u64;
        let limit = disk.usage.map(|usage| usage.limit_bytes);
        let least_bytes = room::range_bytes(limit, self.config.shard_bytes * members);
        let (most_bytes, room_bytes) = (MOST_GROWTH * least_bytes, disk.room_bytes(epoch.share.files()));
        let policy = RangePolicy { least_bytes, most_bytes, interval, room_bytes };
        if job.standing.cancelling {
            epoch.order_last(&policy, now);
            return true;
        }
        epoch.order(&policy, false, now) != RangeOrder::NoRoom
    }

    /// Ends the epoch because the disk limit leaves no space for its finished work. The next opening of the run
    /// frees more space. If the space is short too often, the job fails.
    fn run_short(&mut self) {
        let Some(epoch) = &self.epochs.current else { return };
        let (id, epoch) = (epoch.share.job.clone(), epoch.number());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let times = job.disk.run_short();
        let hopeless = job.disk.hopeless_limit();
        self.jobs.outbox.report(Event::DiskLimitReached { job: id.clone(), epoch, times });
        match hopeless {
            Some(limit) => self.end_job(&id, JobState::Failed { reason: over_disk(&id, limit, 0) }),
            None => self.end_epoch(),
        }
    }

    /// Activates the next job that can proceed, if no job is active. Returns whether a job is active.
    fn choose_job(&mut self) -> bool {
        if let (Some(id), Some(job)) = (self.jobs.turns.active().cloned(), self.jobs.active()) {
            let obstacle = memory_obstacle(&self.roster, job);
            let is_complete = job.progress.is_complete();
            match (self.jobs.journal.is_idle(&id), obstacle) {
                (true, _) if is_complete => self.end_job(&id, JobState::Done),
                (true, Some(obstacle)) => self.jobs.step_aside(&id, obstacle, Duration::ZERO),
                _ => return true,
            }
        }
        self.jobs.choose(self.clock.now(), |job| memory_obstacle(&self.roster, job))
    }

    /// Begins an epoch of the active job. An epoch requires an open run without pending appends, so that it starts
    /// from the journal's state. Returns false if no work remains for the job.
    fn begin_epoch(&mut self) -> bool {
        let (Some(id), Some(job)) = (self.jobs.turns.active().cloned(), self.jobs.active()) else {
            return true;
        };
        let Some(plan) = &job.progress.plan else { return true };
        if job.awaited.examining || job.awaited.doubt.is_some() || !self.jobs.journal.is_idle(&id) {
            return true;
        }
        let Some(segment) = plan.remaining else { return false };
        if job.disk.must_reopen() {
            self.jobs.open_run(&id);
            return true;
        }
        let (config, now) = (&self.config, self.clock.now());
        if !self.epochs.has_settled(self.roster.last_joined(), config.settle, config.lease, now) {
            return true;
        }
        let members = self.roster.available(job, now).map(|(worker, known)| EpochMember {
            worker,
            threads: known.threads,
            address: known.address.clone(),
        });
        let members: Vec<EpochMember> = members.collect();
        if members.is_empty() {
            return true;
        }
        let possible = PossibleCounts::of_segment(plan, segment);
        let (epoch, secret) = self.epochs.draw();
        let (params, window_layers) = (job.params.clone(), config.window_layers);
        let share = Share { job: id.clone(), params, epoch, segment, members, window_layers, secret };
        let epoch = Epoch::new(share, possible, job.disk.limit, now);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.progress.epoch_began(now);
        }
        self.jobs.outbox.mark_changed(&id);
        self.jobs.outbox.report(Event::EpochBegan(Arc::clone(&epoch.share)));
        self.epochs.current = Some(epoch);
        self.jobs.note_progress(&id);
        true
    }
}

/// Returns why a job fits none of the workers; `None` if it fits a worker or if no worker is registered.
fn memory_obstacle(roster: &Roster, job: &Job) -> Option<String> {
    match roster.check_memory(job.least_memory.as_deref()?) {
        Err(ClusterError::DoesNotFit { needed_bytes, threads, memory_bytes }) => {
            Some(too_small(needed_bytes, threads, memory_bytes))
        }
        _ => None,
    }
}
