//! Numbers of epochs, of appends and of starts of workers: of a type each, so that none is taken for another.

use std::fmt;

/// Number of an epoch: higher than that of any before it in the store. Its upper half is the number of the coordinator,
/// its lower half says which of that coordinator's epochs it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EpochId(pub u64);

impl EpochId {
    /// The first one of the coordinator with this number.
    #[must_use]
    pub const fn first_of(coordinator: u64) -> Self {
        Self(coordinator << 32)
    }

    /// The one after it, of the same coordinator.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The coordinator's number, a dot, and which of that coordinator's epochs it is.
impl fmt::Display for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// Names an append in the shell's answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The one after it.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Names the opening of a run in the shell's answer: a job may be forgotten, and another one submitted under its name,
/// while its run is being opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct OpenTicket(pub u64);

impl OpenTicket {
    /// The one after it.
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Which start of a worker's process it is: grows with every one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The first start.
    pub const FIRST: Self = Self(0);

    /// The one after it.
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
