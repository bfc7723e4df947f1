//! Pulls of workers. Each pull delivers the worker's reports, and its answer contains the news for the worker.

use std::time::Duration;

use super::Cluster;
use super::events::Event;
use super::holding::{LastReply, PullDecision, hold};
use super::messages::{PROTOCOL_VERSION, Pull, PullReply, Refusal};
use super::schedule::Schedule;

impl Cluster {
    /// Processes a pull that has waited this long, and decides whether its answer is sent now.
    ///
    /// # Errors
    ///
    /// [`Refusal`].
    pub fn answer(
        &mut self,
        now: Duration,
        pull: &Pull,
        waited: Duration,
    ) -> Result<(PullReply, PullDecision), Refusal> {
        let reply = self.pull(now, pull)?;
        let next = LastReply::of(pull.incarnation, &reply);
        let has_reports = reply.acknowledged > pull.first_report;
        // A worker that has left is no longer registered.
        let known = self.schedule.roster.workers.get_mut(&pull.worker);
        let last = known.as_ref().and_then(|worker| worker.last_reply.as_ref());
        let decision = hold(last, &next, has_reports, waited, reply.hold);
        if let Some(worker) = known.filter(|_| decision == PullDecision::Answer) {
            worker.last_reply = Some(next);
        }
        Ok((reply, decision))
    }

    /// Processes a worker's pull, and returns the answer.
    ///
    /// The first pull of a worker's process registers the process.
    ///
    /// # Errors
    ///
    /// [`Refusal`].
    pub fn pull(&mut self, now: Duration, pull: &Pull) -> Result<PullReply, Refusal> {
        self.schedule.pass_time(now);
        self.check_pull(pull)?;
        let Self { schedule, .. } = self;
        if !schedule.roster.hear(pull, now)? {
            // A leaving worker is not registered just for its last pull.
            if pull.leaving {
                return Ok(farewell(pull));
            }
            register(schedule, pull, now);
        }
        if let Some((epoch, member)) = pull.epoch.and_then(|epoch| schedule.epochs.joined(epoch, pull.worker))
        {
            epoch.record_stage(member, pull.stage, schedule.clock.now());
        }
        for report in schedule.roster.new_reports(pull) {
            schedule.report(pull.worker, report);
        }
        self.advance();
        let Self { schedule, .. } = self;
        let reply = reply(schedule, pull);
        if pull.leaving
            && schedule.epochs.with_member(pull.worker).is_none()
            && schedule.roster.remove(pull.worker)
        {
            // The worker has no work left, so it may leave at once and disappears from the status.
            schedule.jobs.outbox.report(Event::WorkerLost { worker: pull.worker, leaving: true });
            return Ok(PullReply { hold: Duration::ZERO, ..reply });
        }
        Ok(reply)
    }

    /// Checks that the pull has the right version and is for this coordinator.
    fn check_pull(&self, pull: &Pull) -> Result<(), Refusal> {
        if pull.version != PROTOCOL_VERSION {
            return Err(Refusal::Version { expected: PROTOCOL_VERSION, got: pull.version });
        }
        if self.is_fenced {
            return Err(Refusal::Fenced);
        }
        match pull.epoch.filter(|&epoch| epoch >= self.schedule.epochs.next()) {
            Some(epoch) => Err(Refusal::Superseded { epoch }),
            None => Ok(()),
        }
    }
}

/// Registers the process of a pull. An earlier process of the worker loses its work.
fn register(schedule: &mut Schedule, pull: &Pull, now: Duration) {
    let again = schedule.roster.register(pull, now);
    schedule.jobs.turns.reconsider();
    schedule.jobs.outbox.report(Event::WorkerJoined {
        worker: pull.worker,
        threads: pull.threads,
        memory_bytes: pull.memory_bytes,
        address: pull.address.clone(),
        again,
    });
    if again {
        schedule.lose(pull.worker, "was restarted", true);
    }
}

fn reply(schedule: &Schedule, pull: &Pull) -> PullReply {
    let Schedule { config, roster, jobs, epochs, .. } = schedule;
    let acknowledged = roster.workers.get(&pull.worker).map_or(0, |worker| worker.next_report);
    let reply = PullReply { acknowledged, hold: config.hold_idle, ..farewell(pull) };
    let Some((epoch, member)) = epochs.with_member(pull.worker) else {
        let next = jobs.turns.active().into_iter().chain(jobs.turns.first());
        let least = next.filter_map(|job| jobs.get(job)?.least_memory.as_deref());
        let mut needed = least.map(|least| least.bytes(pull.threads));
        return PullReply { needed_memory: needed.find(|&needed| needed > pull.memory_bytes), ..reply };
    };
    let reply = PullReply { hold: config.hold_busy, ..reply };
    if pull.epoch == Some(epoch.number()) {
        let (progress, write) = (Some(epoch.progress()), epoch.order_for(member));
        PullReply { withdrawn: None, progress, write, ..reply }
    } else {
        PullReply { share: Some(epoch.share.clone()), ..reply }
    }
}

/// Returns an answer without work, for a worker whose reports are no longer needed.
fn farewell(pull: &Pull) -> PullReply {
    PullReply {
        acknowledged: pull.first_report + pull.reports.len() as u64,
        withdrawn: pull.epoch,
        share: None,
        progress: None,
        write: None,
        needed_memory: None,
        hold: Duration::ZERO,
    }
}
