//! Settings of a cluster: times, sizes and limits.

use std::time::Duration;

use crate::ranges::{COMMIT_INTERVAL, SHARD_BYTES};

/// Settings of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterConfig {
    /// Silence after which a worker is lost.
    pub lease: Duration,
    /// Time without a new worker before an epoch begins, so workers that start together share it. The wait is at most
    /// one lease, and is skipped after an epoch that has completed its segment.
    pub settle: Duration,
    /// Longest time between commits, however small they are. Each failed epoch halves it, up to 4 times; a commit of
    /// an epoch that has lasted this long doubles it again.
    pub commit_interval: Duration,
    /// Size in bytes of a worker's shard: a range is written when its shards reach this on average. While much data
    /// waits, shards grow up to 32 times as large.
    pub shard_bytes: u64,
    /// Layers that a worker may report beyond those that all members have finished. This is only a bound; the lead of
    /// workers follows from the progress of their peers.
    pub window_layers: u32,
    /// Time without progress after which a blocking member is blamed and its epoch fails. If the member was at work,
    /// the time doubles for the next epochs, up to 5 times.
    pub step: Duration,
    /// Time without any member's progress after which an epoch fails, whichever member is to blame.
    pub stall: Duration,
    /// Failed epochs in a row without a commit after which a job fails; failures within one lease count once.
    pub max_failed_epochs: u32,
    /// Time without work for a worker after its first failure; each further failure doubles it.
    pub backoff: Duration,
    /// Time after which an append of unknown outcome is repeated.
    pub retry: Duration,
    /// Time during which failed appends to a job's journal are retried while the store works otherwise; then the job
    /// fails.
    pub journal_patience: Duration,
    /// Time after which opening a run is retried; other jobs have their turn meanwhile.
    pub reopen: Duration,
    /// Remaining time of a segment below which a new worker waits for the next segment.
    pub worth_rebalancing: Duration,
    /// Longest delay of an answer without news to a worker with work.
    pub hold_busy: Duration,
    /// Longest delay of an answer without news to a worker without work.
    pub hold_idle: Duration,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(5),
            settle: Duration::from_secs(1),
            commit_interval: COMMIT_INTERVAL,
            shard_bytes: SHARD_BYTES,
            window_layers: 512,
            step: Duration::from_secs(40),
            stall: Duration::from_secs(15 * 60),
            max_failed_epochs: 5,
            backoff: Duration::from_secs(1),
            retry: Duration::from_secs(1),
            journal_patience: Duration::from_secs(30),
            reopen: Duration::from_secs(5),
            worth_rebalancing: Duration::from_secs(30),
            hold_busy: Duration::from_millis(100),
            hold_idle: Duration::from_millis(500),
        }
    }
}
