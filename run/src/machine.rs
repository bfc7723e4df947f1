//! The memory and the threads that this process may use: those of the machine, unless its control groups allow less.

mod cgroup;

use std::fs;
use std::path::Path;
use std::thread;

use exact2048_game::BoardSize;

/// The largest number of threads that a user may request, far above the number of cores of any machine.
pub const MOST_THREADS: u16 = 1024;

/// Most compute threads per core. While one thread waits for the disk, another can use its core. More threads than this
/// do not compute faster.
const THREADS_A_CORE: usize = 4;

/// Least number of boards per thread, reachable or not. With fewer boards, a further thread costs more than it saves.
const BOARDS_A_THREAD: u64 = 1 << 14;

/// Threads that a board of any size may have, so that small boards are computed in parallel too.
const THREADS_OF_ANY_BOARD: u64 = 4;

/// Threads that this process may run at once, by its CPU set and the CPU quota of its control groups.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The number of threads to use: the requested number, or else one per core.
///
/// It is limited to a few threads per core, and to fewer on a small board. No result depends on it.
pub fn useful_threads(asked: Option<usize>, board: Option<BoardSize>) -> usize {
    threads_within(cores(), asked, board)
}

fn threads_within(cores: usize, asked: Option<usize>, board: Option<BoardSize>) -> usize {
    // A cell of a board of n cells is empty, or holds a tile of an exponent from 1 to n + 1.
    let boards = |size: BoardSize| (size.cells() as u64 + 2).saturating_pow(size.cells() as u32);
    let of_board = board.map_or(u64::MAX, |size| (boards(size) / BOARDS_A_THREAD).max(THREADS_OF_ANY_BOARD));
    let most = usize::try_from(of_board).unwrap_or(usize::MAX).min(THREADS_A_CORE * cores);
    asked.unwrap_or(cores).clamp(1, most)
}

/// Memory available to the process in bytes: the machine's memory, or the limit of its control groups if that is less.
pub fn memory_bytes() -> u64 {
    let fallback = 2 << 30;
    let group = cgroup::memory(Path::new("/")).map_or(u64::MAX, |memory| memory.limit);
    meminfo("MemTotal:").unwrap_or(fallback).min(group)
}

/// Memory in bytes that is free, or that the system can free by dropping cached files; `None` if it is unknown.
pub fn free_memory_bytes() -> Option<u64> {
    let machine = meminfo("MemAvailable:");
    let group = cgroup::memory(Path::new("/")).map(|memory| memory.free);
    machine.into_iter().chain(group).min()
}

/// Memory in bytes that a process holds, without mapped files; 0 if it is unknown.
pub fn resident_bytes(process: u32) -> u64 {
    in_bytes(&format!("/proc/{process}/status"), "RssAnon:").unwrap_or(0)
}

/// The number in a line of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> Option<u64> {
    in_bytes("/proc/meminfo", name)
}

/// The number in a line of a file that counts in KiB, in bytes.
fn in_bytes(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_than_have_work() {
        for (cores, asked, board, threads) in [
            (2, Some(1000), Some("2x2"), 4),
            (2, Some(1000), Some("3x3"), 8),
            (2, Some(1000), None, 8),
            (2, Some(3), Some("3x3"), 3),
            (2, Some(0), None, 1),
            (128, None, Some("2x2"), 4),
            (128, None, Some("3x2"), 16),
            (128, None, Some("4x4"), 128),
            (1, Some(4), Some("2x2"), 4),
        ] {
            let size = board.map(|board| board.parse().unwrap());
            assert_eq!(threads_within(cores, asked, size), threads, "{cores} {asked:?} {board:?}");
        }
    }
}
