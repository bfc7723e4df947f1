//! Appends that wait to be made, until their outcomes are known. The shell is asked for one at a time, and for those of
//! a job in order.

use std::collections::VecDeque;
use std::time::Duration;

use super::ids::Ticket;
use super::messages::{Append, JobId};

/// An append is tried this often at least before its job is given up.
const LEAST_TRIES: u32 = 3;

#[derive(Default, Debug)]
pub(super) struct Journal {
    queue: VecDeque<Pending>,
    /// The append that was asked of the shell, until it answers.
    asked: Option<Ticket>,
    next_ticket: Ticket,
}

#[derive(Debug)]
struct Pending {
    append: Append,
    /// It is not asked for before this time.
    not_before: Duration,
    /// When it failed first by the fault of its job's journal, and how often since.
    failed: Option<(Duration, u32)>,
    /// Whether it failed at all.
    is_stuck: bool,
}

impl Journal {
    /// A number for an append.
    pub fn ticket(&mut self) -> Ticket {
        self.next_ticket = self.next_ticket.next();
        self.next_ticket
    }

    pub fn push(&mut self, append: Append) {
        self.queue.push_back(Pending { append, not_before: Duration::ZERO, failed: None, is_stuck: false });
    }

    /// Whether nothing is to be appended to the journal of a job.
    pub fn is_idle(&self, job: &JobId) -> bool {
        self.queue.iter().all(|pending| pending.append.job() != job)
    }

    /// Whether the next append of a job has failed, and waits to be tried again.
    pub fn is_stuck(&self, job: &JobId) -> bool {
        let first = self.queue.iter().find(|pending| pending.append.job() == job);
        first.is_some_and(|pending| pending.is_stuck && Some(pending.append.ticket()) != self.asked)
    }

    /// The append that the shell should be asked for now. A job whose append waits does not keep others waiting.
    pub fn due(&mut self, now: Duration) -> Option<Append> {
        if self.asked.is_some() {
            return None;
        }
        let is_first = |at: usize, job: &JobId| self.queue.iter().take(at).all(|a| a.append.job() != job);
        let mut due = self.queue.iter().enumerate();
        let (_, pending) =
            due.find(|(at, pending)| pending.not_before <= now && is_first(*at, pending.append.job()))?;
        self.asked = Some(pending.append.ticket());
        Some(pending.append.clone())
    }

    /// Removes the append with this ticket, whose outcome is known: it is not asked for any more.
    pub fn take(&mut self, ticket: Ticket) -> Option<Append> {
        let at = self.answered(ticket)?;
        self.queue.remove(at).map(|pending| pending.append)
    }

    /// Has the append with this ticket asked for again at the time `at`: it is not known to be in the journal.
    pub fn retry(&mut self, ticket: Ticket, at: Duration) {
        if let Some(place) = self.answered(ticket) {
            (self.queue[place].not_before, self.queue[place].is_stuck) = (at, true);
        }
    }

    /// The job of an append that was asked for.
    pub fn job_of(&self, ticket: Ticket) -> Option<JobId> {
        let pending = self.queue.iter().find(|pending| pending.append.ticket() == ticket)?;
        Some(pending.append.job().clone())
    }

    /// Notes that the append with this ticket failed by the fault of its job's journal. Returns whether that has gone
    /// on for so long that it is not tried again.
    pub fn has_failed_for(&mut self, ticket: Ticket, patience: Duration, now: Duration) -> bool {
        let Some(pending) = self.queue.iter_mut().find(|pending| pending.append.ticket() == ticket) else {
            return false;
        };
        let (since, tries) = pending.failed.get_or_insert((now, 0));
        *tries += 1;
        *tries >= LEAST_TRIES && now.saturating_sub(*since) >= patience
    }

    /// Gives up all appends of a job. Whether one that was asked for is made is not known then.
    pub fn drop_job(&mut self, job: &JobId) {
        self.queue.retain(|pending| pending.append.job() != job);
        self.asked.take_if(|asked| !self.queue.iter().any(|pending| pending.append.ticket() == *asked));
    }

    /// The place of an append that the shell has answered.
    fn answered(&mut self, ticket: Ticket) -> Option<usize> {
        let at = self.queue.iter().position(|pending| pending.append.ticket() == ticket)?;
        self.asked.take_if(|asked| *asked == ticket);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to one append must not be taken for that to another.
    #[test]
    fn no_two_appends_have_the_same_ticket() {
        let mut journal = Journal::default();
        let tickets: Vec<Ticket> = (0..5).map(|_| journal.ticket()).collect();
        for (at, ticket) in tickets.iter().enumerate() {
            assert!(!tickets[..at].contains(ticket), "{tickets:?}");
        }
    }
}
