//! One segment of a run: threads take tasks from the planner and run them on one shared [`Worker`]; one more thread writes
//! shards, so that compute does not wait for the disk unless it falls far behind.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use anyhow::{Result, anyhow};
use exact2048_coordinator::{Action, Commit, Phase, Planner, Report, Segment, Task};
use exact2048_game::Layer;
use exact2048_run::{JournalRecord, Record, Run};
use exact2048_storage::{Frame, ShardWriter};
use exact2048_worker::{Tuning, Value, Worker, WorkerError};

use crate::progress::Progress;

/// Shards that may wait to be written before compute pauses.
const WRITE_BACKLOG: usize = 4;

/// How a segment ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// All of it is published.
    Done,
    /// It was asked to stop; what was finished is published.
    Stopped,
}

/// What the threads of a segment share.
struct Shared {
    planner: Planner,
    sealed: BTreeMap<Layer, Vec<Frame>>,
    to_write: VecDeque<(Commit, Vec<Frame>)>,
    error: Option<anyhow::Error>,
    /// Compute threads that wait for a task: none is woken without need, since blocks are small.
    idle: usize,
}

impl Shared {
    /// Queues the shards that are to be published, and gives back the other actions.
    fn queue_shards(&mut self, actions: Vec<Action>) -> Vec<Action> {
        let mut others = Vec::new();
        for action in actions {
            let Action::Publish(commit) = action else {
                others.push(action);
                continue;
            };
            let mut frames = self.sealed.split_off(&commit.first);
            let mut above = frames.split_off(&Layer(commit.last.0 + 1));
            self.sealed.append(&mut above);
            self.to_write.push_back((commit, frames.into_values().flatten().collect()));
        }
        others
    }
}

struct Crew<'a, V> {
    worker: &'a Worker<V>,
    shared: Mutex<Shared>,
    /// For compute threads: there may be a task.
    tasks: Condvar,
    /// For the writing thread: there may be a shard, or the end.
    shards: Condvar,
    stop: &'a AtomicBool,
    progress: &'a Progress,
}

/// Runs a segment on `threads` threads, and publishes it.
pub fn run_segment<V: Value>(
    worker: &Worker<V>,
    run: &mut Run,
    segment: Segment,
    threads: usize,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<Ended> {
    let crew = Crew {
        worker,
        shared: Mutex::new(Shared {
            planner: Planner::new(run.params(), segment),
            sealed: BTreeMap::new(),
            to_write: VecDeque::new(),
            error: None,
            idle: 0,
        }),
        tasks: Condvar::new(),
        shards: Condvar::new(),
        stop,
        progress,
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| crew.compute());
        }
        crew.write(run);
    });
    let shared = crew.shared.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    match shared.error {
        Some(error) => Err(error),
        None if shared.planner.is_done() => Ok(Ended::Done),
        None => Ok(Ended::Stopped),
    }
}

