//! The current epoch, and the conditions and numbers of the next one.

use std::time::Duration;

use super::epoch::Epoch;
use super::ids::EpochId;
use super::messages::{JobId, WorkerId};
use super::secret::{Secret, Secrets};

#[derive(Debug)]
pub(super) struct Epochs {
    pub current: Option<Epoch>,
    secrets: Secrets,
    next: EpochId,
    /// Time since which an epoch could begin.
    could_begin: Option<Duration>,
    /// Whether the last epoch completed its segment. Then the next epoch does not wait for more workers.
    in_step: bool,
    /// Number of states that workers have finished, in all epochs.
    pub states: u64,
}

impl Epochs {
    /// The first epoch gets the number `first`.
    pub fn new(first: EpochId, secrets: Secrets) -> Self {
        Self { current: None, secrets, next: first, could_begin: None, in_step: false, states: 0 }
    }

    /// Returns the number of the next epoch: higher than that of any earlier epoch.
    pub fn next(&self) -> EpochId {
        self.next
    }

    /// Returns the number and the secret of an epoch that begins now.
    pub fn draw(&mut self) -> (EpochId, Secret) {
        let epoch = self.next;
        self.next = epoch.next();
        self.could_begin = None;
        (epoch, self.secrets.draw())
    }

    /// Returns whether an epoch need not wait for more workers. `joined` is the time of the last registration, if any
    /// worker is registered. The wait ends `settle` after that time, and at the latest after `longest`.
    pub fn has_settled(
        &mut self,
        joined: Option<Duration>,
        settle: Duration,
        longest: Duration,
        now: Duration,
    ) -> bool {
        let Some(joined) = joined else {
            self.could_begin = None;
            return false;
        };
        let could_begin = *self.could_begin.get_or_insert(now);
        self.in_step || now >= joined + settle || now >= could_begin + longest
    }

    /// Returns the current epoch if it is of this job.
    pub fn of(&self, job: &JobId) -> Option<&Epoch> {
        self.current.as_ref().filter(|epoch| epoch.share.job == *job)
    }

    /// Returns the current epoch and a worker's index in it, if the epoch has this number and the worker is a member.
    pub fn joined(&mut self, number: EpochId, worker: WorkerId) -> Option<(&mut Epoch, usize)> {
        let epoch = self.current.as_mut().filter(|epoch| epoch.number() == number)?;
        let member = epoch.share.member(worker)?;
        Some((epoch, member))
    }

    /// Returns the current epoch and a worker's index in it, if the worker is a member.
    pub fn with_member(&self, worker: WorkerId) -> Option<(&Epoch, usize)> {
        let epoch = self.current.as_ref()?;
        Some((epoch, epoch.share.member(worker)?))
    }

    /// Ends the current epoch.
    pub fn end(&mut self) -> Option<Epoch> {
        let ended = self.current.take()?;
        self.in_step = ended.is_written();
        Some(ended)
    }
}
