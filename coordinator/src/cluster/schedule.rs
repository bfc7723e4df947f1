//! Scheduling: start and end of epochs, writing and committing of ranges, and turns of jobs.

use std::sync::Arc;
use std::time::Duration;

use exact2048_solution::Commit;

use super::attendance::{Culprit, Limits};
use super::counts::PossibleCounts;
use super::epoch::{Epoch, ReportFault, WrittenRange};
use super::events::Event;
use super::ids::{EpochId, Ticket};
use super::job::JobState;
use super::job::{Job, RunBytes, over_disk, too_small};
use super::messages::{
    Append, AppendFailure, Claim, EpochMember, Errand, Examined, JobId, Share, WorkerFailure, WorkerId,
    WorkerReport,
};
use super::roster::Registered;
use super::{Cluster, ClusterError};
use crate::ranges::{RangeOrder, RangePolicy};
use crate::room;

/// Maximum number of halvings of the time between commits: from 10 to 0.6 seconds.
const MOST_HASTE: u32 = 4;

/// Maximum growth of ranges while much data waits. Larger ranges save pulls, checks and appends.
const MOST_GROWTH: u64 = 32;

/// Maximum number of doublings of a member's time for one step.
const MOST_SLOWNESS: u32 = 5;

impl Cluster {
    /// Advances the clock and removes workers with expired leases.
    pub(super) fn pass_time(&mut self, now: Duration) {
        let silence = now.saturating_sub(self.now);
        // A coordinator that hung received no pulls, so the workers are excused.
        if silence > self.config.lease / 2 {
            self.roster.excuse(silence);
        }
        self.now = self.now.max(now);
        self.note_delay(silence);
        for (worker, leaving) in self.roster.remove_lost(self.config.lease, self.now) {
            self.events.push(Event::WorkerLost { worker, leaving });
            self.lose(worker, "was silent for longer than its lease", !self.is_starved());
        }
    }

    /// Ends the epoch if the lost worker is a member of it. `how` completes the reason. `counts` states whether the
    /// end counts as a failure of the job.
    pub(super) fn lose(&mut self, worker: WorkerId, how: &str, counts: bool) {
        if !self.is_member(worker) {
            return;
        }
        let reason = format!("worker {worker} {how}");
        if counts { self.fail_epoch(reason) } else { self.drop_epoch(reason) }
    }

    /// Processes one report of a worker. Reports about layers and shards of other epochs are ignored.
    pub(super) fn report(&mut self, worker: WorkerId, report: WorkerReport) {
        let now = self.now;
        match report {
            WorkerReport::LayerDone { epoch, part } => {
                let Some((current, member)) = current(&mut self.epoch, epoch, worker) else { return };
                let job = self.jobs.get_mut(&current.share.job);
                let (segment, before) = (current.segment(), current.frontier_layer());
                match current.layer_done(member, part, now) {
                    Ok(()) => {
                        self.states = self.states.wrapping_add(part.totals.states);
                        let frontier = current.frontier_layer();
                        if let Some(job) = job {
                            job.states_rate.add(part.totals.states as f64, now);
                            if let Some(plan) = &job.plan {
                                let finished = |at| plan.cost.of_finished(segment, at);
                                job.pace.add(finished(frontier) - finished(before), now);
                            }
                        }
                    }
                    Err(ReportFault::Report(reason)) => {
                        self.roster.back_off(worker, self.config.backoff, now);
                        self.fail_epoch(reason);
                    }
                    Err(ReportFault::Layer(reason)) => self.fail_epoch(reason),
                }
            }
            WorkerReport::ShardWritten { shard, record } => {
                let Some((current, member)) = current(&mut self.epoch, shard.epoch, worker) else { return };
                if let Some(written) = current.shard_written(member, shard, record, now) {
                    let (job, epoch) = (current.share.job.clone(), current.number());
                    let took = current.took(now);
                    let WrittenRange { commit, shards } = written;
                    let ticket = self.journal.ticket();
                    self.journal.push(Append::Commit { ticket, job, epoch, commit, shards, took });
                }
            }
            WorkerReport::Failed { epoch, failure } => self.failed(worker, epoch, failure),
            WorkerReport::Well => {
                self.events.push(Event::WorkerWell { worker });
                if let Some(worker) = self.roster.workers.get_mut(&worker) {
                    worker.unwell = None;
                }
            }
        }
    }

