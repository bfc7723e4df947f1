//! Pulls of workers. Each pull delivers the worker's reports, and its answer contains the news for the worker.

use std::time::Duration;

use super::holding::{LastReply, PullDecision, hold};
use super::{Cluster, Event, PROTOCOL_VERSION, Pull, PullReply, Refusal};

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
        let known = self.roster.workers.get_mut(&pull.worker);
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
        self.pass_time(now);
        self.check_pull(pull)?;
        if !self.roster.hear(pull, now)? {
            // A leaving worker is not registered just for its last pull.
            if pull.leaving {
                return Ok(farewell(pull));
            }
            self.register(pull, now);
        }
        if let Some(epoch) = self.epoch.as_mut().filter(|epoch| pull.epoch == Some(epoch.number()))
            && let Some(member) = epoch.share.member(pull.worker)
        {
            epoch.record_stage(member, pull.stage, self.now);
        }
        for report in self.roster.new_reports(pull) {
            self.report(pull.worker, report);
        }
        self.advance();
        let reply = self.reply(pull);
        if pull.leaving && !self.is_member(pull.worker) && self.roster.workers.remove(&pull.worker).is_some()
        {
            // The worker has no work left, so it may leave at once and disappears from the status.
            self.events.push(Event::WorkerLost { worker: pull.worker, leaving: true });
            return Ok(PullReply { hold: Duration::ZERO, ..reply });
        }
        Ok(reply)
    }

    /// Registers the process of a pull. An earlier process of the worker loses its work.
    fn register(&mut self, pull: &Pull, now: Duration) {
        let again = self.roster.register(pull, now);
        self.choose_at = Duration::ZERO;
        self.events.push(Event::WorkerJoined {
            worker: pull.worker,
            threads: pull.threads,
            memory_bytes: pull.memory_bytes,
            address: pull.address.clone(),
            again,
        });
        if again {
            self.lose(pull.worker, "was restarted", true);
        }
    }

    /// Checks that the pull has the right version and is for this coordinator.
    fn check_pull(&self, pull: &Pull) -> Result<(), Refusal> {
        if pull.version != PROTOCOL_VERSION {
            return Err(Refusal::Version { expected: PROTOCOL_VERSION, got: pull.version });
        }
        if self.fenced {
            return Err(Refusal::Fenced);
        }
        match pull.epoch.filter(|&epoch| epoch >= self.next_epoch) {
            Some(epoch) => Err(Refusal::Superseded { epoch }),
            None => Ok(()),
        }
    }

    fn reply(&self, pull: &Pull) -> PullReply {
        let mut reply = PullReply {
            acknowledged: self.roster.workers.get(&pull.worker).map_or(0, |worker| worker.next_report),
            withdrawn: pull.epoch,
            share: None,
            progress: None,
            write: None,
            needed_memory: None,
            hold: self.config.hold_idle,
        };
        if let Some(epoch) = &self.epoch
            && let Some(member) = epoch.share.member(pull.worker)
        {
            reply.hold = self.config.hold_busy;
            if pull.epoch == Some(epoch.number()) {
                reply.withdrawn = None;
                reply.progress = Some(epoch.progress());
                reply.write = epoch.order_for(member);
            } else {
                reply.share = Some(epoch.share.clone());
            }
        } else {
            let next = self.active.iter().chain(self.queue.values().next());
            let least = next.filter_map(|job| self.jobs.get(job)?.least_memory.as_deref());
            let mut needed = least.map(|least| least.bytes(pull.threads));
            reply.needed_memory = needed.find(|&needed| needed > pull.memory_bytes);
        }
        reply
    }
}

/// Returns the answer to an unregistered worker that is leaving.
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
