//! Discount of a win by the number of moves that the win takes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::objective::{ObjectiveError, fraction};

/// Factor γ, 0 < γ ≤ 1, in lowest terms. A win after n moves has the value γ^n now. With γ = 1, the number of moves
/// does not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Discount {
    numerator: u32,
    denominator: u32,
}

impl Discount {
    /// No discount: γ = 1.
    pub const NONE: Discount = Discount { numerator: 1, denominator: 1 };

    /// Numerator of γ.
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// Nearest floating-point number.
    pub fn factor(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// Denominator of γ, at most 65,536.
    pub fn denominator(self) -> u32 {
        self.denominator
    }
}

impl Default for Discount {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Discount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl FromStr for Discount {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let (numerator, denominator) = fraction(text)
            .filter(|&(numerator, _)| numerator > 0)
            .ok_or_else(|| ObjectiveError::Discount(text.to_owned()))?;
        Ok(Self { numerator, denominator })
    }
}

impl TryFrom<String> for Discount {
    type Error = ObjectiveError;

    fn try_from(text: String) -> Result<Self, ObjectiveError> {
        text.parse()
    }
}

impl From<Discount> for String {
    fn from(discount: Discount) -> String {
        discount.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discounts_are_exact_and_in_lowest_terms() {
        for (text, want) in
            [("0.95", "19/20"), ("99/100", "99/100"), ("1", "1/1"), ("2/2", "1/1"), (".5", "1/2")]
        {
            assert_eq!(text.parse::<Discount>().unwrap().to_string(), want);
        }
        for text in ["0", "0/3", "1.01", "-0.5", "x", "", "1/65537", "0.99999999"] {
            assert!(text.parse::<Discount>().is_err(), "{text}");
        }
    }
}
