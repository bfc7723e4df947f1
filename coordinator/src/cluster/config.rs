//! How a cluster is run: times, sizes and bounds.

use std::time::Duration;

use crate::ranges::{COMMIT_INTERVAL, SHARD_BYTES};

/// How a cluster is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterConfig {
    /// A worker that was not heard for longer is lost.
    pub lease: Duration,
    /// An epoch begins when no worker has registered for this long, so that workers that start together work together.
    /// It does not wait for longer than the lease, and not at all where the last epoch has done its segment.
    pub settle: Duration,
    /// What is finished is committed at least this often, however little it is. Each failed epoch halves the time, up
    /// to 4 times; a commit of an epoch that has lasted for this long doubles it again.
    pub commit_interval: Duration,
    /// Bytes of a shard of one worker: a range is written when its shards reach this on average. Where much waits to be
    /// written, shards grow up to 32 times as large.
    pub shard_bytes: u64,
    /// How many layers a worker may report past those that all members have finished. No more than a bound: how far
    /// ahead workers compute follows from how far their peers are.
    pub window_layers: u32,
    /// A member that holds the others up, and finishes nothing for this long, is to blame: its epoch has failed. Where
    /// the member was at work, the time is doubled for the next epochs, up to 5 times.
    pub step: Duration,
    /// An epoch in which nobody finishes anything for this long has failed, whoever is to blame.
    pub stall: Duration,
    /// A job fails after this many failed epochs in a row without a commit; those within a lease count as one.
    pub max_failed_epochs: u32,
    /// For how long a worker gets no work after its first failure; twice as long after each further one.
    pub backoff: Duration,
    /// After how long an append of unknown outcome is repeated.
    pub retry: Duration,
    /// For how long appends to the journal of a job are tried again where the store takes other things: then the job
    /// fails.
    pub journal_patience: Duration,
    /// After how long a run that cannot be opened now is tried again; others have their turn meanwhile.
    pub reopen: Duration,
    /// A worker that has joined waits for the next segment if what is left of the present one takes less time than
    /// this.
    pub worth_rebalancing: Duration,
    /// For how long the answer to a worker with work is held back where it says nothing new.
    pub hold_busy: Duration,
    /// For how long the answer to a worker without work is held back where it says nothing new.
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
