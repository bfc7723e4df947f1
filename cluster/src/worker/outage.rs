//! A coordinator that does not answer: the log says so at the beginning, now and then while it lasts, and at the end.

use std::time::{Duration, Instant};

/// How often an outage is logged while it lasts.
const TELL: Duration = Duration::from_secs(60);

/// Since when there is no answer; `None` while there are answers.
#[derive(Debug, Default)]
pub struct Outage(Option<Silence>);

#[derive(Debug)]
struct Silence {
    since: Instant,
    told: Instant,
}

impl Outage {
    /// Notes that there was no answer; says whether that is worth a line of the log.
    pub fn goes_on(&mut self, now: Instant) -> bool {
        match &mut self.0 {
            None => self.0 = Some(Silence { since: now, told: now }),
            Some(silence) if now - silence.told >= TELL => silence.told = now,
            Some(_) => return false,
        }
        true
    }

    /// Notes that there was an answer; says how long there had been no answer before, if that was so.
    pub fn ends(&mut self, now: Instant) -> Option<Duration> {
        self.0.take().map(|silence| now - silence.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_now_and_then_and_its_end_once() {
        let (begun, mut outage) = (Instant::now(), Outage::default());
        let after = |seconds: f64| begun + Duration::from_secs_f64(seconds);
        assert_eq!(outage.ends(begun), None);
        let told: Vec<u32> = (0..300).filter(|&half| outage.goes_on(after(f64::from(half) / 2.0))).collect();
        assert_eq!(told, [0, 120, 240]);
        assert_eq!(outage.ends(after(150.0)), Some(Duration::from_secs(150)));
        assert_eq!(outage.ends(after(151.0)), None);
        assert!(outage.goes_on(after(152.0)), "another outage is reported anew");
    }
}
