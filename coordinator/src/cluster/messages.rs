//! Messages between workers and the coordinator, and the coordinator's requests to its shell.
//!
//! `docs/dev/cluster-protocol.md` describes each message and the effect of its loss.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, LayerRange, Owners, Segment, assign};
use serde::{Deserialize, Serialize};

use super::ids::{EpochId, Incarnation, OpenTicket, Ticket};
use super::secret::Secret;
use crate::task::Totals;

/// Version of the protocol between workers and coordinator. It also covers the rule of [`assign`] and the definition
/// of the fingerprint.
pub const PROTOCOL_VERSION: u32 = 12;

/// Name of a job and of its run in the store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub String);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Id of a worker: random, and kept across its restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u64);

impl std::fmt::Display for WorkerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The only call of a worker: delivers its reports and requests work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pull {
    /// Version of the worker's protocol.
    pub version: u32,
    /// The worker.
    pub worker: WorkerId,
    /// Increases with every start of the worker's process.
    pub incarnation: Incarnation,
    /// Number of threads that compute.
    pub threads: u32,
    /// Memory limit of the worker, in bytes.
    pub memory_bytes: u64,
    /// Address for other workers.
    pub address: String,
    /// Whether the worker leaves as soon as its current work is committed.
    pub leaving: bool,
    /// Epoch that the worker has entered and not yet left, regardless of later answers.
    pub epoch: Option<EpochId>,
    /// Progress of the worker in that epoch.
    pub stage: EpochStage,
    /// Number of the first of `reports`; each incarnation numbers its reports from 0.
    pub first_report: u64,
    /// All reports not yet acknowledged, in order.
    pub reports: Vec<WorkerReport>,
}

/// Activity of a worker in its epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochStage {
    /// Opens the run, or leaves the epoch.
    Preparing,
    /// Computes, or has work to compute.
    Working,
    /// Has no work until other members finish more of theirs.
    Waiting,
}

/// The answer to a [`Pull`]. `S` is the worker's share. The shell adds the place of the run to the share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PullReply<S = Arc<Share>> {
    /// Number of the first report that has not arrived. The worker may drop all earlier reports.
    pub acknowledged: u64,
    /// The pull's epoch, if it is over. The worker then drops all data of that epoch.
    pub withdrawn: Option<EpochId>,
    /// The worker's next work. The coordinator repeats it until a pull reports its epoch as entered.
    pub share: Option<S>,
    /// Progress of the worker's epoch, if that epoch is current.
    pub progress: Option<EpochProgress>,
    /// Shard that the worker must write. The coordinator repeats it until the worker reports it as written.
    pub write: Option<WriteShard>,
    /// Memory in bytes that the worker needs for the current job, if it has less.
    pub needed_memory: Option<u64>,
    /// Longest delay of an answer without news. A worker pulls again as soon as it gets the answer.
    pub hold: Duration,
}

/// Progress of an epoch's members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochProgress {
    /// The epoch.
    pub epoch: EpochId,
    /// Number of the segment's layers that every member has finished, counted in the direction of the phase. A
    /// worker reports only layers at positions below `finished_layers` + [`window_layers`](Share::window_layers).
    pub finished_layers: u32,
    /// Number of the segment's layers with all shards written. The worker may release the data that it held for
    /// those shards.
    pub written_layers: u32,
}

/// Reason for refusing a pull. The worker drops its current work, except on `Superseded`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Worker and coordinator have different versions.
    #[error(
        "expected protocol {expected}, found {got} on the worker; use the same build for worker and coordinator"
    )]
    Version {
        /// Version of the coordinator.
        expected: u32,
        /// Version of the worker.
        got: u32,
    },
    /// A later process of the same worker has registered.
    #[error("worker {worker} was restarted: expected incarnation {expected}, found {got}; stop this process")]
    OldIncarnation {
        /// The worker.
        worker: WorkerId,
        /// The later incarnation.
        expected: Incarnation,
        /// The caller's incarnation.
        got: Incarnation,
    },
    /// A later coordinator issued the worker's epoch, so the epoch stays valid.
    #[error("a later coordinator issued epoch {epoch}; ask that one")]
    Superseded {
        /// The worker's epoch.
        epoch: EpochId,
    },
    /// Another coordinator owns the store.
    #[error("another coordinator owns the store; ask that one")]
    Fenced,
}

