//! History of a rate in a few characters.

use std::time::Duration;

/// Largest number of bars. When all bars are full, pairs of bars merge, and each bar covers twice the time.
const MOST: usize = 12;

/// Initial time that a bar covers.
const FIRST: Duration = Duration::from_millis(250);

/// Bars from lowest to highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// History of a rate from the beginning to now. Bars cover equal times.
#[derive(Debug)]
pub struct Sparkline {
    interval: Duration,
    /// Rate times seconds of each bar. Only the last bar can be incomplete.
    sums: Vec<f64>,
    /// Time that the last bar covers so far.
    filled: Duration,
    /// Time of the last update.
    updated: Option<Duration>,
}

impl Default for Sparkline {
    fn default() -> Self {
        Self { interval: FIRST, sums: Vec::new(), filled: Duration::ZERO, updated: None }
    }
}

impl Sparkline {
    /// Records the rate since the last update. The first call only starts the clock.
    pub fn add(&mut self, rate: f64, now: Duration) {
        let mut left = now.saturating_sub(self.updated.replace(now).unwrap_or(now));
        while !left.is_zero() {
            let taken = left.min(self.room());
            left -= taken;
            self.filled += taken;
            self.sums.last_mut().into_iter().for_each(|sum| *sum += rate * taken.as_secs_f64());
        }
    }

    /// Time left in the last bar. Starts a new bar if the last bar is full.
    fn room(&mut self) -> Duration {
        if self.sums.is_empty() || self.filled == self.interval {
            if self.sums.len() == MOST {
                self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
                self.interval *= 2;
            }
            self.sums.push(0.0);
            self.filled = Duration::ZERO;
        }
        self.interval - self.filled
    }

    /// The rate in words, followed by as many bars as fit the terminal. Files and pipes get no bars.
    pub fn with_bars(&self, rate: &str, columns: Option<usize>) -> String {
        let bars = columns.map(|columns| self.text(columns / 4)).unwrap_or_default();
        format!("{rate} {bars}").trim_end().to_owned()
    }

    /// The newest bars, at most `most`, scaled to the largest rate. Empty if there are fewer than two.
    fn text(&self, most: usize) -> String {
        let newest = self.sums.len().saturating_sub(most);
        let seconds =
            |bar: usize| if bar + 1 == self.sums.len() { self.filled } else { self.interval }.as_secs_f64();
        let rates: Vec<f64> = (newest..self.sums.len()).map(|bar| self.sums[bar] / seconds(bar)).collect();
        let largest = rates.iter().copied().fold(0.0, f64::max);
        if rates.len() < 2 || largest <= 0.0 {
            return String::new();
        }
        let height = |rate: f64| (rate / largest * (BARS.len() - 1) as f64).round() as usize;
        rates.into_iter().map(|rate| BARS[height(rate).min(BARS.len() - 1)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sparkline with the rates at these times, in quarters of a second.
    fn recorded(rates: &[(u32, f64)]) -> Sparkline {
        let mut line = Sparkline::default();
        line.add(0.0, Duration::ZERO);
        rates.iter().for_each(|&(quarters, rate)| line.add(rate, FIRST * quarters));
        line
    }

    #[test]
    fn the_largest_rate_is_the_highest_bar() {
        assert_eq!(recorded(&[(1, 0.0), (2, 50.0), (3, 100.0), (4, 200.0), (6, 100.0)]).text(20), "▁▃▅█▅▅");
        assert_eq!(recorded(&[(1, 0.0), (2, 50.0), (3, 100.0), (4, 200.0), (6, 100.0)]).text(3), "█▅▅");
        assert_eq!(recorded(&[(1, 50.0), (2, 100.0)]).with_bars("100/s", Some(80)), "100/s ▅█");
        assert_eq!(recorded(&[(1, 50.0), (2, 100.0)]).with_bars("100/s", None), "100/s");
        assert_eq!(recorded(&[]).with_bars("0/s", Some(80)), "0/s");
        assert_eq!(recorded(&[(1, 5.0)]).text(20), "", "one bar shows no change");
        assert_eq!(recorded(&[(9, 0.0)]).text(20), "", "the rate was zero");
    }

    #[test]
    fn the_number_of_bars_is_limited() {
        // The rate doubles in the second half.
        for quarters in [20_u32, 100, 1_000, 100_000] {
            let rates: Vec<(u32, f64)> =
                (1..=quarters).map(|q| (q, if q <= quarters / 2 { 10.0 } else { 20.0 })).collect();
            let text = recorded(&rates).text(MOST);
            assert!((5..=MOST).contains(&text.chars().count()), "{quarters}: {text}");
            assert!(text.starts_with("▅▅") && text.ends_with("██"), "{quarters}: {text}");
        }
        assert_eq!(recorded(&[(1 << 20, 10.0)]).text(MOST).chars().collect::<String>().replace('█', ""), "");
    }
}
