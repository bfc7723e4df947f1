//! Stopping on SIGTERM and SIGINT: first no more is taken on, and what runs has some time to end.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Tells when to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled when nothing new may be taken on.
    pub begun: CancellationToken,
    /// Cancelled when what is still running must end.
    pub over: CancellationToken,
}

impl Stop {
    /// Stops on SIGTERM or SIGINT, and is over after the time of grace or at a second signal.
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
            tracing::info!(
                signal = name,
                grace_seconds = grace.as_secs_f64(),
                "stopping: requests under way may end"
            );
            begun.cancel();
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                name = signalled() => tracing::warn!(signal = name, "a second signal: not waiting any longer"),
            }
            over.cancel();
        });
        Ok(stop)
    }
}
