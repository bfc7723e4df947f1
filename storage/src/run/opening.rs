//! Opening records. Each opening record names the process that may write the run from this record on.
//!
//! A store has no lock, because objects do not vanish when a process ends. Instead, a process that opens a run for
//! writing appends an opening record. The record takes the number that every earlier writer would use for its next
//! record. Each number is used once, so the earlier writers can no longer commit.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::RunId;
use crate::manifest::PROGRAM;

/// Contents of an opening record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    /// Unique to this record, so a writer cannot mistake another writer's record for its own.
    nonce: RunId,
    program: String,
    host: String,
    process: u32,
    /// Writer's clock in seconds since 1970, for human readers.
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
