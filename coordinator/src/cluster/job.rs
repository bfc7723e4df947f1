//! Jobs: what is wanted, what is committed of it, and what became of it.

use exact2048_game::{Layer, Params};

use super::messages::JobId;
use super::rate::Rate;
use crate::progress::{Commit, Segment, missing_segments};
use crate::task::Phase;
use crate::workload::Workload;

/// A job as it is handed in, and again after each start of the coordinator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Submission {
    /// Its name.
    pub job: JobId,
    /// What is to be computed.
    pub params: Params,
    /// What the journal says is committed and not retracted.
    pub commits: Vec<Commit>,
    /// Bytes of the committed shards.
    pub committed_bytes: u64,
    /// Least memory of a worker.
    pub least_memory: LeastMemory,
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

    /// Bytes that a worker with so many threads needs.
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
    /// Waits for the jobs before it.
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
}

#[derive(Debug)]
pub(super) struct Job {
    /// Place in the queue: lower numbers go first.
    pub place: u64,
    pub params: Params,
    pub least_memory: LeastMemory,
    pub commits: Vec<Commit>,
    pub state: JobState,
    /// To be cancelled as soon as what is finished is committed.
    pub cancelling: bool,
    /// What is to be done next, apart from commits that are under way.
    pub remaining: Option<Segment>,
    /// Epochs in a row that failed without a commit.
    pub failures: u32,
    /// How many times the time between commits is halved, since epochs fail before it is over.
    pub haste: u32,
    /// Epochs that failed, in all.
    pub retries: u64,
    pub epochs: u64,
    pub bytes: u64,
    pub workload: Workload,
    /// States that members have finished.
    pub states_rate: Rate,
    /// Entries in layers that all members have enumerated.
    pub entries_rate: Rate,
}

impl Job {
    pub fn new(submission: Submission, place: u64) -> (JobId, Self) {
        let Submission { job: id, params, commits, committed_bytes, least_memory } = submission;
        let mut job = Self {
            place,
            workload: Workload::new(&params),
            params,
            least_memory,
            commits,
            state: JobState::Queued,
            cancelling: false,
            remaining: None,
            failures: 0,
            haste: 0,
            retries: 0,
            epochs: 0,
            bytes: committed_bytes,
            states_rate: Rate::default(),
            entries_rate: Rate::default(),
        };
        job.replan();
        if job.remaining.is_none() {
            job.state = JobState::Done;
        }
        (id, job)
    }

    /// Works out what is to be done next.
    pub fn replan(&mut self) {
        self.remaining = missing_segments(&self.params, &self.commits).into_iter().next();
    }

    /// The fingerprint of the values, once all are committed.
    pub fn fingerprint(&self) -> Option<u128> {
        let is_solved = self.params.until_layer.is_none() && self.remaining.is_none();
        let parts = self.commits.iter().filter_map(|commit| commit.fingerprint);
        is_solved.then(|| parts.fold(0, u128::wrapping_add))
    }

    pub fn fits(&self, threads: u32, memory_bytes: u64) -> bool {
        memory_bytes >= self.least_memory.bytes(threads)
    }

    /// Removes the commits of a phase that hold any of the layers.
    pub fn take_commits(&mut self, phase: Phase, first: Layer, last: Layer) -> Vec<Commit> {
        let hit = |commit: &mut Commit| commit.phase == phase && commit.first <= last && commit.last >= first;
        let taken = self.commits.extract_if(.., hit).collect();
        self.replan();
        taken
    }
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
