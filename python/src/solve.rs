//! Solves a board in this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use exact2048_game::{
    BoardSize, Discount, KeptLayers, Layer, OpenChoices, Params, Precision, Spawner, ValueStep,
};
use exact2048_run::alone::{self, SolveWatch};
use exact2048_run::machine::{MOST_THREADS, useful_threads};
use exact2048_run::member::CrewError;
use exact2048_run::remove_lost;
use exact2048_solution::{LayerCounts, Phase, Run as OpenRun, Segment, UnnamedPolicy};
use exact2048_storage::{Location, StorageError, StoreSettings};
use exact2048_text::with_causes;
use exact2048_worker::Tuning;
use parking_lot::Mutex;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;

use crate::errors::{UsageError, of_params, of_run, of_solve, of_storage};
use crate::memory::tuning;
use crate::run::Run;

/// Time between two progress reports and checks for interruptions.
const INTERVAL: Duration = Duration::from_millis(100);

/// Size of the returned run's cache, and memory limit of the run's computations, in bytes.
const OPEN_BYTES: u64 = 1 << 30;

/// Progress of a run.
#[derive(Default)]
struct Progress {
    /// First layer of the current segment.
    first: AtomicU32,
    last: AtomicU32,
    is_backward: AtomicBool,
    layer: AtomicU32,
    states: AtomicU64,
    warnings: Mutex<Vec<String>>,
}

impl SolveWatch for Progress {
    fn begins(&self, segment: Segment, _later: &[Segment], _states: &[LayerCounts]) {
        let is_backward = segment.phase == Phase::BackUp;
        self.first.store(segment.first.0, Ordering::Relaxed);
        self.last.store(segment.last.0, Ordering::Relaxed);
        self.is_backward.store(is_backward, Ordering::Relaxed);
        self.layer.store(if is_backward { segment.last.0 } else { segment.first.0 }, Ordering::Relaxed);
        self.states.store(0, Ordering::Relaxed);
    }

    fn progressed(&self, states: u64, frontier: Layer) {
        self.states.fetch_add(states, Ordering::Relaxed);
        self.layer.store(frontier.0, Ordering::Relaxed);
    }

    fn repeats(&self, error: &CrewError) {
        self.warn(&with_causes(error));
    }
}

impl Progress {
    fn warn(&self, text: &str) {
        let warning = format!("{text}; recomputing it");
        self.warnings.lock().push(warning);
    }

    /// The phase, the completed share of the phase's layers, the layer, and the number of states.
    fn report(&self) -> (&'static str, f64, u32, u64) {
        let [first, last, layer] =
            [&self.first, &self.last, &self.layer].map(|n| f64::from(n.load(Ordering::Relaxed)));
        let is_backward = self.is_backward.load(Ordering::Relaxed);
        let done = if is_backward { last - layer } else { layer - first };
        let phase = if is_backward { Phase::BackUp } else { Phase::Enumerate };
        let share = if last > first { (done / (last - first)).clamp(0.0, 1.0) } else { 0.0 };
        (phase.name(), share, layer as u32, self.states.load(Ordering::Relaxed))
    }
}

