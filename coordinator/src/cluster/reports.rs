//! Reports of workers: finished layers, written shards, and failures.

use super::epoch::{ReportFault, WrittenRange};
use super::events::Event;
use super::ids::EpochId;
use super::messages::{
    Append, Claim, Errand, Examined, LayerPart, WorkerFailure, WorkerId, WorkerReport, WriteShard,
};
use super::schedule::Schedule;

impl Schedule {
    /// Processes one report of a worker. Reports about layers and shards of other epochs are ignored.
    pub fn report(&mut self, worker: WorkerId, report: WorkerReport) {
        match report {
            WorkerReport::LayerDone { epoch, part } => self.layer_done(worker, epoch, part),
            WorkerReport::ShardWritten { shard, record } => self.shard_written(worker, shard, record),
            WorkerReport::Failed { epoch, failure } => self.failed(worker, epoch, failure),
            WorkerReport::Well => {
                self.jobs.outbox.report(Event::WorkerWell { worker });
                if let Some(health) = self.roster.health(worker) {
                    health.unwell = None;
                }
            }
        }
    }

    fn layer_done(&mut self, worker: WorkerId, epoch: EpochId, part: LayerPart) {
        let (now, states) = (self.clock.now(), part.totals.states);
        let Some((current, member)) = self.epochs.joined(epoch, worker) else { return };
        let (segment, before) = (current.segment(), current.frontier_layer());
        match current.layer_done(member, part, now) {
            Ok(()) => {
                let frontier = current.frontier_layer();
                if let Some(job) = self.jobs.get_mut(&current.share.job) {
                    job.progress.layer_done(states, segment, (before, frontier), now);
                }
                self.epochs.states = self.epochs.states.wrapping_add(states);
            }
            Err(ReportFault::Report(reason)) => {
                self.roster.back_off(worker, now);
                self.fail_epoch(reason);
            }
            Err(ReportFault::Layer(reason)) => self.fail_epoch(reason),
        }
    }

    fn shard_written(&mut self, worker: WorkerId, shard: WriteShard, record: String) {
        let now = self.clock.now();
        let Some((current, member)) = self.epochs.joined(shard.epoch, worker) else { return };
        let Some(written) = current.shard_written(member, shard, record, now) else { return };
        let WrittenRange { commit, shards } = written;
        let (job, epoch, took) = (current.share.job.clone(), shard.epoch, current.took(now));
        self.jobs.journal.push(|ticket| Append::Commit { ticket, job, epoch, commit, shards, took });
    }

    fn failed(&mut self, worker: WorkerId, epoch: Option<EpochId>, failure: WorkerFailure) {
        let (now, reason) = (self.clock.now(), format!("worker {worker}: {failure}"));
        self.jobs.outbox.report(Event::WorkerFailed { worker, epoch, failure: failure.clone() });
        let is_current = epoch.is_some_and(|epoch| self.epochs.joined(epoch, worker).is_some());
        match failure {
            WorkerFailure::DiskFull(_) | WorkerFailure::Other(_) => {
                if let Some(health) = self.roster.health(worker) {
                    health.note_failure(failure.to_string(), now);
                }
                if is_current {
                    self.doubt_store(reason);
                }
            }
            // A loss found in an old epoch may have been repaired since. If not, a worker will find it again. All
            // peers of a dead worker report it. The first report suffices, because the worker may already be back
            // when later reports arrive.
            _ if !is_current => {}
            // The coordinator first determines whether the shard or the worker is at fault. So it does not
            // recompute an intact shard.
            WorkerFailure::ShardLost { job: id, file } => {
                match self.jobs.get_mut(&id).filter(|job| job.progress.plan.is_some()) {
                    Some(job) => {
                        job.awaited.examining = true;
                        self.jobs.outbox.request(Errand::Examine(Claim { worker, job: id, file }));
                        self.end_epoch();
                    }
                    None => self.fail_epoch(reason),
                }
            }
            WorkerFailure::Peer(peer) | WorkerFailure::BadBlock { peer, .. } => {
                self.roster.blame(peer, worker, now);
                self.fail_epoch(reason);
            }
        }
    }

    /// Decides whether the shard or the worker is at fault.
    pub fn judge(&mut self, claim: &Claim, found: Examined) {
        let Some(job) = self.jobs.get_mut(&claim.job) else { return };
        let was_waited_for = std::mem::take(&mut job.awaited.examining);
        let (worker, file) = (claim.worker, &claim.file);
        match found {
            Examined::Lost(lost) => {
                let plan = job.progress.plan.as_mut();
                let lost = plan.map(|plan| plan.take(|commit| *commit == lost)).unwrap_or_default();
                self.retract(&claim.job, lost);
            }
            Examined::Sound => {
                self.jobs.outbox.report(Event::Misread(claim.clone()));
                self.roster.back_off(worker, self.clock.now());
                if was_waited_for {
                    let reason = format!("worker {worker} cannot read the intact shard {file}");
                    self.count_failure(&claim.job, reason);
                }
            }
            Examined::Unknown(why) if was_waited_for => {
                let reason =
                    format!("neither worker {worker} nor the coordinator can read the shard {file}: {why}");
                self.jobs.check_store(&claim.job, reason);
            }
            Examined::Unknown(_) => {}
        }
    }
}
