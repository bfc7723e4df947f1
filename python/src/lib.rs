//! exact2048 for Python: runs, servers, solving, and games to learn on.
//!
//! The Python package `exact2048` (in `python/exact2048/`) says what this module gives, with types; `docs/python.md` is for its
//! users. Whatever takes time releases the interpreter.

mod answers;
mod board;
mod boards;
mod client;
mod errors;
mod games;
mod process;
mod rules;
mod run;
mod solve;

use std::alloc::System;

use cap::Cap;

/// Counts what is on the heap, so that `memory` limits what solving takes.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

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
