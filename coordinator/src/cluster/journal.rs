//! Appends to journals that are asked for: one at a time, in order, until the outcome of each is known.

use std::collections::VecDeque;
use std::time::Duration;

use super::messages::Action;

#[derive(Default, Debug)]
pub(super) struct Journal {
    /// The first is asked of the shell.
    queue: VecDeque<Action>,
    /// The first was asked for and is not to be asked for again before this time; `None` while it was not asked for.
    asked: Option<Asked>,
    next_ticket: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Waiting,
    RetryAt(Duration),
}

impl Journal {
    /// A number for an append.
    pub fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    pub fn push(&mut self, append: Action) {
        self.queue.push_back(append);
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// The append that the shell should be asked for now.
    pub fn due(&mut self, now: Duration) -> Option<Action> {
        let is_due = match self.asked {
            None => true,
            Some(Asked::RetryAt(time)) => now >= time,
            Some(Asked::Waiting) => false,
        };
        let first = self.queue.front().filter(|_| is_due)?;
        self.asked = Some(Asked::Waiting);
        Some(first.clone())
    }

    /// The append is in the journal.
    pub fn succeeded(&mut self, ticket: u64) -> Option<Action> {
        self.queue.front().filter(|append| append.ticket() == ticket)?;
        self.asked = None;
        self.queue.pop_front()
    }

    /// It is not known to be in the journal; to be repeated at a time.
    pub fn retry(&mut self, ticket: u64, at: Duration) {
        if self.queue.front().is_some_and(|append| append.ticket() == ticket) {
            self.asked = Some(Asked::RetryAt(at));
        }
    }
}

impl Action {
    /// Names the append in the shell's answer.
    pub fn ticket(&self) -> u64 {
        match self {
            Action::Commit { ticket, .. } | Action::Retract { ticket, .. } => *ticket,
        }
    }
}