    fn failed(&mut self, worker: WorkerId, epoch: Option<EpochId>, failure: WorkerFailure) {
        let reason = format!("worker {worker}: {failure}");
        self.events.push(Event::WorkerFailed { worker, epoch, failure: failure.clone() });
        let is_current = epoch.is_some_and(|epoch| current(&mut self.epoch, epoch, worker).is_some());
        let is_own = matches!(failure, WorkerFailure::DiskFull(_) | WorkerFailure::Other(_));
        match failure {
            // A loss found in an old epoch may have been repaired since. If not, a worker will find it again.
            WorkerFailure::ShardLost { .. } if !is_current => {}
            // The coordinator first determines whether the shard or the worker is at fault. So it does not
            // recompute an intact shard.
            WorkerFailure::ShardLost { job: id, file } => {
                if let Some(job) = self.jobs.get_mut(&id).filter(|job| job.plan.is_some()) {
                    job.examining = true;
                    self.errands.push(Errand::Examine(Claim { worker, job: id, file }));
                    return self.end_epoch();
                }
            }
            // All peers of a dead worker report it. The first report suffices, because the worker may already be
            // back when later reports arrive.
            WorkerFailure::Peer(_) | WorkerFailure::BadBlock { .. } if !is_current => {}
            WorkerFailure::Peer(peer) | WorkerFailure::BadBlock { peer, .. } => {
                self.roster.blame(peer, worker, self.config.backoff, self.now)
            }
            WorkerFailure::DiskFull(_) | WorkerFailure::Other(_) => {
                self.roster.back_off(worker, self.config.backoff, self.now);
                if let Some(worker) = self.roster.workers.get_mut(&worker) {
                    worker.unwell = Some(failure.to_string());
                }
            }
        }
        if is_current && is_own {
            self.doubt_store(reason);
        } else if is_current {
            self.fail_epoch(reason);
        }
    }

    /// Decides whether the shard or the worker is at fault.
    pub(super) fn judge(&mut self, claim: &Claim, found: Examined) {
        let Some(job) = self.jobs.get_mut(&claim.job) else { return };
        let was_waited_for = std::mem::take(&mut job.examining);
        let params = &job.params;
        match found {
            Examined::Lost(lost) => {
                let lost = job.plan.as_mut().map(|plan| plan.take(params, |commit| *commit == lost));
                let lost = lost.unwrap_or_default();
                self.retract(&claim.job, lost);
            }
            Examined::Sound => {
                self.events.push(Event::Misread(claim.clone()));
                self.roster.back_off(claim.worker, self.config.backoff, self.now);
                if was_waited_for {
                    let reason =
                        format!("worker {} cannot read the intact shard {}", claim.worker, claim.file);
                    self.count_failure(&claim.job, reason);
                }
            }
            Examined::Unknown(why) if was_waited_for => {
                let (worker, file) = (claim.worker, &claim.file);
                let reason =
                    format!("neither worker {worker} nor the coordinator can read the shard {file}: {why}");
                self.check_store(&claim.job, reason);
            }
            Examined::Unknown(_) => {}
        }
    }

    /// Retracts commits of a job. The job's epoch ends, because its inputs may be lost. Returns whether `lost`
    /// contains any commits.
    pub(super) fn retract(&mut self, id: &JobId, lost: Vec<Commit>) -> bool {
        let found = !lost.is_empty();
        for commit in lost {
            let ticket = self.journal.ticket();
            self.journal.push(Append::Retract { ticket, job: id.clone(), epoch: self.next_epoch, commit });
        }
        if found && self.epoch.as_ref().is_some_and(|epoch| epoch.share.job == *id) {
            self.end_epoch();
        }
        self.changed.insert(id.clone());
        found
    }

    /// Applies an append that is now in the journal. Until then, an append has no effect.
    pub(super) fn appended(&mut self, append: Append, stored: RunBytes) {
        self.events.push(Event::Appended(append.clone()));
        let id = append.job().clone();
        self.changed.insert(id.clone());
        self.choose_at = Duration::ZERO;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.note_bytes(stored);
        job.obstacle = None;
        match append {
            Append::Commit { commit, .. } => {
                if let Some(plan) = &mut job.plan {
                    plan.add(&job.params, commit);
                    (job.failures, job.short) = (0, 0);
                }
                self.reward(&id);
            }
            Append::Remove { removed, .. } => {
                if let Some(plan) = &mut job.plan {
                    plan.remove(&job.params, &removed);
                }
            }
            Append::Retract { .. } => {}
        }
        self.note_progress(&id);
        self.make_room(&id);
    }

