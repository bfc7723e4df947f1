//! Results of decisions that the shell has not taken yet.

use std::collections::BTreeSet;

use super::events::Event;
use super::ids::OpenTicket;
use super::messages::{Errand, JobId};

#[derive(Default, Debug)]
pub(super) struct Outbox {
    errands: Vec<Errand>,
    events: Vec<Event>,
    /// Jobs that have changed since the last request for changes.
    changed: BTreeSet<JobId>,
    next_opening: OpenTicket,
}

impl Outbox {
    pub fn report(&mut self, event: Event) {
        self.events.push(event);
    }

    pub fn request(&mut self, errand: Errand) {
        self.errands.push(errand);
    }

    /// Records that the status of a job may have changed.
    pub fn mark_changed(&mut self, job: &JobId) {
        self.changed.insert(job.clone());
    }

    /// Returns a new ticket for an errand to open a run.
    pub fn opening(&mut self) -> OpenTicket {
        let ticket = self.next_opening;
        self.next_opening = ticket.next();
        ticket
    }

    pub fn take_errands(&mut self) -> Vec<Errand> {
        std::mem::take(&mut self.errands)
    }

    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub fn take_changed(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.changed)
    }
}
