//! Statistics of many games.

use serde::Serialize;

use crate::game::{EarlyEnd, PlayedGame};

/// Sums over games. The order of the games does not matter.
#[derive(Clone, Default, Debug)]
pub struct Stats {
    scores: Vec<u64>,
    /// Numbers of games by the exponent of the largest tile.
    largest: [u64; 16],
    merges: [u64; 16],
    moves: u64,
    failed: u64,
    won: u64,
}

/// A share of the games, with a 95% confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WonShare {
    /// Number of the games in this share.
    pub games: u64,
    /// These games divided by all games.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Half the width of the 95% interval of the normal distribution, in standard deviations.
const Z95: f64 = 1.959_963_984_540_054;

impl Stats {
    /// Adds a game. If the player failed, the game counts only as failed.
    pub fn add(&mut self, game: &PlayedGame) {
        if game.cut_short == Some(EarlyEnd::PlayerFailed) {
            self.failed += 1;
            return;
        }
        self.won += u64::from(game.cut_short == Some(EarlyEnd::Won));
        self.scores.push(game.score);
        self.largest[usize::from(game.largest)] += 1;
        self.moves += game.steps.len() as u64;
        for (sum, merges) in self.merges.iter_mut().zip(game.merges) {
            *sum += u64::from(merges);
        }
    }

    /// Adds the games of other statistics.
    #[must_use]
    pub fn with(mut self, mut other: Self) -> Self {
        self.scores.append(&mut other.scores);
        for (sum, more) in self.largest.iter_mut().zip(other.largest) {
            *sum += more;
        }
        for (sum, more) in self.merges.iter_mut().zip(other.merges) {
            *sum += more;
        }
        self.moves += other.moves;
        self.failed += other.failed;
        self.won += other.won;
        self
    }

    /// Number of games played to an end.
    #[must_use]
    pub fn games(&self) -> u64 {
        self.scores.len() as u64
    }

    /// Number of games whose player failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Games that reached the target tile.
    #[must_use]
    pub fn won(&self) -> WonShare {
        self.share(self.won)
    }

    /// Number of moves of all games together.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Mean score, and half the width of its 95% confidence interval by Student's distribution.
    ///
    /// The width is NaN with fewer than two games.
    #[must_use]
    pub fn mean_score(&self) -> (f64, f64) {
        let mut scores: Vec<f64> = self.scores.iter().map(|&score| score as f64).collect();
        // Sorting makes the sum independent of the threads.
        scores.sort_unstable_by(f64::total_cmp);
        interval(&scores)
    }

    /// Returns, for each share, the lowest score s such that at least this share of the games scores at most s.
    #[must_use]
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        let mut scores = self.scores.clone();
        scores.sort_unstable();
        shares.map(|share| {
            let at = (share * scores.len() as f64).ceil() as usize;
            scores.get(at.saturating_sub(1)).copied().unwrap_or(0)
        })
    }

    /// Share of the games that reach each exponent, in descending order of exponents.
    ///
    /// The exponents range from the largest to the smallest exponent of a game's largest tile, without gaps.
    pub fn reached(&self) -> impl Iterator<Item = (u8, WonShare)> + '_ {
        let most = self.largest.iter().rposition(|&games| games > 0).unwrap_or(0);
        let least = self.largest.iter().position(|&games| games > 0).unwrap_or(0);
        (least.max(1)..=most)
            .rev()
            .map(|exponent| (exponent as u8, self.share(self.largest[exponent..].iter().sum())))
    }

    /// Exponents with the mean number of merges of two such tiles per game. Skips exponents without merges.
    pub fn merges_a_game(&self) -> impl Iterator<Item = (u8, f64)> + '_ {
        let games = self.games().max(1) as f64;
        (0..)
            .zip(self.merges)
            .filter(|&(_, merges)| merges > 0)
            .map(move |(e, merges)| (e, merges as f64 / games))
    }

    /// The share of `games` games among all games, with Wilson's interval (E. Wilson, 1927).
    fn share(&self, games: u64) -> WonShare {
        let (n, k, z2) = (self.games() as f64, games as f64, Z95 * Z95);
        if n == 0.0 {
            return WonShare { games, share: 0.0, low: 0.0, high: 1.0 };
        }
        let centre = (k + z2 / 2.0) / (n + z2);
        let half = Z95 * (k * (n - k) / n + z2 / 4.0).sqrt() / (n + z2);
        WonShare { games, share: k / n, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
    }
}

/// The mean of numbers, and half the width of its 95% confidence interval by Student's distribution.
pub(crate) fn interval(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count.max(1.0);
    if numbers.len() < 2 {
        return (mean, f64::NAN);
    }
    let squares = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
    let variance = squares / (count - 1.0);
    (mean, student95(count - 1.0) * (variance / count).sqrt())
}

/// Bound on the absolute value of a number with Student's distribution, at probability 95%.
///
/// For up to five degrees of freedom, the bound is from a table. For more, an expansion about the normal distribution
/// (Abramowitz and Stegun, 26.7.5) has an error of at most 0.1%.
fn student95(degrees: f64) -> f64 {
    const FIRST: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    if let Some(&known) = FIRST.get(degrees as usize - 1) {
        return known;
    }
    let z = Z95;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    z + (1..).zip(terms).map(|(power, term)| term / degrees.powi(power)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_a_published_example() {
        let stats = Stats { scores: vec![0; 10], ..Stats::default() };
        let share = stats.share(8);
        // Published worked example: 8 of 10 gives 0.4902 to 0.9433.
        assert!((share.low - 0.4902).abs() < 1e-4 && (share.high - 0.9433).abs() < 1e-4, "{share:?}");
        assert_eq!(stats.share(0).low, 0.0);
        assert!((stats.share(10).high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn intervals_of_few_numbers_match_the_tables() {
        // Published quantiles of Student's distribution.
        for (degrees, quantile) in [(1.0, 12.706), (6.0, 2.447), (10.0, 2.228), (30.0, 2.042), (120.0, 1.980)]
        {
            assert!((student95(degrees) / quantile - 1.0).abs() < 1e-3, "{degrees}");
        }
        let (mean, half) = interval(&[1.0, 3.0]);
        assert!(mean == 2.0 && (half - 12.706).abs() < 1e-9);
        assert!(interval(&[5.0]).1.is_nan() && interval(&[]).1.is_nan());
    }

    #[test]
    fn quantiles_are_scores_that_occurred() {
        let stats = Stats { scores: vec![40, 10, 30, 20], ..Stats::default() };
        assert_eq!(stats.quantiles([0.0, 0.25, 0.5, 0.51, 1.0]), [10, 10, 20, 30, 40]);
        assert_eq!(Stats::default().quantiles([0.5]), [0]);
        assert_eq!(stats.mean_score().0, 25.0);
    }
}
