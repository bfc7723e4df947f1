//! Jobs: their parameters, commits and outcomes.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, Holdings, LayerRange, Phase, Recipe, Segment, fingerprint_of};
use exact2048_text::numbers::{SizeUnits, several};
use rustc_hash::FxHashMap;

use super::checks::ShardCheck;
use super::ids::OpenTicket;
use super::messages::JobId;
use super::summary::JobSummary;
use crate::pass_cost::{PassCost, RemainingCost};
use crate::rate::{Pace, Rate};
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

/// Size of a run, as counted by the process that has it open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunBytes {
    /// Bytes of the committed shards.
    pub committed_bytes: u64,
    /// Use of the disk limit; `None` without a limit.
    pub disk: Option<DiskUse>,
}

/// Use of a run's disk limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskUse {
    /// The limit.
    pub limit_bytes: u64,
    /// Current use.
    pub taken_bytes: u64,
    /// Highest observed use.
    pub peak_bytes: u64,
    /// Bytes left for shards.
    pub free_bytes: u64,
}

/// Least memory of a worker, by its number of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeastMemory {
    /// Pairs of a number of threads and its bytes, by ascending threads.
    by_threads: Vec<(u32, u64)>,
}

impl LeastMemory {
    /// Takes pairs of threads and bytes, in any order. A number of threads between the pairs needs as many bytes
    /// as the next higher pair. Above the highest pair, the need grows in proportion. Without pairs, any memory
    /// suffices.
    pub fn new(mut by_threads: Vec<(u32, u64)>) -> Self {
        by_threads.sort_unstable();
        Self { by_threads }
    }

    /// Returns the bytes that a worker with this many threads needs.
    pub fn bytes(&self, threads: u32) -> u64 {
        if let Some(&(_, bytes)) = self.by_threads.iter().find(|&&(known, _)| known >= threads) {
            return bytes;
        }
        let Some(&(known, bytes)) = self.by_threads.last() else { return 0 };
        (u128::from(bytes) * u128::from(threads)).div_ceil(u128::from(known.max(1))) as u64
    }
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
    /// Place in the queue: jobs with lower places get their turn first.
    pub place: u64,
    pub params: Params,
    pub disk_limit: Option<u64>,
    pub least_memory: Option<Arc<LeastMemory>>,
    pub state: JobState,
    /// Reason why the job makes no progress.
    pub obstacle: Option<String>,
    /// Time before which the job gets no turn.
    pub not_before: Duration,
    /// Whether the job is cancelled as soon as its finished work is committed.
    pub cancelling: bool,
    /// Pending request to the shell to open the job's run.
    pub opening: Option<OpenTicket>,
    /// Check of the shards of a done job.
    pub check: ShardCheck,
    /// Whether the shell is examining a shard that a worker cannot read.
    pub examining: bool,
    /// Failure of the job's last epoch, while the shell checks whether the store caused that failure.
    pub doubt: Option<String>,
    /// Whether the job's run was created.
    pub has_run: bool,
    /// The remaining work, while the job's run is open.
    pub plan: Option<Plan>,
    /// The job's progress as of the last record of its run.
    pub summary: JobSummary,
    /// The progress recorded in the queue.
    noted: JobSummary,
    /// Use of the disk limit as of the run's last opening.
    pub disk: Option<DiskUse>,
    /// Number of bytes that members of failed epochs may have written, or may still write, since the run was
    /// opened. No commit and no other count includes these bytes.
    pub stray_bytes: u64,
    /// Number of times in a row that the next range did not fit on the disk.
    pub short: u64,
    /// Whether the job's run must be opened again before the next epoch.
    pub is_stale: bool,
    /// Number of failed epochs in a row without a commit.
    pub failures: u32,
    /// Time when the last of these failures was counted.
    pub failed_at: Duration,
    /// Number of halvings of the time between commits. Each followed a failed epoch.
    pub haste: u32,
    /// Number of doublings of a member's time for one step. Each followed an epoch that failed because a member
    /// took longer.
    pub slowness: u32,
    /// Number of states that members finish per second.
    pub states_rate: Rate,
    /// Speed of all members together, in estimated cost per time.
    pub pace: Pace,
}

