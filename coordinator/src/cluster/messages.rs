//! What workers and the coordinator say to each other, and what the coordinator asks of its shell.
//!
//! `docs/dev/cluster-protocol.md` says what each message does and what its loss does.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, LayerRange, Owners, Segment, assign};
use serde::{Deserialize, Serialize};

use super::ids::{EpochId, Incarnation, OpenTicket, Ticket};
use super::secret::Secret;
use crate::task::Totals;

/// Version of the protocol between workers and coordinator, of the rule of [`assign`] and of the fingerprint.
pub const PROTOCOL_VERSION: u32 = 9;

/// Name of a job: the run's name in the store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub String);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Name of a worker: a number that follows from the secret that its pulls show (`wire::worker_of` of the crate of the
/// shells), so that nobody else can pull under it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u64);

impl std::fmt::Display for WorkerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The only call that a worker makes: I am here, this is done, what now?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pull {
    /// The protocol that the worker speaks.
    pub version: u32,
    /// The worker.
    pub worker: WorkerId,
    /// Grows with every start of the worker's process.
    pub incarnation: Incarnation,
    /// Threads that compute.
    pub threads: u32,
    /// Memory that the worker may use, in bytes.
    pub memory_bytes: u64,
    /// Where other workers reach it.
    pub address: String,
    /// It wants to go as soon as the work it has is committed.
    pub leaving: bool,
    /// The epoch that its runner has taken up and not left yet, whatever it was told since.
    pub epoch: Option<EpochId>,
    /// How far it is with that epoch.
    pub stage: EpochStage,
    /// Number of the first of `reports`; reports are numbered from 0 in each incarnation.
    pub first_report: u64,
    /// All reports that were not acknowledged yet, in order.
    pub reports: Vec<WorkerReport>,
}

/// What a worker does in the epoch that it has taken up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochStage {
    /// Opens the run, or leaves the epoch.
    Preparing,
    /// Computes, or could.
    Working,
    /// Has nothing to do before others have finished something.
    Waiting,
}

/// The answer to a [`Pull`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PullReply {
    /// Reports with lower numbers have arrived and may be forgotten.
    pub acknowledged: u64,
    /// The epoch of the pull is over: drop everything of it.
    pub withdrawn: Option<EpochId>,
    /// What to work on; repeated until the worker says that it is in that epoch.
    pub share: Option<Arc<Share>>,
    /// How far the worker's epoch is, where it is in the current one.
    pub progress: Option<EpochProgress>,
    /// A shard to write; repeated until the worker reports it as written.
    pub write: Option<WriteShard>,
    /// The job whose turn it is needs this much memory of the worker, in bytes, and the worker has less.
    pub needed_memory: Option<u64>,
    /// For how long the answer is held back at most where it says nothing new: a worker pulls again as soon as it has it.
    pub hold: Duration,
}

/// How far the members of an epoch are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochProgress {
    /// The epoch.
    pub epoch: EpochId,
    /// Layers of the segment that every member has finished, counted in the direction of the phase. A worker reports
    /// layers with a position below `finished_layers` + [`window_layers`](Share::window_layers), and no others.
    pub finished_layers: u32,
    /// Layers of the segment whose shards are all written. What is held of them for writing may go.
    pub written_layers: u32,
}

/// Why a pull is refused. The worker drops what it is working on, except on `Superseded`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Worker and coordinator are of different versions.
    #[error("this worker speaks protocol {got}, the coordinator {expected}: use the same build for both")]
    Version {
        /// What the coordinator speaks.
        expected: u32,
        /// What the worker speaks.
        got: u32,
    },
    /// A later process of the same worker has registered.
    #[error(
        "worker {worker} was started again: incarnation {got} is older than {expected}; this one has to stop"
    )]
    OldIncarnation {
        /// The worker.
        worker: WorkerId,
        /// The later incarnation.
        expected: Incarnation,
        /// The caller's.
        got: Incarnation,
    },
    /// The worker's epoch was given out by a later coordinator; it stays valid.
    #[error("epoch {epoch} was given out by a later coordinator than this one: ask that one")]
    Superseded {
        /// The worker's epoch.
        epoch: EpochId,
    },
    /// This process of the worker is not registered. Workers are not told this: the coordinator meets the worker
    /// instead, and registers it if it is there.
    #[error("worker {worker} is not known here: it has to be reached at its address first")]
    Stranger {
        /// The worker.
        worker: WorkerId,
    },
    /// Another coordinator owns the store.
    #[error("another coordinator has taken over the store: this one gives out no more work")]
    Fenced,
}

