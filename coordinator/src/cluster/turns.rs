//! The queue of jobs, and the job that has its turn.

use std::collections::BTreeMap;
use std::time::Duration;

use super::messages::JobId;

#[derive(Default, Debug)]
pub(super) struct Turns {
    /// Jobs that wait for their turn, by place.
    queue: BTreeMap<u64, JobId>,
    /// Place of the next job that enters the queue at its end.
    next_place: u64,
    active: Option<JobId>,
    /// Earliest known time when a job of the queue may get its turn.
    choose_at: Duration,
}

/// Whether a waiting job may get its turn.
pub(super) enum Readiness {
    Ready,
    /// Not before this time.
    NotBefore(Duration),
    /// Not before something changes.
    Blocked,
}

impl Turns {
    /// Returns a place after all earlier places.
    pub fn last_place(&mut self) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        place
    }

    /// Adds a job to the queue. If the job has its turn, its turn ends.
    pub fn wait(&mut self, place: u64, job: &JobId) {
        self.end(place, job);
        self.queue.insert(place, job.clone());
    }

    /// Removes a job with this place, waiting or active.
    pub fn end(&mut self, place: u64, job: &JobId) {
        self.active.take_if(|active| active == job);
        self.queue.remove(&place);
        self.reconsider();
    }

    /// Ends the turn of the active job without a successor, because this coordinator stops.
    pub fn stop(&mut self) {
        self.active = None;
    }

    /// Requests that the queue be examined again, because something has changed.
    pub fn reconsider(&mut self) {
        self.choose_at = Duration::ZERO;
    }

    /// Returns the job that has its turn.
    pub fn active(&self) -> Option<&JobId> {
        self.active.as_ref()
    }

    /// Returns the first waiting job.
    pub fn first(&self) -> Option<&JobId> {
        self.queue.values().next()
    }

    /// Gives the turn to the first waiting job that is ready, if the time has come. Returns the new active job. No job
    /// may be active before.
    pub fn choose(&mut self, now: Duration, mut readiness: impl FnMut(&JobId) -> Readiness) -> Option<JobId> {
        if now < self.choose_at {
            return None;
        }
        self.choose_at = Duration::MAX;
        for (&place, job) in &self.queue {
            match readiness(job) {
                Readiness::Ready => {
                    self.active = self.queue.remove(&place);
                    return self.active.clone();
                }
                Readiness::NotBefore(at) => self.choose_at = self.choose_at.min(at),
                Readiness::Blocked => {}
            }
        }
        None
    }
}