    /// Requests that the progress of a job be written to the queue, if it has changed enough.
    pub(super) fn note_progress(&mut self, id: &JobId) {
        if self.jobs.get_mut(id).is_some_and(Job::has_news) {
            self.events.push(Event::Progress { job: id.clone() });
        }
    }

    /// After a commit, removes unneeded data of a run with a disk limit.
    fn make_room(&mut self, id: &JobId) {
        if !self.journal.is_idle(id) {
            // The pending appends change which data is unneeded.
            return;
        }
        let removed = self.jobs.get(id).map(Job::to_remove).unwrap_or_default();
        if !removed.is_empty() {
            let ticket = self.journal.ticket();
            self.journal.push(Append::Remove { ticket, job: id.clone(), removed });
        }
    }

    /// After a commit of a job, clears earlier failures of the job and of the epoch's members.
    fn reward(&mut self, id: &JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(epoch) = self.epoch.as_mut().filter(|epoch| epoch.share.job == *id) {
            let lasted = self.now.saturating_sub(epoch.started);
            // While failures continue, a single commit does not lengthen the interval again, because only the
            // shorter interval made that commit possible.
            if lasted >= self.config.commit_interval {
                job.haste = job.haste.saturating_sub(1);
            }
            if lasted >= self.config.step * (2 << job.slowness) {
                job.slowness = job.slowness.saturating_sub(1);
            }
            epoch.share.members.iter().for_each(|member| self.roster.forgive(member.worker));
        }
        self.rebalance();
    }

    /// Retries a failed append, unless a retry is hopeless or the job is being cancelled.
    pub(super) fn not_appended(&mut self, ticket: Ticket, failure: AppendFailure) {
        let Some(id) = self.journal.job_of(ticket) else { return };
        self.choose_at = Duration::ZERO;
        let is_cancelling = self.jobs.get(&id).is_some_and(|job| job.cancelling);
        let (patience, now) = (self.config.journal_patience, self.now);
        let reason = match failure {
            AppendFailure::Foreign(reason) => reason,
            _ if is_cancelling => return self.end_job(&id, JobState::Cancelled),
            AppendFailure::Journal(reason) if self.journal.has_failed_for(ticket, patience, now) => {
                format!("cannot write its journal: {reason}")
            }
            AppendFailure::Journal(reason) | AppendFailure::Store(reason) => {
                self.journal.retry(ticket, self.now + self.config.retry);
                let obstacle = format!("cannot write its journal, retrying: {reason}");
                return self.obstruct(&id, Some(obstacle));
            }
        };
        self.end_job(&id, JobState::Failed { reason });
    }

    /// After a commit, closes the epoch if a new epoch would be better. The new epoch includes workers that have
    /// joined and excludes members that are leaving.
    fn rebalance(&mut self) {
        let Some(epoch) = &self.epoch else { return };
        let Some(job) = self.jobs.get(&epoch.share.job) else { return };
        let leaves = |member: &EpochMember| {
            self.roster.workers.get(&member.worker).is_some_and(|worker| worker.leaving)
        };
        let has_left = epoch.share.members.iter().any(leaves);
        let has_joined = self.roster.workers.iter().any(|(&id, worker)| {
            epoch.share.member(id).is_none()
                && worker.is_available(self.now)
                && job.fits(worker.threads, worker.memory_bytes)
        });
        let left = self.now.saturating_sub(epoch.started).as_secs_f64()
            * f64::from(epoch.len() - epoch.written())
            / f64::from(epoch.written().max(1));
        let is_worth_it = left > self.config.worth_rebalancing.as_secs_f64();
        if has_left || (has_joined && is_worth_it) {
            self.epoch.iter_mut().for_each(|epoch| epoch.closing = true);
        }
    }

    /// Takes all steps that are possible now.
    pub(super) fn advance(&mut self) {
        if self.fenced {
            return;
        }
        self.advance_epoch();
        while self.epoch.is_none() && self.choose_job() && !self.begin_epoch() {}
        self.appends.extend(self.journal.due(self.now));
    }

