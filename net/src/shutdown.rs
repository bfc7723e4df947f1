//! Stopping on SIGTERM and SIGINT: first no more is taken on, and what runs has some time to end.

use std::io;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A signal that comes within this time after the first is the same wish to stop: ending a process and its group sends
/// two.
const REPEAT: Duration = Duration::from_secs(1);

/// Tells when to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled when nothing new may be taken on.
    pub begun: CancellationToken,
    /// Cancelled when what is still running must end.
    pub over: CancellationToken,
}

impl Stop {
    /// Stops on SIGTERM or SIGINT, and is over after the time of grace or at a second signal that comes a second later or more.
    ///
    /// # Errors
    ///
    /// Where the system does not let signals be handled.
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
            tracing::info!(
                signal = name,
                grace_seconds = grace.as_secs_f64(),
                "stopping: requests under way may end"
            );
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
                name = hurried => tracing::warn!(signal = name, "a second signal: not waiting any longer"),
            }
            over.cancel();
        });
        Ok(stop)
    }
}

/// Whether a signal that comes this long after the first is a wish of its own: not to wait any longer.
fn is_another(after: Duration) -> bool {
    after >= REPEAT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_sent_twice_is_one() {
        for (after, another) in
            [(0, false), (100, false), (999_999, false), (1_000_000, true), (60_000_000, true)]
        {
            assert_eq!(is_another(Duration::from_micros(after)), another, "{after} µs");
        }
    }
}