/// Solves a board in a new run, or resumes an existing run, and opens the run.
#[pyfunction]
#[pyo3(signature = (
    board, run, *, objective="score", spawn4="0.1", discount="1", spawner="random", keep=None, precision=None,
    best_moves=None, value_step=None, threads=None, memory_bytes=None, progress=None, position=None,
))]
#[expect(clippy::too_many_arguments, reason = "callers pass them by name")]
pub fn solve(
    py: Python<'_>,
    board: &str,
    run: PathBuf,
    objective: &str,
    spawn4: &str,
    discount: &str,
    spawner: &str,
    keep: Option<&str>,
    precision: Option<u32>,
    best_moves: Option<bool>,
    value_step: Option<f64>,
    threads: Option<usize>,
    memory_bytes: Option<u64>,
    progress: Option<Bound<'_, PyAny>>,
    position: Option<&str>,
) -> PyResult<Run> {
    let precision = match precision {
        None => None,
        Some(32) => Some(Precision::Bits32),
        Some(64) => Some(Precision::Bits64),
        Some(other) => {
            return Err(UsageError::new_err(format!("expected precision 32 or 64, found {other}")));
        }
    };
    let discount: Discount = parsed(discount)?;
    let spawner: Spawner = parsed(spawner)?;
    let keep = keep.map(parsed::<KeptLayers>).transpose()?;
    let value_step: Option<ValueStep> = value_step.map(|step| parsed(&step.to_string())).transpose()?;
    let size: BoardSize = parsed(board)?;
    let from = position.map(|text| exact2048_game::position(text, size)).transpose();
    let params = Params::builder(size, parsed(objective)?)
        .from(from.map_err(|error| of_params(&error))?)
        .spawn4(parsed(spawn4)?)
        .precision(precision.unwrap_or(Precision::Bits32))
        .discount(discount)
        .spawner(spawner)
        .kept(keep)
        .best_moves(best_moves.unwrap_or(false))
        .value_step(value_step)
        .build()
        .map_err(|error| of_params(&error))?;
    let location =
        Location::parse(run.as_os_str(), &StoreSettings::default()).map_err(|error| of_storage(&error))?;
    // Preserves the storage options of an existing run, unless the caller passes other options.
    let params = match OpenRun::find_params(&location).map_err(|error| of_run(&error))? {
        Some(held) => {
            let open = OpenChoices {
                kept: keep.is_none(),
                best_moves: best_moves.is_none(),
                precision: precision.is_none(),
                value_step: value_step.is_none(),
            };
            params.resuming(&held, open)
        }
        None => params,
    };
    if let Some(threads) = threads.filter(|threads| !(1..=usize::from(MOST_THREADS)).contains(threads)) {
        return Err(UsageError::new_err(format!("expected 1 to {MOST_THREADS} threads, found {threads}")));
    }
    let threads = useful_threads(threads, Some(params.game().board()));
    let tuning = tuning(&params, threads, memory_bytes)?;
    let state = Arc::new(Progress::default());
    let stop = Arc::new(AtomicBool::new(false));
    let worker = {
        let (state, stop) = (Arc::clone(&state), Arc::clone(&stop));
        thread::spawn(move || work(location, &params, tuning, threads, &stop, &state))
    };
    let mut interrupted = Ok(());
    while !worker.is_finished() {
        py.detach(|| thread::sleep(INTERVAL));
        let noted = py.check_signals().and_then(|()| report(py, &state, progress.as_ref()));
        if noted.is_err() && interrupted.is_ok() {
            interrupted = noted;
            stop.store(true, Ordering::Relaxed);
        }
    }
    let ended = py.detach(|| worker.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    interrupted?;
    ended?;
    report(py, &state, None)?;
    Run::new(py, run, OPEN_BYTES, OPEN_BYTES)
}

fn parsed<T: std::str::FromStr>(text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| UsageError::new_err(error.to_string()))
}

/// Issues new warnings and reports progress.
fn report(py: Python<'_>, state: &Progress, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let warnings = std::mem::take(&mut *state.warnings.lock());
    for text in warnings {
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    progress.map_or(Ok(()), |progress| progress.call1(state.report()).map(drop))
}

fn work(
    location: Location,
    params: &Params,
    tuning: Tuning,
    threads: usize,
    stop: &Arc<AtomicBool>,
    state: &Progress,
) -> PyResult<()> {
    let mut run =
        OpenRun::open_or_create(location, params, UnnamedPolicy::Refuse).map_err(|error| of_run(&error))?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let warn = |error: &StorageError| state.warn(&with_causes(error));
    remove_lost(&mut run, threads, &is_stopped, &warn, &|_| {}).map_err(|error| of_run(&error))?;
    alone::solve(&mut run, tuning, threads, stop, state).map_err(|error| of_solve(&error))
}
