//! Answers for Python, from runs and servers.

use exact2048_game::rules::Move;
use exact2048_game::{Asked, Board as Packed};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::board::Question;
use crate::errors::Exact2048Error;

/// Best move in arrays if no move is legal.
pub(crate) const NO_MOVE: i8 = -1;

/// Best move in arrays for an unreachable board.
pub(crate) const NO_STATE: i8 = -2;

/// Values of the moves of a state; `None` for illegal moves.
pub(crate) type Actions = [Option<f64>; 4];

/// Values of the moves, and the best move, if any is legal.
pub(crate) type MoveAnswer = (Actions, Option<Move>);

/// Source of answers. Unreachable boards get `None`.
pub(crate) trait Source: Sync {
    /// The values of boards.
    fn values(&self, boards: &[Packed]) -> PyResult<Vec<Option<f64>>>;

    /// The values of moves, and the best move.
    fn actions(&self, boards: &[Packed]) -> PyResult<Vec<Option<MoveAnswer>>>;

    /// The best moves.
    fn best(&self, boards: &[Packed]) -> PyResult<Vec<Option<Option<Move>>>>;

    /// The exception for a board without an answer.
    fn refusal(&self, board: Packed) -> PyErr;
}

/// The value of a board, or the values of an array of boards; NaN for unreachable boards in an array.
pub fn value<'py>(py: Python<'py>, source: &impl Source, asked: &Question) -> PyResult<Bound<'py, PyAny>> {
    let values = py.detach(|| source.values(asked.boards()))?;
    match asked {
        Question::One(asked) => Ok(one(py, source, asked.board, values)?.into_pyobject(py)?.into_any()),
        Question::Many(_) => {
            let values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
            Ok(PyArray1::from_vec(py, values).into_any())
        }
    }
}

/// The values of the moves of a board, or of an array of boards.
pub fn action_values<'py>(
    py: Python<'py>,
    source: &impl Source,
    asked: &Question,
) -> PyResult<Bound<'py, PyAny>> {
    let answers = py.detach(|| source.actions(asked.boards()))?;
    let numbers = |actions: Actions| actions.map(|value| value.unwrap_or(f64::NAN));
    match asked {
        Question::One(Asked { board, perspective }) => {
            let (actions, _) = one(py, source, *board, answers)?;
            let shown = Move::ALL.map(|shown| numbers(actions)[perspective.of_run(shown) as usize]);
            Ok(PyArray1::from_vec(py, shown.to_vec()).into_any())
        }
        Question::Many(boards) => {
            let flat = answers
                .into_iter()
                .flat_map(|answer| answer.map_or([f64::NAN; 4], |(actions, _)| numbers(actions)));
            let array = Array2::from_shape_vec((boards.len(), 4), flat.collect());
            Ok(array.map_err(|error| Exact2048Error::new_err(error.to_string()))?.into_pyarray(py).into_any())
        }
    }
}

/// The name of the best move of a board, or the numbers of the best moves of an array of boards.
pub fn best<'py>(py: Python<'py>, source: &impl Source, asked: &Question) -> PyResult<Bound<'py, PyAny>> {
    let answers = py.detach(|| source.best(asked.boards()))?;
    match asked {
        Question::One(Asked { board, perspective }) => {
            let best = one(py, source, *board, answers)?;
            let best = best.map(|best| perspective.shown_move(best).name());
            Ok(best.into_pyobject(py)?.into_any())
        }
        Question::Many(_) => {
            let number = |answer: Option<Option<Move>>| match answer {
                Some(Some(best)) => best as i8,
                Some(None) => NO_MOVE,
                None => NO_STATE,
            };
            Ok(PyArray1::from_vec(py, answers.into_iter().map(number).collect()).into_any())
        }
    }
}

fn one<T>(py: Python<'_>, source: &impl Source, board: Packed, answers: Vec<Option<T>>) -> PyResult<T> {
    let answer = answers.into_iter().next().flatten();
    answer.ok_or_else(|| py.detach(|| source.refusal(board)))
}
