//! A layer's states in memory: sorted boards, their values, and which of them something leads to.

use std::sync::atomic::{AtomicBool, Ordering};

/// The states of a layer.
#[derive(Debug, Default)]
pub struct Boards {
    boards: Vec<u64>,
    values: Option<Vec<u64>>,
    led_to: Vec<AtomicBool>,
}

impl Boards {
    /// Canonical boards, ascending, and their values where they are known.
    pub fn new(boards: Vec<u64>, values: Option<Vec<u64>>) -> Self {
        let led_to = boards.iter().map(|_| AtomicBool::new(false)).collect();
        Self { boards, values, led_to }
    }

    /// The boards.
    pub fn boards(&self) -> &[u64] {
        &self.boards
    }

    /// The values of the boards, where they are known.
    pub fn values(&self) -> Option<&[u64]> {
        self.values.as_deref()
    }

    /// Sets the values.
    pub fn set_values(&mut self, values: Option<Vec<u64>>) {
        self.values = values;
    }

    /// Whether values can be looked up: they are known, or there are no states.
    pub fn has_values(&self) -> bool {
        self.values.is_some() || self.boards.is_empty()
    }

    /// Notes that something leads to a board, and returns its value (0 where values are not known);
    /// `None` where it is no state.
    pub fn lead_to(&self, board: u64) -> Option<u64> {
        let at = self.boards.binary_search(&board).ok()?;
        // Read first: most boards are led to many times, and writing would take the line from other cores.
        if !self.led_to[at].load(Ordering::Relaxed) {
            self.led_to[at].store(true, Ordering::Relaxed);
        }
        Some(self.values.as_ref().map_or(0, |values| values[at]))
    }

    /// The boards that nothing was noted to lead to.
    pub fn not_led_to(&self) -> impl Iterator<Item = u64> + '_ {
        self.boards
            .iter()
            .zip(&self.led_to)
            .filter(|(_, led)| !led.load(Ordering::Relaxed))
            .map(|(&board, _)| board)
    }
}

/// One sorted vector of several sorted ones, emptied.
pub fn merge<T: Ord>(sorted: &mut [Vec<T>]) -> Vec<T> {
    let mut all = Vec::with_capacity(sorted.iter().map(Vec::len).sum());
    sorted.iter_mut().for_each(|part| all.append(part));
    // The stable sort finds the sorted runs and merges them.
    all.sort();
    all
}
