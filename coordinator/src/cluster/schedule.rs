//! What follows from what: epochs begin and end, ranges are written and committed, jobs take turns.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::Layer;

use super::Cluster;
use super::counts::Possible;
use super::epoch::{Epoch, WrittenRange, Wrong};
use super::events::Event;
use super::job::JobState;
use super::messages::{Action, Failure, JobId, Member, Share, WorkerId, WorkerReport};
use crate::task::Phase;

/// The time between commits is halved so often at most: to 0.6 seconds.
const MOST_HASTE: u32 = 4;

impl Cluster {
    /// Moves the clock and gives up workers whose lease is over.
    pub(super) fn pass_time(&mut self, now: Duration) {
        let silence = now.saturating_sub(self.now);
        // A coordinator that hung itself has heard nobody meanwhile: that is not the workers' fault.
        if silence > self.config.lease / 2 {
            self.roster.excuse(silence);
        }
        self.now = self.now.max(now);
        for (worker, leaving) in self.roster.remove_lost(self.config.lease, self.now) {
            self.events.push(Event::WorkerLost { worker, leaving });
            self.lose(worker, "was not heard for longer than its lease");
        }
    }

    /// A worker, or one incarnation of it, is gone.
    pub(super) fn lose(&mut self, worker: WorkerId, how: &str) {
        if self.epoch.as_ref().is_some_and(|epoch| epoch.share.member(worker).is_some()) {
            self.fail_epoch(format!("worker {worker} {how}"));
        }
    }

