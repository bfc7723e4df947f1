//! Distinct types for the numbers of epochs, appends, run openings and worker starts.

use std::fmt;

/// Number of an epoch: higher than that of any earlier epoch in the store. The upper half is the coordinator's
/// number, and the lower half counts that coordinator's epochs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EpochId(pub u64);

impl EpochId {
    /// Returns the first epoch of the coordinator with this number.
    #[must_use]
    pub const fn first_of(coordinator: u64) -> Self {
        Self(coordinator << 32)
    }

    /// Returns the coordinator's next epoch.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Displays the coordinator's number, a dot, and the number of the epoch among that coordinator's epochs.
impl fmt::Display for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// Identifies an append in the shell's answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Returns the next ticket.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Identifies an opening of a run in the shell's answer. The job's name is not enough, because a job may be
/// forgotten and resubmitted during the opening of its run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct OpenTicket(pub u64);

impl OpenTicket {
    /// Returns the next ticket.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Number of a start of a worker's process. It grows with each start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The first start.
    pub const FIRST: Self = Self(0);

    /// Returns the next incarnation.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