/// A worker's part of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The job.
    pub job: JobId,
    /// Parameters of the job.
    pub params: Params,
    /// The epoch's number: higher than that of any earlier epoch in this store.
    pub epoch: EpochId,
    /// The share's layers and the direction of the pass.
    pub segment: Segment,
    /// All workers of the epoch, the same list for each member.
    pub members: Vec<EpochMember>,
    /// Number of layers that a worker may report beyond the layers that all members have finished. This number
    /// does not limit the computation.
    pub window_layers: u32,
    /// Secret that only the members know. They use it to authenticate to each other.
    pub secret: Secret,
}

impl Share {
    /// Largest number of files that the members write for a range: a shard each and, if values are rounded, a checkpoint
    /// each.
    pub fn files(&self) -> u64 {
        let each = if self.params.contents().value_step().is_some() { 2 } else { 1 };
        each * self.members.len() as u64
    }
}

/// A worker of an epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EpochMember {
    /// The worker.
    pub worker: WorkerId,
    /// Number of threads that compute.
    pub threads: u32,
    /// Address that receives finished blocks.
    pub address: String,
}

impl Share {
    /// Returns the owner of each lane.
    pub fn owners(&self) -> Owners {
        let threads: Vec<u32> = self.members.iter().map(|member| member.threads).collect();
        assign(&self.params, &threads)
    }

    /// Returns the index of a worker among the members.
    pub fn member(&self, worker: WorkerId) -> Option<usize> {
        self.members.iter().position(|member| member.worker == worker)
    }
}

/// Order to write the worker's part of a range of layers to one shard of the store. The shard's name contains
/// epoch, worker and range.
///
/// A worker accepts an order only if the order starts with the first layer that the worker has not written yet. The
/// reason is that a late reply may repeat an order for a committed shard. Committed shards are never written again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteShard {
    /// The epoch.
    pub epoch: EpochId,
    /// Lowest layer.
    pub first: Layer,
    /// Highest layer.
    pub last: Layer,
}

/// Report of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerReport {
    /// The worker's part of a layer is complete. The worker has finished all its blocks of the layer and sealed
    /// the stored ones. It has also received all blocks of the layer that other members send to it. A worker
    /// reports layers in the direction of the phase, without gaps, even layers in which it owns no block.
    LayerDone {
        /// The epoch.
        epoch: EpochId,
        /// The worker's part of the layer.
        part: LayerPart,
    },
    /// A shard is in the store and synced.
    ShardWritten {
        /// The fulfilled order.
        shard: WriteShard,
        /// The shard's entry for the journal; opaque to the coordinator's pure code.
        record: String,
    },
    /// The worker has failed. If the worker itself is at fault, it gets no work before [`Well`](Self::Well).
    Failed {
        /// Epoch in which the worker failed; `None` if it was in no epoch.
        epoch: Option<EpochId>,
        /// The failure.
        failure: WorkerFailure,
    },
    /// The worker can work again.
    Well,
}

/// A worker's part of a layer; all numbers are 0 if the worker owns no block of the layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerPart {
    /// The layer.
    pub layer: Layer,
    /// Totals of the worker's blocks of the layer.
    pub totals: Totals,
    /// Sum modulo 2^64 of the checksums of the layer's blocks that the worker sent, each counted once for every
    /// time it was sent. A checksum covers the block's bytes, layer, lane and receiver.
    pub sent: u64,
    /// The same sum over the blocks that the worker received. Over all members, both sums are equal.
    pub received: u64,
}

/// Failure of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerFailure {
    /// The worker's disk or the store is full, according to the worker.
    DiskFull(String),
    /// A peer is unreachable or broke the connection. This failure blames the peer.
    Peer(WorkerId),
    /// A peer sent an invalid block. This failure blames the peer.
    BadBlock {
        /// The sender.
        peer: WorkerId,
        /// Description of the error.
        what: String,
    },
    /// The worker found a committed shard missing or damaged.
    ShardLost {
        /// The job that owns the shard.
        job: JobId,
        /// The shard's file.
        file: String,
    },
    /// Any other failure.
    Other(String),
}

impl std::fmt::Display for WorkerFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WorkerFailure::DiskFull(what) => write!(f, "disk full: {what}"),
            WorkerFailure::Peer(peer) => write!(f, "cannot reach worker {peer}"),
            WorkerFailure::BadBlock { peer, what } => write!(f, "worker {peer} sent a bad block: {what}"),
            WorkerFailure::ShardLost { job, file } => {
                write!(f, "cannot read the shard {file} of job {job}")
            }
            WorkerFailure::Other(what) => what.fmt(f),
        }
    }
}

