//! exact2048 for Python: runs, servers, solving, and games for learning.
//!
//! The Python package `exact2048` (in `python/exact2048/`) declares the contents of this module with types. `docs/python.md`
//! is the guide to the package. Calls that take time release the interpreter.

mod answers;
mod board;
mod client;
mod errors;
mod games;
mod memory;
mod process;
mod rules;
mod run;
mod solve;

#[pyo3::pymodule]
mod _exact2048 {
    #[pymodule_export]
    use crate::board::Board;
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::errors::{
        BoardError, Exact2048Error, NotSolvedError, ServerError, UnreachableError, UsageError,
    };
    #[pymodule_export]
    use crate::games::Games;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::solve::solve;

    #[pymodule_export]
    const __VERSION__: &str = env!("CARGO_PKG_VERSION");
}
