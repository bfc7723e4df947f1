//! Threads that carry out a plan: they take tasks from a [`Planner`] and run them on one shared [`BlockEngine`].
//!
//! [`Dispatch`] handles the results.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use exact2048_coordinator::{PlanEvent, Planner, Release, Task, Totals};
use exact2048_solution::Phase;
use exact2048_storage::ShardKind;
use exact2048_worker::{BlockEngine, BlockTask, Holding, Sink};
use parking_lot::{Condvar, Mutex};

use super::dispatch::Dispatch;
use super::error::CrewError;
use super::leader::Leader;
use super::seat::Seat;

/// How often a thread without a task checks whether to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a thread without a task looks for pieces of a block to compute, while a task works on a block in pieces.
const SHORT_PAUSE: Duration = Duration::from_micros(100);

/// Threads that carry out a plan.
pub struct Crew<L> {
    worker: Arc<dyn BlockEngine>,
    dispatch: Dispatch<L>,
    stop: Arc<AtomicBool>,
    plan: Mutex<Plan>,
    /// Notified when there may be a task.
    tasks: Condvar,
}

#[derive(Debug)]
struct Plan {
    planner: Planner,
    error: Option<CrewError>,
    /// The number of threads that wait for a task. If it is 0, a finished task notifies no thread. That saves time,
    /// because tasks on small blocks end often.
    idle: usize,
    /// The number of threads.
    threads: usize,
    /// The number of threads that run a task. The other threads may help with blocks in pieces.
    running: usize,
    /// The number of running tasks that work on a block in pieces.
    in_pieces: usize,
}

/// Counts a task in [`Plan::in_pieces`] until it is dropped.
struct InPieces<'a>(&'a Mutex<Plan>);

impl Drop for InPieces<'_> {
    fn drop(&mut self) {
        self.0.lock().in_pieces -= 1;
    }
}

impl<L: Leader> Crew<L> {
    /// Creates a crew for the lanes of a member. It has no threads yet.
    pub fn new(
        worker: Arc<dyn BlockEngine>,
        seat: &Seat,
        dispatch: Dispatch<L>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let owns = |lane| seat.owners.owner(lane) == seat.me;
        let (planner, events) = Planner::new(&seat.params, seat.segment, owns);
        let frontier = planner.frontier();
        let plan = Mutex::new(Plan { planner, error: None, idle: 0, threads: 0, running: 0, in_pieces: 0 });
        let crew = Self { worker, dispatch, stop, plan, tasks: Condvar::new() };
        let releases = crew.tell(events);
        crew.dispatch.progressed(&Totals::default(), frontier);
        crew.release(releases);
        crew
    }

    /// The receiver of the results.
    pub fn dispatch(&self) -> &Dispatch<L> {
        &self.dispatch
    }

    /// The worker that tasks run on.
    pub fn worker(&self) -> &Arc<dyn BlockEngine> {
        &self.worker
    }

