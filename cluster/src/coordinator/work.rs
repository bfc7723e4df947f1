//! Work that the pure code orders, on its way to the code that carries it out.

use exact2048_coordinator::cluster::{Append, Errand, JobId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Work on the journals and shards of jobs.
#[derive(Clone)]
pub(super) enum Work {
    Append(Append),
    Errand(Errand),
    /// Releases the runs that are no longer needed, so that other processes can open them.
    Release,
}

/// Sender of orders.
pub(super) struct Orders {
    work: UnboundedSender<Work>,
    news: UnboundedSender<JobId>,
}

/// Receivers of orders.
pub(super) struct Pending {
    pub work: UnboundedReceiver<Work>,
    /// Jobs whose end or progress is to be written to the queue.
    pub news: UnboundedReceiver<JobId>,
}

impl Orders {
    /// Creates a sender and its receivers.
    pub fn new() -> (Self, Pending) {
        let ((work, to_do), (news, to_note)) = (unbounded_channel(), unbounded_channel());
        (Self { work, news }, Pending { work: to_do, news: to_note })
    }

    /// Orders work. A stopping coordinator has no receiver and ignores the order.
    pub fn order(&self, work: Work) {
        let _ = self.work.send(work);
    }

    /// Orders that the end or the progress of a job be written to the queue.
    pub fn note(&self, job: JobId) {
        let _ = self.news.send(job);
    }
}
