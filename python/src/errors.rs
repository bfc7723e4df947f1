//! Errors as exceptions, with the same texts as in the `exact2048` program.

use exact2048_game::{BoardError as GameBoardError, ParamsError};
use exact2048_run::alone::RunSolveError;
use exact2048_solution::{QueryError, RunError};
use exact2048_storage::{ErrorKind, StorageError};
use exact2048_text::with_causes;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::{PyErr, create_exception};

create_exception!(exact2048, Exact2048Error, PyException, "Base class of all errors.");
create_exception!(exact2048, UsageError, Exact2048Error, "An argument is invalid.");
create_exception!(exact2048, BoardError, UsageError, "The argument is not a board or an array of boards.");
create_exception!(exact2048, UnreachableError, Exact2048Error, "The state is unreachable in the run.");
create_exception!(exact2048, NotSolvedError, Exact2048Error, "The run does not have the requested answers.");
create_exception!(
    exact2048,
    ServerError,
    Exact2048Error,
    "The server did not answer, or refused the request."
);

/// The exception for an invalid board.
pub fn of_board(error: &GameBoardError) -> PyErr {
    BoardError::new_err(error.to_string())
}

/// The exception for an invalid or unreadable location.
pub fn of_storage(error: &StorageError) -> PyErr {
    match error {
        StorageError::Settings { .. } => UsageError::new_err(error.to_string()),
        error => Exact2048Error::new_err(with_causes(error)),
    }
}

/// The exception for a question without an answer.
pub fn of_query(error: &QueryError) -> PyErr {
    let text = with_causes(error);
    match error {
        QueryError::Board(_) => BoardError::new_err(text),
        QueryError::Unreachable { .. } => UnreachableError::new_err(text),
        QueryError::MissingValues(_) | QueryError::NoBestMoves | QueryError::ReachRemoved(_) => {
            NotSolvedError::new_err(text)
        }
        QueryError::GivenUp => PyKeyboardInterrupt::new_err(text),
        QueryError::Read(_) | QueryError::TooLarge(_) | QueryError::TooSlow(_) => {
            Exact2048Error::new_err(text)
        }
    }
}

/// The exception for a run that cannot be opened or written.
pub fn of_run(error: &RunError) -> PyErr {
    match error {
        RunError::Params(error) => of_params(error),
        error if error.kind() == ErrorKind::Occupied => UsageError::new_err(with_causes(error)),
        error => Exact2048Error::new_err(with_causes(error)),
    }
}

/// The exception for a game that cannot be solved.
pub fn of_params(error: &ParamsError) -> PyErr {
    UsageError::new_err(error.to_string())
}

/// The exception for a solve that failed.
pub fn of_solve(error: &RunSolveError) -> PyErr {
    match error {
        RunSolveError::Stopped(_) => PyKeyboardInterrupt::new_err(error.to_string()),
        RunSolveError::OverDisk { .. } => UsageError::new_err(error.to_string()),
        RunSolveError::Run(error) => of_run(error),
        RunSolveError::Crew(error) => Exact2048Error::new_err(with_causes(error)),
    }
}
