//! The heap of the process, and the tuning of the kernels for a memory limit.

use std::alloc::System;

use cap::Cap;
use exact2048_game::Params;
use exact2048_run::machine;
use exact2048_worker::{Heap, Tuning, heap_limit_bytes, least_memory_bytes};
use pyo3::prelude::*;

use crate::errors::UsageError;

/// Allocator that counts the bytes on the heap. `memory_bytes` of a solve needs this count.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Tuning of the kernels for a memory limit of `memory_bytes`, or of half the machine's memory by default.
pub(crate) fn tuning(params: &Params, threads: usize, memory_bytes: Option<u64>) -> PyResult<Tuning> {
    let least = least_memory_bytes(params, threads);
    let limit = memory_bytes.unwrap_or_else(|| (machine::memory_bytes() / 2).max(least));
    if limit < least {
        return Err(UsageError::new_err(format!(
            "memory_bytes {limit} is too small: a {} board with {threads} threads needs at least {least}",
            params.game().board()
        )));
    }
    Ok(within(limit, threads).for_run(params))
}

/// Tuning of the kernels for a memory limit.
pub(crate) fn within(memory_bytes: u64, threads: usize) -> Tuning {
    // The current heap, for example of the interpreter, does not count towards the solver's limit.
    let limit_bytes = heap_limit_bytes(memory_bytes, threads) + heap_bytes() as u64;
    Tuning::within(limit_bytes, Heap::of(heap_bytes))
}

fn heap_bytes() -> usize {
    HEAP.allocated()
}