impl Job {
    pub fn new(submission: Submission, place: u64) -> (JobId, Self) {
        let Submission { job: id, params, disk_limit, least_memory, state, summary, has_run } = submission;
        let job = Self {
            place,
            params,
            disk_limit,
            least_memory,
            state,
            obstacle: None,
            not_before: Duration::ZERO,
            cancelling: false,
            opening: None,
            check: ShardCheck::None,
            examining: false,
            doubt: None,
            has_run,
            plan: None,
            noted: summary.clone(),
            summary,
            disk: None,
            stray_bytes: 0,
            short: 0,
            is_stale: false,
            failures: 0,
            failed_at: Duration::ZERO,
            haste: 0,
            slowness: 0,
            states_rate: Rate::default(),
            pace: Pace::default(),
        };
        (id, job)
    }

    /// Records that the job's run is open, with these contents.
    pub fn open(&mut self, opened: Opened) {
        let Opened { params, holdings, stored, least_memory, workload, cost, .. } = opened;
        (self.opening, self.is_stale, self.stray_bytes, self.has_run) = (None, false, 0, true);
        self.params = params;
        self.least_memory = Some(least_memory);
        self.note_bytes(stored);
        self.plan = Some(Plan::new(&self.params, holdings, workload, cost));
        self.sum_up();
    }

    /// Records the size of the job's run.
    pub fn note_bytes(&mut self, stored: RunBytes) {
        self.summary.bytes = stored.committed_bytes;
        if let Some(disk) = stored.disk {
            let peak_bytes = disk.peak_bytes.max(self.summary.peak_disk_bytes);
            self.summary.peak_disk_bytes = peak_bytes;
            self.disk = Some(DiskUse { peak_bytes, ..disk });
        }
    }

    /// Returns the reach to remove next, if the run has a disk limit.
    pub fn to_remove(&self) -> Vec<LayerRange> {
        let (Some(plan), Some(disk)) = (&self.plan, self.disk) else { return Vec::new() };
        let recipe = Recipe::new(&self.params, &plan.holdings);
        room::next_removals(&recipe, disk.limit_bytes, disk.free_bytes.cast_signed(), 1)
    }

    /// Drops the data that is needed only while the run is open.
    pub fn close(&mut self) {
        self.sum_up();
        (self.plan, self.cancelling, self.opening, self.examining) = (None, false, None, false);
        self.doubt = None;
    }

    fn sum_up(&mut self) {
        if let Some(plan) = &self.plan {
            self.summary = plan.summary(&self.params, &self.summary, 0.0, 0);
        }
    }

    /// Returns whether the queue should record the progress. If so, the progress counts as recorded.
    pub fn has_news(&mut self) -> bool {
        self.sum_up();
        let is_news = self.summary.is_news(&self.noted);
        if is_news {
            self.noted = self.summary.clone();
        }
        is_news
    }

    /// Returns whether a worker has enough memory to take part. Before the least memory is known, every worker has
    /// enough.
    pub fn fits(&self, threads: u32, memory_bytes: u64) -> bool {
        self.least_memory.as_ref().is_none_or(|least| memory_bytes >= least.bytes(threads))
    }
}

/// Remaining work of a job with an open run.
#[derive(Debug)]
pub(super) struct Plan {
    pub holdings: Holdings,
    pub workload: Arc<Workload>,
    pub cost: Arc<PassCost>,
    /// The next segment, regardless of pending commits.
    pub remaining: Option<Segment>,
    /// Fingerprint of the values, once all are committed.
    pub fingerprint: Option<u128>,
    /// Number of states in the committed layers of the upward pass.
    enumerated: u64,
    /// Number of those states with committed values.
    backed_up: u64,
    /// Cost of the uncommitted work.
    pub left: RemainingCost,
}

impl Plan {
    pub fn new(params: &Params, holdings: Holdings, workload: Arc<Workload>, cost: Arc<PassCost>) -> Self {
        let mut plan = Self {
            holdings,
            workload,
            cost,
            remaining: None,
            fingerprint: None,
            enumerated: 0,
            backed_up: 0,
            left: RemainingCost::default(),
        };
        plan.renew(params);
        plan
    }

