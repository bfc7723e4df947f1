//! How many files and connections the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections leave for everything else: files of a run and of a store, logs, metrics.
pub const KEPT: usize = 96;

/// Raises the limit of open files as far as the system lets a process do so itself, and says what it is then. On most
/// systems it begins at 1,024, for the sake of old programs, while hundreds of thousands are allowed.
pub fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Some systems say that there is no limit, and take no such value.
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The connections that there may be at once where `wanted` were asked for and `limit` files may be open.
#[must_use]
pub fn connections_within(limit: usize, wanted: usize) -> usize {
    // Each connection takes one descriptor. Where the limit is below twice [`KEPT`], connections get half of it.
    wanted.min(limit.saturating_sub(KEPT).max(limit / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_to_others() {
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