    fn advance_epoch(&mut self) {
        let Some(epoch) = &mut self.epoch else { return };
        let job = self.jobs.get(&epoch.share.job);
        // After failures the interval is shorter, because an epoch that fails before its first commit makes no
        // progress.
        let commit_interval = self.config.commit_interval / (1 << job.map_or(0, |job| job.haste));
        let step = self.config.step * (1 << job.map_or(0, |job| job.slowness));
        let limits = Limits { least: self.config.step, patience: step };
        let culprits = epoch.blocking_members(limits, self.now);
        if let Some(&Culprit { member, what, limit, at_work }) = culprits.first() {
            let (number, members) = (epoch.number(), &epoch.share.members);
            let mut reason =
                format!("worker {} {what} for {} s", members[member].worker, limit.as_secs_f64());
            if culprits.len() > 1 {
                reason += &format!(", and {} more likewise", culprits.len() - 1);
            }
            for culprit in &culprits {
                self.roster.hangs(members[culprit.member].worker, number, self.config.backoff, self.now);
            }
            if let Some(job) = self.jobs.get_mut(&epoch.share.job).filter(|_| at_work) {
                job.slowness = (job.slowness + 1).min(MOST_SLOWNESS);
            }
            return self.doubt_store(reason);
        }
        if self.now.saturating_sub(epoch.progressed) > self.config.stall {
            let reason = format!("no member finished anything for longer than {:?}", self.config.stall);
            return self.doubt_store(reason);
        }
        if !self.order_range(commit_interval) {
            return self.run_short();
        }
        let Some(epoch) = &self.epoch else { return };
        let is_over = epoch.closing || epoch.is_written();
        if is_over && !epoch.has_order() && self.journal.is_idle(&epoch.share.job) {
            self.end_epoch();
        }
    }

    /// Orders the next range to be written, if a range is large enough and the space suffices. Returns whether the
    /// space suffices.
    fn order_range(&mut self, interval: Duration) -> bool {
        let Some(epoch) = self.epoch.as_mut().filter(|epoch| !epoch.closing) else { return true };
        let Some(job) = self.jobs.get(&epoch.share.job) else { return true };
        // Pending appends change the available space.
        if job.disk.is_some() && !self.journal.is_idle(&epoch.share.job) {
            return true;
        }
        let members = epoch.share.members.len() as u64;
        let limit = job.disk.map(|disk| disk.limit_bytes);
        let least_bytes = room::range_bytes(limit, self.config.shard_bytes * members);
        let others_bytes = job.stray_bytes + members * room::BESIDE_FRAMES;
        let room_bytes = job.disk.map(|disk| disk.free_bytes.saturating_sub(others_bytes));
        let policy = RangePolicy { least_bytes, most_bytes: MOST_GROWTH * least_bytes, interval, room_bytes };
        if job.cancelling {
            epoch.order_last(&policy, self.now);
            return true;
        }
        epoch.order(&policy, false, self.now) != RangeOrder::NoRoom
    }

    /// Ends the epoch because the disk limit leaves no space for its finished work. The next opening of the run
    /// frees more space. If the space is short too often, the job fails.
    fn run_short(&mut self) {
        let Some(epoch) = &self.epoch else { return };
        let (id, number) = (epoch.share.job.clone(), epoch.number());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.short += 1;
        self.events.push(Event::DiskLimitReached { job: id.clone(), epoch: number, times: job.short });
        if let Some(disk) = job.disk.filter(|_| job.short > room::MOST_SHORT) {
            let reason = over_disk(&id, disk.limit_bytes, 0);
            return self.end_job(&id, JobState::Failed { reason });
        }
        self.end_epoch();
    }