/// A worker's part of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The job.
    pub job: JobId,
    /// Its parameters.
    pub params: Params,
    /// The epoch: higher than any before it in this store.
    pub epoch: EpochId,
    /// The layers to go through, and in which direction.
    pub segment: Segment,
    /// All workers of the epoch; the same list for each of them.
    pub members: Vec<EpochMember>,
    /// How many layers a worker may report past those that all members have finished. It does not bound what workers
    /// compute.
    pub window_layers: u32,
    /// What members show each other: nobody else knows it.
    pub secret: Secret,
}

/// A worker of an epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EpochMember {
    /// The worker.
    pub worker: WorkerId,
    /// Threads that compute.
    pub threads: u32,
    /// Where finished blocks are pushed to.
    pub address: String,
}

impl Share {
    /// Who owns which lane.
    pub fn owners(&self) -> Owners {
        let threads: Vec<u32> = self.members.iter().map(|member| member.threads).collect();
        assign(&self.params, &threads)
    }

    /// The index of a worker among the members.
    pub fn member(&self, worker: WorkerId) -> Option<usize> {
        self.members.iter().position(|member| member.worker == worker)
    }
}

/// An order to write what the worker owns of a range of layers to one shard of the store, under a name
/// made of epoch, worker and range.
///
/// A worker takes an order only where it begins with the first layer that it has not written yet: a late reply may
/// repeat one whose shard is committed since, and what is committed is never written again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteShard {
    /// The epoch.
    pub epoch: EpochId,
    /// Lowest layer.
    pub first: Layer,
    /// Highest layer.
    pub last: Layer,
}

/// What a worker reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerReport {
    /// All of the worker's blocks of a layer are done, and sealed where they are stored; and all blocks of the layer
    /// that other members had for it have arrived. Layers are reported in the direction of the phase, without gaps,
    /// also those in which the worker owns nothing.
    LayerDone {
        /// The epoch.
        epoch: EpochId,
        /// The worker's part of the layer.
        part: LayerPart,
    },
    /// A shard is in the store, synced.
    ShardWritten {
        /// The order that it fulfils.
        shard: WriteShard,
        /// What the journal shall say of it; opaque here.
        record: String,
    },
    /// Something went wrong. After a failure that is its own, a worker gets no work until [`Well`](Self::Well).
    Failed {
        /// The epoch that it has to leave, if it is in one.
        epoch: Option<EpochId>,
        /// What.
        failure: WorkerFailure,
    },
    /// The worker can work again.
    Well,
}

/// A worker's part of a layer; all of it 0 where it owns no block there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerPart {
    /// The layer.
    pub layer: Layer,
    /// What the worker's blocks of the layer come to.
    pub totals: Totals,
    /// Sum modulo 2^64 of the checksums of the layer's blocks that the worker sent, each as often as it was sent. A
    /// checksum is of the block's bytes and of where they belong: layer, lane and receiver.
    pub sent: u64,
    /// The same sum over the blocks that the worker took in. Over all members, both sums are equal.
    pub received: u64,
}

/// What went wrong at a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerFailure {
    /// The worker's disk or the store is full, as the worker sees it.
    DiskFull(String),
    /// A peer cannot be reached or breaks off; blames the peer.
    Peer(WorkerId),
    /// A peer sent a block that cannot be what it should be; blames the peer.
    BadBlock {
        /// Who sent it.
        peer: WorkerId,
        /// What is wrong with it.
        what: String,
    },
    /// A committed shard is missing or damaged, as the worker sees it.
    ShardLost {
        /// The job whose shard it is.
        job: JobId,
        /// The shard's file.
        file: String,
    },
    /// Anything else.
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

