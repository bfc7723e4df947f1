//! Shutdown on SIGTERM and SIGINT. The server first refuses new work, and running work gets some time to end.

use std::io;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Time after the first signal within which further signals count as the same request. Ending a process and its
/// group sends two signals.
const REPEAT: Duration = Duration::from_secs(1);

/// Tokens that signal a shutdown.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled when new work must be refused.
    pub begun: CancellationToken,
    /// Cancelled when running work must end.
    pub over: CancellationToken,
}

impl Stop {
    /// Begins the shutdown on SIGTERM or SIGINT. The shutdown is over after the grace period, or at a further
    /// signal at least a second later.
    ///
    /// # Errors
    ///
    /// The system's error if signals cannot be handled.
    pub fn on_signals(grace: Duration) -> io::Result<Self> {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = Self::default();
        let Self { begun, over } = stop.clone();
        tokio::spawn(async move {
            let mut signalled = async || {
                tokio::select! { _ = term.recv() => "SIGTERM", _ = int.recv() => "SIGINT" }
            };
            let name = signalled().await;
            let first = Instant::now();
            tracing::info!(signal = name, grace_seconds = grace.as_secs_f64(), "stopping");
            begun.cancel();
            let hurried = async {
                loop {
                    let name = signalled().await;
                    if is_another(first.elapsed()) {
                        return name;
                    }
                }
            };
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                name = hurried => tracing::warn!(signal = name, "second signal, cutting off running requests"),
            }
            over.cancel();
        });
        Ok(stop)
    }
}

/// Returns whether a signal at this time after the first is a new request. A new request ends the grace period.
fn is_another(after: Duration) -> bool {
    after >= REPEAT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_signals_within_a_second_count_once() {
        for (after, another) in
            [(0, false), (100, false), (999_999, false), (1_000_000, true), (60_000_000, true)]
        {
            assert_eq!(is_another(Duration::from_micros(after)), another, "{after} µs");
        }
    }
}
