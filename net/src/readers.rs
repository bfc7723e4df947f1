//! Detection of clients that do not read their answers.
//!
//! In HTTP/2, a client can limit the amount of data that it receives. Until the client accepts more, an answer
//! waits in memory and its request counts as running. The transport does not poll such an answer, so code within
//! the answer cannot end the request. This module checks all answers periodically. It closes the connection of an
//! answer that the client has left unread for too long.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::connections::Peer;
use crate::log_limiter::LogLimiter;

/// Answers in progress.
#[derive(Debug)]
pub struct Readers {
    answers: Mutex<Vec<Weak<Reader>>>,
    patience: Duration,
    log: LogLimiter,
}

/// The client of an answer.
#[derive(Debug)]
pub struct Reader {
    peer: Option<Peer>,
    /// Time since which the client has had unread data; `None` without unread data.
    since: Mutex<Option<Instant>>,
}

impl Readers {
    /// Creates the list of answers. Each may stay unread for `patience`.
    pub fn new(patience: Duration) -> Self {
        Self { answers: Mutex::default(), patience, log: LogLimiter::default() }
    }

    /// Adds an answer.
    pub fn begin(&self, peer: Option<Peer>) -> Arc<Reader> {
        let reader = Arc::new(Reader { peer, since: Mutex::new(Some(Instant::now())) });
        self.answers().push(Arc::downgrade(&reader));
        reader
    }

    /// Checks the answers for the lifetime of the server.
    pub async fn maintain(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.patience / 4).await;
            self.close_stalled(Instant::now());
        }
    }

    fn close_stalled(&self, now: Instant) {
        let mut stalled = Vec::new();
        self.answers().retain(|reader| {
            let Some(reader) = reader.upgrade() else { return false };
            if reader.since().is_some_and(|since| now - since > self.patience) {
                stalled.extend(reader.peer.clone());
            }
            true
        });
        for peer in stalled {
            if peer.close.is_cancelled() {
                continue;
            }
            if let Some(left_out) = self.log.permit(now) {
                let seconds = self.patience.as_secs_f64();
                let peer = peer.address;
                tracing::warn!(%peer, seconds, left_out, "connection closed: the client does not read its answer");
            }
            peer.close.cancel();
        }
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Weak<Reader>>> {
        self.answers.lock()
    }
}

impl Reader {
    /// Records that the client has data to read.
    pub fn offered(&self) {
        *self.since() = Some(Instant::now());
    }

    /// Records that the client has read all data.
    pub fn took(&self) {
        *self.since() = None;
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock()
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn only_clients_that_do_not_read_are_cut_off() {
        let readers = Readers::new(Duration::from_secs(30));
        let peer = |port| Peer { address: ([127, 0, 0, 1], port).into(), close: CancellationToken::new() };
        let peers = [peer(1), peer(2), peer(3)];
        let [reads, waits, stalls] = peers.clone().map(|peer| readers.begin(Some(peer)));
        let closed = |after| {
            readers.close_stalled(Instant::now() + Duration::from_secs(after));
            peers.iter().map(|peer| peer.close.is_cancelled()).collect::<Vec<_>>()
        };
        assert_eq!(closed(29), [false; 3]);
        reads.took();
        waits.took();
        waits.offered();
        drop(waits);
        assert_eq!(closed(31), [false, false, true]);
        drop(stalls);
        closed(31);
        assert_eq!(readers.answers().len(), 1, "finished answers are removed");
    }
}
