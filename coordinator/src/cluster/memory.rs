//! The memory that a job needs on a worker.

use exact2048_text::numbers::{SizeUnits, several};

/// Least memory of a worker, by its number of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeastMemory {
    /// Pairs of a number of threads and its bytes, by ascending threads.
    by_threads: Vec<(u32, u64)>,
}

impl LeastMemory {
    /// Takes pairs of threads and bytes, in any order. A number of threads between the pairs needs as many bytes
    /// as the next higher pair. Above the highest pair, the need grows in proportion. Without pairs, any memory
    /// suffices.
    pub fn new(mut by_threads: Vec<(u32, u64)>) -> Self {
        by_threads.sort_unstable();
        Self { by_threads }
    }

    /// Returns the bytes that a worker with this many threads needs.
    pub fn bytes(&self, threads: u32) -> u64 {
        if let Some(&(_, bytes)) = self.by_threads.iter().find(|&&(known, _)| known >= threads) {
            return bytes;
        }
        let Some(&(known, bytes)) = self.by_threads.last() else { return 0 };
        (u128::from(bytes) * u128::from(threads)).div_ceil(u128::from(known.max(1))) as u64
    }
}

/// Describes a job's memory need and the memory of the closest worker.
pub(super) fn too_small(needed_bytes: u64, threads: u32, memory_bytes: u64) -> String {
    let (threads, units) = (several(threads, "thread"), SizeUnits::of(memory_bytes));
    format!(
        "expected {} of memory with {threads}, found {} on the closest worker; give workers more memory, or \
         fewer threads",
        units.at_least(needed_bytes),
        units.at_most(memory_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_memory_between_and_beyond_known_threads() {
        let least = LeastMemory::new(vec![(4, 400), (1, 100)]);
        assert_eq!([0, 1, 2, 4, 8].map(|threads| least.bytes(threads)), [100, 100, 400, 400, 800]);
        assert_eq!(LeastMemory::new(vec![]).bytes(3), 0);
    }
}
