//! Limit of open files, and the number of connections that fits it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of descriptors reserved for other uses than connections: files of runs and stores, logs, metrics.
pub const KEPT: usize = 96;

/// Raises the limit of open files to the system's maximum and returns the new limit. For the sake of old programs,
/// most systems start a process with a limit of 1,024 but allow hundreds of thousands.
pub fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Some systems report an unlimited maximum but refuse to set it.
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::debug!(%error, "limit of open files not raised");
        }
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Returns the number of connections allowed, given the `wanted` number and the `limit` of open files.
#[must_use]
pub fn connections_within(limit: usize, wanted: usize) -> usize {
    // Each connection takes one descriptor. If the limit is below twice [`KEPT`], connections get half of it.
    wanted.min(limit.saturating_sub(KEPT).max(limit / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        for (limit, wanted, connections) in [
            (usize::MAX, 1024, 1024),
            (2048, 1024, 1024),
            (1024, 1024, 928),
            (200, 1024, 104),
            (64, 1024, 32),
            (1, 1024, 1),
            (1024, 64, 64),
        ] {
            assert_eq!(connections_within(limit, wanted), connections, "{limit} {wanted}");
        }
    }
}
