//! Solves one segment of a run in this process, which is the only member of its epoch and its own leader.
//!
//! The rules for ranges are the same as in a cluster. The process appends commits to the journal itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::LayerPart;
use exact2048_coordinator::{COMMIT_INTERVAL, RangeOrder, RangePolicy, Ranges, SHARD_BYTES, Totals, room};
use exact2048_game::Layer;
use exact2048_solution::{JournalRecord, Record, Run, Segment, WorkTime, WrittenShards};
use exact2048_storage::{ShardKind, ShardWriter};
use exact2048_worker::BlockEngine;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::disk;
use super::watch::SolveWatch;
use crate::member::{CrewError, Leader, Member, Next, Seat};

/// Ranges that may wait to be written before compute pauses.
const WRITE_BACKLOG: u64 = 5;

/// How often the writing thread checks whether to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How a segment ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentEnd {
    /// The whole segment is committed.
    Done,
    /// The caller asked the segment to stop. Its finished ranges are committed.
    Stopped,
}

/// Computes a segment on `threads` threads, and commits it.
pub fn run_segment(
    worker: &Arc<dyn BlockEngine>,
    run: &mut Run,
    segment: Segment,
    threads: usize,
    stop: &Arc<AtomicBool>,
    watch: &dyn SolveWatch,
) -> Result<SegmentEnd, CrewError> {
    let seat = Seat::alone(run.params(), segment);
    let limit = run.dir().allowance().map(|allowance| allowance.limit_bytes());
    let shard_bytes = room::range_bytes(limit, SHARD_BYTES);
    let ranges =
        Ranges::new(segment, *run.params().contents(), 1, Duration::ZERO).apart(room::least_apart(limit));
    let leader = OwnLeader {
        worker: Arc::clone(worker),
        watch,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        begun: Instant::now(),
        // Ranges do not grow while unwritten data waits, because `may_start` then pauses the computation.
        worth: RangePolicy {
            least_bytes: shard_bytes,
            most_bytes: shard_bytes,
            interval: COMMIT_INTERVAL,
            // Without free space the write fails, and the solve frees space.
            room_bytes: None,
        },
        ranges: Mutex::new(ranges),
        changed: Condvar::new(),
        journal: Mutex::new(Journal { run, begun: Instant::now() }),
    };
    let member = Member::new(seat, Arc::clone(worker), Vec::new(), leader, Arc::clone(stop));
    member.run(threads)?;
    let is_done = member.leader().ranges().is_written();
    Ok(if is_done { SegmentEnd::Done } else { SegmentEnd::Stopped })
}

/// The leader of the only member: orders ranges to be written, and commits them.
struct OwnLeader<'a> {
    worker: Arc<dyn BlockEngine>,
    watch: &'a dyn SolveWatch,
    threads: u32,
    begun: Instant,
    worth: RangePolicy,
    ranges: Mutex<Ranges>,
    /// Notified when there may be a range for the writing thread.
    changed: Condvar,
    journal: Mutex<Journal<'a>>,
}

struct Journal<'a> {
    run: &'a mut Run,
    /// The time of the last commit, or of the start of the segment.
    begun: Instant,
}

impl<'a> OwnLeader<'a> {
    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock()
    }

    fn journal(&self) -> MutexGuard<'_, Journal<'a>> {
        self.journal.lock()
    }
}

impl Leader for OwnLeader<'_> {
    fn may_start(&self) -> bool {
        let backlog = if self.worker.is_memory_short() { 1 } else { WRITE_BACKLOG };
        !self.ranges().is_behind(backlog, &self.worth)
    }

    fn progressed(&self, totals: &Totals, frontier: Layer) {
        self.watch.progressed(totals.states, frontier);
    }

    fn layer_done(&self, part: LayerPart) {
        self.ranges().layer_done(0, part.totals);
        self.changed.notify_one();
    }

    fn next_range(&self, is_over: bool) -> Next {
        let mut ranges = self.ranges();
        if let RangeOrder::Range(range) = ranges.order(&self.worth, is_over, self.begun.elapsed()) {
            Next::Write(range)
        } else if is_over || ranges.is_written() {
            Next::End
        } else {
            // The wait is short, so that the writing thread sees a request to stop.
            self.changed.wait_for(&mut ranges, PAUSE);
            Next::Wait
        }
    }

    fn create_shard(&self, kind: ShardKind, range: Segment) -> Result<ShardWriter, CrewError> {
        let run = &self.journal().run;
        let identity = run.catalog().identity_of(kind, range.first, range.last);
        Ok(ShardWriter::create(run.dir(), identity)?)
    }

    fn written(&self, _range: Segment, shards: WrittenShards) -> Result<(), CrewError> {
        let WrittenShards { shard, checkpoint } = shards;
        self.watch.written(shard.bytes);
        let Some(commit) = self.ranges().complete(self.begun.elapsed()) else { return Ok(()) };
        let mut journal = self.journal();
        // Rounded to milliseconds, because only people read it.
        let seconds = (journal.begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let took = Some(WorkTime { seconds, threads: self.threads });
        let checkpoint = checkpoint.into_iter().collect();
        let record = Record { checkpoint, took, ..Record::new(commit, vec![shard]) };
        journal.run.append(JournalRecord::Commit(record))?;
        disk::tidy(journal.run)?;
        journal.begun = Instant::now();
        Ok(())
    }
}
