//! The memory that this machine has, or less where the control groups of the process allow less.

mod cgroup;

use std::fs;
use std::path::Path;

/// Memory available to the process in bytes: the machine's, or what its control groups allow where that is less.
pub fn memory_bytes() -> u64 {
    let fallback = 2 << 30;
    let group = cgroup::memory(Path::new("/")).map_or(u64::MAX, |memory| memory.limit);
    meminfo("MemTotal:").unwrap_or(fallback).min(group)
}

/// Memory that is free in bytes, or could be made so by dropping what is cached; `None` where that is not known.
pub fn free_memory_bytes() -> Option<u64> {
    let machine = meminfo("MemAvailable:");
    let group = cgroup::memory(Path::new("/")).map(|memory| memory.free);
    machine.into_iter().chain(group).min()
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
