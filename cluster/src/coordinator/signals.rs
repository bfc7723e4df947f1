//! Signals for calls that wait for news.

use exact2048_coordinator::cluster::{EpochProgress, PullDecision, Signal};
use tokio::sync::watch;

/// Signals of a coordinator.
#[derive(Default)]
pub(super) struct Signals {
    /// The urgent part of the signal for workers, without its progress.
    urgent: watch::Sender<Signal>,
    progress: watch::Sender<Option<EpochProgress>>,
    /// Counts changes of jobs' states.
    pub job_states: watch::Sender<u64>,
}

/// A pull that waits for news.
pub(super) struct Listener {
    urgent: watch::Receiver<Signal>,
    progress: watch::Receiver<Option<EpochProgress>>,
}

impl Signals {
    /// Publishes the news for workers.
    pub fn publish(&self, signal: Signal) {
        let urgent = Signal { progress: None, ..signal };
        self.urgent.send_if_modified(|known| std::mem::replace(known, urgent) != urgent);
        self.progress.send_if_modified(|known| std::mem::replace(known, signal.progress) != signal.progress);
    }

    pub fn listen(&self) -> Listener {
        Listener { urgent: self.urgent.subscribe(), progress: self.progress.subscribe() }
    }
}

impl Listener {
    /// Ignores all news until now.
    pub fn forget(&mut self) {
        self.urgent.mark_unchanged();
        self.progress.mark_unchanged();
    }

    /// Waits for news, at most for the time in the decision. A pull that gathers news waits for urgent news only.
    pub async fn wait(&mut self, decision: PullDecision) {
        let (wait, gathers) = match decision {
            PullDecision::Answer => return,
            PullDecision::Gather(wait) => (wait, true),
            PullDecision::Wait(wait) => (wait, false),
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = self.urgent.changed() => {}
            _ = self.progress.changed(), if !gathers => {}
        }
    }
}
