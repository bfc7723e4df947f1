//! Jobs: what is wanted, what is committed of it, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, Holdings, LayerRange, Phase, Recipe, Segment, fingerprint_of};
use exact2048_text::numbers::{SizeUnits, several};
use rustc_hash::FxHashMap;

use super::ids::OpenTicket;
use super::messages::JobId;
use super::summary::JobSummary;
use crate::pass_cost::{CostToCome, PassCost};
use crate::rate::{Pace, Rate};
use crate::room;
use crate::workload::Workload;

/// A job as it is handed in, and again after each start of the coordinator.
#[derive(Clone, PartialEq, Debug)]
pub struct Submission {
    /// Its name.
    pub job: JobId,
    /// What is to be computed.
    pub params: Params,
    /// How much its run may take of the disk, if there is a limit.
    pub disk_limit: Option<u64>,
    /// Least memory of a worker, where it was worked out already: nobody is asked to open the run of a job that fits
    /// nobody.
    pub least_memory: Option<Arc<LeastMemory>>,
    /// How it ended, if a coordinator before this one saw that; [`JobState::Queued`] if it is to be worked on.
    pub state: JobState,
    /// What is known of its run without opening it.
    pub summary: JobSummary,
    /// Whether the queue says that its run was made. Then it is never made again.
    pub has_run: bool,
}

/// What the run of a job holds, when its turn has come and it was opened for writing.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The parameters of the run. Those that do not change results may differ from what was asked for.
    pub params: Params,
    /// What the journal says is committed and not retracted.
    pub holdings: Holdings,
    /// What it takes.
    pub stored: RunBytes,
    /// Bytes by which its limit is too small for what is left, as far as is known.
    pub missing_bytes: u64,
    /// Least memory of a worker.
    pub least_memory: Arc<LeastMemory>,
    /// The entries of its layers.
    pub workload: Arc<Workload>,
    /// What its passes cost.
    pub cost: Arc<PassCost>,
}

/// What a run takes, as whoever has it open counts it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunBytes {
    /// Bytes of the committed shards.
    pub committed_bytes: u64,
    /// What it takes of its limit; `None` where it has none.
    pub disk: Option<DiskUse>,
}

/// What a run takes of the disk, or of its store, where that is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskUse {
    /// The limit.
    pub limit_bytes: u64,
    /// What it takes.
    pub taken_bytes: u64,
    /// The most that it took, as far as that was seen.
    pub peak_bytes: u64,
    /// How much shards may still take.
    pub free_bytes: u64,
}

/// The least memory of a worker, by its number of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeastMemory {
    /// Numbers of threads, ascending, each with bytes.
    by_threads: Vec<(u32, u64)>,
}

impl LeastMemory {
    /// From pairs of threads and bytes, in any order. A number of threads that is not among them needs what the
    /// next higher one needs; above the highest, memory grows in proportion. No pairs: any memory will do.
    pub fn new(mut by_threads: Vec<(u32, u64)>) -> Self {
        by_threads.sort_unstable();
        Self { by_threads }
    }

    /// Bytes that a worker with this many threads needs.
    pub fn bytes(&self, threads: u32) -> u64 {
        if let Some(&(_, bytes)) = self.by_threads.iter().find(|&&(known, _)| known >= threads) {
            return bytes;
        }
        let Some(&(known, bytes)) = self.by_threads.last() else { return 0 };
        (u128::from(bytes) * u128::from(threads)).div_ceil(u128::from(known.max(1))) as u64
    }
}

/// What became of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobState {
    /// Waits for the jobs before it, or for a worker that is large enough.
    Queued,
    /// Is being worked on, or waits for workers.
    Running,
    /// Everything is committed.
    Done,
    /// Stopped by request; what is committed stays.
    Cancelled,
    /// Stopped by failures; what is committed stays.
    Failed {
        /// The last failure.
        reason: String,
    },
}

impl JobState {
    /// A word for it.
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

    /// Whether nothing happens to the job any more unless somebody asks for it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(self, JobState::Queued | JobState::Running)
    }
}

#[derive(Debug)]
pub(super) struct Job {
    /// Place in the queue: lower numbers go first.
    pub place: u64,
    pub params: Params,
    pub disk_limit: Option<u64>,
    pub least_memory: Option<Arc<LeastMemory>>,
    pub state: JobState,
    /// What keeps it from going on.
    pub obstacle: Option<String>,
    /// Its turn does not come before this time.
    pub not_before: Duration,
    /// To be cancelled as soon as what is finished is committed.
    pub cancelling: bool,
    /// The shell was asked to open its run, and has not answered.
    pub opening: Option<OpenTicket>,
    /// The shell was asked to read a shard that a worker cannot read, and has not answered.
    pub examining: bool,
    /// Why its last epoch failed, while the shell looks whether the store is to blame.
    pub doubt: Option<String>,
    /// Whether its run was made.
    pub has_run: bool,
    /// What is to be done, while its run is open.
    pub plan: Option<Plan>,
    /// Its progress: what is committed, as of the last record of its run.
    pub summary: JobSummary,
    /// The progress that the queue holds.
    noted: JobSummary,
    /// What its run takes of its limit, as of when it was last open.
    pub disk: Option<DiskUse>,
    /// Bytes that members of failed epochs may still write, or have written, since its run was opened: no commit will name
    /// them, and they are not counted.
    pub stray_bytes: u64,
    /// How often in a row there was no room for what was to be written.
    pub short: u64,
    /// Whether its run is to be opened again before the next epoch.
    pub is_stale: bool,
    /// Epochs in a row that failed without a commit.
    pub failures: u32,
    /// When the last of them was counted.
    pub failed_at: Duration,
    /// How many times the time between commits is halved, since epochs fail before it is over.
    pub haste: u32,
    /// How many times the time that a member may take for one step is doubled, since epochs failed because members took
    /// longer.
    pub slowness: u32,
    /// How many states a second members finish.
    pub states_rate: Rate,
    /// How fast all members together finish layers, by what these cost.
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

