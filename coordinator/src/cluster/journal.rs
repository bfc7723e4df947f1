//! Appends with unknown outcomes. The shell gets one append at a time, and the appends of a job in order.

use std::collections::VecDeque;
use std::time::Duration;

use super::ids::Ticket;
use super::messages::{Append, JobId};

/// Minimum number of attempts before a failing append may fail its job.
const LEAST_TRIES: u32 = 3;

#[derive(Default, Debug)]
pub(super) struct Journal {
    queue: VecDeque<Pending>,
    /// The append that the shell is making.
    asked: Option<Ticket>,
    /// Appends that the shell has not taken yet.
    to_take: Vec<Append>,
    next_ticket: Ticket,
}

#[derive(Debug)]
struct Pending {
    append: Append,
    /// Time before which the append is not retried.
    not_before: Duration,
    /// Time of the first failure caused by the job's journal, and the number of such failures.
    failed: Option<(Duration, u32)>,
    /// Whether the append has failed, for any reason.
    is_stuck: bool,
}

impl Journal {
    /// Returns a new ticket.
    fn ticket(&mut self) -> Ticket {
        self.next_ticket = self.next_ticket.next();
        self.next_ticket
    }

    /// Adds the append that `append` creates for a new ticket.
    pub fn push(&mut self, append: impl FnOnce(Ticket) -> Append) {
        let append = append(self.ticket());
        self.queue.push_back(Pending { append, not_before: Duration::ZERO, failed: None, is_stuck: false });
    }

    /// Returns whether no append of a job is pending.
    pub fn is_idle(&self, job: &JobId) -> bool {
        self.queue.iter().all(|pending| pending.append.job() != job)
    }

    /// Returns whether the next append of a job has failed and waits for a retry.
    pub fn is_stuck(&self, job: &JobId) -> bool {
        let first = self.queue.iter().find(|pending| pending.append.job() == job);
        first.is_some_and(|pending| pending.is_stuck && Some(pending.append.ticket()) != self.asked)
    }

    /// Requests the next append, unless the shell is still making one. A waiting append of one job does not delay
    /// other jobs.
    pub fn request_next(&mut self, now: Duration) {
        if self.asked.is_some() {
            return;
        }
        let is_first = |at: usize, job: &JobId| self.queue.iter().take(at).all(|a| a.append.job() != job);
        let mut due = self.queue.iter().enumerate();
        let next = due.find(|(at, pending)| pending.not_before <= now && is_first(*at, pending.append.job()));
        if let Some((_, pending)) = next {
            self.asked = Some(pending.append.ticket());
            self.to_take.push(pending.append.clone());
        }
    }

    /// Returns the appends for the shell to make now.
    pub fn take_requested(&mut self) -> Vec<Append> {
        std::mem::take(&mut self.to_take)
    }

    /// Removes an append with a known outcome.
    pub fn take(&mut self, ticket: Ticket) -> Option<Append> {
        let at = self.answered(ticket)?;
        self.queue.remove(at).map(|pending| pending.append)
    }

    /// Schedules a retry at the time `at` for an append of unknown outcome.
    pub fn retry(&mut self, ticket: Ticket, at: Duration) {
        if let Some(place) = self.answered(ticket) {
            (self.queue[place].not_before, self.queue[place].is_stuck) = (at, true);
        }
    }

    /// Returns the job of a pending append.
    pub fn job_of(&self, ticket: Ticket) -> Option<JobId> {
        let pending = self.queue.iter().find(|pending| pending.append.ticket() == ticket)?;
        Some(pending.append.job().clone())
    }

    /// Records that an append failed because of its job's journal. Returns whether the retries are exhausted.
    pub fn has_failed_for(&mut self, ticket: Ticket, patience: Duration, now: Duration) -> bool {
        let Some(pending) = self.queue.iter_mut().find(|pending| pending.append.ticket() == ticket) else {
            return false;
        };
        let (since, tries) = pending.failed.get_or_insert((now, 0));
        *tries += 1;
        *tries >= LEAST_TRIES && now.saturating_sub(*since) >= patience
    }

    /// Drops all appends of a job. If the shell is making one of them, its outcome stays unknown.
    pub fn drop_job(&mut self, job: &JobId) {
        self.queue.retain(|pending| pending.append.job() != job);
        self.asked.take_if(|asked| !self.queue.iter().any(|pending| pending.append.ticket() == *asked));
    }

    /// Returns the position of an append that the shell has answered.
    fn answered(&mut self, ticket: Ticket) -> Option<usize> {
        let at = self.queue.iter().position(|pending| pending.append.ticket() == ticket)?;
        self.asked.take_if(|asked| *asked == ticket);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to one append must not be mistaken for the answer to another.
    #[test]
    fn tickets_of_appends_are_distinct() {
        let mut journal = Journal::default();
        let tickets: Vec<Ticket> = (0..5).map(|_| journal.ticket()).collect();
        for (at, ticket) in tickets.iter().enumerate() {
            assert!(!tickets[..at].contains(ticket), "{tickets:?}");
        }
    }
}
