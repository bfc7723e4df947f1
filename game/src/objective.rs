//! Objectives, spawners and spawn probabilities.

use std::fmt;
use std::str::FromStr;

use exact2048_text::numbers::{count, mean, probability};
use serde::{Deserialize, Serialize};

/// Quantity that the values of a run measure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Objective {
    /// Expected future score under optimal play. A merge scores the value of the new tile.
    Score,
    /// Highest probability of ever holding a tile of at least 2^exponent.
    Reach {
        /// Exponent of the winning tile.
        exponent: u8,
    },
    /// Smallest probability of never holding a tile of at least 2^exponent.
    ///
    /// It equals 1 minus the value of `Reach`. Storing it directly preserves the digits of small probabilities.
    Lose {
        /// Exponent of the winning tile.
        exponent: u8,
    },
}

/// Unit of the values of an objective.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueUnit {
    /// Points of the score. The value of a move includes the points that the move scores.
    Points,
    /// Probability of a win or of a loss.
    Probability,
}

/// Words about an objective and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectiveWords {
    /// Goal of the player: `to reach 2,048`.
    pub goal: String,
    /// Short name of a value: `Chance to win`.
    pub value: &'static str,
    /// Description of a value: `probability of making 2048`.
    pub description: String,
}

/// Rule that places new tiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spawner {
    /// Chance: every empty cell is equally likely, and the tile is a 4 with probability [`Spawn4`].
    #[default]
    Random,
    /// Adversary: the spawn with the lowest value under optimal play, among the spawns that chance could choose.
    Worst,
}

/// Error when parsing an objective, a spawner, a discount or a spawn probability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// Neither `score`, `reach:TILE` nor `lose:TILE`.
    #[error(
        "objective {0:?} is not known; write score, or reach:TILE or lose:TILE with a power of two from 8 to 32768 (for \
         example reach:256)"
    )]
    Objective(String),
    /// Neither `random` nor `worst`.
    #[error("spawner {0:?} is not known; write random or worst")]
    Spawner(String),
    /// Not a discount, or a discount that cannot be stored exactly.
    #[error("discount {0:?} is not valid; write a decimal or a fraction above 0 and up to 1 with a denominator of at most {max} (for example 0.95 or 19/20)", max = MAX_DENOMINATOR)]
    Discount(String),
    /// Not a probability, or a probability that cannot be stored exactly.
    #[error("spawn4 {0:?} is not a probability; write a decimal or a fraction from 0 to 1 with a denominator of at most {max} (for example 0.1 or 1/10)", max = MAX_DENOMINATOR)]
    Spawn4(String),
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objective::Score => f.write_str("score"),
            Objective::Reach { exponent } => write!(f, "reach:{}", 1u32 << exponent),
            Objective::Lose { exponent } => write!(f, "lose:{}", 1u32 << exponent),
        }
    }
}

impl ValueUnit {
    /// Formats a value. Points have this number of decimals, and probabilities have six digits.
    #[must_use]
    pub fn text(self, value: f64, decimals: usize) -> String {
        match self {
            ValueUnit::Points => mean(value, decimals),
            ValueUnit::Probability => probability(value),
        }
    }
}

/// Properties of objectives. Other modules ask for these instead of matching on the objective.
impl Objective {
    /// Help of an option that takes an objective.
    pub const HELP: &'static str = "Choose the objective: score; reach:TILE for the highest probability of ever \
        holding TILE; lose:TILE for the lowest probability of never holding it, precise even if it is tiny";

    /// Unit of the values.
    pub fn unit(self) -> ValueUnit {
        match self {
            Objective::Score => ValueUnit::Points,
            Objective::Reach { .. } | Objective::Lose { .. } => ValueUnit::Probability,
        }
    }

    /// Whether the smaller of two values is better.
    pub fn is_less_better(self) -> bool {
        matches!(self, Objective::Lose { .. })
    }

    /// Whether the value is the mean score of games, or their share of wins. If so, played games measure it.
    pub fn is_mean_of_games(self) -> bool {
        matches!(self, Objective::Score | Objective::Reach { .. })
    }

    /// Converts a value to the probability of winning; `None` if values are not probabilities.
    pub fn winning_probability(self, value: f64) -> Option<f64> {
        match self {
            Objective::Score => None,
            Objective::Reach { .. } => Some(value),
            Objective::Lose { .. } => Some(1.0 - value),
        }
    }

    /// Words about the objective and its values.
    pub fn words(self) -> ObjectiveWords {
        let tile = self.winning_exponent().map_or(0, |exponent| 1u32 << exponent);
        let (goal, value, description) = match self {
            Objective::Score => {
                ("score".to_owned(), "Remaining score", "expected remaining score".to_owned())
            }
            Objective::Reach { .. } => (
                format!("to reach {}", count(tile)),
                "Chance to win",
                format!("probability of making {tile}"),
            ),
            Objective::Lose { .. } => (
                format!("not to lose {}", count(tile)),
                "Risk of losing",
                format!("probability of never making {tile}"),
            ),
        };
        ObjectiveWords { goal, value, description }
    }

    /// Exponent of the winning tile; `None` for the score.
    pub fn winning_exponent(self) -> Option<u8> {
        match self {
            Objective::Score => None,
            Objective::Reach { exponent } | Objective::Lose { exponent } => Some(exponent),
        }
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let unknown = || ObjectiveError::Objective(text.to_owned());
        if text == "score" {
            return Ok(Objective::Score);
        }
        let (kind, tile) = text.split_once(':').ok_or_else(unknown)?;
        let tile: u32 = tile.parse().map_err(|_| unknown())?;
        if !tile.is_power_of_two() || !(8..=32_768).contains(&tile) {
            return Err(unknown());
        }
        let exponent = tile.trailing_zeros() as u8;
        match kind {
            "reach" => Ok(Objective::Reach { exponent }),
            "lose" => Ok(Objective::Lose { exponent }),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Objective {
    type Error = ObjectiveError;

    fn try_from(text: String) -> Result<Self, ObjectiveError> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> String {
        objective.to_string()
    }
}

impl fmt::Display for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spawner::Random => "random",
            Spawner::Worst => "worst",
        })
    }
}

