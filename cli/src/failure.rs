//! Failures with exit codes.

use std::fmt;

/// A failure with its exit code.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The exit code of the program.
    pub(crate) code: u8,
    message: String,
}

impl Failure {
    /// Wrong usage of the command line.
    pub fn usage(message: String) -> Self {
        Self { code: 2, message }
    }

    /// A state that is not reachable in the run.
    pub fn unreachable(message: String) -> Self {
        Self { code: 3, message }
    }

    /// The user stopped the run.
    pub fn interrupted(message: String) -> Self {
        Self { code: 130, message }
    }

    /// Any other failure.
    pub fn failed(message: String) -> Self {
        Self { code: 1, message }
    }

    /// An exit code without a message, for a failure that was already printed.
    pub fn reported(code: u8) -> Self {
        Self { code, message: String::new() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