    /// Notes that its run is open, and what it holds.
    pub fn open(&mut self, opened: Opened) {
        let Opened { params, holdings, stored, least_memory, workload, cost, .. } = opened;
        (self.opening, self.is_stale, self.stray_bytes, self.has_run) = (None, false, 0, true);
        self.params = params;
        self.least_memory = Some(least_memory);
        self.note_bytes(stored);
        self.plan = Some(Plan::new(&self.params, holdings, workload, cost));
        self.sum_up();
    }

    /// Notes what its run takes.
    pub fn note_bytes(&mut self, stored: RunBytes) {
        self.summary.bytes = stored.committed_bytes;
        if let Some(disk) = stored.disk {
            let peak_bytes = disk.peak_bytes.max(self.summary.peak_disk_bytes);
            self.summary.peak_disk_bytes = peak_bytes;
            self.disk = Some(DiskUse { peak_bytes, ..disk });
        }
    }

    /// The reach to be removed next, where the disk has a limit.
    pub fn to_remove(&self) -> Vec<LayerRange> {
        let (Some(plan), Some(disk)) = (&self.plan, self.disk) else { return Vec::new() };
        let recipe = Recipe::new(&self.params, &plan.holdings);
        room::goes_next(&recipe, disk.limit_bytes, disk.free_bytes.cast_signed(), 1)
    }

    /// Forgets what is only of use while the run is open.
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

    /// Whether the queue should be given the progress. If so, counts it as noted there.
    pub fn has_news(&mut self) -> bool {
        self.sum_up();
        let is_news = self.summary.is_news(&self.noted);
        if is_news {
            self.noted = self.summary.clone();
        }
        is_news
    }

    /// Whether a worker has enough memory to take part. As long as it is not known how much that is, any worker has: it
    /// is known once the run is open.
    pub fn fits(&self, threads: u32, memory_bytes: u64) -> bool {
        self.least_memory.as_ref().is_none_or(|least| memory_bytes >= least.bytes(threads))
    }
}

/// What is to be done for a job whose run is open.
#[derive(Debug)]
pub(super) struct Plan {
    pub holdings: Holdings,
    pub workload: Arc<Workload>,
    pub cost: Arc<PassCost>,
    /// What is to be done next, apart from commits that are under way.
    pub remaining: Option<Segment>,
    /// The fingerprint of the values, once all are committed.
    pub fingerprint: Option<u128>,
    /// States in the committed layers of the way up.
    enumerated: u64,
    /// Those of them whose values are committed.
    backed_up: u64,
    /// The cost of what is not committed.
    pub left: CostToCome,
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
            left: CostToCome::default(),
        };
        plan.renew(params);
        plan
    }

    /// Works out what follows from the commits. Costs time in proportion to the layers that they hold.
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
        let is_solved = params.until_layer.is_none() && self.remaining.is_none();
        self.fingerprint = is_solved.then(|| fingerprint_of(self.holdings.commits()));
    }

    /// Adds what is in the journal now.
    pub fn add(&mut self, params: &Params, commit: Commit) {
        self.holdings.add(commit);
        self.renew(params);
    }

    /// Notes that reach is not stored any more.
    pub fn remove(&mut self, params: &Params, removed: &[LayerRange]) {
        self.holdings.remove(removed);
        self.renew(params);
    }

    /// Removes the commits for which `hit` is true, and returns them.
    pub fn take(&mut self, params: &Params, hit: impl Fn(&Commit) -> bool) -> Vec<Commit> {
        let taken = self.holdings.take(hit);
        self.renew(params);
        taken
    }

    /// The pass that it is in, or was in last.
    pub fn phase(&self, params: &Params) -> Phase {
        let last = if params.until_layer.is_some() { Phase::Enumerate } else { Phase::BackUp };
        self.remaining.map_or(last, |segment| segment.phase)
    }

    /// The progress of the job. `work_ahead` and `states_ahead` count what is finished and not committed yet. What does
    /// not follow from the plan is as in `known`.
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

    /// The cost of what is left of the pass, and of the whole pass. `work_ahead` of it is finished and not committed
    /// yet.
    pub fn work_left(&self, work_ahead: f64) -> (f64, f64) {
        ((self.left.of_pass - work_ahead).max(0.0), self.left.whole_pass)
    }
}

/// Says that a limit of the disk is too small, and what to do; `missing_bytes` is 0 where it is not known by how much.
pub(super) fn over_disk(id: &JobId, limit_bytes: u64, missing_bytes: u64) -> String {
    let units = SizeUnits::of(limit_bytes);
    let least = match missing_bytes {
        0 => String::new(),
        missing => format!(": what is left needs at least {}", units.at_least(limit_bytes + missing)),
    };
    format!(
        "a limit of the disk of {} is too small{least}; what is committed is safe. Forget the job, and submit it again with \
         a higher one, under the name {id}",
        units.at_most(limit_bytes)
    )
}

/// Says how much memory a job needs, and how much the worker that comes nearest has.
pub(super) fn too_small(needed_bytes: u64, threads: u32, memory_bytes: u64) -> String {
    let (threads, units) = (several(threads, "thread"), SizeUnits::of(memory_bytes));
    format!(
        "with {threads} it needs {} of memory, and the worker that comes nearest has {}; give workers more memory, or \
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