    /// Takes in one report of a worker. What is of another epoch than the current one is ignored.
    pub(super) fn report(&mut self, worker: WorkerId, report: WorkerReport) {
        let now = self.now;
        match report {
            WorkerReport::LayerDone { epoch, part } => {
                let Some((current, member)) = current(&mut self.epoch, epoch, worker) else { return };
                let job = self.jobs.get_mut(&current.share.job);
                let (phase, before) = (current.segment().phase, current.frontier_layer());
                match current.layer_done(member, part, now) {
                    Ok(()) => {
                        self.states = self.states.wrapping_add(part.states);
                        let frontier = current.frontier_layer();
                        if let Some(job) = job {
                            job.states_rate.add(part.states as f64, now);
                            if phase == Phase::Enumerate {
                                job.entries_rate.add(job.workload.entries(before, frontier), now);
                            }
                        }
                    }
                    Err(Wrong::Report(reason)) => {
                        self.roster.back_off(worker, self.config.backoff, now);
                        self.fail_epoch(reason);
                    }
                    Err(Wrong::Layer(reason)) => self.fail_epoch(reason),
                }
            }
            WorkerReport::ShardWritten { shard, record } => {
                let Some((current, member)) = current(&mut self.epoch, shard.epoch, worker) else { return };
                if let Some(written) = current.shard_written(member, shard, record, now) {
                    let (job, epoch) = (current.share.job.clone(), current.number());
                    let WrittenRange { commit, shards } = written;
                    let ticket = self.journal.ticket();
                    self.journal.push(Action::Commit { ticket, job, epoch, commit, shards });
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

    fn failed(&mut self, worker: WorkerId, epoch: Option<u64>, failure: Failure) {
        let reason = format!("worker {worker}: {failure}");
        self.events.push(Event::WorkerFailed { worker, epoch, failure: failure.clone() });
        let is_current = epoch.is_some_and(|epoch| current(&mut self.epoch, epoch, worker).is_some());
        match failure {
            // What an old epoch found lost may have been computed again since: if it was not, it is found again.
            Failure::ShardLost { .. } if !is_current => {}
            Failure::ShardLost { job, phase, first, last, .. } => {
                // The shard is what is wrong: that is mended, and neither worker nor job is to blame.
                if self.retract(&job, phase, first, last) {
                    // The epoch may be another job's: its member has stopped all the same.
                    return self.end_epoch();
                }
            }
            // All peers of one that has died say so: the first is enough, and it may be back already.
            Failure::Peer(_) | Failure::BadBlock { .. } if !is_current => {}
            Failure::Peer(peer) | Failure::BadBlock { peer, .. } => {
                self.roster.blame(peer, worker, self.config.backoff, self.now)
            }
            Failure::DiskFull(_) | Failure::Memory(_) | Failure::Other(_) => {
                self.roster.back_off(worker, self.config.backoff, self.now);
                if let Some(worker) = self.roster.workers.get_mut(&worker) {
                    worker.unwell = Some(failure.to_string());
                }
            }
        }
        if is_current {
            self.fail_epoch(reason);
        }
    }

    /// Takes the commits that hold any of these layers out of a job. Its epoch ends, as its inputs may be gone.
    pub(super) fn retract(&mut self, id: &JobId, phase: Phase, first: Layer, last: Layer) -> bool {
        let Some(job) = self.jobs.get_mut(id) else { return false };
        let lost = job.take_commits(phase, first, last);
        if lost.is_empty() {
            return false;
        }
        let done = job.state == JobState::Done;
        for commit in lost {
            let ticket = self.journal.ticket();
            self.journal.push(Action::Retract { ticket, job: id.clone(), epoch: self.next_epoch, commit });
        }
        if done {
            self.requeue(id);
        }
        if self.epoch.as_ref().is_some_and(|epoch| epoch.share.job == *id) {
            self.end_epoch();
        }
        true
    }

    /// An append is in the journal: only now does it count.
    pub(super) fn appended(&mut self, append: Action, committed_bytes: u64) {
        self.events.push(Event::Appended(append.clone()));
        let (Action::Commit { job: id, .. } | Action::Retract { job: id, .. }) = &append;
        self.jobs.get_mut(id).into_iter().for_each(|job| job.bytes = committed_bytes);
        let Action::Commit { job: id, commit, .. } = append else { return };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.commits.push(commit);
            job.failures = 0;
            job.replan();
        }
        if let Some(epoch) = self.epoch.as_mut().filter(|epoch| epoch.share.job == id) {
            // Where failures go on, a commit between two of them is not the end of the haste that brought it.
            if self.now.saturating_sub(epoch.started) >= self.config.commit_interval
                && let Some(job) = self.jobs.get_mut(&id)
            {
                job.haste = job.haste.saturating_sub(1);
            }
            epoch.share.members.iter().for_each(|member| self.roster.forgive(member.worker));
        }
        self.rebalance();
    }

    /// After a commit: whether a new epoch would do better, with workers that are not in this one or
    /// without workers that want to go.
    fn rebalance(&mut self) {
        let Some(epoch) = &self.epoch else { return };
        let Some(job) = self.jobs.get(&epoch.share.job) else { return };
        let leaves =
            |member: &Member| self.roster.workers.get(&member.worker).is_some_and(|worker| worker.leaving);
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

    /// Does whatever can be done now.
    pub(super) fn advance(&mut self) {
        if self.fenced {
            return;
        }
        self.advance_epoch();
        while self.epoch.is_none() && self.journal.is_idle() && self.choose_job() && !self.begin_epoch() {}
        self.actions.extend(self.journal.due(self.now));
    }

    fn advance_epoch(&mut self) {
        let Some(epoch) = &mut self.epoch else { return };
        let job = self.jobs.get(&epoch.share.job);
        let cancelling = job.is_some_and(|job| job.cancelling);
        // Epochs that fail sooner than they commit would get nowhere.
        let commit_interval = self.config.commit_interval / (1 << job.map_or(0, |job| job.haste));
        if self.now.saturating_sub(epoch.progressed) > self.config.stall {
            let reason = format!("nothing was finished for longer than {:?}", self.config.stall);
            return self.fail_epoch(reason);
        }
        if !epoch.closing {
            let waited = self.now.saturating_sub(epoch.last_range) >= commit_interval;
            let members = epoch.share.members.len() as u64;
            epoch.order(self.config.shard_bytes * members, waited || cancelling);
            epoch.closing = cancelling;
        }
        let is_over = epoch.closing || epoch.is_written();
        if is_over && !epoch.has_order() && self.journal.is_idle() {
            self.end_epoch();
        }
    }

    pub(super) fn set_state(&mut self, id: &JobId, state: JobState) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.state != state) else { return };
        self.events.push(Event::Job { job: id.clone(), state: state.clone() });
        job.state = state;
    }

    pub(super) fn requeue(&mut self, id: &JobId) {
        self.set_state(id, JobState::Queued);
        if let Some(job) = self.jobs.get_mut(id) {
            job.place = self.next_place;
            self.next_place += 1;
        }
    }

    pub(super) fn fail_epoch(&mut self, reason: String) {
        let Some(epoch) = &self.epoch else { return };
        let (id, number) = (epoch.share.job.clone(), epoch.number());
        self.events.push(Event::EpochFailed { job: id.clone(), epoch: number, reason: reason.clone() });
        if let Some(job) = self.jobs.get_mut(&id) {
            job.failures += 1;
            job.haste = (job.haste + 1).min(MOST_HASTE);
            job.retries += 1;
            if job.failures >= self.config.max_failed_epochs {
                job.cancelling = false;
                self.active = None;
                self.set_state(&id, JobState::Failed { reason });
            }
        }
        self.end_epoch();
    }

    /// The epoch is over for all its members, whatever they are at.
    fn end_epoch(&mut self) {
        let Some(epoch) = self.epoch.take() else { return };
        self.in_step = epoch.is_written();
        let (id, number) = (epoch.share.job.clone(), epoch.number());
        self.events.push(Event::EpochEnded { job: id.clone(), epoch: number });
        if let Some(job) = self.jobs.get_mut(&id)
            && std::mem::take(&mut job.cancelling)
        {
            self.active = None;
            self.set_state(&id, JobState::Cancelled);
        }
    }

    /// Makes the next job that has something to do the active one, if there is none; whether there is one.
    fn choose_job(&mut self) -> bool {
        loop {
            if self.active.is_none() {
                let queued = self.jobs.iter().filter(|(_, job)| job.state == JobState::Queued);
                self.active = queued.min_by_key(|(_, job)| job.place).map(|(id, _)| id.clone());
            }
            let Some(id) = self.active.clone() else { return false };
            let Some(job) = self.jobs.get(&id) else { return false };
            if job.remaining.is_some() {
                self.set_state(&id, JobState::Running);
                return true;
            }
            self.set_state(&id, JobState::Done);
            self.active = None;
        }
    }

    /// Begins an epoch of the active job. Only while no append is under way, so that what the journal says is what the
    /// epoch starts from. Returns whether the job is to be waited for; otherwise it is out, and the next one has its turn.
    fn begin_epoch(&mut self) -> bool {
        let Some((id, job)) = self.active.as_ref().and_then(|id| Some((id.clone(), self.jobs.get(id)?)))
        else {
            return true;
        };
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
        let members: Vec<Member> = self
            .roster
            .workers
            .iter()
            .filter(|(_, worker)| {
                worker.is_available(self.now) && job.fits(worker.threads, worker.memory_bytes)
            })
            .map(|(&id, worker)| Member {
                worker: id,
                threads: worker.threads,
                address: worker.address.clone(),
            })
            .collect();
        let untried = job.commits.is_empty() && job.epochs == 0;
        let error = if members.is_empty() && untried { self.does_not_fit(&job.least_memory) } else { None };
        if let Some(error) = error {
            self.set_state(&id, JobState::Failed { reason: error.to_string() });
            self.active = None;
            return false;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return true };
        let Some(segment) = job.remaining.filter(|_| !members.is_empty()) else { return true };
        job.epochs += 1;
        let (params, window_layers) = (job.params.clone(), self.config.window_layers);
        let (epoch, secret) = (self.next_epoch, self.secrets.draw());
        let possible = Possible::of_segment(job, segment);
        let share = Share { job: id, params, epoch, segment, members, window_layers, secret };
        self.next_epoch += 1;
        self.could_begin = None;
        let epoch = Epoch::new(share, possible, self.now);
        self.events.push(Event::EpochBegan(Arc::clone(&epoch.share)));
        self.epoch = Some(epoch);
        true
    }
}

/// The current epoch and a worker's place in it, if that is the epoch spoken of.
fn current(epoch: &mut Option<Epoch>, number: u64, worker: WorkerId) -> Option<(&mut Epoch, usize)> {
    let epoch = epoch.as_mut().filter(|epoch| epoch.number() == number)?;
    let member = epoch.share.member(worker)?;
    Some((epoch, member))
}
