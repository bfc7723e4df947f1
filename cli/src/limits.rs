//! Limits of memory and threads. The limits are those of the machine, or those of the process's control groups if lower.

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

/// Allocator that counts the heap, so `--memory` can limit the whole heap.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Number of live bytes on the heap of this process.
pub fn heap_bytes() -> usize {
    HEAP.allocated()
}

/// Number of bytes of resident memory without mapped files; 0 if unknown.
fn anonymous_bytes() -> usize {
    usize::try_from(status_bytes("RssAnon:")).unwrap_or(usize::MAX)
}

/// Returns free pages between live blocks of the heap to the system.
fn give_back() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "only the C library can do this")]
    // SAFETY: `malloc_trim` only releases pages without live blocks, and takes the lock of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory limit of a command in bytes: the given limit, or half of the memory.
pub fn memory_or_half(asked: Option<ByteSize>) -> u64 {
    asked.map_or_else(|| memory_bytes() / 2, |size| size.as_u64())
}

/// Thread pool of the given size, but at most a few threads per core. The default is one thread per core.
pub fn pool(asked: Option<u16>) -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new().num_threads(useful_threads(asked, None)).build()
}

/// Number of threads that the work can occupy. At most the given number, or one thread per core by default.
pub fn useful_threads(asked: Option<u16>, board: Option<BoardSize>) -> usize {
    machine::useful_threads(asked.map(usize::from), board)
}

/// Tuning of the kernels for a memory limit that includes the rest of the heap.
pub fn worker_tuning(memory_bytes: u64, threads: usize) -> Tuning {
    let heap = Heap { live_bytes: heap_bytes, resident_bytes: anonymous_bytes, give_back };
    Tuning::within(heap_limit_bytes(memory_bytes, threads), heap)
}

/// Refuses a memory limit that is too small for the kernels on a job.
pub fn require_memory(memory_bytes: u64, params: &Params, threads: usize) -> Result<(), Failure> {
    if !params.game().is_whole() {
        // Few of the blocks occur, and it is not known which.
        return Ok(());
    }
    require_at_least(least_memory_bytes(params, threads), memory_bytes, params, threads)
}

/// Refuses a memory limit that is too small for the statistics of a run.
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
        params.game().board(),
        units::several(threads, "thread"),
        sizes.at_least(least),
    )))
}

/// Tunes the allocator so that resident memory stays close to live memory.
///
/// The allocator returns blocks above a threshold to the system as soon as they are freed. The threshold grows with
/// `heap_limit`, because each such block costs a system call and fresh pages. The allocator gets one arena per busy
/// thread, because every arena retains freed memory. With the default number of arenas, a solve of 3x3 with a limit of
/// 69 MiB held 50 to 73 MiB, depending on the timing of the threads.
pub fn tune_allocator(heap_limit: usize, threads: usize) {
    #[cfg(target_env = "gnu")]
    {
        let large = (heap_limit >> 10).clamp(128 << 10, 32 << 20) as libc::c_int;
        let arenas = libc::c_int::try_from(threads).unwrap_or(libc::c_int::MAX);
        #[allow(unsafe_code, reason = "only the C library has this setting")]
        // SAFETY: `mallopt` only sets a parameter of the allocator, under its lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large);
            libc::mallopt(libc::M_TRIM_THRESHOLD, large);
            libc::mallopt(libc::M_ARENA_MAX, arenas);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = (heap_limit, threads);
}

/// Peak of resident memory so far, including mapped files; 0 if unknown.
pub fn peak_rss_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// A field of `/proc/self/status` in bytes; 0 if unknown.
fn status_bytes(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
