//! What this machine has, or less where the control groups of the process allow less.

use std::alloc::System;
use std::fs;

use bytesize::ByteSize;
use cap::Cap;
use exact2048_game::{BoardSize, Params};
use exact2048_run::machine;
use exact2048_worker::{Heap, Tuning, heap_limit_bytes, least_memory_bytes};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

pub use exact2048_run::machine::{free_memory_bytes, memory_bytes};

use crate::Failure;
use crate::units::{self, SizeUnits};

/// Counts what is on the heap, so that `--memory` limits all of it.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Live bytes on the heap of this process.
pub fn heap_bytes() -> usize {
    HEAP.allocated()
}

/// Bytes of resident memory, mapped files aside; 0 where unknown.
fn anonymous_bytes() -> usize {
    usize::try_from(status_bytes("RssAnon:")).unwrap_or(usize::MAX)
}

/// Gives pages of the heap that are free between live blocks back to the system.
fn give_back() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "the C library has no other door")]
    // SAFETY: `malloc_trim` only lets go of pages that no live block has, and locks for it.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes that a command may take: as asked for, or half of what there is.
pub fn memory_or_half(asked: Option<ByteSize>) -> u64 {
    asked.map_or_else(|| memory_bytes() / 2, |size| size.as_u64())
}

/// As many threads as asked for, at most a few for each core, or one for each core.
pub fn pool(asked: Option<u16>) -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new().num_threads(useful_threads(asked, None)).build()
}

/// The number of threads that have work of those asked for, or of one a core.
pub fn useful_threads(asked: Option<u16>, board: Option<BoardSize>) -> usize {
    machine::useful_threads(asked.map(usize::from), board)
}

/// How the kernels may use so much memory, with all else that is on the heap.
pub fn worker_tuning(memory_bytes: u64, threads: usize) -> Tuning {
    let heap = Heap { live_bytes: heap_bytes, resident_bytes: anonymous_bytes, give_back };
    Tuning::within(heap_limit_bytes(memory_bytes, threads), heap)
}

/// An error where the kernels need more memory for a job than they may take.
pub fn require_memory(memory_bytes: u64, params: &Params, threads: usize) -> Result<(), Failure> {
    require_at_least(least_memory_bytes(params, threads), memory_bytes, params, threads)
}

/// An error where statistics of a run need more memory than they may take.
pub fn require_memory_of_statistics(
    memory_bytes: u64,
    params: &Params,
    tuning: Tuning,
    threads: usize,
) -> Result<(), Failure> {
    require_at_least(tuning.least_statistics_bytes(params, threads), memory_bytes, params, threads)
}

fn require_at_least(least: u64, memory_bytes: u64, params: &Params, threads: usize) -> Result<(), Failure> {
    if memory_bytes >= least {
        return Ok(());
    }
    let sizes = SizeUnits::of(memory_bytes);
    Err(Failure::usage(format!(
        "--memory {} is too small: a {} board with {} needs at least {}; give more memory",
        sizes.size(memory_bytes),
        params.board,
        units::several(threads, "thread"),
        sizes.at_least(least),
    )))
}

/// Keeps what is resident close to what is in use. The allocator gives large blocks back to the system as soon as they
/// are freed; "large" grows with `heap_limit`: each such block costs a system call and fresh pages. And it has one
/// arena for each of the `threads` that are always busy, since every arena holds back freed memory of its own: with as
/// many as it would make by itself, 3x3 in 69 MiB held 50 to 73 MiB, by how its threads happened to meet.
pub fn tune_allocator(heap_limit: usize, threads: usize) {
    #[cfg(target_env = "gnu")]
    {
        let large = (heap_limit >> 10).clamp(128 << 10, 32 << 20) as libc::c_int;
        let arenas = libc::c_int::try_from(threads).unwrap_or(libc::c_int::MAX);
        #[allow(unsafe_code, reason = "a setting of the C library has no other door")]
        // SAFETY: `mallopt` only sets a parameter of the allocator, which locks for it.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large);
            libc::mallopt(libc::M_TRIM_THRESHOLD, large);
            libc::mallopt(libc::M_ARENA_MAX, arenas);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = (heap_limit, threads);
}

/// The most memory that was resident at once so far, mapped files included; 0 where unknown.
pub fn peak_rss_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// What the system says of this process; 0 where it does not.
fn status_bytes(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