/// What the shell has to append to a job's journal. Appends come one at a time: the next one follows only when the
/// outcome of the last one is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Append {
    /// A range is done and its shards are in the store.
    Commit {
        /// Names this append in the answer; the same append has the same ticket when it is repeated.
        ticket: Ticket,
        /// The job.
        job: JobId,
        /// The epoch that computed the range.
        epoch: EpochId,
        /// The range and its counts.
        commit: Commit,
        /// The shards, one of each member of the epoch.
        shards: Vec<MemberShard>,
        /// Time from the commit before it, or the beginning of the epoch, to this one.
        took: Duration,
    },
    /// A commit of the job no longer counts, because of a lost shard.
    Retract {
        /// Names this append in the answer.
        ticket: Ticket,
        /// The job.
        job: JobId,
        /// The number of the next epoch: higher than that of every commit before it in the journal.
        epoch: EpochId,
        /// The commit, as it was appended.
        commit: Commit,
    },
    /// Reach that is not needed, or can be enumerated again, no longer counts; its shards are removed after that.
    Remove {
        /// Names this append in the answer.
        ticket: Ticket,
        /// The job.
        job: JobId,
        /// Committed ranges of reach.
        removed: Vec<LayerRange>,
    },
}

impl Append {
    /// Names the append in the shell's answer.
    pub fn ticket(&self) -> Ticket {
        match self {
            Append::Commit { ticket, .. }
            | Append::Retract { ticket, .. }
            | Append::Remove { ticket, .. } => *ticket,
        }
    }

    /// The job to whose journal it belongs.
    pub fn job(&self) -> &JobId {
        match self {
            Append::Commit { job, .. } | Append::Retract { job, .. } | Append::Remove { job, .. } => job,
        }
    }
}

/// Why an append is not known to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AppendFailure {
    /// The store as a whole cannot be reached, or has no room: the append is tried again for as long as that lasts.
    Store(String),
    /// The store takes other things, but the journal of this job cannot be written: the append is tried again for a
    /// while.
    Journal(String),
    /// Another process has written to the job's journal.
    Foreign(String),
}

/// What the shell has to find out, while it makes appends and goes on other errands. They are answered in any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Errand {
    /// To open the run of a job for writing, to make room in it where its disk has a limit, and to keep it open while
    /// [`holds`](super::Cluster::holds) says so. Answered by [`opened`](super::Cluster::opened) or
    /// [`not_opened`](super::Cluster::not_opened), or not at all once it is not
    /// [`is_opening`](super::Cluster::is_opening) any more.
    Open {
        /// Names this errand in the answer.
        ticket: OpenTicket,
        /// The job.
        job: JobId,
        /// How many times the usual room is to be left free of its limit.
        times: u64,
        /// Whether to make the run if there is none, and to note in the queue that it was made. Else a run that is not
        /// there was moved or removed.
        may_make: bool,
    },
    /// To read a committed shard that a worker says it cannot read. Answered by
    /// [`examined`](super::Cluster::examined).
    Examine(Claim),
    /// To find out whether the store and the run of this job are in their place, and can be written. Answered by
    /// [`looked`](super::Cluster::looked).
    Look(JobId),
}

/// What a worker says of a shard that it cannot read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The worker.
    pub worker: WorkerId,
    /// The job whose shard it is.
    pub job: JobId,
    /// The shard's file.
    pub file: String,
}

/// Why the run of a job is not open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// It may be opened later: another process has it, or the store cannot be reached.
    Later(String),
    /// It cannot be opened until somebody mends it.
    Never(String),
}

/// The outcome of a check for the store and the run of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Looked {
    /// Both are in their place.
    There,
    /// One of them is not, or cannot be written, for this reason.
    Away(String),
}

/// What the coordinator found when it read a shard that a worker cannot read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Examined {
    /// It is lost or damaged: the commit that it belongs to.
    Lost(Commit),
    /// It is whole: what is wrong is the worker, or its way to the store.
    Sound,
    /// The coordinator cannot read it either, for another reason.
    Unknown(String),
}

/// A shard of a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberShard {
    /// Who wrote it.
    pub worker: WorkerId,
    /// The writer's threads: which lanes the shard has follows from the threads of all members.
    pub threads: u32,
    /// What the journal says of it, as the worker gave it.
    pub record: String,
}
