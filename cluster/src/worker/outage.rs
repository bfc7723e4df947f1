//! Outages of the coordinator. The log reports an outage at its beginning, every minute while it lasts, and at its end.

use std::time::{Duration, Instant};

/// Interval at which an outage is logged while it lasts.
const TELL: Duration = Duration::from_secs(60);

/// The current outage; `None` while the coordinator answers.
#[derive(Debug, Default)]
pub struct Outage(Option<Silence>);

#[derive(Debug)]
struct Silence {
    since: Instant,
    told: Instant,
}

impl Outage {
    /// Notes a missing answer. Returns whether the log should report it.
    pub fn note_silence(&mut self, now: Instant) -> bool {
        match &mut self.0 {
            None => self.0 = Some(Silence { since: now, told: now }),
            Some(silence) if now - silence.told >= TELL => silence.told = now,
            Some(_) => return false,
        }
        true
    }

    /// Notes an answer. Returns the duration of the outage that the answer ends, if any.
    pub fn note_answer(&mut self, now: Instant) -> Option<Duration> {
        self.0.take().map(|silence| now - silence.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_logged_every_minute_and_its_end_once() {
        let (begun, mut outage) = (Instant::now(), Outage::default());
        let after = |seconds: f64| begun + Duration::from_secs_f64(seconds);
        assert_eq!(outage.note_answer(begun), None);
        let told: Vec<u32> =
            (0..300).filter(|&half| outage.note_silence(after(f64::from(half) / 2.0))).collect();
        assert_eq!(told, [0, 120, 240]);
        assert_eq!(outage.note_answer(after(150.0)), Some(Duration::from_secs(150)));
        assert_eq!(outage.note_answer(after(151.0)), None);
        assert!(outage.note_silence(after(152.0)), "another outage is reported anew");
    }
}