    /// Recomputes all data that follows from the commits. Cost: linear in the number of committed layers.
    fn renew(&mut self, params: &Params) {
        let missing = Recipe::new(params, &self.holdings).steps();
        self.remaining = missing.first().copied();
        self.left = self.cost.left(&missing);
        let counts = self.holdings.counts().into_values();
        let states: FxHashMap<Layer, u64> = counts.map(|counts| (counts.layer, counts.states)).collect();
        self.enumerated = states.values().sum();
        let downward = self.holdings.commits().filter(|commit| commit.phase == Phase::BackUp);
        let layers = downward.flat_map(|commit| commit.first.to(commit.last));
        self.backed_up = layers.filter_map(|layer| states.get(&layer)).sum();
        let is_solved = !params.contents().enumerates_only() && self.remaining.is_none();
        self.fingerprint = is_solved.then(|| fingerprint_of(self.holdings.commits()));
    }

    /// Adds a commit that is now in the journal.
    pub fn add(&mut self, params: &Params, commit: Commit) {
        self.holdings.add(commit);
        self.renew(params);
    }

    /// Records that the reach of these ranges is no longer stored.
    pub fn remove(&mut self, params: &Params, removed: &[LayerRange]) {
        self.holdings.remove(removed);
        self.renew(params);
    }

    /// Removes and returns the commits that satisfy `hit`.
    pub fn take(&mut self, params: &Params, hit: impl Fn(&Commit) -> bool) -> Vec<Commit> {
        let taken = self.holdings.take(hit);
        self.renew(params);
        taken
    }

    /// Returns the current or last pass.
    pub fn phase(&self, params: &Params) -> Phase {
        let last = if params.contents().enumerates_only() { Phase::Enumerate } else { Phase::BackUp };
        self.remaining.map_or(last, |segment| segment.phase)
    }

    /// Returns the job's progress. `work_ahead` and `states_ahead` count finished but uncommitted work. Fields
    /// that do not follow from the plan are copied from `known`.
    pub fn summary(
        &self,
        params: &Params,
        known: &JobSummary,
        work_ahead: f64,
        states_ahead: u64,
    ) -> JobSummary {
        let (left, whole) = self.work_left(work_ahead);
        let (states, total) = match self.phase(params) {
            Phase::Enumerate => (self.enumerated, None),
            Phase::BackUp => (self.backed_up, Some(self.enumerated)),
        };
        JobSummary {
            phase: self.remaining.map(|segment| segment.phase),
            states_done: states + states_ahead,
            states_total: total,
            done: if whole > 0.0 { (1.0 - left / whole).clamp(0.0, 1.0) } else { 1.0 },
            fingerprint: self.fingerprint,
            ..known.clone()
        }
    }

    /// Returns the remaining cost of the pass and the cost of the whole pass. `work_ahead` is the cost of finished
    /// but uncommitted work.
    pub fn work_left(&self, work_ahead: f64) -> (f64, f64) {
        ((self.left.of_pass - work_ahead).max(0.0), self.left.whole_pass)
    }
}

/// Returns advice for a client that submits a job with the name of an existing job.
pub(super) fn advice(state: &JobState) -> &'static str {
    match state {
        JobState::Cancelled | JobState::Failed { .. } => "resume it",
        JobState::Queued | JobState::Running | JobState::Done => "see its status",
    }
}

/// Describes a disk limit that is too small, and the remedy. `missing_bytes` is 0 if the shortage is unknown.
pub(super) fn over_disk(id: &JobId, limit_bytes: u64, missing_bytes: u64) -> String {
    let units = SizeUnits::of(limit_bytes);
    let least = match missing_bytes {
        0 => String::new(),
        missing => format!("; the rest needs at least {}", units.at_least(limit_bytes + missing)),
    };
    format!(
        "the disk limit of {} is too small{least}. Committed work is safe. Forget the job and submit it again with \
         a higher limit, under the name {id}",
        units.at_most(limit_bytes)
    )
}

/// Describes a job's memory need and the memory of the closest worker.
pub(super) fn too_small(needed_bytes: u64, threads: u32, memory_bytes: u64) -> String {
    let (threads, units) = (several(threads, "thread"), SizeUnits::of(memory_bytes));
    format!(
        "expected {} of memory with {threads}, found {} on the closest worker; give workers more memory, or \
         fewer threads",
        units.at_least(needed_bytes),
        units.at_most(memory_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_memory_between_and_beyond_known_threads() {
        let least = LeastMemory::new(vec![(4, 400), (1, 100)]);
        assert_eq!([0, 1, 2, 4, 8].map(|threads| least.bytes(threads)), [100, 100, 400, 400, 800]);
        assert_eq!(LeastMemory::new(vec![]).bytes(3), 0);
    }
}
