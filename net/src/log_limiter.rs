//! A rate limiter for log lines that clients of a port can cause, so that no client can fill the disk.

use std::num::NonZero;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Number of lines that pass at once.
const BURST: u32 = 100;

/// Limiter for log lines of one kind. It passes a burst of lines, and then one line per second.
#[derive(Debug, Default)]
pub struct LogLimiter(Mutex<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    /// Number of tokens that lines have taken.
    taken: u32,
    /// End of the time that `taken` accounts for.
    since: Option<Instant>,
    left_out: u64,
}

impl LogLimiter {
    /// Creates a limiter that has passed no line yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Tokens { taken: 0, since: None, left_out: 0 }))
    }

    /// Calls `log` unless the line must be dropped now. `log` receives the number of lines dropped since the last passed
    /// line, for a field of the line. `None` omits the field, because no line was dropped.
    pub fn pass(&self, log: impl FnOnce(Option<NonZero<u64>>)) {
        if let Some(left_out) = self.permit(Instant::now()) {
            log(left_out);
        }
    }

    fn permit(&self, now: Instant) -> Option<Option<NonZero<u64>>> {
        let mut tokens = self.0.lock();
        let since = *tokens.since.get_or_insert(now);
        let seconds = now.saturating_duration_since(since).as_secs();
        tokens.since = Some(since + Duration::from_secs(seconds));
        tokens.taken = tokens.taken.saturating_sub(u32::try_from(seconds).unwrap_or(BURST));
        if tokens.taken == BURST {
            tokens.left_out += 1;
            return None;
        }
        tokens.taken += 1;
        Some(NonZero::new(std::mem::take(&mut tokens.left_out)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_burst_pass_one_per_second() {
        let (lines, now) = (LogLimiter::new(), Instant::now());
        let passed = (0..20_000).filter(|_| lines.permit(now).is_some()).count();
        assert_eq!(passed, 100);
        assert_eq!(lines.permit(now + Duration::from_millis(900)), None);
        assert_eq!(lines.permit(now + Duration::from_millis(1100)), Some(NonZero::new(19_901)));
        assert_eq!(lines.permit(now + Duration::from_millis(1900)), None);
        assert_eq!(lines.permit(now + Duration::from_millis(2000)), Some(NonZero::new(1)));
        assert_eq!(lines.permit(now + Duration::from_secs(1000)), Some(None));
        assert_eq!((0..200).filter(|_| lines.permit(now + Duration::from_secs(1000)).is_some()).count(), 99);
    }
}