    pub(super) fn set_state(&mut self, id: &JobId, state: JobState) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.state != state) else { return };
        self.events.push(Event::Job { job: id.clone(), state: state.clone() });
        job.state = state;
        self.changed.insert(id.clone());
    }

    /// Records the obstacle of a job, or that it has none.
    pub(super) fn obstruct(&mut self, id: &JobId, obstacle: Option<String>) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.obstacle != obstacle) else { return };
        job.obstacle = obstacle;
        self.changed.insert(id.clone());
    }

    /// Moves a job to the end of the queue.
    pub(super) fn requeue(&mut self, id: &JobId) {
        self.set_state(id, JobState::Queued);
        if let Some(job) = self.jobs.get_mut(id) {
            (job.place, job.not_before) = (self.next_place, Duration::ZERO);
            self.queue.insert(job.place, id.clone());
            self.next_place += 1;
            self.choose_at = Duration::ZERO;
        }
    }

    /// Gives other jobs their turn until work on this job is possible. This job retains its place.
    pub(super) fn step_aside(&mut self, id: &JobId, obstacle: String, not_before: Duration) {
        self.active.take_if(|active| active == id);
        self.set_state(id, JobState::Queued);
        if let Some(job) = self.jobs.get_mut(id) {
            job.close();
            job.not_before = not_before;
            self.queue.insert(job.place, id.clone());
        }
        self.choose_at = Duration::ZERO;
        self.obstruct(id, Some(obstacle));
    }

    /// Ends all work on a job and drops its pending appends.
    pub(super) fn end_job(&mut self, id: &JobId, state: JobState) {
        self.epoch.take_if(|epoch| epoch.share.job == *id).into_iter().for_each(|epoch| {
            self.in_step = epoch.is_written();
            self.events.push(Event::EpochEnded { job: id.clone(), epoch: epoch.number() });
        });
        self.active.take_if(|active| active == id);
        self.journal.drop_job(id);
        if let Some(job) = self.jobs.get_mut(id) {
            job.close();
            job.obstacle = None;
            self.queue.remove(&job.place);
        }
        self.choose_at = Duration::ZERO;
        self.set_state(id, state);
    }

    pub(super) fn fail_epoch(&mut self, reason: String) {
        let Some(id) = self.report_failure(&reason) else { return };
        self.count_failure(&id, reason);
        self.end_epoch();
    }

    /// Counts a failed epoch of a job. Too many failed epochs in a row fail the job.
    ///
    /// Failures within one lease count once. If many workers die together, each of the following epochs discovers
    /// one death, until the leases are over.
    pub(super) fn count_failure(&mut self, id: &JobId, reason: String) {
        let (now, lease) = (self.now, self.config.lease);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.failures == 0 || now >= job.failed_at + lease {
            job.failures += 1;
            job.failed_at = now;
        }
        job.haste = (job.haste + 1).min(MOST_HASTE);
        job.summary.retries += 1;
        self.changed.insert(id.clone());
        if job.failures >= self.config.max_failed_epochs {
            self.end_job(id, JobState::Failed { reason });
        } else {
            self.note_progress(id);
        }
    }

    /// Ends the epoch for all its members.
    pub(super) fn end_epoch(&mut self) {
        let Some(epoch) = self.epoch.take() else { return };
        self.in_step = epoch.is_written();
        let (id, number) = (epoch.share.job.clone(), epoch.number());
        if let Some(job) = self.jobs.get_mut(&id) {
            let members = epoch.share.members.len() as u64;
            let stray_bytes = epoch.ordered_bytes().map_or(0, |bytes| bytes + members * room::BESIDE_FRAMES);
            job.stray_bytes += stray_bytes;
            // After an order, members may still be writing shards. So the run is opened again only after the next
            // epoch, and that opening deletes such shards.
            job.is_stale = stray_bytes == 0;
        }
        self.events.push(Event::EpochEnded { job: id.clone(), epoch: number });
        self.changed.insert(id.clone());
        if self.jobs.get(&id).is_some_and(|job| job.cancelling) {
            self.end_job(&id, JobState::Cancelled);
        }
    }

    /// Activates the next job that can proceed, if no job is active. Returns whether a job is active.
    fn choose_job(&mut self) -> bool {
        if let Some((id, job)) = self.active.clone().and_then(|id| Some((id.clone(), self.jobs.get(&id)?))) {
            if job.plan.as_ref().is_some_and(|plan| plan.remaining.is_none()) && self.journal.is_idle(&id) {
                self.end_job(&id, JobState::Done);
            } else if let Some(obstacle) = self.memory_obstacle(job).filter(|_| self.journal.is_idle(&id)) {
                self.step_aside(&id, obstacle, Duration::ZERO);
            } else {
                return true;
            }
        }
        if self.now < self.choose_at {
            return false;
        }
        let Some((place, id)) = self.next_in_queue() else { return false };
        self.queue.remove(&place);
        self.obstruct(&id, None);
        self.open_run(&id);
        self.set_state(&id, JobState::Running);
        self.active = Some(id);
        true
    }

    /// Requests that the run of a job be opened.
    fn open_run(&mut self, id: &JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.close();
        let ticket = self.next_opening;
        self.next_opening = ticket.next();
        job.opening = Some(ticket);
        let (times, may_make) = (1 + job.short, !job.has_run);
        self.errands.push(Errand::Open { ticket, job: id.clone(), times, may_make });
    }

    /// Returns the first job in the queue that can proceed, with its place. Earlier jobs that fit no worker get an
    /// obstacle with the reason.
    fn next_in_queue(&mut self) -> Option<(u64, JobId)> {
        self.choose_at = Duration::MAX;
        let mut too_large = Vec::new();
        let mut found = None;
        for (&place, id) in &self.queue {
            let Some(job) = self.jobs.get(id) else { continue };
            if job.not_before > self.now {
                self.choose_at = self.choose_at.min(job.not_before);
            } else if let Some(obstacle) = self.memory_obstacle(job) {
                too_large.push((id.clone(), obstacle));
            } else if self.journal.is_idle(id) {
                found = Some((place, id.clone()));
                break;
            }
        }
        too_large.into_iter().for_each(|(id, obstacle)| self.obstruct(&id, Some(obstacle)));
        found
    }

    /// Returns why a job fits none of the workers; `None` if it fits a worker or if no worker is registered.
    fn memory_obstacle(&self, job: &Job) -> Option<String> {
        let ClusterError::DoesNotFit { needed_bytes, threads, memory_bytes } =
            self.does_not_fit(job.least_memory.as_deref()?)?
        else {
            return None;
        };
        Some(too_small(needed_bytes, threads, memory_bytes))
    }

    /// Begins an epoch of the active job. An epoch requires an open run without pending appends, so that it starts
    /// from the journal's state. Returns false if no work remains for the job.
    fn begin_epoch(&mut self) -> bool {
        let Some(id) = self.active.clone() else { return true };
        let Some(job) = self.jobs.get(&id) else { return true };
        let Some(segment) = job.plan.as_ref().map(|plan| plan.remaining) else { return true };
        if job.examining || job.doubt.is_some() || !self.journal.is_idle(&id) {
            return true;
        }
        let Some(segment) = segment else { return false };
        if job.disk_limit.is_some() && job.is_stale {
            // Reopening the run deletes the files of failed epochs, which frees space for the remaining work.
            self.open_run(&id);
            return true;
        }
        let could_begin = if self.roster.workers.is_empty() {
            self.could_begin = None;
            return true;
        } else {
            *self.could_begin.get_or_insert(self.now)
        };
        let settled = self.in_step || self.now >= self.roster.last_joined + self.config.settle;
        if !settled && self.now < could_begin + self.config.lease {
            return true;
        }
        let is_free = |worker: &Registered| {
            worker.is_available(self.now) && job.fits(worker.threads, worker.memory_bytes)
        };
        let members = self.roster.workers.iter().filter(|(_, worker)| is_free(worker));
        let members: Vec<EpochMember> = members
            .map(|(&id, worker)| EpochMember {
                worker: id,
                threads: worker.threads,
                address: worker.address.clone(),
            })
            .collect();
        if members.is_empty() {
            return true;
        }
        let (params, window_layers, disk_limit) =
            (job.params.clone(), self.config.window_layers, job.disk_limit);
        let possible =
            job.plan.as_ref().map(|plan| PossibleCounts::of_segment(plan, segment)).unwrap_or_default();
        if let Some(job) = self.jobs.get_mut(&id) {
            job.summary.epochs += 1;
            // Time without an epoch does not count towards the speed.
            job.states_rate.begin(self.now);
            job.pace.resume(self.now);
        }
        self.changed.insert(id.clone());
        let (epoch, secret) = (self.next_epoch, self.secrets.draw());
        let share = Share { job: id.clone(), params, epoch, segment, members, window_layers, secret };
        self.next_epoch = epoch.next();
        self.could_begin = None;
        let epoch = Epoch::new(share, possible, disk_limit, self.now);
        self.events.push(Event::EpochBegan(Arc::clone(&epoch.share)));
        self.epoch = Some(epoch);
        self.note_progress(&id);
        true
    }
}

/// Returns the current epoch and a worker's index in it, if the epoch has this number and the worker is a member.
fn current(epoch: &mut Option<Epoch>, number: EpochId, worker: WorkerId) -> Option<(&mut Epoch, usize)> {
    let epoch = epoch.as_mut().filter(|epoch| epoch.number() == number)?;
    let member = epoch.share.member(worker)?;
    Some((epoch, member))
}
