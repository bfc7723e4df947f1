//! One segment of a run: a crew computes, and one more thread writes shards, so that compute does not wait for
//! the disk unless it falls far behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use exact2048_coordinator::{COMMIT_INTERVAL, Ranges, SHARD_BYTES, Totals, Worth};
use exact2048_game::Layer;
use exact2048_game::value::Value;
use exact2048_run::crew::{Crew, CrewError, Host, no_panic};
use exact2048_solution::{JournalRecord, Record, Run, Segment, Took};
use exact2048_storage::{Frame, ShardWriter};
use exact2048_worker::Worker;

use crate::progress::Progress;

/// Ranges do not grow where writing is behind: compute waits for it.
const WORTH: Worth = Worth { least_bytes: SHARD_BYTES, most_bytes: SHARD_BYTES, interval: COMMIT_INTERVAL };

/// Shards that may wait to be written before compute pauses.
const WRITE_BACKLOG: u64 = 5;

/// How often the writing thread looks whether it is to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How a segment ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// All of it is published.
    Done,
    /// It was asked to stop; what was finished is published.
    Stopped,
}

/// What is finished, on its way to the run.
struct Outbox<'a, V> {
    worker: Arc<Worker<V>>,
    progress: &'a Progress,
    begun: Instant,
    finished: Mutex<Finished>,
    /// For the writing thread: there may be a range to write, or the end.
    changed: Condvar,
}

struct Finished {
    sealed: BTreeMap<Layer, Vec<Frame>>,
    ranges: Ranges,
}

impl<V> Outbox<'_, V> {
    fn lock(&self) -> MutexGuard<'_, Finished> {
        self.finished.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<V: Value> Host for Outbox<'_, V> {
    fn may_start(&self) -> bool {
        let backlog = if self.worker.is_memory_short() { 1 } else { WRITE_BACKLOG };
        !self.lock().ranges.is_behind(backlog, &WORTH)
    }

    fn layer_sealed(&self, layer: Layer, frames: Vec<Frame>) {
        self.lock().sealed.insert(layer, frames);
    }

    fn progressed(&self, totals: &Totals, frontier: Layer) {
        self.progress.add_states(totals.states);
        self.progress.set_layer(frontier);
    }

    fn layer_done(&self, _layer: Layer, totals: Totals) {
        self.lock().ranges.layer_done(0, totals);
        self.changed.notify_one();
    }
}

/// Runs a segment on `threads` threads, and publishes it.
pub fn run_segment<V: Value>(
    worker: &Arc<Worker<V>>,
    run: &mut Run,
    segment: Segment,
    threads: usize,
    stop: &Arc<AtomicBool>,
    progress: &Progress,
) -> Result<Ended, CrewError> {
    let ranges = Ranges::new(segment, 1, Duration::ZERO);
    let (finished, changed) = (Mutex::new(Finished { sealed: BTreeMap::new(), ranges }), Condvar::new());
    let outbox = Outbox { worker: Arc::clone(worker), progress, begun: Instant::now(), finished, changed };
    let plan = (run.params(), segment);
    let crew = Crew::new(Arc::clone(worker), plan, |_| true, outbox, Arc::clone(stop));
    crew.compute_beside(threads, || write(&crew, run, threads, stop))?;
    let is_done = crew.host().lock().ranges.is_written();
    match crew.take_error() {
        Some(error) => Err(error),
        None if is_done => Ok(Ended::Done),
        None => Ok(Ended::Stopped),
    }
}

/// The writing thread: ranges in the order of the pass, until all are written.
fn write<V: Value>(crew: &Crew<V, Outbox<'_, V>>, run: &mut Run, threads: usize, stop: &AtomicBool) {
    let outbox = crew.host();
    let mut begun = Instant::now();
    // After a failure nothing more is published: what is committed stays a prefix of the segment.
    while !crew.has_failed() {
        // In this order: once no task runs, all that was finished can be ordered.
        let stopped = stop.load(Ordering::Relaxed) && crew.is_idle();
        let mut finished = outbox.lock();
        if let Some(range) = finished.ranges.order(&WORTH, stopped, outbox.begun.elapsed()) {
            let frames = take(&mut finished.sealed, range);
            drop(finished);
            if let Err(error) = no_panic(|| publish(run, outbox, range, frames, begun, threads)) {
                crew.fail(error);
            }
            begun = Instant::now();
            crew.wake();
        } else if stopped || finished.ranges.is_written() {
            return;
        } else {
            // Woken now and then to see a request to stop.
            drop(outbox.changed.wait_timeout(finished, PAUSE));
        }
    }
}

/// Takes the frames of a range.
fn take(sealed: &mut BTreeMap<Layer, Vec<Frame>>, range: Segment) -> Vec<Frame> {
    let mut frames = sealed.split_off(&range.first);
    let mut above = frames.split_off(&Layer(range.last.0 + 1));
    sealed.append(&mut above);
    frames.into_values().flatten().collect()
}

/// Writes a shard and commits it; `begun` is when what came before it was committed.
fn publish<V>(
    run: &mut Run,
    outbox: &Outbox<'_, V>,
    range: Segment,
    frames: Vec<Frame>,
    begun: Instant,
    threads: usize,
) -> Result<(), CrewError> {
    let identity = run.catalog().identity(range.phase, range.first, range.last);
    let mut writer = ShardWriter::create(run.dir(), identity)?;
    for frame in frames {
        writer.push(frame)?;
    }
    let shard = writer.finish()?;
    outbox.progress.add_bytes(shard.bytes);
    let Some(commit) = outbox.lock().ranges.complete(outbox.begun.elapsed()) else { return Ok(()) };
    // To the millisecond: it is for people.
    let seconds = (begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    let took = Some(Took { seconds, threads: u32::try_from(threads).unwrap_or(u32::MAX) });
    let record = Record { commit, shards: vec![shard], threads: Vec::new(), took };
    Ok(run.append(JournalRecord::Commit(record))?)
}
