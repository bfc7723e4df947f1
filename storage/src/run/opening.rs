//! Opening records: who writes a run in a store, and from which record on.
//!
//! In a store nothing vanishes when a process ends, so that there is no lock. A process that opens a run for writing
//! appends a record that says so instead. It takes the number that every earlier writer would give its next record, and
//! numbers are given once: from then on the earlier ones cannot commit.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::manifest::PROGRAM;
use crate::RunId;

/// What an opening record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    /// Tells this record from every other: a writer must not take another's for its own.
    nonce: RunId,
    program: String,
    host: String,
    process: u32,
    /// Seconds since 1970 by the clock of the writer, for people.
    at: u64,
}

impl Opening {
    pub(super) fn by_this_process() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            nonce: RunId::random(),
            program: PROGRAM.to_owned(),
            host: host.trim().to_owned(),
            process: std::process::id(),
            at,
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} ({})", self.process, self.host, self.program)
    }
}