    /// Computes on `threads` threads until the plan is done, a task fails, or the crew is stopped. The calling thread
    /// runs `beside` at the same time.
    ///
    /// # Errors
    ///
    /// If the threads cannot be started. Then nothing was computed, and `beside` was not called.
    pub fn compute_during<R>(&self, threads: usize, beside: impl FnOnce() -> R) -> Result<R, CrewError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.thread_name(|index| format!("compute-{index}"));
        let pool = pool.build().map_err(|error| CrewError::Threads { threads, error })?;
        self.plan.lock().threads = threads;
        Ok(pool.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, _| self.compute());
            beside()
        }))
    }

    /// Runs tasks until there are no more. Each thread calls this function once.
    fn compute(&self) {
        while let Some((task, helpers)) = self.next_task() {
            let done = no_panic(|| self.run(task, helpers));
            self.plan.lock().running -= 1;
            if let Err(error) = done {
                self.fail(error);
            }
        }
    }

    /// Changes the plan, and wakes the threads that wait for a task, because the change may make one ready.
    pub fn with_plan<T>(&self, change: impl FnOnce(&mut Planner) -> T) -> T {
        let mut plan = self.plan.lock();
        let result = change(&mut plan.planner);
        if plan.idle > 0 {
            self.tasks.notify_all();
        }
        result
    }

    /// Stops all threads with an error. Only the first error is kept.
    pub fn fail(&self, error: CrewError) {
        self.plan.lock().error.get_or_insert(error);
        self.tasks.notify_all();
    }

    /// Wakes the threads. Called when the result of [`Leader::may_start`] may have changed, or the crew is stopped.
    pub fn wake(&self) {
        self.tasks.notify_all();
    }

    /// Whether no task is running.
    pub fn is_idle(&self) -> bool {
        self.plan.lock().running == 0
    }

    /// Whether a task has failed.
    pub fn has_failed(&self) -> bool {
        self.plan.lock().error.is_some()
    }

    /// The error that ended the work, if one did.
    pub fn take_error(&self) -> Option<CrewError> {
        self.plan.lock().error.take()
    }

    /// Waits for the next task, and returns it with the number of threads that have no task.
    fn next_task(&self) -> Option<(Task, usize)> {
        let mut plan = self.plan.lock();
        loop {
            if plan.error.is_some() || plan.planner.is_done() || self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if self.dispatch.may_start()
                && let Some(task) = plan.planner.next_task(self.worker.has_spare_memory())
            {
                plan.running += 1;
                return Some((task, plan.threads - plan.running));
            }
            let pause = if plan.in_pieces > 0 {
                drop(plan);
                let helped = rayon::yield_now() == Some(rayon::Yield::Executed);
                plan = self.plan.lock();
                if helped {
                    continue;
                }
                SHORT_PAUSE
            } else {
                PAUSE
            };
            plan.idle += 1;
            self.tasks.wait_for(&mut plan, pause);
            plan.idle -= 1;
        }
    }

    /// If a task works on its block in pieces, wakes the threads without a task, so that they help with the block.
    fn call_helpers(&self, task: Task, helpers: usize) -> Option<InPieces<'_>> {
        let (layer, lane, _) = task.block()?;
        if helpers == 0 || !self.worker.has_pieces(layer, lane) {
            return None;
        }
        let mut plan = self.plan.lock();
        plan.in_pieces += 1;
        if plan.idle > 0 {
            self.tasks.notify_all();
        }
        Some(InPieces(&self.plan))
    }

    fn run(&self, task: Task, helpers: usize) -> Result<(), CrewError> {
        let mut totals = Totals::default();
        let _in_pieces = self.call_helpers(task, helpers);
        match task {
            Task::EnumerateStates { layer, lane } => {
                let task = BlockTask::FindStates(Sink::Shards { keep: true });
                totals.states = self.worker.compute(task, layer, lane, helpers)?.count;
                self.dispatch.first_stage_done(layer, lane)?;
            }
            Task::EnumerateAfterstates { layer, lane } => {
                totals.afterstates =
                    self.worker.compute(BlockTask::FindAfterstates, layer, lane, helpers)?.count;
            }
            Task::BackUpAfterstates { layer, lane } => {
                self.worker.compute(BlockTask::BackUpAfterstates, layer, lane, helpers)?;
                self.dispatch.first_stage_done(layer, lane)?;
            }
            Task::BackUpStates { layer, lane, keep } => {
                let task = BlockTask::BackUpStates(Sink::Shards { keep });
                let outcome = self.worker.compute(task, layer, lane, helpers)?;
                (totals.states, totals.fingerprint) = (outcome.count, outcome.fingerprint);
            }
            Task::Seal { phase, layer } => {
                let sealed = self.worker.seal(phase.shard_kind(), layer)?;
                totals.sealed_bytes = sealed.most_bytes();
                let mut checkpoint = Vec::new();
                if phase == Phase::BackUp && self.dispatch.is_in_checkpoint(layer) {
                    let sealed = self.worker.seal(ShardKind::Checkpoint, layer)?;
                    totals.sealed_bytes += sealed.most_bytes();
                    checkpoint = sealed.frames;
                }
                self.dispatch.layer_sealed(layer, sealed.frames, checkpoint);
            }
        }
        self.complete(task, totals);
        Ok(())
    }

    fn complete(&self, task: Task, totals: Totals) {
        let mut plan = self.plan.lock();
        // The plan stays locked, so that layers are reported in order.
        let releases = self.tell(plan.planner.complete(task, totals));
        self.dispatch.progressed(&totals, plan.planner.frontier());
        let wake = plan.idle > 0;
        drop(plan);
        if wake {
            self.tasks.notify_all();
        }
        self.release(releases);
    }

    /// Reports finished layers to the dispatch. Returns the data to release.
    fn tell(&self, events: Vec<PlanEvent>) -> Vec<Release> {
        let mut releases = Vec::new();
        for event in events {
            match event {
                PlanEvent::LayerDone { layer, totals } => self.dispatch.layer_done(layer, totals),
                PlanEvent::Release(release) => releases.push(release),
            }
        }
        releases
    }

    /// Releases data that no task needs any more.
    fn release(&self, releases: Vec<Release>) {
        for release in releases {
            self.worker.release(match release {
                Release::States(layer) => Holding::States(layer),
                Release::Afterstates(layer) => Holding::Afterstates(layer),
                Release::BlockStates(layer, lane) => Holding::BlockStates(layer, lane),
                Release::BlockAfterstates(layer, lane) => Holding::BlockAfterstates(layer, lane),
                Release::Lane(lane) => Holding::Lane(lane),
            });
        }
    }
}

/// Turns a panic into an error. Without an error, the other threads would wait forever.
pub fn no_panic<T>(work: impl FnOnce() -> Result<T, CrewError>) -> Result<T, CrewError> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(CrewError::Panicked))
}
