//! Solved runs.

use std::ffi::OsString;
use std::path::PathBuf;

use exact2048_game::rules::Move;
use exact2048_game::{Asked, Board as Packed};
use exact2048_run::machine::cores;
use exact2048_solution::{
    CostSum, Evaluation, KernelsOfRun, Oracle, OracleOptions, QueryError, QuestionLimits, Run as OpenRun,
    shown_best, shown_moves,
};
use exact2048_storage::{Location, StoreSettings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answers::{self, MoveAnswer, Source};
use crate::board::{Board, Question, read_question};
use crate::errors::{UnreachableError, of_query, of_run, of_storage};
use crate::memory::within;
use crate::{process, rules};

/// Default size in bytes of the cache of decoded parts of a run. It exceeds the size of a whole 3x3 run.
const CACHE_BYTES: u64 = 1 << 30;

/// Default memory limit in bytes for computing unstored values.
const CONE_BYTES: u64 = 1 << 30;

/// Memory limit in bytes for answering one board on the caller's thread, without checks for signals.
///
/// A cone of this size takes a fraction of a second.
const QUICK_BYTES: u64 = 4 << 20;

/// A solved run, in a directory or a store.
#[pyclass(module = "exact2048", frozen)]
pub(crate) struct Run {
    oracle: Oracle,
    path: String,
    opened: Opened,
    facts: Facts,
}

/// Arguments with which the run was opened. With these arguments, another process can open the run.
struct Opened {
    /// Absolute path or URL of the run.
    place: PathBuf,
    cache_bytes: u64,
    memory_bytes: u64,
}

/// Facts about the run.
struct Facts {
    states: u64,
    fingerprint: String,
    start: f64,
    error_bound: f64,
}

#[pymethods]
impl Run {
    /// Opens a run.
    ///
    /// `cache_bytes` limits the cache of decoded parts. `memory_bytes` limits the memory for computing unstored values.
    #[new]
    #[pyo3(signature = (path, *, cache_bytes=CACHE_BYTES, memory_bytes=CONE_BYTES))]
    pub fn new(py: Python<'_>, path: PathBuf, cache_bytes: u64, memory_bytes: u64) -> PyResult<Self> {
        py.detach(|| {
            process::prepare()?;
            let location = Location::parse(path.as_os_str(), &StoreSettings::default());
            let location = location.map_err(|error| of_storage(&error))?;
            let place = if path.is_dir() { std::path::absolute(&path)? } else { path.clone() };
            let opened = Opened { place, cache_bytes, memory_bytes };
            let run = OpenRun::open(location).map_err(|error| of_run(&error))?;
            let kernels =
                KernelsOfRun::new(move |run| exact2048_run::kernels(run, within(memory_bytes, cores())));
            let options = OracleOptions {
                cache_bytes,
                cone_bytes: memory_bytes,
                kernels: Some(kernels),
                ..OracleOptions::default()
            };
            let oracle = Oracle::with_options(&run, options).map_err(|error| of_query(&error))?;
            let starts = oracle.starts().map_err(|error| of_query(&error))?;
            let facts = Facts {
                states: run.layer_counts().iter().map(|counts| counts.states).sum(),
                fingerprint: format!("{:032x}", run.fingerprint().unwrap_or_default()),
                start: starts.expected,
                error_bound: starts.error_bound,
            };
            Ok(Self { oracle, path: path.to_string_lossy().into_owned(), opened, facts })
        })
    }

    /// The value of a board under perfect play.
    fn value<'py>(&self, py: Python<'py>, board: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::value(py, self, &Question::One(read_question(board, self.oracle.params().game())?.one()?))
    }

    /// The values of an array of boards: float64 [N].
    fn values<'py>(&self, py: Python<'py>, boards: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::value(py, self, &read_question(boards, self.oracle.params().game())?.many()?)
    }

    /// The value of each move, including its score.
    fn action_values<'py>(&self, py: Python<'py>, boards: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::action_values(py, self, &read_question(boards, self.oracle.params().game())?)
    }

    /// The best move.
    fn best<'py>(&self, py: Python<'py>, boards: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::best(py, self, &read_question(boards, self.oracle.params().game())?)
    }

    /// The full evaluation of a board, with the values of its moves.
    fn evaluate<'py>(&self, py: Python<'py>, board: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let Asked { board, perspective } = read_question(board, self.oracle.params().game())?.one()?;
        let found = py.detach(|| self.evaluation(board))?;
        let shown = |board| Board { packed: perspective.shown(board), size: perspective.size() };
        let answer = PyDict::new(py);
        answer.set_item("board", shown(found.board))?;
        let canonical = Board { packed: found.canonical, size: perspective.size_of_run() };
        answer.set_item("canonical", canonical)?;
        answer.set_item("layer", found.layer.0)?;
        answer.set_item("value", found.value)?;
        answer.set_item("error_bound", found.error_bound)?;
        answer.set_item("known_reachable", found.is_known_reachable)?;
        answer.set_item("best", shown_best(&found, &perspective).map(Move::name))?;
        let moves = PyDict::new(py);
        for (direction, of_move) in shown_moves(&found.moves, &perspective) {
            let Some(outcome) = of_move.outcome else { continue };
            let fields = PyDict::new(py);
            fields.set_item("value", outcome.value)?;
            fields.set_item("score", outcome.score)?;
            fields.set_item("after", shown(outcome.after))?;
            fields.set_item("is_best", outcome.is_best)?;
            fields.set_item("may_be_best", outcome.may_be_best.unwrap_or(outcome.is_best))?;
            moves.set_item(direction.name(), fields)?;
        }
        answer.set_item("moves", moves)?;
        Ok(answer)
    }

    /// The path or URL with which the run was opened.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The size of the boards: "3x3".
    #[getter]
    fn board(&self) -> String {
        self.oracle.params().game().board().to_string()
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        let size = self.oracle.params().game().board();
        (size.rows(), size.cols())
    }

    /// The objective, in the form that `solve` accepts.
    #[getter]
    fn objective(&self) -> String {
        self.oracle.params().game().objective().to_string()
    }

    /// The rules of the game as a text. Equal rules have equal texts.
    #[getter]
    fn rules(&self) -> String {
        rules::in_words(&self.oracle.params().into())
    }

    /// The probability that a spawned tile is a 4, as a fraction.
    #[getter]
    fn spawn4(&self) -> String {
        self.oracle.params().game().spawn4().to_string()
    }

    /// Number of states, up to symmetry.
    #[getter]
    fn states(&self) -> u64 {
        self.facts.states
    }

    /// The fingerprint of the run. Equal results have equal fingerprints.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.facts.fingerprint
    }

    /// The value of a game before its first tiles.
    #[getter]
    fn start_value(&self) -> f64 {
        self.facts.start
    }

    /// Bound on the absolute error of `start_value`.
    #[getter]
    fn start_error_bound(&self) -> f64 {
        self.facts.error_bound
    }

    /// Whether the run stores the best moves of all states.
    #[getter]
    fn has_best_moves(&self) -> bool {
        self.oracle.params().contents().stores_best_moves()
    }

    /// Returns the run itself, because runs are immutable.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Pickles the run as a call that opens it with the same limits.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (OsString,))> {
        let Opened { place, cache_bytes, memory_bytes } = &self.opened;
        let limits = PyDict::new(py);
        limits.set_item("cache_bytes", cache_bytes)?;
        limits.set_item("memory_bytes", memory_bytes)?;
        let open =
            py.import("functools")?.getattr("partial")?.call((py.get_type::<Self>(),), Some(&limits))?;
        // Passes the place as a text, because a path would merge the two slashes of a URL.
        Ok((open, (place.clone().into_os_string(),)))
    }

    fn __repr__(&self) -> String {
        let params = self.oracle.params();
        format!(
            "<Run {:?}: {} {}, {} states, worth {:.3} at the start>",
            self.path,
            params.game().board(),
            params.game().objective(),
            self.facts.states,
            self.facts.start
        )
    }
}

