//! Splitting work over threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below this many items threads cost more than they save.
const WORTH_A_THREAD: usize = 256;

/// Runs `work` on ranges that cover `0..count`, one a thread at least where there are enough items,
/// and returns the results in the order of the ranges.
pub fn ranges<T: Send>(threads: usize, count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let pieces = threads.min(count.div_ceil(WORTH_A_THREAD)).max(1);
    if pieces == 1 {
        return vec![work(0..count)];
    }
    let bounds = |i: usize| count * i / pieces..count * (i + 1) / pieces;
    let work = &work;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..pieces).map(|i| scope.spawn(move || work(bounds(i)))).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
            .collect()
    })
}

/// Runs `work` on each of `0..count`, for items that take unequally long each, and returns the results
/// in order.
pub fn each<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if threads.min(count) <= 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return done;
            }
            done.push((i, work(i)));
        }
    };
    let mut all: Vec<(usize, T)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(take)).collect();
        handles.into_iter().flat_map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        for count in [0, 1, 255, 1000, 4096] {
            let all: Vec<usize> = ranges(3, count, |range| range.collect::<Vec<_>>()).concat();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            assert_eq!(each(3, count, |i| i), all);
        }
    }
}
