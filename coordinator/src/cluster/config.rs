//! Settings of a cluster: times, sizes and limits.

use std::time::Duration;

use crate::ranges::{COMMIT_INTERVAL, SHARD_BYTES};

/// Settings of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterConfig {
    /// Maximum number of jobs, including ended ones. One message can list this many.
    pub max_jobs: usize,
    /// Silence after which a worker is lost.
    pub lease: Duration,
    /// Time without a new worker before an epoch begins, so that workers that start together share the epoch. The
    /// wait is at most one lease. It is skipped after an epoch that has completed its segment.
    pub settle: Duration,
    /// Time after the last written range at which a range of any size is written. Each failed epoch of a job halves
    /// this time, up to 4 times. A commit doubles the time again if its epoch has lasted at least this setting.
    pub commit_interval: Duration,
    /// Size in bytes of a worker's shard. A range is written when its shards reach this size on average. While
    /// much data waits, shards grow to up to 32 times this size.
    pub shard_bytes: u64,
    /// Number of layers that a worker may report beyond the layers that all members have finished. This number is
    /// only a bound, because the lead of workers follows from the progress of their peers.
    pub window_layers: u32,
    /// Time without progress after which a blocking member is blamed and its epoch fails. If the member was at work,
    /// the time doubles for the next epochs, up to 5 times.
    pub step: Duration,
    /// Time without any member's progress after which an epoch fails, whichever member is to blame.
    pub stall: Duration,
    /// Number of failed epochs in a row without a commit after which a job fails. Failures within one lease count
    /// once.
    pub max_failed_epochs: u32,
    /// Time without work for a worker after its first failure. Each further failure doubles this time.
    pub backoff: Duration,
    /// Time after which an append of unknown outcome is repeated.
    pub retry: Duration,
    /// Time during which appends to a job's journal are retried if only that journal fails. After this time the
    /// job fails.
    pub journal_patience: Duration,
    /// Time after which the opening of a run is retried. Other jobs have their turn in the meantime.
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
            max_jobs: 10_000,
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
