//! The coordinator as the leader of an epoch. It receives reports from the outbox, and sends orders in answers to
//! pulls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::{LayerPart, Share, WorkerFailure, WorkerId, WorkerReport, WriteShard};
use exact2048_game::Layer;
use exact2048_net::text::with_causes;
use exact2048_run::member::{CrewError, Leader, Next};
use exact2048_solution::{Catalog, Segment, WrittenShards};
use exact2048_storage::{Attempt, ShardKind, ShardWriter};
use metrics::{counter, gauge};
use parking_lot::{Condvar, Mutex};

use super::jobs::failure_of_kind;
use super::observe;
use super::outbox::Outbox;

/// Interval at which the thread that writes shards checks whether the epoch is over.
const PAUSE: Duration = Duration::from_millis(50);

/// The coordinator of an epoch.
pub struct RemoteLeader {
    /// This worker.
    pub worker: WorkerId,
    /// The worker's share of the epoch.
    pub share: Arc<Share>,
    /// The shards of the run.
    pub catalog: Arc<Catalog>,
    /// The attempt in the file names of this worker's shards.
    pub attempt: Attempt,
    /// Reports to the coordinator.
    pub outbox: Arc<Outbox>,
    /// Becomes true when the epoch must end.
    pub stop: Arc<AtomicBool>,
    /// Orders of the coordinator to write shards.
    pub orders: Orders,
}

/// Orders of the coordinator, until they are carried out.
#[derive(Debug, Default)]
pub struct Orders {
    waiting: Mutex<Waiting>,
    /// Woken when there is an order, or the epoch is over.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    last: Option<WriteShard>,
    queue: VecDeque<WriteShard>,
    /// Whether no more orders will arrive.
    is_over: bool,
}

impl Orders {
    /// Accepts an order, unless it repeats the last one. The coordinator repeats an order until it receives the report.
    pub fn add(&self, shard: WriteShard) {
        let mut waiting = self.waiting.lock();
        if waiting.last.replace(shard) != Some(shard) {
            waiting.queue.push_back(shard);
            self.changed.notify_one();
        }
    }

    /// Ends the wait for orders, because the epoch is over.
    pub fn end(&self) {
        self.waiting.lock().is_over = true;
        self.changed.notify_one();
    }

    /// Returns the next order, if one arrives within [`PAUSE`].
    fn take(&self) -> Option<WriteShard> {
        let mut waiting = self.waiting.lock();
        self.changed.wait_while_for(&mut waiting, |now| now.queue.is_empty() && !now.is_over, PAUSE);
        waiting.queue.pop_front()
    }
}

impl RemoteLeader {
    /// Converts an error of this worker to the failure that is reported to the coordinator.
    pub fn failure_of(&self, error: &CrewError) -> WorkerFailure {
        match error.blames().and_then(|blame| self.catalog.blamed(&blame)) {
            Some(shard) => {
                WorkerFailure::ShardLost { job: self.share.job.clone(), file: shard.record.file.clone() }
            }
            None => failure_of_kind(error.kind(), with_causes(error)),
        }
    }
}

impl Leader for RemoteLeader {
    fn progressed(&self, totals: &Totals, _frontier: Layer) {
        if totals.states > 0 {
            counter!(observe::STATES, "phase" => self.share.segment.phase.name()).increment(totals.states);
        }
    }

    fn holds(&self, bytes: u64) {
        gauge!(observe::UNWRITTEN_BYTES).set(bytes as f64);
    }

    fn layer_done(&self, part: LayerPart) {
        let (epoch, segment) = (self.share.epoch, self.share.segment);
        let is_last = segment.position(part.layer) + 1 == segment.layers();
        let report = WorkerReport::LayerDone { epoch, part };
        if is_last {
            self.outbox.report_now(report);
        } else {
            self.outbox.report(report);
        }
    }

    fn next_range(&self, _is_over: bool) -> Next {
        if self.stop.load(Ordering::Relaxed) {
            return Next::End;
        }
        let phase = self.share.segment.phase;
        let range = |WriteShard { first, last, .. }| Segment { phase, first, last };
        self.orders.take().map_or(Next::Wait, |shard| Next::Write(range(shard)))
    }

    fn create_shard(&self, kind: ShardKind, range: Segment) -> Result<ShardWriter, CrewError> {
        let identity = self.catalog.identity_of(kind, range.first, range.last);
        Ok(ShardWriter::create_as(self.catalog.files(), identity, self.attempt)?)
    }

    fn written(&self, range: Segment, shards: WrittenShards) -> Result<(), CrewError> {
        let shard = &shards.shard;
        let of_checkpoint = shards.checkpoint.as_ref().map_or(0, |shard| shard.bytes);
        counter!(observe::WRITTEN_BYTES).increment(shard.bytes + of_checkpoint);
        let Segment { first, last, .. } = range;
        let (worker, job, epoch) = (self.worker, &self.share.job, self.share.epoch);
        tracing::info!(%worker, %job, %epoch, %first, %last, bytes = shard.bytes, "shard written");
        let record = serde_json::json!(shards).to_string();
        self.outbox
            .report_now(WorkerReport::ShardWritten { shard: WriteShard { epoch, first, last }, record });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use exact2048_coordinator::cluster::EpochId;

    use super::*;

    /// Otherwise the next epoch would begin later.
    #[test]
    fn no_thread_waits_for_orders_of_an_ended_epoch() {
        let orders = Orders::default();
        orders.end();
        let begun = Instant::now();
        (0..1000).for_each(|_| assert_eq!(orders.take(), None));
        assert!(begun.elapsed() < 200 * PAUSE, "1,000 calls waited");
    }

    #[test]
    fn an_order_that_is_repeated_is_carried_out_once() {
        let orders = Orders::default();
        let shard = |first| WriteShard { epoch: EpochId(1), first: Layer(first), last: Layer(first + 2) };
        [4, 4, 8, 8].into_iter().for_each(|first| orders.add(shard(first)));
        assert_eq!([orders.take(), orders.take()], [Some(shard(4)), Some(shard(8))]);
        orders.add(shard(8));
        assert_eq!(orders.take(), None, "a late answer repeats the order");
    }
}
