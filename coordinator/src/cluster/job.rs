//! Jobs: their parameters, commits and outcomes.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::Params;
use exact2048_solution::{Holdings, LayerRange};

use super::checks::ShardCheck;
use super::disk::{DiskUse, JobDisk, RunBytes};
use super::ids::OpenTicket;
use super::memory::LeastMemory;
use super::messages::{Append, JobId};
use super::plan::Plan;
use super::progress::Progress;
use super::setbacks::Setbacks;
use super::summary::JobSummary;
use crate::pass_cost::PassCost;
use crate::room;
use crate::workload::Workload;

/// A job as a client submits it, or as a starting coordinator restores it.
#[derive(Clone, PartialEq, Debug)]
pub struct Submission {
    /// Name of the job.
    pub job: JobId,
    /// Parameters of the run.
    pub params: Params,
    /// Disk limit of the job's run, if any.
    pub disk_limit: Option<u64>,
    /// Least memory of a worker, if already computed. If the job fits no worker, its run is not opened.
    pub least_memory: Option<Arc<LeastMemory>>,
    /// The job's outcome under an earlier coordinator; [`JobState::Queued`] if work remains.
    pub state: JobState,
    /// Facts about the job's run that are known without opening it.
    pub summary: JobSummary,
    /// Whether the queue records the creation of the job's run. If so, the run is never created again.
    pub has_run: bool,
}

/// Contents of a job's run. The run is opened for writing at the job's turn.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Parameters of the run. Parameters that do not affect results may differ from the submitted ones.
    pub params: Params,
    /// Ranges that the journal records as committed and not retracted.
    pub holdings: Holdings,
    /// Size of the run.
    pub stored: RunBytes,
    /// Estimated number of bytes by which the disk limit is too small for the remaining work.
    pub missing_bytes: u64,
    /// Least memory of a worker.
    pub least_memory: Arc<LeastMemory>,
    /// Workload of the run's layers.
    pub workload: Arc<Workload>,
    /// Estimated cost of the run's passes.
    pub cost: Arc<PassCost>,
}

/// State of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobState {
    /// Waits for earlier jobs, or for a worker with enough memory.
    Queued,
    /// Workers compute the job, or the job waits for workers.
    Running,
    /// All shards are committed.
    Done,
    /// Stopped by request; committed work stays.
    Cancelled,
    /// Stopped by failures; committed work stays.
    Failed {
        /// The last failure.
        reason: String,
    },
}

impl JobState {
    /// Returns the state's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Cancelled => "cancelled",
            JobState::Failed { .. } => "failed",
        }
    }

    /// Returns whether the job's state changes only at a client's request.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(self, JobState::Queued | JobState::Running)
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub params: Params,
    pub least_memory: Option<Arc<LeastMemory>>,
    /// Whether the job's run was created.
    pub has_run: bool,
    pub standing: Standing,
    pub awaited: Awaited,
    pub progress: Progress,
    pub disk: JobDisk,
    pub setbacks: Setbacks,
}

/// Standing of a job in the queue.
#[derive(Debug)]
pub(super) struct Standing {
    /// Place in the queue: jobs with lower places get their turn first.
    pub place: u64,
    /// Time before which the job gets no turn.
    pub not_before: Duration,
    pub state: JobState,
    /// Reason why the job makes no progress.
    pub obstacle: Option<String>,
    /// Whether the job is cancelled as soon as its finished work is committed.
    pub cancelling: bool,
}

/// Answers about a job that the shell has not given yet.
#[derive(Default, Debug)]
pub(super) struct Awaited {
    /// Pending errand to open the job's run.
    pub opening: Option<OpenTicket>,
    /// Whether the shell is examining a shard that a worker cannot read.
    pub examining: bool,
    /// Failure of the job's last epoch, while the shell checks whether the store caused that failure.
    pub doubt: Option<String>,
    /// Check of the shards of a done job.
    pub check: ShardCheck,
}

impl Job {
    pub fn new(submission: Submission, place: u64) -> (JobId, Self) {
        let Submission { job: id, params, disk_limit, least_memory, state, summary, has_run } = submission;
        let not_before = Duration::ZERO;
        let job = Self {
            params,
            least_memory,
            has_run,
            standing: Standing { place, not_before, state, obstacle: None, cancelling: false },
            awaited: Awaited::default(),
            progress: Progress::new(summary),
            disk: JobDisk::new(disk_limit),
            setbacks: Setbacks::default(),
        };
        (id, job)
    }

    /// Records that the job's run is open, with these contents.
    pub fn open(&mut self, opened: Opened) {
        let Opened { params, holdings, stored, least_memory, workload, cost, .. } = opened;
        self.awaited.opening = None;
        (self.params, self.least_memory, self.has_run) = (params.clone(), Some(least_memory), true);
        self.disk.opened();
        self.note_bytes(stored);
        self.progress.open(Plan::new(params, holdings, workload, cost));
    }

    /// Records the size of the job's run.
    pub fn note_bytes(&mut self, stored: RunBytes) {
        let summary = &mut self.progress.summary;
        summary.bytes = stored.committed_bytes;
        if let Some(disk) = stored.disk {
            summary.peak_disk_bytes = disk.peak_bytes.max(summary.peak_disk_bytes);
            self.disk.usage = Some(DiskUse { peak_bytes: summary.peak_disk_bytes, ..disk });
        }
    }

    /// Applies an append that is now in the journal.
    pub fn apply(&mut self, append: Append) {
        let Some(plan) = &mut self.progress.plan else { return };
        match append {
            Append::Commit { commit, .. } => {
                plan.add(commit);
                self.setbacks.end_row();
                self.disk.forget_shortage();
            }
            Append::Remove { removed, .. } => plan.remove(&removed),
            // The plan lost the commit when the append was requested.
            Append::Retract { .. } => {}
        }
    }

    /// Returns the reach to remove next, if the run has a disk limit.
    pub fn to_remove(&self) -> Vec<LayerRange> {
        let (Some(plan), Some(disk)) = (&self.progress.plan, self.disk.usage) else { return Vec::new() };
        room::next_removals(&plan.recipe(), disk.limit_bytes, disk.free_bytes.cast_signed(), 1)
    }

    /// Drops the data that is needed only while the run is open.
    pub fn close(&mut self) {
        self.progress.close();
        self.standing.cancelling = false;
        let check = std::mem::take(&mut self.awaited.check);
        self.awaited = Awaited { check, ..Awaited::default() };
    }

    /// Returns whether a worker has enough memory to take part. Before the least memory is known, every worker has
    /// enough.
    pub fn fits(&self, threads: u32, memory_bytes: u64) -> bool {
        self.least_memory.as_ref().is_none_or(|least| memory_bytes >= least.bytes(threads))
    }
}

/// Returns advice for a client that submits a job with the name of an existing job.
pub(super) fn advice(state: &JobState) -> &'static str {
    match state {
        JobState::Cancelled | JobState::Failed { .. } => "resume it",
        JobState::Queued | JobState::Running | JobState::Done => "see its status",
    }
}
