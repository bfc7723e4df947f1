//! What is maximised, and how tiles are spawned.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the values of a run are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Objective {
    /// The expected score still to come under optimal play; a merge scores the new tile.
    Score,
    /// The highest probability of ever holding a tile of at least 2^exponent.
    Reach {
        /// Exponent of the wanted tile.
        exponent: u8,
    },
}

/// Why a text is no objective or no spawn probability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// Neither `score` nor `reach:TILE`.
    #[error(
        "objective {0:?} is not known; write score, or reach:TILE with a power of two from 8 to 32768 (for example reach:256)"
    )]
    Objective(String),
    /// Not a probability, or not one that is kept exactly.
    #[error("spawn4 {0:?} is not a probability; write a decimal or a fraction from 0 to 1 whose denominator is at most {max} in lowest terms (for example 0.1 or 1/10)", max = Spawn4::MAX_DENOMINATOR)]
    Spawn4(String),
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objective::Score => f.write_str("score"),
            Objective::Reach { exponent } => write!(f, "reach:{}", 1u32 << exponent),
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
        let tile: u32 = text.strip_prefix("reach:").ok_or_else(unknown)?.parse().map_err(|_| unknown())?;
        if !tile.is_power_of_two() || !(8..=32_768).contains(&tile) {
            return Err(unknown());
        }
        Ok(Objective::Reach { exponent: tile.trailing_zeros() as u8 })
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

/// The probability that a spawned tile is a 4, as a fraction in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spawn4 {
    numerator: u32,
    denominator: u32,
}

impl Spawn4 {
    /// Largest denominator: the sums that the mean over spawns needs must stay exact.
    pub const MAX_DENOMINATOR: u32 = 65_536;

    /// Weight of a spawned 4, in units of `1/denominator`.
    pub fn weight4(self) -> u32 {
        self.numerator
    }

    /// Weight of a spawned 2, in units of `1/denominator`.
    pub fn weight2(self) -> u32 {
        self.denominator - self.numerator
    }

    /// The common denominator of both weights.
    pub fn denominator(self) -> u32 {
        self.denominator
    }

    /// The nearest f64, for printing and for expectations outside the solver.
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
        let bad = || ObjectiveError::Spawn4(text.to_owned());
        let digits = |s: &str| {
            let plain = s.len() <= 18 && s.bytes().all(|b| b.is_ascii_digit());
            if plain { Ok(s.parse::<u64>().unwrap_or(0)) } else { Err(bad()) }
        };
        let (numerator, denominator) = if let Some((a, b)) = text.split_once('/') {
            if a.trim().is_empty() || b.trim().is_empty() {
                return Err(bad());
            }
            (digits(a.trim())?, digits(b.trim())?)
        } else {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let fraction = fraction.trim_end_matches('0');
            if text.is_empty() || text == "." || fraction.len() > 16 {
                return Err(bad());
            }
            let scale = 10u64.pow(fraction.len() as u32);
            let whole = digits(whole)?;
            if whole > 1 {
                return Err(bad());
            }
            (whole * scale + digits(fraction)?, scale)
        };
        if denominator == 0 || numerator > denominator {
            return Err(bad());
        }
        let divisor = gcd(numerator, denominator);
        let (numerator, denominator) = (numerator / divisor, denominator / divisor);
        if denominator > u64::from(Self::MAX_DENOMINATOR) {
            return Err(bad());
        }
        Ok(Self { numerator: numerator as u32, denominator: denominator as u32 })
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

    #[test]
    fn objectives() {
        assert_eq!("score".parse::<Objective>().unwrap(), Objective::Score);
        assert_eq!("reach:2048".parse::<Objective>().unwrap(), Objective::Reach { exponent: 11 });
        for text in ["reach:4", "reach:7", "reach:65536", "reach:", "reach", "Score"] {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }
}
