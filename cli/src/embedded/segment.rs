//! One segment of a run: a crew computes, and one more thread writes shards, so that compute does not wait for
//! the disk unless it falls far behind.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use exact2048_coordinator::{Action, Planner, Report};
use exact2048_game::Layer;
use exact2048_game::value::Value;
use exact2048_run::crew::{Crew, CrewError, Host, no_panic};
use exact2048_solution::{Commit, JournalRecord, Record, Run, Segment, Took};
use exact2048_storage::{Frame, ShardWriter};
use exact2048_worker::Worker;

use crate::progress::Progress;

/// Shards that may wait to be written before compute pauses.
const WRITE_BACKLOG: usize = 4;

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
    queue: Mutex<Queue>,
    /// For the writing thread: there may be a shard, or the end.
    shards: Condvar,
}

#[derive(Default)]
struct Queue {
    sealed: BTreeMap<Layer, Vec<Frame>>,
    to_write: VecDeque<(Commit, Vec<Frame>)>,
}

impl<V> Outbox<'_, V> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<V: Value> Host for Outbox<'_, V> {
    fn may_start(&self) -> bool {
        let backlog = if self.worker.is_memory_short() { 0 } else { WRITE_BACKLOG };
        self.lock().to_write.len() <= backlog
    }

    fn layer_sealed(&self, layer: Layer, frames: Vec<Frame>) {
        self.lock().sealed.insert(layer, frames);
    }

    fn progressed(&self, report: &Report, frontier: Layer) {
        self.progress.add_states(report.states);
        self.progress.set_layer(frontier);
    }

    fn act(&self, action: Action) {
        let Action::Publish(commit) = action else { return };
        let mut queue = self.lock();
        let mut frames = queue.sealed.split_off(&commit.first);
        let mut above = frames.split_off(&Layer(commit.last.0 + 1));
        queue.sealed.append(&mut above);
        queue.to_write.push_back((commit, frames.into_values().flatten().collect()));
        drop(queue);
        self.shards.notify_one();
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
    let (queue, shards) = (Mutex::default(), Condvar::new());
    let outbox = Outbox { worker: Arc::clone(worker), progress, queue, shards };
    let planner = Planner::new(run.params(), segment);
    let crew = Crew::new(Arc::clone(worker), planner, outbox, Arc::clone(stop));
    crew.compute_beside(threads, || write(&crew, run, threads, stop))?;
    match crew.take_error() {
        Some(error) => Err(error),
        None if crew.with_plan(|plan| plan.is_done()) => Ok(Ended::Done),
        None => Ok(Ended::Stopped),
    }
}

/// The writing thread: shards in the order in which they are planned, until all are written.
fn write<V: Value>(crew: &Crew<V, Outbox<'_, V>>, run: &mut Run, threads: usize, stop: &AtomicBool) {
    let outbox = crew.host();
    let mut begun = Instant::now();
    // After a failure nothing more is published: what is committed stays a prefix of the plan.
    while !crew.has_failed() {
        // In this order: when the plan is done, its last shard is in the queue.
        let (done, idle) = crew.with_plan(|plan| (plan.is_done(), plan.is_idle()));
        let stopped = stop.load(Ordering::Relaxed) && idle;
        if stopped {
            crew.with_plan(Planner::flush).into_iter().for_each(|action| outbox.act(action));
        }
        let mut queue = outbox.lock();
        if let Some((commit, frames)) = queue.to_write.pop_front() {
            drop(queue);
            let publish = || publish(run, outbox.progress, commit, frames, begun, threads);
            if let Err(error) = no_panic(publish) {
                crew.fail(error);
            }
            begun = Instant::now();
            crew.wake();
        } else if done || stopped {
            return;
        } else {
            // Woken now and then to see a request to stop.
            drop(outbox.shards.wait_timeout(queue, PAUSE));
        }
    }
}

/// Writes a shard and commits it; `begun` is when what came before it was committed.
fn publish(
    run: &mut Run,
    progress: &Progress,
    commit: Commit,
    frames: Vec<Frame>,
    begun: Instant,
    threads: usize,
) -> Result<(), CrewError> {
    let identity = run.catalog().identity(commit.phase, commit.first, commit.last);
    let mut writer = ShardWriter::create(run.dir(), identity)?;
    for frame in frames {
        writer.push(frame)?;
    }
    let shard = writer.finish()?;
    progress.add_bytes(shard.bytes);
    // To the millisecond: it is for people.
    let seconds = (begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    let took = Some(Took { seconds, threads: u32::try_from(threads).unwrap_or(u32::MAX) });
    let record = Record { commit, shards: vec![shard], threads: Vec::new(), took };
    Ok(run.append(JournalRecord::Commit(record))?)
}