/// Append that the shell makes to a job's journal. The shell gets the next append only when the outcome of the last
/// append is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Append {
    /// A range is done and its shards are in the store.
    Commit {
        /// Identifies this append in the answer. A repeated append has the same ticket.
        ticket: Ticket,
        /// The job.
        job: JobId,
        /// The epoch that computed the range.
        epoch: EpochId,
        /// The range and its counts.
        commit: Commit,
        /// The shards, one per member of the epoch.
        shards: Vec<MemberShard>,
        /// Time since the last commit, or since the start of the epoch.
        took: Duration,
    },
    /// A commit of the job is retracted because a shard is lost.
    Retract {
        /// Identifies this append in the answer.
        ticket: Ticket,
        /// The job.
        job: JobId,
        /// The number of the next epoch: higher than that of every earlier commit in the journal.
        epoch: EpochId,
        /// The commit as it was appended.
        commit: Commit,
    },
    /// Reach is removed because it is unneeded or can be enumerated again. The shell deletes its shards
    /// afterwards.
    Remove {
        /// Identifies this append in the answer.
        ticket: Ticket,
        /// The job.
        job: JobId,
        /// Committed ranges of reach.
        removed: Vec<LayerRange>,
    },
}

impl Append {
    /// Returns the ticket that identifies the append in the shell's answer.
    pub fn ticket(&self) -> Ticket {
        match self {
            Append::Commit { ticket, .. }
            | Append::Retract { ticket, .. }
            | Append::Remove { ticket, .. } => *ticket,
        }
    }

    /// Returns the job of the append.
    pub fn job(&self) -> &JobId {
        match self {
            Append::Commit { job, .. } | Append::Retract { job, .. } | Append::Remove { job, .. } => job,
        }
    }
}

/// Failure of an append; its outcome may be unknown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AppendFailure {
    /// The whole store is unavailable or full. The append is retried until it succeeds.
    Store(String),
    /// Only this job's journal cannot be written. The append is retried for a limited time.
    Journal(String),
    /// Another process has written to the job's journal.
    Foreign(String),
}

/// Task of the shell in addition to appends. The shell may answer its errands in any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Errand {
    /// Open the run of a job for writing, and keep it open while [`holds`](super::Cluster::holds) returns true. If
    /// the run has a disk limit, free space in it. Answered by [`opened`](super::Cluster::opened) or
    /// [`not_opened`](super::Cluster::not_opened); no answer is needed once
    /// [`is_opening`](super::Cluster::is_opening) returns false.
    Open {
        /// Identifies this errand in the answer.
        ticket: OpenTicket,
        /// The job.
        job: JobId,
        /// Multiple of the usual headroom to leave free within the disk limit.
        times: u64,
        /// Whether to create a missing run and to record the creation in the queue. Otherwise a missing run was
        /// moved or deleted.
        may_make: bool,
    },
    /// Read a committed shard that a worker reports as unreadable. Answered by
    /// [`examined`](super::Cluster::examined).
    Examine(Claim),
    /// Check that the store and the run of this job exist and are writable. Answered by
    /// [`store_checked`](super::Cluster::store_checked).
    Look(JobId),
}

/// A worker's report of an unreadable shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The worker.
    pub worker: WorkerId,
    /// The job that owns the shard.
    pub job: JobId,
    /// The shard's file.
    pub file: String,
}

/// Failure to open the run of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenFailure {
    /// The run may be opened later, because another process has it open or the store is unavailable.
    Later(String),
    /// The run cannot be opened until an operator repairs it.
    Never(String),
}

/// Result of checking the store and the run of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreCheck {
    /// Both exist and are writable.
    There,
    /// One of them is missing or not writable, for this reason.
    Away(String),
}

/// Result of reading a shard that a worker reported as unreadable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Examined {
    /// The shard of this commit is lost or damaged.
    Lost(Commit),
    /// The shard is intact, so the worker or its connection to the store is at fault.
    Sound,
    /// The coordinator cannot determine whether the shard is intact, for this reason.
    Unknown(String),
}

/// A shard of a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberShard {
    /// The worker that wrote it.
    pub worker: WorkerId,
    /// Number of the writer's threads. The numbers of all members determine the shard's lanes ([`assign`]).
    pub threads: u32,
    /// The shard's journal entry, as sent by the worker.
    pub record: String,
}
