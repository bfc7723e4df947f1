//! Work on the lanes of a layer in parallel.

use std::sync::atomic::{AtomicUsize, Ordering};

use exact2048_game::Lane;
use parking_lot::Mutex;

/// A function that is called for each lane of a layer, with the number of other threads that may help.
pub type OfLane<'a, T, E> = &'a (dyn Fn(Lane, usize) -> Result<T, E> + Sync);

/// Calls `of_lane` in parallel for each lane. Returns the results in the order of the lanes.
///
/// # Errors
///
/// The error of the first lane that has one.
pub fn for_lanes<T: Send, E: Send>(lanes: &[Lane], of_lane: OfLane<'_, T, E>) -> Result<Vec<T>, E> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    let (helpers, next) = (rayon::current_num_threads() - 1, AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    // Not a parallel iterator: with it, a thread that waits for pieces of a block could begin another block. That
    // block might then wait for memory that the same thread holds.
    rayon::broadcast(|_| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&lane) = lanes.get(number) else { break };
            let of_this = of_lane(lane, helpers);
            found.lock().push((number, of_this));
        }
    });
    let mut found = found.into_inner();
    found.sort_unstable_by_key(|&(number, _)| number);
    found.into_iter().map(|(_, of_lane)| of_lane).collect()
}