impl FromStr for Spawner {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        match text {
            "random" => Ok(Spawner::Random),
            "worst" => Ok(Spawner::Worst),
            _ => Err(ObjectiveError::Spawner(text.to_owned())),
        }
    }
}

/// Largest denominator of a probability or a discount. With this limit, the sums for a mean over spawns are exact.
pub(crate) const MAX_DENOMINATOR: u32 = 65_536;

/// Probability that a spawned tile is a 4, as a fraction in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spawn4 {
    numerator: u32,
    denominator: u32,
}

impl Spawn4 {
    /// Weight of a spawned 4, in units of `1/denominator`.
    pub fn weight4(self) -> u32 {
        self.numerator
    }

    /// Weight of a spawned 2, in units of `1/denominator`.
    pub fn weight2(self) -> u32 {
        self.denominator - self.numerator
    }

    /// Common denominator of both weights.
    pub fn denominator(self) -> u32 {
        self.denominator
    }

    /// Nearest f64, for printing and for expectations outside the solver.
    pub fn probability(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
}

impl Default for Spawn4 {
    /// One in ten, as in the original game.
    fn default() -> Self {
        Self { numerator: 1, denominator: 10 }
    }
}

impl fmt::Display for Spawn4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl FromStr for Spawn4 {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let (numerator, denominator) =
            fraction(text).ok_or_else(|| ObjectiveError::Spawn4(text.to_owned()))?;
        Ok(Self { numerator, denominator })
    }
}

impl TryFrom<String> for Spawn4 {
    type Error = ObjectiveError;

    fn try_from(text: String) -> Result<Self, ObjectiveError> {
        text.parse()
    }
}

impl From<Spawn4> for String {
    fn from(spawn4: Spawn4) -> String {
        spawn4.to_string()
    }
}

/// Parses a decimal or a fraction from 0 to 1. Returns the numerator and the denominator in lowest terms; `None` if
/// the denominator exceeds [`MAX_DENOMINATOR`].
pub(crate) fn fraction(text: &str) -> Option<(u32, u32)> {
    let digits = |s: &str| {
        let plain = s.len() <= 18 && s.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| s.parse::<u64>().unwrap_or(0))
    };
    let (numerator, denominator) = if let Some((a, b)) = text.split_once('/') {
        if a.trim().is_empty() || b.trim().is_empty() {
            return None;
        }
        (digits(a.trim())?, digits(b.trim())?)
    } else {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        if text.is_empty() || text == "." || fraction.len() > 16 {
            return None;
        }
        let scale = 10u64.pow(fraction.len() as u32);
        let whole = digits(whole)?;
        if whole > 1 {
            return None;
        }
        (whole * scale + digits(fraction)?, scale)
    };
    if denominator == 0 || numerator > denominator {
        return None;
    }
    let divisor = gcd(numerator, denominator);
    let (numerator, denominator) = (numerator / divisor, denominator / divisor);
    (denominator <= u64::from(MAX_DENOMINATOR)).then_some((numerator as u32, denominator as u32))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spawn4_is_exact_and_in_lowest_terms() {
        for (text, want) in [
            ("0.1", "1/10"),
            ("1/10", "1/10"),
            ("0.25", "1/4"),
            ("2/6", "1/3"),
            ("0", "0/1"),
            ("1.0", "1/1"),
            (".5", "1/2"),
        ] {
            assert_eq!(text.parse::<Spawn4>().unwrap().to_string(), want);
        }
        for text in
            ["1.1", "-0.1", "3/2", "1/0", "x", "", ".", "/", "1/", "0.1234567", "1/65537", "1e-1", "0,1"]
        {
            assert!(text.parse::<Spawn4>().is_err(), "{text}");
        }
    }

    /// Interfaces show these texts, so they are the same in all of them.
    #[test]
    fn words_and_units_describe_objectives() {
        for (objective, unit, less, of_games, goal, value, description) in [
            ("score", "1,234.5", false, true, "score", "Remaining score", "expected remaining score"),
            (
                "reach:2048",
                "1234.500000",
                false,
                true,
                "to reach 2,048",
                "Chance to win",
                "probability of making 2048",
            ),
            (
                "lose:64",
                "1234.500000",
                true,
                false,
                "not to lose 64",
                "Risk of losing",
                "probability of never making 64",
            ),
        ] {
            let objective: Objective = objective.parse().unwrap();
            assert_eq!(objective.unit().text(1234.5, 1), unit);
            assert_eq!((objective.is_less_better(), objective.is_mean_of_games()), (less, of_games));
            let words = objective.words();
            assert_eq!((&*words.goal, words.value, &*words.description), (goal, value, description));
        }
    }

    #[test]
    fn objectives_are_parsed_or_refused() {
        assert_eq!("score".parse::<Objective>().unwrap(), Objective::Score);
        assert_eq!("reach:2048".parse::<Objective>().unwrap(), Objective::Reach { exponent: 11 });
        assert_eq!("lose:64".parse::<Objective>().unwrap(), Objective::Lose { exponent: 6 });
        for text in
            ["reach:4", "reach:7", "reach:65536", "reach:", "reach", "Score", "lose", "lose:9", "win:8"]
        {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }
}
