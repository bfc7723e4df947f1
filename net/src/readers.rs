//! Clients that ask and do not read the answer.
//!
//! HTTP/2 lets a client say how much it takes; until it takes more, an answer waits in memory and its request counts
//! among those that run. The transport does not even look at such an answer, so that nothing within it can end it. Here
//! all answers are looked at now and then; the connection of one that was not taken on for too long is closed.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::connections::Peer;
use crate::rarely::Rarely;

/// Answers under way.
#[derive(Debug)]
pub struct Readers {
    answers: Mutex<Vec<Weak<Reader>>>,
    patience: Duration,
    log: Rarely,
}

/// Who an answer is for.
#[derive(Debug)]
pub struct Reader {
    peer: Option<Peer>,
    /// Since when the client has had something to take; `None` while there is nothing.
    since: Mutex<Option<Instant>>,
}

impl Readers {
    /// Answers may wait this long to be taken on.
    pub fn new(patience: Duration) -> Self {
        Self { answers: Mutex::default(), patience, log: Rarely::default() }
    }

    /// An answer begins.
    pub fn begin(&self, peer: Option<Peer>) -> Arc<Reader> {
        let reader = Arc::new(Reader { peer, since: Mutex::new(Some(Instant::now())) });
        self.answers().push(Arc::downgrade(&reader));
        reader
    }

    /// Looks after answers as long as the server lives.
    pub async fn look_after(self: Arc<Self>) {
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
            if let Some(left_out) = self.log.may(now) {
                let seconds = self.patience.as_secs_f64();
                let peer = peer.address;
                tracing::warn!(%peer, left_out, "closed a connection: for {seconds} s its client did not read an answer");
            }
            peer.close.cancel();
        }
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Weak<Reader>>> {
        self.answers.lock()
    }
}

impl Reader {
    /// The client has something to take.
    pub fn offered(&self) {
        *self.since() = Some(Instant::now());
    }

    /// The client has taken all that there is.
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
    fn only_who_does_not_read_is_cut_off() {
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
        assert_eq!(readers.answers().len(), 1, "what has ended is forgotten");
    }
}
