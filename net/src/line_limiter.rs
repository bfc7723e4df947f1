//! A limiter for log lines that clients can cause. It passes the first lines, and then only a count of the rest.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Maximum number of lines of one kind that pass within [`EVERY`].
const LINES: u32 = 10;

/// Period of the limit.
const EVERY: Duration = Duration::from_secs(60);

/// Limiter for log lines of one kind.
#[derive(Debug, Default)]
pub struct LineLimiter(Mutex<Option<Count>>);

#[derive(Debug)]
struct Count {
    since: Instant,
    written: u32,
    left_out: u64,
}

impl LineLimiter {
    /// Creates a limiter that has passed no line yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns `None` if a line must be dropped now. The inner value is the number of lines dropped before this
    /// line, for a field of the line. An inner `None` omits the field, because no line was dropped.
    pub fn permit(&self, now: Instant) -> Option<Option<u64>> {
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
        let (begun, rarely) = (Instant::now(), LineLimiter::default());
        let at = |seconds| rarely.permit(begun + Duration::from_secs(seconds));
        for _ in 0..LINES {
            assert_eq!(at(0), Some(None));
        }
        for second in 0..7 {
            assert_eq!(at(second), None);
        }
        assert_eq!(at(60), Some(Some(7)));
        assert_eq!(at(61), Some(None));
        assert_eq!(at(300), Some(None), "no line was dropped since");
    }
}