fn actions(evaluation: &Evaluation) -> MoveAnswer {
    let mut values = [None; 4];
    for of_move in &evaluation.moves {
        values[of_move.direction as usize] = of_move.outcome.map(|outcome| outcome.value);
    }
    (values, evaluation.best)
}

/// The answer for a board of an array; `None` if the board is unreachable.
fn reachable<T>(answer: Result<T, QueryError>) -> PyResult<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(QueryError::Unreachable { .. }) => Ok(None),
        Err(error) => Err(of_query(&error)),
    }
}

/// Largest number of answers with moves in memory at once.
const TOGETHER: usize = 1 << 16;

/// Asks for the answers of many boards, [`TOGETHER`] boards at a time.
fn each<T>(boards: &[Packed], mut ask: impl FnMut(&[Packed]) -> PyResult<Vec<T>>) -> PyResult<Vec<T>> {
    let mut answers = Vec::with_capacity(boards.len());
    for some in boards.chunks(TOGETHER) {
        answers.extend(ask(some)?);
    }
    Ok(answers)
}

impl Run {
    /// Asks a question about boards. An interruption by the user ends the question.
    ///
    /// For a single board, first asks on the calling thread with a small memory limit. Most boards take a few
    /// microseconds, less than the start of a thread.
    fn ask<T: Send>(
        &self,
        boards: &[Packed],
        question: impl Fn(&Oracle, &QuestionLimits<'_>) -> Result<T, QueryError> + Sync,
    ) -> PyResult<T> {
        process::prepare()?;
        let (spent, most_bytes) = (CostSum::default(), self.oracle.cone_bytes());
        if boards.len() == 1 && QUICK_BYTES < most_bytes {
            match question(&self.oracle, &QuestionLimits::new(&|| true, QUICK_BYTES, &spent)) {
                Err(QueryError::TooLarge(_)) => {}
                answer => return answer.map_err(|error| of_query(&error)),
            }
        }
        let answer = process::interruptible(|wanted| {
            question(&self.oracle, &QuestionLimits::new(wanted, most_bytes, &spent))
        })?;
        answer.map_err(|error| of_query(&error))
    }

    /// The value of a state and of each of its moves.
    fn evaluation(&self, board: Packed) -> PyResult<Evaluation> {
        self.ask(&[board], |oracle, asking| oracle.evaluate_as(&[board], asking)?.swap_remove(0))
    }
}

impl Source for Run {
    fn values(&self, boards: &[Packed]) -> PyResult<Vec<Option<f64>>> {
        self.ask(boards, |oracle, asking| oracle.values_as(boards, asking))
    }

    fn actions(&self, boards: &[Packed]) -> PyResult<Vec<Option<MoveAnswer>>> {
        each(boards, |boards| {
            let answers = self.ask(boards, |oracle, asking| oracle.evaluate_as(boards, asking))?;
            answers.into_iter().map(|answer| Ok(reachable(answer)?.as_ref().map(actions))).collect()
        })
    }

    fn best(&self, boards: &[Packed]) -> PyResult<Vec<Option<Option<Move>>>> {
        if !self.has_best_moves() {
            let answers = self.actions(boards)?;
            return Ok(answers.into_iter().map(|answer| answer.map(|(_, best)| best)).collect());
        }
        each(boards, |boards| {
            let answers = self.ask(boards, |oracle, asking| oracle.advise_all(boards, asking.wanted))?;
            answers.into_iter().map(|answer| Ok(reachable(answer)?.map(|advice| advice.best))).collect()
        })
    }

    fn refusal(&self, board: Packed) -> PyErr {
        match self.evaluation(board) {
            Err(error) => error,
            Ok(_) => {
                let board = board.to_text(self.oracle.params().game().board());
                UnreachableError::new_err(format!("{board} is not reachable in this run"))
            }
        }
    }
}
