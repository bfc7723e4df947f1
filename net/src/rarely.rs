//! Log lines that others can bring about: the first ones are written, then only how many there were.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Lines that are written of one kind within [`EVERY`].
const LINES: u32 = 10;

/// The time that lines are counted over.
const EVERY: Duration = Duration::from_secs(60);

/// Lets some lines of one kind pass.
#[derive(Debug, Default)]
pub struct Rarely(Mutex<Option<Count>>);

#[derive(Debug)]
struct Count {
    since: Instant,
    written: u32,
    left_out: u64,
}

impl Rarely {
    /// Lets lines pass from now on.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether a line may be written now, and how many were left out before it. The inner value is for a field of the
    /// line, which is missing where nothing was left out.
    pub fn may(&self, now: Instant) -> Option<Option<u64>> {
        let mut count = self.0.lock();
        let left_out = match &mut *count {
            Some(count) if now - count.since < EVERY => {
                if count.written == LINES {
                    count.left_out += 1;
                    return None;
                }
                count.written += 1;
                return Some(None);
            }
            Some(count) => count.left_out,
            None => 0,
        };
        *count = Some(Count { since: now, written: 1, left_out: 0 });
        Some((left_out > 0).then_some(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_lines_pass_and_the_rest_are_counted() {
        let (begun, rarely) = (Instant::now(), Rarely::default());
        let at = |seconds| rarely.may(begun + Duration::from_secs(seconds));
        for _ in 0..LINES {
            assert_eq!(at(0), Some(None));
        }
        for second in 0..7 {
            assert_eq!(at(second), None);
        }
        assert_eq!(at(60), Some(Some(7)));
        assert_eq!(at(61), Some(None));
        assert_eq!(at(300), Some(None), "nothing was left out since");
    }
}
