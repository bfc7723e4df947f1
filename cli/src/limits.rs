//! What this machine, or the control group the process runs in, has.

use std::alloc::System;
use std::fs;

use cap::Cap;

/// Counts what is on the heap, so that `--memory` limits all of it.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Live bytes on the heap of this process.
pub fn heap_bytes() -> usize {
    HEAP.allocated()
}

/// Has the allocator give large blocks back to the system as soon as they are freed, so that what is resident
/// stays close to what is in use. "Large" grows with `heap_limit`: each such block costs a system call and
/// fresh pages.
pub fn return_freed_memory(heap_limit: usize) {
    #[cfg(target_env = "gnu")]
    {
        let large = (heap_limit >> 10).clamp(128 << 10, 32 << 20) as libc::c_int;
        #[allow(unsafe_code, reason = "a setting of the C library has no other door")]
        // SAFETY: `mallopt` only sets a parameter of the allocator, which locks for it.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large);
            libc::mallopt(libc::M_TRIM_THRESHOLD, large);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = heap_limit;
}

/// Memory available to the process in bytes: the machine's, or its control group's where less.
pub fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
    });
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = groups.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    let fallback = 2 << 30;
    machine.unwrap_or(fallback).min(group.unwrap_or(u64::MAX))
}

/// Number of threads the process may use at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The most memory that was resident at once so far, mapped files included; 0 where unknown.
pub fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