impl<V: Value> Crew<'_, V> {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'g>(&self, changed: &Condvar, guard: MutexGuard<'g, Shared>) -> MutexGuard<'g, Shared> {
        // Woken now and then to see a request to stop.
        let pause = std::time::Duration::from_millis(50);
        changed.wait_timeout(guard, pause).unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    /// A compute thread: tasks until there are none.
    fn compute(&self) {
        while let Some(task) = self.next_task() {
            let completed = no_panic(|| {
                let (report, frames) = self.run(task)?;
                self.complete(task, report, frames);
                Ok(())
            });
            if let Err(error) = completed {
                self.lock().error.get_or_insert(error);
                self.tasks.notify_all();
                self.shards.notify_all();
            }
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut shared = self.lock();
        loop {
            if shared.error.is_some() || shared.planner.is_done() || self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let backlog = if self.worker.is_memory_short() { 0 } else { WRITE_BACKLOG };
            if shared.to_write.len() <= backlog
                && let Some(task) = shared.planner.next_task()
            {
                return Some(task);
            }
            shared.idle += 1;
            shared = self.wait(&self.tasks, shared);
            shared.idle -= 1;
        }
    }

    fn run(&self, task: Task) -> Result<(Report, Option<Vec<Frame>>), WorkerError> {
        let mut report = Report::default();
        match task {
            Task::Enumerate { layer, lane } => {
                let counts = self.worker.enumerate(layer, lane)?;
                (report.states, report.afterstates) = (counts.states, counts.afterstates);
            }
            Task::BackUp { layer, lane, keep } => {
                let values = self.worker.back_up(layer, lane, keep)?;
                (report.states, report.fingerprint) = (values.states, values.fingerprint);
            }
            Task::Seal { phase, layer } => {
                let sealed = self.worker.seal(exact2048_run::kind_of(phase), layer)?;
                report.sealed_bytes = sealed.encoded_bytes();
                return Ok((report, Some(sealed.frames)));
            }
        }
        self.progress.add_states(report.states);
        Ok((report, None))
    }

    fn complete(&self, task: Task, report: Report, frames: Option<Vec<Frame>>) {
        let mut shared = self.lock();
        if let (Task::Seal { layer, .. }, Some(frames)) = (task, frames) {
            shared.sealed.insert(layer, frames);
        }
        let actions = shared.planner.complete(task, report);
        self.progress.set_layer(shared.planner.frontier());
        let releases = shared.queue_shards(actions);
        let (wake, write) = (shared.idle > 0, !shared.to_write.is_empty() || shared.planner.is_done());
        drop(shared);
        if wake {
            self.tasks.notify_all();
        }
        if write {
            self.shards.notify_one();
        }
        for release in releases {
            match release {
                Action::ReleaseStates(layer) => self.worker.release_states(layer),
                Action::ReleaseAfterstates(layer) => self.worker.release_afterstates(layer),
                Action::ReleaseLane(lane) => self.worker.release_lane(lane),
                Action::Publish(_) | Action::LayerDone { .. } => {}
            }
        }
    }

    /// The writing thread: shards in the order in which they are planned, until all are written.
    fn write(&self, run: &mut Run) {
        let mut shared = self.lock();
        loop {
            // After a failure nothing more is published: what is committed stays a prefix of the plan.
            if shared.error.is_none()
                && let Some((commit, frames)) = shared.to_write.pop_front()
            {
                drop(shared);
                let written = no_panic(|| self.publish(run, commit, frames));
                shared = self.lock();
                if let Err(error) = written {
                    shared.error.get_or_insert(error);
                }
                self.tasks.notify_all();
            } else if shared.error.is_some() || shared.planner.is_done() {
                return;
            } else if self.stop.load(Ordering::Relaxed) && shared.planner.is_idle() {
                let rest = shared.planner.flush();
                shared.queue_shards(rest);
                if shared.to_write.is_empty() {
                    return;
                }
            } else {
                shared = self.wait(&self.shards, shared);
            }
        }
    }

    fn publish(&self, run: &mut Run, commit: Commit, frames: Vec<Frame>) -> Result<()> {
        let identity = run.catalog().identity(commit.phase, commit.first, commit.last);
        let mut writer = ShardWriter::create(run.dir(), identity)?;
        for frame in frames {
            writer.push(frame)?;
        }
        let shard = writer.finish()?;
        self.progress.add_bytes(shard.bytes);
        let record = Record { commit, shards: vec![shard], threads: Vec::new() };
        Ok(run.append(JournalRecord::Commit(record))?)
    }
}

/// Turns a panic into an error: the other threads must hear of it, or they would wait for ever.
fn no_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(anyhow!(
            "a task panicked, as said above: this is a defect of exact2048; what is committed is safe"
        ))
    })
}

/// A worker for a run.
pub fn new_worker<V: Value>(run: &Run, tuning: Tuning) -> Worker<V> {
    Worker::new(run.params(), tuning, run.dir().scratch_folder().to_path_buf(), run.archive().clone())
}

/// The name of a phase in progress lines.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Enumerate => "enumerate",
        Phase::BackUp => "back up",
    }
}
