//! Work that the pure code orders, on its way to the code that carries it out.

use exact2048_coordinator::cluster::{Append, Errand, JobId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Work on the journals and shards of jobs.
#[derive(Clone)]
pub(super) enum Work {
    Append(Append),
    Errand(Errand),
    /// Releases the runs that are no longer needed, so that other processes can open them.
    Release,
}

/// Senders of orders: work, and jobs whose end or progress is to be written to the queue. A stopping coordinator has no
/// receivers and ignores orders.
pub(super) type Orders = (UnboundedSender<Work>, UnboundedSender<JobId>);

/// Receivers of orders.
pub(super) type Pending = (UnboundedReceiver<Work>, UnboundedReceiver<JobId>);
